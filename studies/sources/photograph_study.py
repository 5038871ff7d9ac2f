"""What a study on photographs does before anything is trained: checks, reading, and its cells. It loads torch."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.progress import silence_loggers
from menagerie.envs.core.validation import validate
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks import registry as benchmarks
from menagerie.generators.benchmarks.tested_photographs import images_of_tests
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.false_captions.gather import check_file_there, read_given, resolve_given
from menagerie.generators.false_captions.made import Made
from menagerie.generators.false_captions.published import PUBLISHED, published_files
from menagerie.generators.false_captions.report import print_report, report_rows, texts_in_benchmarks
from menagerie.generators.parsers.parser import Unanswered
from menagerie.generators.parsers.registry import DEFAULT, open_parser, read_parser
from menagerie.generators.sources import registry as sources
from menagerie.generators.sources.captions_file import parse_all
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.models.carry_over import check_carry_over
from menagerie.models.library.cells import find_cell, place_of_cell
from menagerie.models.library.load import find_checkpoints
from menagerie.models.library.sources import Checkpoint
from menagerie.models.recipe import negatives_of
from menagerie.models.registry import spec_of
from menagerie.models.towers import paired
from menagerie.models.towers.config import READ_AS, SMALL_TOWERS, file_and_tag
from menagerie.models.towers.preparation import towers_to_record
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import cell_of, model_options, towers
from menagerie.studies.frame.command import check_overrides
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.study import grid
from menagerie.studies.runs.cell import Cell, Start
from menagerie.studies.runs.data import make_splits
from menagerie.studies.runs.results import read_result
from menagerie.studies.scoring.benchmarks import PIECES, Subject, benchmark_piece, subjects_of
from menagerie.studies.scoring.check import print_benchmark_states, print_state, read_benchmarks
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.study import forget_left_out
from menagerie.studies.sources.photograph_options import NONE, PhotographStudy, TrainedOn
from menagerie.studies.sources.photographs import (
    PhotographOptions,
    RealData,
    count_opened,
    open_photographs,
    split_sources,
)

BENCHMARKS = "benchmarks"  # folder of the cells' results on benchmarks
SEED = 1000  # is added to the study's seed, so that textures are assigned otherwise than in its own scenes
# For each subset of a split, the part of COCO whose place it takes in a rehearsal.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}
QUALITY = 95
PART = "part"  # of a caption, among kinds of false captions
FEW = 0.1  # share of captions with a false one below which a warning says so
Photos = Mapping[tuple[str, str], RealData]
"""The photographs of a study without rendered scenes, by their sources and parser. They are read once."""


def check(study: PhotographStudy, preset: PhotographStudy) -> None:
    """Raise for options that can't work, before anything is read."""
    validate(study)
    for together in study.sources:
        for name in split_sources(together):
            choose("source of photographs", name, sources.names())
        if len(set(split_sources(together))) < len(split_sources(together)):
            raise UserError(f"--sources {together}: one of them is named twice")
    read = {name for together in study.sources for name in split_sources(together)}
    known = {recipe for name in read for recipe in sources.load_source(name).recipes}
    choose("caption recipe", study.caption, {"", *known})
    for parser in study.parser:
        read_parser(parser)
    for text in study.false_captions:
        check_file_there(text)
    for name in study.benchmarks:  # training may show the photographs of a benchmark of the user's own
        choose("benchmark for --benchmarks", name, benchmarks.names())
    if study.recipe.single_object_phase or study.recipe.singles_share is not None:
        raise UserError("--single-object-phase and --singles-share are for rendered scenes alone; leave them out")
    if len(study.split) > 1:
        raise UserError("--split takes one file here")
    scenes = study.plain_grid()
    check_overrides(scenes, preset.plain_grid())
    if study.split and (side := next(iter(scenes.files)).side) != study.resolution:
        raise UserError(
            f"--split has images of {side} pixels; give --resolution {side}, so that photographs are as large"
        )
    for name, model, seed in product(study.starts, study.models, study.seed_numbers):
        if name != NONE:
            checkpoint_of(scenes, name, model, seed)
    if study.dry_run and study.rehearse:
        raise UserError("--dry-run reads the training files, which --rehearse has yet to write; leave one of them out")


def check_pretrained(architecture: str, pretrained: str) -> None:
    """Fetch pretrained weights unless they are on this machine. Raises if that fails, and says what to get."""
    import open_clip
    import timm

    text, end, lacking = pretrained, "", []
    if architecture in paired.TEXTS_OF:
        text, image = paired.weights_of(pretrained)
        tower, end = f"{paired.image_model(architecture)}.{image}", f"{paired.SEPARATOR}{image}"
        architecture = paired.TEXTS_OF[architecture]
        if not Path(image).is_file():
            where = f"huggingface.co/timm/{tower} (model.safetensors)"
            lacking.append((partial(timm.create_model, tower, pretrained=True), tower, where, "TEXT+FILE"))
    if not Path(file_and_tag(text)[0]).is_file():
        known = open_clip.get_pretrained_cfg(architecture, text)
        hub = known.get("hf_hub", "").rstrip("/")
        where = f"huggingface.co/{hub} (open_clip_model.safetensors)" if hub else known.get("url", "its authors")
        get = partial(open_clip.download_pretrained, known)
        lacking.append((get, f"{text!r} of {architecture}", where, f"FILE{READ_AS}{text}{end}"))
    for get, what, where, how in lacking:
        try:
            with silence_loggers():
                get()
        except Exception as error:  # no network, no such file: each library raises its own
            raise UserError(
                f"the weights {what} aren't here and can't be fetched ({type(error).__name__}); get them from {where}, "
                f"and give the file as --pretrained {how}"
            ) from error


def report_states(study: PhotographStudy) -> int:
    """Print which sources and benchmarks of a study are complete. Returns the exit status: 1 if one isn't."""
    place, there = Place(study.data_root, folders=study.folders), []
    for name in dict.fromkeys(name for together in study.sources for name in split_sources(together)):
        spec = sources.load_source(name)
        caption = study.caption if study.caption in spec.recipes else ""
        there.append(print_state(f"source {name}", sources.state(spec, replace(place, caption=caption))))
    for name in filter(None, (read_given(text).published for text in study.false_captions)):
        problem = "" if published_files(name, place) else f"there is no {place.root / PUBLISHED[name].files}"
        there.append(
            print_state(f"false captions {name}", sources.State(name, problem, PUBLISHED[name].get, "see there"))
        )
    there += print_benchmark_states(benchmarks.load_benchmarks(study.benchmarks), place, "benchmark ")
    return int(not all(there))


class PreparedPhotographs(NamedTuple):
    """What a study has read."""

    photos: Photos
    arms: list[Arm]
    """The study's training runs."""
    subjects: Mapping[str, Sequence[Subject]]
    """The benchmarks with their texts as a parser reads them, by parser."""


def prepare_photographs(study: PhotographStudy, out: Path) -> PreparedPhotographs:
    """Read everything that a study trains on and is scored on. A rehearsal is first rendered into `out`."""
    if study.rehearse:
        recipe = study.plain_grid().recipe_given
        study = replace(study, data_root=write_coco_files(recipe, out, study.store, study.resolution, study.cores))
    photos = describe_photographs(study)
    arms = arms_of(study, photos)
    check_false_captions(arms)
    forget_left_out(out / BENCHMARKS)
    workers, subjects = study.workers or usable_cores(), {}
    if not study.dry_run:
        place = Place(study.data_root, workers=workers, allow_missing=study.allow_missing, folders=study.folders)
        read = read_benchmarks(benchmarks.load_benchmarks(study.benchmarks), bool(study.benchmarks), place)
        parsers = dict.fromkeys(arm.labels["parser"] for arm in arms)
        subjects = {parser: subjects_of(read, parser, study.parses) for parser in parsers}
    return PreparedPhotographs(photos, arms, subjects)


def check_false_captions(arms: Sequence[Arm]) -> None:
    """Raise for a model without the false captions that its loss takes, and warn where few captions have one."""
    every = dict.fromkeys((arm.cell.model, arm.cell.data, kind) for arm in arms for kind in wanted(arm.cell))
    for model, data, kind in every:
        if data.mix == 1:  # rendered scenes alone, which have them
            continue
        there, captions = dict(data.numbers.false), data.numbers.captions
        if there and "graphs" in spec_of(model).reads:
            raise UserError(f"{model} reads graphs, which false captions of photographs don't have; leave it out")
        what = "parts of captions" if kind == PART else f"captions of the kind {kind!r}"
        if not there.get(kind) and not data.synthetic:
            has = ", ".join(f"{number} {name}" for name, number in there.items()) or "none"
            way = "made:parts" if kind == PART else "made, or other --text-negatives"
            raise UserError(
                f"{model} trains with false {what}, which no photograph of {data.sources} has (there are: {has}); give "
                f"--false-captions {way}, or mix rendered scenes in, which have them: --mix 0.5"
            )
        if kind != PART and there.get(kind, 0) < FEW * captions:
            count = f"{there.get(kind, 0)} of {captions} captions"
            print(f"warning: {model} trains with false {what}; {count} of {data.sources} have one", flush=True)


def wanted(cell: Cell) -> tuple[str, ...]:
    """The kinds of false captions that a cell's loss takes, and `PART` if it takes parts of captions."""
    return (*negatives_of(cell.recipe, cell.negatives).texts, *((PART,) if spec_of(cell.model).parts else ()))


def write_coco_files(recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int) -> Path:
    """Render scenes of a recipe and write them as files of COCO, and return their data root. Existing files stay."""
    others = replace(recipe, seed=recipe.seed + SEED)
    images = SplitFolder(store, load_world(recipe.world), resolution)
    split = read_split(make_splits(images, [others], workers)[others])
    pictures, folder, first = SplitPictures(split), out / "rendered" / "coco", 1
    for subset, part in ((subset, part) for subset, part in PARTS.items() if subset in split.subsets):
        captions = dict(enumerate(split.subsets[subset].captions, first))  # no two photographs of COCO share a number
        first += len(captions)
        annotations = folder / "annotations" / f"captions_{part}.json"
        if annotations.exists():  # it is written last
            continue
        for index, number in enumerate(captions):
            with whole_file(folder / part / f"{number:012d}.jpg") as temporary:
                Image.fromarray(pictures.images(subset, [index])[0]).save(temporary, "JPEG", quality=QUALITY)
        shown = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in captions]
        said = [{"id": number, "image_id": number, "caption": caption} for number, caption in captions.items()]
        write_text(annotations, json.dumps({"images": shown, "annotations": said}))
    return out / "rendered"


def describe_photographs(study: PhotographStudy) -> dict[tuple[str, str], RealData]:
    """Describe the photographs that cells train on, without those of tests, by sources and parser; print numbers."""
    place, found = Place(study.data_root.resolve(), study.resolution, folders=study.folders, caption=study.caption), {}
    place = replace(place, kept_out=images_of_tests(place, allow_unknown=study.allow_unknown))
    for together, parser in dict.fromkeys((its.sources, its.parser) for _, its in study.training_places()):
        parses, given = study.parses.resolve(), tuple(map(resolve_given, study.false_captions))
        opening = PhotographOptions(split_sources(together), place, parser, parses, false_captions=given)
        if parser != DEFAULT:
            opening = replace(opening, unanswered=parse_captions(opening, study.allow_unanswered))
        opened = open_photographs(opening, partial(report_false_captions, study.data_root))
        numbers = count_opened(opened, len(opening.unanswered))
        found[together, parser] = RealData(opened.identity, together, parser, opening, numbers, opened.relational)
        print(f"{together}: {numbers.images} photographs, {numbers.held_out} held out; {numbers.captions} captions")
        for what, left in (("photographs", numbers.left_out), ("texts", numbers.refused)):
            print("".join(f"  left out of {together}: {count} {what}, {reason}\n" for reason, count in left), end="")
        if given:
            counts = ", ".join(f"{count} {kind}" for kind, count in numbers.false) or "none"
            others = sum(its.unused for its in opened.sources)
            print(f"  captions of {together} with a false one: {counts}; {others} false ones are of others")
        sys.stdout.flush()
    return found


def report_false_captions(root: Path, source: str, given: str, made: Made) -> None:
    """Print the numbers of false captions by way, what was refused, and what texts of benchmarks are among them."""
    print_report(report_rows(f"{source}, {given}", made, texts_of_benchmarks(root)))


texts_of_benchmarks = cache(texts_in_benchmarks)


def parse_captions(opening: PhotographOptions, allow_unanswered: bool) -> frozenset[str]:
    """Parse all captions of some sources, and keep the graphs. Returns captions without an answer, if allowed."""
    parser = open_parser(opening.parser, opening.parses, allow_unanswered)
    texts: dict[str, None] = {}

    def collect(text: str) -> SceneGraph:
        texts[text] = None
        return one_node(text)

    for name in opening.sources:
        sources.load_source(name).open(opening.place(name, collect))
    try:
        if texts:
            parse_all(parser, list(texts))
    except Unanswered as error:
        raise UserError(f"{error}, or take them as one node with --allow-unanswered") from error
    return frozenset(parser.unanswered())


def checkpoint_of(grid: Grid, name: str, model: str, seed: int) -> Path:
    """Return the checkpoint of a model and seed that `--from` names. Raises unless exactly one fits."""
    folders = find_checkpoints(Path(name)) if Path(name).exists() else []
    if not folders:
        raise UserError(f"--from {name}: there is no run, no cell and no checkpoint")
    seeds = {place_of_cell(folder.parent).get("seed") for folder in folders}
    wanted = {"model": model} | ({"seed": seed} if len(seeds) > 1 else {})
    folder = find_cell(f"--from {name}", folders, wanted)
    check_carry_over(folder, model, towers(grid, model), model_options(grid, model))
    return folder


def arms_of(study: PhotographStudy, photos: Photos) -> list[Arm]:
    """Return all runs, each once: seed by seed, and for each seed in the order of the study's places."""
    plain = study.plain_grid()
    scenes = [arm for arm in grid(plain, **plain.axes) if arm.cell.model == study.models[0]] if any(study.mix) else []
    every = (
        arm_of(
            study,
            photos[place.sources, place.parser],
            scenes[seed - study.first_seed] if place.mix else None,
            model,
            place,
            seed,
        )
        for seed in study.seed_numbers
        for model, place in study.training_places()
    )
    return list({arm.id: arm for arm in every}.values())


def arm_of(study: PhotographStudy, there: RealData, scenes: Arm | None, model: str, place: TrainedOn, seed: int) -> Arm:
    """Return a run. `scenes` is a run on the rendered scenes that are mixed in; None if none are."""
    grid = study.plain_grid(there.numbers.images)
    config = towers(grid, model)
    closed = config.tokenizer in ("", "closed") and config.architecture in SMALL_TOWERS  # only these can have one
    data = replace(there, mix=place.mix, synthetic=scenes.cell.data if scenes else None, closed=closed)
    cell = cell_of(grid, model, data, seed)
    if place.start != NONE:
        folder = checkpoint_of(grid, place.start, model, seed)
        seen = (read_result(folder.parent) or {}).get("images_seen", 0)
        weights = Checkpoint(place.start, folder, model).identity()
        as_read = replace(towers_to_record(cell.towers, elsewhere=True), load=False)
        cell = replace(cell, start=Start(weights, folder.resolve(), place.start, seen), base=None, towers=as_read)
    return Arm(cell, cell.axes, scenes.file if scenes else there.opening.base.root)


def benchmark_arms(study: PhotographStudy, subjects: Sequence[Subject], arm: Arm, known: KnownResults) -> Iterator[Arm]:
    """Yield an arm for each benchmark, whose texts have graphs of the cell's parser, if the cell is finished."""
    weights = known.weights(arm, arm.cell.name) if subjects else None
    for subject in subjects if weights else ():
        model, skip = model_of_cell(arm.cell.name, weights.folder, arm.cell.model), study.unknown_words == "skip"
        piece = benchmark_piece(model, subject, skip, device=study.device, below=f"{BENCHMARKS}/{PIECES}")
        yield Arm(piece, {"benchmark": subject.label, "cell": arm.id})


@lru_cache(maxsize=1024)  # weights are hashed once
def model_of_cell(name: str, folder: Path, scorer: str) -> Model:
    """Return the scorer of a cell as a model to evaluate."""
    return Model(name, Checkpoint(name, folder, scorer))
