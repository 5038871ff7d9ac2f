"""A study's command line: options, the checks that may refuse it before anything is made, dry run, comparison, run."""

import inspect
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.files import check_option_folder
from menagerie.envs.core.options import docstring
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import validate
from menagerie.envs.worlds import load_world
from menagerie.models.recipe import Recipe, negatives_of
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import PAPER_RECIPES, model_options, towers, training_recipe, tuned_recipes
from menagerie.studies.frame.options import EXECUTION, SplitOptions
from menagerie.studies.frame.records import compare_runs
from menagerie.studies.frame.study import AnyStudy, SplitStudy, Study, all_arms, takes_negatives
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.command_line import COMPARE, only_models, parse_study, runs_to_compare
from menagerie.studies.runs.machine import check_device, check_device_here, check_precision, start_server
from menagerie.studies.runs.slurm import check_cluster
from menagerie.studies.runs.torchrun import check_sharing, processes, processes_of
from menagerie.studies.runs.training_log import check_loggers


def main(presets: Mapping[str, AnyStudy], default: str = "") -> None:
    """Run the study whose file was started, or compare two of its runs. Study files call this at their end.

    `default` is the preset without `--preset`; empty: "laptop" where there is one, else the first. Does nothing if
    another process imports the file only for its classes.
    """
    frame = inspect.currentframe()
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame and frame.f_globals["__name__"] != "__main__":
        return
    script = sys.modules["__main__"]
    default = default or ("laptop" if "laptop" in presets else next(iter(presets)))
    start = partial(start_study, Path(script.__file__ or "study").stem, docstring(script), presets, default)

    def command() -> int | None:
        if processes() == 1:
            return start()
        from menagerie.studies.runs.torchrun import run_together

        return run_together(start)

    run_command(command)


def start_study(name: str, description: str, presets: Mapping[str, AnyStudy], default: str) -> int | None:
    """Parse the options of a study, check it, and run, time or compare it; returns the exit status."""
    for preset, study in presets.items():
        check_preset(preset, study)
    trains = isinstance(presets[default], Study)
    if trains and (runs := runs_to_compare()):
        print(compare_runs(*runs))
        return None
    preset, study = parse_study(presets, default, description, (COMPARE,) if trains else ())
    check_given(study, presets[preset])
    study = study.fill_in()
    if (status := study.instead()) is not None:
        return status
    check_study(study)
    if isinstance(study, Study):
        study = replace(study, scorers=only_models(study.scorers, study.models))
    folder = study.out or Path(f"runs/{name}-{preset}")
    if study.dry_run:
        from menagerie.studies.frame.dry_run import check_page, dry_run

        check_page(study, all_arms(study))
        if not study.forecast():
            dry_run(study, folder)
        return None
    from menagerie.studies.frame.run import run_study
    from menagerie.studies.runs.folder import run_folder

    with run_folder(folder, study.as_recorded(), changeable_options(study), study.alone) as out:
        run_study(study, out)
    return None


def changeable_options(study: AnyStudy) -> frozenset[str]:
    """Return the settings that don't affect results, so that they may differ from those recorded in the folder."""
    return EXECUTION | study.growing()


def check_preset(name: str, study: AnyStudy) -> None:
    """Raise for a preset whose `recipe` isn't a training recipe, such as the name of a split's recipe."""
    if isinstance(study, SplitStudy) and not isinstance(study.recipe, Recipe):
        raise UserError(
            f"the recipe of preset {name!r} must be one of training, a Recipe, got {study.recipe!r}; the recipe of its "
            "splits stands in its class, such as plain_recipe = MultiObjectRecipe() (docs/extending.md)"
        )


def check_given(study: AnyStudy, preset: AnyStudy) -> None:
    """Raise for unknown models and for options that the study or tuning decides; print those that change nothing."""
    if isinstance(study, Study):
        for model in study.models:
            check_scorer(model)
    given = options_given(study, preset)
    if taken := [name for name in study.decides if name in given]:
        raise UserError(f"{flag_of(taken[0])} can't be used, because this study decides it itself; leave it out")
    study.check_given(preset)
    for line in dict.fromkeys(study.idle_options(preset)):
        print(f"note: {line}", flush=True)
    if isinstance(study, SplitStudy):
        check_overrides(study, preset)
        if not study.graph_source.plain and not any("graphs" in spec_of(model).reads for model in study.models):
            print("note: --graphs, --dropped-nodes and --moved-attributes change nothing: no model reads scene graphs")
        of_splits = {item.name for item in fields(study.recipe_given)} | {"resolution", "base"}
        for name in sorted(given & of_splits) if study.split else ():
            print(f"note: {flag_of(name)} changes nothing beside --split, whose files decide it", flush=True)


def options_given(study: AnyStudy, preset: AnyStudy) -> set[str]:
    """Return the names of options, also of the training recipe, that differ from their preset's."""
    pairs = [(study, preset), tuple(getattr(each, "recipe", None) or Recipe() for each in (study, preset))]
    return {i.name for now, old in pairs for i in fields(now) if getattr(now, i.name) != getattr(old, i.name)}


def flag_of(name: str) -> str:
    return "--recipe" if name == "base" else f"--{name.replace('_', '-')}"


def check_overrides(study: SplitOptions, preset: SplitOptions) -> None:
    """Raise for a given option that tuned recipes, or those of papers, replace for every model."""
    of_runs = [{**vars(training_recipe(study, model)), **vars(towers(study, model))} for model in study.models]
    given = {**vars(study.recipe), "architecture": study.architecture}
    changed = options_given(study, preset)
    lost = [flag_of(name) for name in given if name in changed and all(run[name] != given[name] for run in of_runs)]
    for model in tuned_recipes(study):
        config, before, spec = study.scorers.config(model), preset.scorers.config(model), spec_of(model)
        taken = spec.make_config(model_options(study, model))
        for name, value in vars(config).items():
            if value not in (getattr(before, name), getattr(taken, name)):
                lost.append(f"--{spec.name}.{name.replace('_', '-')}")
    if lost and study.pretrained and study.tuned in ("", PAPER_RECIPES):
        raise UserError(f"{lost[0]} is replaced by what each model's paper has with --pretrained weights; leave it out")
    if lost:
        raise UserError(f"{lost[0]} is replaced by the recipes of --tuned {study.tuned}; add --tuned '' to set it")


def check_study(study: AnyStudy) -> None:
    """Raise if the options or runs of a study can't work."""
    validate(study)
    if isinstance(study, Study):
        check_loggers(study.log)
    check_device(study.device)
    check_option_folder("--store", study.store)
    gpus = int(study.device.startswith("cuda"))
    check_cluster(study.cluster, study.out or Path("runs"), study.threads, gpus, trains=True)
    study.check()
    arms = [arm for arm in all_arms(study) if arm.trains]
    cells = [arm.cell for arm in arms]
    for cell in cells:
        check_precision(cell.recipe.precision, cell.device)
    check_sharing(study, cells)
    for recipe in dict.fromkeys(cell.data.recipe for cell in cells if hasattr(cell.data, "recipe")):
        if not recipe.trains:
            raise UserError(f"a {recipe.kind} split has nothing to train on; it is for models that are trained already")
        recipe.rules(load_world(recipe.world))  # raises for rules that its world doesn't allow
        recipe.counts()  # raises for impossible fractions
    check_states(study, arms)
    check_negatives(study, cells)
    # A machine from which jobs are submitted may have no GPU.
    device = study.device if study.cluster.engine != "slurm" else "cpu"
    models: dict[Any, Arm] = {}
    for arm in arms:
        models.setdefault((arm.cell.model, arm.cell.towers, str(arm.cell.options)), arm)
    checked = (device, {arm.name: arm.cell for arm in models.values()}, processes_of(study))
    if study.dry_run:  # it needs torch in this process anyway
        os.environ["OMP_NUM_THREADS"] = str(study.threads or 1)  # several would wait for one another
        check_machine(*checked)
    else:
        start_server(study.threads)
        call_in_child(check_machine, *checked)


def check_states(study: AnyStudy, arms: Sequence[Arm]) -> None:
    """Raise for a step of `--keep-states` that not even the longest of these runs reaches."""
    longest = max((arm.cell.recipe.steps for arm in arms if arm.trains), default=None)
    if longest is not None and (beyond := [step for step in getattr(study, "keep_states", ()) if step > longest]):
        raise UserError(f"--keep-states {beyond[0]}: no run has so many steps; the longest has {longest}")


def check_negatives(study: AnyStudy, cells: Sequence[Cell]) -> None:
    """Raise for counterfactuals that training pairs don't have, and for false captions that no loss can use."""
    if any(cell.recipe.image_negatives and not cell.data.counts().get("swapped_pairs", 1) for cell in cells):
        raise UserError(
            "--image-negatives puts training images and their counterfactuals into one batch, but at some place no "
            "training pair has any: give --hard-negatives above 0 (or a --split that has them), or leave it out"
        )
    idle = dict.fromkeys(cell.model for cell in cells if not takes_negatives(cell))
    if isinstance(study, SplitStudy) and study.recipe.text_negatives and not cells:
        idle = dict.fromkeys(study.models)
    if idle:
        raise UserError(f"no loss of {', '.join(idle)} takes false captions; leave out --text-negatives, or the model")


def check_machine(device: str, cells: Mapping[str, Cell], count: int) -> None:
    """Raise for towers, scorers (`cells` by arm) or a device that can't work here with `count` processes for a cell."""
    from menagerie.models.towers.build import check_towers

    check_device_here(device, int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if processes() > 1 else count)
    for chosen in dict.fromkeys(cell.towers for cell in cells.values()):
        check_towers(chosen)
    first = {cell.model: name for name, cell in reversed(cells.items())}
    for name, cell in cells.items():
        check_model(name, cell, count, whole=first[cell.model] == name)


def check_model(name: str, cell: Cell, count: int, whole: bool) -> None:
    """Raise if an arm's model can't be built or be trained by `count` processes together or, if `whole`, breaks the
    contract of scorers, which is checked on these very towers if they are small, else on the smallest."""
    from menagerie.models.contract import attempt, build_for_contract, check_contract
    from menagerie.models.towers.config import SMALL_TOWERS
    from menagerie.models.training.encoding import check_together

    scratch, options = replace(cell.towers, pretrained=""), dict(cell.options)
    small = cell.towers.architecture in SMALL_TOWERS
    if count > 1 or not (whole and small):
        built = attempt(name, "can't be built", partial(build_for_contract, cell.model, scratch, options))
        if count > 1:
            check_together(built, cell.recipe, count)
    if whole:
        if ":" in cell.model:
            print(f"checking {cell.model} against the contract of scorers", flush=True)  # it takes some seconds
        tried = cell.towers if small else replace(scratch, architecture="nano", resolution=32, tokenizer="")
        options = options if small else dict(spec_of(cell.model).smoke)
        check_contract(cell.model, tried, options, bool(negatives_of(cell.recipe, cell.negatives).texts))


def study_of(command: str, out: Path, store: Path) -> AnyStudy:
    """Return the study that a command of this program names, with these folders and the options of its models alone."""
    words = shlex.split(command)
    name = "".join(words[1:2])
    known = [path.stem.replace("_", "-") for path in Path(__file__).parents[1].glob("[!_]*.py")]
    presets = import_module(f"menagerie.studies.{choose('study', name, known).replace('-', '_')}").PRESETS
    before, sys.argv[:] = sys.argv[:], [f"menagerie {name}", *words[2:], "--out", str(out), "--store", str(store)]
    try:
        study = parse_study(presets, "laptop" if "laptop" in presets else next(iter(presets)), "")[1].fill_in()
    except SystemExit as error:
        raise UserError(f"`{command}` isn't a command of this program, see above") from error
    finally:
        sys.argv[:] = before
    return replace(study, scorers=only_models(study.scorers, study.models)) if isinstance(study, Study) else study
