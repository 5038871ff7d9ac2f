"""The checks that may refuse a study, before anything is made."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import check_option_folder
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import validate
from menagerie.envs.worlds import load_world
from menagerie.models.recipe import Recipe, negatives_of
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.cluster.jobs import check_cluster
from menagerie.studies.frame.adaptive import all_arms
from menagerie.studies.frame.cells import (
    PAPER_FIELDS,
    PAPER_RECIPES,
    SEARCHED,
    paper_recipe,
    parser_hash,
    tuned_recipes,
)
from menagerie.studies.frame.options import SplitOptions
from menagerie.studies.frame.study import AnyStudy, SplitStudy, Study, takes_negatives
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.loggers import check_loggers
from menagerie.studies.runs.machine import check_device, check_device_here, check_precision, start_server
from menagerie.studies.runs.together import check_sharing, processes, processes_of


def check_preset(name: str, study: AnyStudy) -> None:
    """Raise for a preset whose `recipe` isn't a training recipe, such as the name of a split's recipe."""
    if isinstance(study, SplitStudy) and not isinstance(study.recipe, Recipe):
        raise UserError(
            f"the recipe of preset {name!r} must be one of training, a Recipe, got {study.recipe!r}; the recipe of its "
            "splits stands in its class, such as plain_recipe = MultiObjectRecipe() (docs/extending.md)"
        )


def check_given(study: AnyStudy, preset: AnyStudy) -> None:
    """Raise for unknown models, and for options that differ from their preset's and would change nothing."""
    if isinstance(study, Study):
        for model in study.models:
            check_scorer(model)
    study.check_given(preset)
    if isinstance(study, SplitStudy):
        check_overrides(study, preset)
        check_files(study, preset)


def check_study(study: AnyStudy) -> None:
    """Raise if the options or runs of a study can't work."""
    validate(study)
    if isinstance(study, Study):
        check_loggers(study.log)
    check_device(study.device)
    check_option_folder("--store", study.store)
    gpus = int(study.device.startswith("cuda"))
    check_cluster(study.cluster, study.out or Path("runs"), study.threads, gpus, trains=True)
    if isinstance(study, SplitStudy):
        check_graphs(study)
    study.check()
    arms = all_arms(study)
    cells = [arm.cell for arm in arms if isinstance(arm.cell, Cell)]
    for cell in cells:
        check_precision(cell.recipe.precision, cell.device)
    check_sharing(study, cells)
    check_splits(cells)
    check_states(study)
    check_image_negatives(cells)
    check_text_negatives(study, cells)
    # A machine from which jobs are submitted may have no GPU.
    device = study.device if study.cluster.engine != "slurm" else "cpu"
    checked = (device, distinct_models(cells), processes_of(study))
    if study.dry_run:  # it needs torch in this process anyway
        os.environ["OMP_NUM_THREADS"] = str(study.threads or 1)  # several would wait for one another
        check_machine(*checked)
    else:
        start_server(study.threads)
        call_in_child(check_machine, *checked)


def check_splits(cells: Iterable[Cell]) -> None:
    """Raise for a split recipe without training scenes, with rules that its world doesn't allow, or with impossible
    fractions."""
    for recipe in dict.fromkeys(cell.data.recipe for cell in cells if hasattr(cell.data, "recipe")):
        if not recipe.trains:
            raise UserError(f"a {recipe.kind} split has nothing to train on; it is for models that are trained already")
        recipe.rules(load_world(recipe.world))
        recipe.counts()


def check_states(study: AnyStudy) -> None:
    """Raise for a step of `--keep-states` that not even the longest run reaches."""
    if not (steps := getattr(study, "keep_states", ())):
        return
    most = max((arm.cell.recipe.steps for arm in all_arms(study) if isinstance(arm.cell, Cell)), default=None)
    if most is not None and max(steps) > most:
        raise UserError(f"--keep-states {max(steps)}: no run has so many steps; the longest has {most}")


def check_image_negatives(cells: Iterable[Cell]) -> None:
    """Raise if batches must have the counterfactuals of images, but the training pairs of some cell have none."""
    if any(cell.recipe.image_negatives and not cell.data.counts().get("swapped_pairs", 1) for cell in cells):
        raise UserError(
            "--image-negatives puts training images and their counterfactuals into one batch, but at some place no "
            "training pair has any: give --hard-negatives above 0 (or a --split that has them), or leave it out"
        )


def check_text_negatives(study: AnyStudy, cells: Sequence[Cell]) -> None:
    """Raise if the loss of a planned cell, or of every model, can't use the false captions of its recipe."""
    idle = {cell.model: None for cell in cells if not takes_negatives(cell)}
    if isinstance(study, SplitStudy) and study.recipe.text_negatives:
        left_out = [model for model in study.models if not spec_of(model).takes_negatives]
        idle |= dict.fromkeys(left_out if len(left_out) == len(study.models) else ())
    if idle:
        raise UserError(f"no loss of {', '.join(idle)} takes false captions; leave out --text-negatives, or the model")


def distinct_models(cells: Iterable[Cell]) -> list[Cell]:
    """Keep one cell of each combination of model, towers and options."""
    return list({(cell.model, cell.towers, str(cell.options)): cell for cell in cells}.values())


def check_machine(device: str, cells: Sequence[Cell], count: int) -> None:
    """Raise for towers, scorers or a device that can't work on this machine. `count` processes train each cell. Imports
    torch."""
    from menagerie.models.towers.build import check_towers

    check_device_here(device, int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if processes() > 1 else count)
    for towers in dict.fromkeys(cell.towers for cell in cells):
        check_towers(towers)
    seen: set[str] = set()
    for cell in cells:
        if cell.model not in seen and ":" in cell.model:
            print(f"checking {cell.model} against the contract of scorers", flush=True)  # it takes some seconds
        check_model(cell, count, whole=cell.model not in seen)
        seen.add(cell.model)


def check_model(cell: Cell, count: int = 1, whole: bool = True) -> None:
    """Raise if a cell's model can't be built as configured, can't be trained by `count` processes together or, if
    `whole`, breaks the contract of scorers.

    The contract is checked on these very towers if they are small, else on the smallest.
    """
    from menagerie.models.contract import attempt, build_for_contract, check_contract
    from menagerie.models.towers.config import SMALL_TOWERS
    from menagerie.models.training.encoding import check_together

    negatives = bool(negatives_of(cell.recipe, cell.negatives).texts)
    scratch, options = replace(cell.towers, pretrained=""), dict(cell.options)
    small = cell.towers.architecture in SMALL_TOWERS
    if count > 1 or not (small and whole):
        words = f"on {cell.towers.architecture} can't be built"
        built = attempt(cell.model, words, partial(build_for_contract, cell.model, scratch, options))
        if count > 1:
            check_together(built, cell.recipe, count)
    if whole and small:
        check_contract(cell.model, cell.towers, options, negatives)
    elif whole:
        nano = replace(scratch, architecture="nano", resolution=32, tokenizer="")
        check_contract(cell.model, nano, dict(spec_of(cell.model).smoke), negatives)


def check_rows(rows: Mapping[str, Cell]) -> None:
    """Raise for a cell whose model can't be built. `rows` has cells by the names of their rows. Imports torch."""
    from menagerie.models.contract import attempt, build_for_contract

    for line, cell in rows.items():
        scratch = replace(cell.towers, pretrained="")
        attempt(
            f"{cell.model} in row {line!r}",
            "can't be built",
            partial(build_for_contract, cell.model, scratch, cell.options),
        )


def check_graphs(study: SplitOptions) -> None:
    """Raise if no model reads the requested graphs, or if their parser can't work here."""
    if study.graph_source.plain:
        return
    if not any("graphs" in spec_of(model).reads for model in study.models):
        raise UserError(
            f"none of {', '.join(study.models)} reads scene graphs: --graphs, --dropped-nodes and --moved-attributes "
            "change nothing; add a model that does, such as oc-clip, or leave them out"
        )
    parser_hash(study.graph_source.graphs)


def check_overrides(study: SplitOptions, preset: SplitOptions) -> None:
    """Raise for a given option that tuned recipes, or those of papers, would replace."""
    given = [item.name for item in fields(Recipe) if values_differ(study.recipe, preset.recipe, item.name)]
    given += [name for name in ("architecture", "pretrained") if values_differ(study, preset, name)]
    # Models whose recipe is the study's own take these options.
    lost = [
        f"--{name.replace('_', '-')}" for name in given if all(name in replaced_options(study, m) for m in study.models)
    ]
    for model, best in tuned_recipes(study).items():
        spec = spec_of(model)
        config, before = study.scorers.config(model), preset.scorers.config(model)
        changed = [name for name in best.options if values_differ(config, before, name)]
        lost += [f"--{spec.name}.{name.replace('_', '-')}" for name in changed]
    if lost and study.pretrained and study.tuned in ("", PAPER_RECIPES):
        raise UserError(f"{lost[0]} is replaced by what each model's paper has with --pretrained weights; leave it out")
    if lost:
        raise UserError(f"{lost[0]} is replaced by the recipes of --tuned {study.tuned}; add --tuned '' to set it")


def values_differ(first: object, second: object, name: str) -> bool:
    """Whether two configurations have different values of a field."""
    return bool(getattr(first, name) != getattr(second, name))


def replaced_options(study: SplitOptions, model: str) -> Sequence[str]:
    """Return the options for which a model doesn't take the study's values."""
    if model in tuned_recipes(study):
        return (*SEARCHED, "architecture", "pretrained")
    return PAPER_FIELDS if paper_recipe(study, model) else ()


def check_files(study: SplitOptions, preset: SplitOptions) -> None:
    """Raise for options beside `--split` that would change nothing."""
    if not study.split:
        return
    names = {item.name for item in fields(study)} & {item.name for item in fields(study.recipe_given)} | {"resolution"}
    given = sorted(name for name in names if values_differ(study, preset, name))
    if given or study.base != preset.base:
        option = "recipe" if study.base != preset.base else given[0].replace("_", "-")
        raise UserError(f"--{option} changes nothing beside --split, whose files decide it; leave one of them out")
