"""The checks of a study on photographs before anything is made, and the report of `--check`."""

from collections.abc import Callable
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.progress import silence_loggers
from menagerie.envs.core.validation import validate
from menagerie.generators.benchmarks import registry as benchmarks
from menagerie.generators.parsers.registry import DEFAULT, read_parser
from menagerie.generators.sources import registry as sources
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.place import Place, one_node
from menagerie.models.towers.config import READ_AS, file_and_tag
from menagerie.studies.frame.checks import check_overrides
from menagerie.studies.scoring.check import benchmark_states, print_state
from menagerie.studies.sources.photograph_options import NONE, PhotographStudy
from menagerie.studies.sources.photographs import split_sources


def check(study: PhotographStudy, preset: PhotographStudy) -> None:
    validate(study)
    for together in study.sources:
        check_sources(together)
    recipes = {
        recipe for some in study.sources for name in split_sources(some) for recipe in sources.load_source(name).recipes
    }
    choose("caption recipe", study.caption, {"", *recipes})
    for parser in study.parser:
        read_parser(parser)
    for name in study.benchmarks:
        check_not_own(name)
    check_training(study, preset)
    check_starts(study)
    if study.dry_run and study.rehearse:
        raise UserError("--dry-run reads the training files, which --rehearse has yet to write; leave one of them out")


def check_not_own(name: str) -> None:
    """Raise for an unknown benchmark, and for a benchmark of the user's own, whose photographs training may show."""
    if ":" in name and benchmarks.check_benchmark_name(name):
        raise UserError(
            f"--benchmarks {name}: models are scored on a benchmark of your own once they are trained, by "
            f"menagerie transfer RUN --benchmarks {name}, where RUN is the folder of this study; leave it out here"
        )
    choose("benchmark", name, benchmarks.names())


def check_sources(together: str) -> None:
    """Raise for an unknown source, and for one that is named twice."""
    for name in split_sources(together):
        choose("source of photographs", name, sources.names())
    if len(set(split_sources(together))) < len(split_sources(together)):
        raise UserError(f"--sources {together}: one of them is named twice")


def check_training(study: PhotographStudy, preset: PhotographStudy) -> None:
    """Raise for options of training that contradict one another or would change nothing."""
    if study.epochs and study.recipe.steps != preset.recipe.steps:
        raise UserError(
            "--steps changes nothing beside --epochs, the number of passes over the photographs; add --epochs 0"
        )
    if study.recipe.single_object_phase or study.recipe.singles_share is not None:
        raise UserError("--single-object-phase and --singles-share are for rendered scenes alone; leave them out")
    if len(study.split) > 1:
        raise UserError("--split takes one file here")
    if study.split and study.base != preset.base:
        raise UserError("--recipe changes nothing beside --split, whose file decides it; leave one of them out")
    grid = study.plain_grid()
    check_overrides(grid, preset.plain_grid())
    scenes = {"--split": study.split, "--recipe": study.base != preset.base, "--world": study.world != preset.world}
    unused = [name for name, given in scenes.items() if given and (name == "--split" or not study.rehearse)]
    if unused and not any(study.mix):
        raise UserError(f"{unused[0]} names the scenes for --mix, which is 0: give a share such as --mix 0.5")
    if study.split and (side := next(iter(grid.files)).side) != study.resolution:
        raise UserError(
            f"--split has images of {side} pixels; give --resolution {side}, so that photographs are as large"
        )


def check_starts(study: PhotographStudy) -> None:
    """Raise if `--from` names no checkpoint or, beside `--pretrained`, checkpoints that were trained from scratch."""
    from menagerie.models.checkpoint import scorer_config
    from menagerie.models.library.load import find_checkpoints

    given = [name for name in study.starts if name != NONE]
    for name in given:
        if not Path(name).exists():
            raise UserError(f"--from {name}: there is no such run, cell or checkpoint")
        if not find_checkpoints(Path(name)):
            raise UserError(f"--from {name} holds no checkpoint; name a run, a cell or a folder of one")
        before = {scorer_config(folder).towers.pretrained for folder in find_checkpoints(Path(name))}
        if study.pretrained and not any(before):  # with others `start_of` compares them
            raise UserError(
                f"--from {name} and --pretrained are both weights to start with, and those of {name} were trained from "
                "scratch; leave one of them out"
            )


def check_pretrained(architecture: str, pretrained: str) -> None:
    """Fetch pretrained weights unless they are on this machine. Raises if that fails, and says what to get."""
    from menagerie.models.towers import paired

    text, image = pretrained, ""
    if architecture in paired.TEXTS_OF:
        check_image_weights(architecture, pretrained)
        architecture, (text, image) = paired.TEXTS_OF[architecture], paired.weights_of(pretrained)
    if Path(file_and_tag(text)[0]).is_file():
        return
    import open_clip

    known = open_clip.get_pretrained_cfg(architecture, text)
    place = known.get("hf_hub", "").rstrip("/")
    where = f"huggingface.co/{place} (open_clip_model.safetensors)" if place else known.get("url", "its authors")
    how = f"FILE{READ_AS}{text}{image and paired.SEPARATOR + image}"
    fetch_weights(lambda: open_clip.download_pretrained(known), f"{text!r} of {architecture}", where, how)


def check_image_weights(architecture: str, pretrained: str) -> None:
    """Fetch the weights of a timm image tower unless they are on this machine. Raises if that fails."""
    import timm

    from menagerie.models.towers import paired

    name, image = paired.image_model(architecture), paired.weights_of(pretrained).image
    if not Path(image).is_file():
        where = f"huggingface.co/timm/{name}.{image} (model.safetensors)"
        fetch_weights(
            lambda: timm.create_model(f"{name}.{image}", pretrained=True), f"{image!r} of {name}", where, "TEXT+FILE"
        )


def fetch_weights(get: Callable[[], object], what: str, where: str, how: str) -> None:
    """Fetch weights with `get`. Raises if that fails, and says what to get."""
    try:
        with silence_loggers():
            get()
    except Exception as error:  # no network, no such file: each library raises its own
        raise UserError(
            f"the weights {what} aren't here and can't be fetched ({type(error).__name__}); get them from {where}, and "
            f"give the file as --pretrained {how}"
        ) from error


def report_states(study: PhotographStudy) -> int:
    """Print which sources and benchmarks of a study are complete. Returns the exit status: 1 if one isn't."""
    from menagerie.generators.sources.registry import state
    from menagerie.studies.sources.photograph_reading import opening_of

    there = []
    for name in dict.fromkeys(name for together in study.sources for name in split_sources(together)):
        place = opening_of(study, name, DEFAULT, KeptOut()).place(name, one_node)
        there.append(print_state(f"source {name}", state(sources.load_source(name), place)))
    place = Place(study.data_root, folders=study.folders)
    for bench in benchmark_states(benchmarks.load_benchmarks(study.benchmarks), place):
        there.append(print_state(f"benchmark {bench.name}", bench, f", {bench.records} records"))
    return int(not all(there))
