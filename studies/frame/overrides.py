"""Options that are refused because they would change nothing: others replace them, or nobody reads them."""

from collections.abc import Sequence
from dataclasses import fields

from menagerie.envs.core.errors import UserError
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.frame.cells import PAPER_FIELDS, PAPER_RECIPES, SEARCHED, paper_recipe, parser_hash, tuned
from menagerie.studies.frame.options import SplitOptions
from menagerie.studies.runs.command_line import sized


def check_graphs(study: SplitOptions) -> None:
    """Raise for other graphs that nobody reads, and for a parser that can't work here."""
    if study.graph_source.plain:
        return
    if not any("graphs" in spec_of(model).reads for model in study.models):
        raise UserError(
            f"none of {', '.join(study.models)} reads scene graphs: --graphs, --dropped-nodes and --moved-attributes "
            "change nothing; add a model that does, such as oc-clip, or leave them out"
        )
    parser_hash(study.graph_source.graphs)


def check_overrides(study: SplitOptions, preset: SplitOptions) -> None:
    """Raise if an option was given that tuned recipes or those of papers would replace."""
    given = [item.name for item in fields(Recipe) if differ(study.recipe, preset.recipe, item.name)]
    given += [name for name in ("architecture", "pretrained") if differ(study, preset, name)]
    # Models whose recipe is the study's own take these options.
    lost = [f"--{name.replace('_', '-')}" for name in given if all(name in replaced(study, m) for m in study.models)]
    for model, best in tuned(study).items():
        spec = spec_of(model)
        config, plain = getattr(study.scorers, spec.flag), sized(spec, study.scorers.size)
        before = getattr(preset.scorers, spec.flag, plain)
        changed = [name for name in best.options if differ(config, before, name)]
        lost += [f"--{spec.name}.{name.replace('_', '-')}" for name in changed]
    if lost and study.pretrained and study.tuned in ("", PAPER_RECIPES):
        raise UserError(f"{lost[0]} is replaced by what each model's paper has with --pretrained weights; leave it out")
    if lost:
        raise UserError(f"{lost[0]} is replaced by the recipes of --tuned {study.tuned}; add --tuned '' to set it")


def differ(first: object, second: object, name: str) -> bool:
    """Whether two configurations have different values of a field."""
    return bool(getattr(first, name) != getattr(second, name))


def replaced(study: SplitOptions, model: str) -> Sequence[str]:
    """The options of which a model doesn't take the study's values."""
    if model in tuned(study):
        return (*SEARCHED, "architecture", "pretrained")
    return PAPER_FIELDS if paper_recipe(study, model) else ()


def check_files(study: SplitOptions, preset: SplitOptions) -> None:
    """Raise for options beside `--split` that would change nothing."""
    if not study.split:
        return
    names = {item.name for item in fields(study)} & {item.name for item in fields(study.recipe_given)} | {"resolution"}
    given = sorted(name for name in names if differ(study, preset, name))
    if given or study.base != preset.base:
        option = "recipe" if study.base != preset.base else given[0].replace("_", "-")
        raise UserError(f"--{option} changes nothing beside --split, whose files decide it; leave one of them out")
