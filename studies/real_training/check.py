"""What a study on photographs is refused for before anything is made, and what `--check` reports."""

from collections.abc import Callable
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.processes import in_child
from menagerie.envs.core.progress import quiet
from menagerie.envs.core.validation import validate
from menagerie.generators.benchmarks import registry as benchmarks
from menagerie.generators.parsers.registry import DEFAULT, read_parser
from menagerie.generators.sources import registry as sources
from menagerie.generators.sources.folders import Given
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.registry import one_node
from menagerie.models.towers.config import READ_AS, file_and_tag
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.overrides import check_overrides
from menagerie.studies.real_training.config import NONE, Config, grid_of
from menagerie.studies.real_training.photographs import names_of


def check(config: Config, preset: Config) -> None:
    validate(config)
    axes = {"sources": config.sources, "parser": config.parser, "mix": config.mix, "from": config.starts or (NONE,)}
    for name, values in axes.items():
        if not values or len(set(values)) != len(values):
            raise UserError(f"--{name} needs one or more different values, got {' '.join(map(str, values)) or 'none'}")
    for together in config.sources:
        check_sources(together)
    recipes = {recipe for some in config.sources for name in names_of(some) for recipe in sources.load(name).recipes}
    choose("caption recipe", config.caption, {"", *recipes})
    for parser in config.parser:
        read_parser(parser)
    for name in config.benchmarks:
        choose("benchmark", name, benchmarks.names())
    check_training(config, preset)
    check_start(config)


def check_sources(together: str) -> None:
    """Raise for a source that is none, or has no photographs."""
    opened = [name for name in sources.names() if sources.load(name).open]
    for name in names_of(together):
        choose("source of photographs", name, opened)
    if len(set(names_of(together))) < len(names_of(together)):
        raise UserError(f"--sources {together}: one of them is named twice")


def check_training(config: Config, preset: Config) -> None:
    """Raise for options of training that contradict one another or would change nothing."""
    if config.epochs and config.recipe.steps != preset.recipe.steps:
        raise UserError(
            "--steps changes nothing beside --epochs, which count passes over the photographs; add --epochs 0"
        )
    if config.recipe.single_object_phase or config.recipe.singles_share is not None:
        raise UserError("--single-object-phase and --singles-share are for rendered scenes alone; leave them out")
    if len(config.split) > 1:
        raise UserError("--split takes one file here")
    if config.split and config.base != preset.base:
        raise UserError("--recipe changes nothing beside --split, whose file decides it; leave one of them out")
    grid = grid_of(config)
    check_overrides(grid, grid_of(preset))
    scenes = {"--split": config.split, "--recipe": config.base != preset.base, "--world": config.world != preset.world}
    unused = [name for name, given in scenes.items() if given and (name == "--split" or not config.rehearse)]
    if unused and not any(config.mix):
        raise UserError(f"{unused[0]} names the scenes for --mix, which is 0: give a share such as --mix 0.5")
    if config.split and (side := next(iter(grid.files)).side) != config.resolution:
        raise UserError(
            f"--split has images of {side} pixels; give --resolution {side}, so that photographs are as large"
        )


def check_start(config: Config) -> None:
    """Raise for weights to start with beside other weights, or that aren't there."""
    from menagerie.models.checkpoint import read_config
    from menagerie.models.library.load import checkpoints_in

    given = [name for name in config.starts if name != NONE]
    for name in given:
        if not Path(name).exists():
            raise UserError(f"--from {name}: there is no such run, cell or checkpoint")
        if not checkpoints_in(Path(name)):
            raise UserError(f"--from {name} holds no checkpoint; name a run, a cell or a folder of one")
        before = {read_config(folder).towers.pretrained for folder in checkpoints_in(Path(name))}
        if config.pretrained and not any(before):  # with others `start_of` compares them
            raise UserError(
                f"--from {name} and --pretrained are both weights to start with, and those of {name} were trained from "
                "scratch; leave one of them out"
            )


def check_machine(config: Config) -> None:
    """Raise on models, towers, weights or a device that can't work here, in processes of their own."""
    check_grid(grid_of(config))
    if config.pretrained:
        in_child(check_weights, config)


def check_weights(config: Config) -> None:
    """Raise where pretrained weights are neither here nor to be had, with what to get."""
    from menagerie.models.towers import paired

    architecture, text = config.architecture, config.pretrained
    if architecture in paired.TEXTS_OF:
        architecture, text = paired.TEXTS_OF[architecture], paired.weights_of(text).text
        check_image_weights(config)
    if Path(file_and_tag(text)[0]).is_file():
        return
    import open_clip

    known = open_clip.get_pretrained_cfg(architecture, text)
    place = known.get("hf_hub", "").rstrip("/")
    where = f"huggingface.co/{place} (open_clip_model.safetensors)" if place else known.get("url", "its authors")
    image = paired.SEPARATOR + paired.weights_of(config.pretrained).image if architecture != config.architecture else ""
    how = f"FILE{READ_AS}{text}{image}"
    fetched(lambda: open_clip.download_pretrained(known), f"{text!r} of {architecture}", where, how)


def check_image_weights(config: Config) -> None:
    """Raise where the weights of a timm image tower are neither here nor to be had."""
    import timm

    from menagerie.models.towers import paired

    name, image = paired.image_model(config.architecture), paired.weights_of(config.pretrained).image
    if not Path(image).is_file():
        where = f"huggingface.co/timm/{name}.{image} (model.safetensors)"
        fetched(
            lambda: timm.create_model(f"{name}.{image}", pretrained=True), f"{image!r} of {name}", where, "TEXT+FILE"
        )


def fetched(get: Callable[[], object], what: str, where: str, how: str) -> None:
    """Get weights; raise where they can't be had."""
    try:
        with quiet():
            get()
    except Exception as error:  # no network, no such file: each library raises its own
        raise UserError(
            f"the weights {what} aren't here and can't be fetched ({type(error).__name__}); get them from {where}, and "
            f"give the file as --pretrained {how}"
        ) from error


def report_states(config: Config, root: Path, folders: Given) -> int:
    """Print which sources and benchmarks of a study are complete; returns the exit status, 1 where one isn't."""
    from menagerie.generators.benchmarks.photographs import Place
    from menagerie.generators.sources.registry import state
    from menagerie.studies.real_training.describe import opening_of
    from menagerie.studies.scoring.check import reported, states

    there = []
    for name in dict.fromkeys(name for together in config.sources for name in names_of(together)):
        place = opening_of(config, name, DEFAULT, root, folders, KeptOut()).place(name, one_node)
        there.append(reported(f"source {name}", state(sources.load(name), place)))
    for bench in states(benchmarks.chosen(config.benchmarks), Place(root, folders=folders)):
        there.append(reported(f"benchmark {bench.name}", bench, f", {bench.records} records"))
    return int(not all(there))
