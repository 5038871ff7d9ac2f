"""Reads the photographs of a study once, in the command itself: their identity, their numbers and their graphs.

A rehearsal needs no file from elsewhere. It renders scenes and writes them as files of COCO, for the same readers: what
`menagerie export` writes becomes JPEG files that are named by numbers, as COCO's are.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.reading import LARGEST_TEXT, read_json
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.registry import load_benchmarks
from menagerie.generators.benchmarks.tested_photographs import images_of_tests
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.export.write import export_split
from menagerie.generators.parsers.parser import Unanswered
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.captions_file import parse_all
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import load_source
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.studies.frame.arm import Arm
from menagerie.studies.runs.split_file import make_splits
from menagerie.studies.scoring.benchmark_piece import Subject, subjects_of
from menagerie.studies.scoring.check import read_benchmarks
from menagerie.studies.scoring.study import forget_left_out
from menagerie.studies.sources.photograph_cells import BENCHMARKS, Photos, arms_of, check_false_captions
from menagerie.studies.sources.photograph_data import RealData
from menagerie.studies.sources.photograph_options import PhotographStudy
from menagerie.studies.sources.photographs import (
    OpenedPhotographs,
    PhotographOptions,
    count_opened,
    open_photographs,
    split_sources,
)

SEED = 1000  # is added to the study's seed, so that textures are assigned otherwise than in its own scenes
# For each subset of a split, the part of COCO whose place it takes.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}
QUALITY = 95
BLOCK = 1024  # captions that are read at once


def write_coco_files(recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int) -> Path:
    """Render scenes of a recipe and write them as files of COCO, and return their data root. Existing files stay."""
    others = replace(recipe, seed=recipe.seed + SEED)
    images = SplitFolder(store, load_world(recipe.world), resolution)
    split = make_splits(images, [others], workers)[others]
    root, exported = out / "rendered", out / "rendered" / "export"
    root.mkdir(parents=True, exist_ok=True)
    subsets = [subset for subset in PARTS if subset in {"train", *recipe.all_tests}]
    export_split(split, "coco", exported, subsets)
    first = 1
    for subset in subsets:
        content = read_json(exported / f"{subset}.json", most=LARGEST_TEXT)
        write_part(content, exported / "images", root / "coco", PARTS[subset], first)
        first += len(content["images"])
    return root


def write_part(content: Mapping[str, Any], images: Path, folder: Path, part: str, first: int) -> None:
    """Write one part of COCO, with photographs numbered from `first`: no two photographs of COCO share a number."""
    annotations = folder / "annotations" / f"captions_{part}.json"
    if annotations.exists():  # it is written last
        return
    numbers = {image["id"]: first + place for place, image in enumerate(content["images"])}
    entries = []
    for image in content["images"]:
        name = f"{numbers[image['id']]:012d}.jpg"
        with whole_file(folder / part / name) as temporary, Image.open(images / image["file_name"]) as picture:
            picture.save(temporary, "JPEG", quality=QUALITY)
        entries.append({"id": numbers[image["id"]], "file_name": name})
    texts = [
        {"id": first + place, "image_id": numbers[note["image_id"]], "caption": note["caption"]}
        for place, note in enumerate(content["annotations"])
    ]
    write_text(annotations, json.dumps({"images": entries, "annotations": texts}))


def opening_of(study: PhotographStudy, sources: str, parser: str, kept_out: KeptOut) -> PhotographOptions:
    """Return the settings by which photographs are found and read."""
    return PhotographOptions(
        sources=split_sources(sources),
        root=study.data_root.resolve(),
        folders=tuple((name, tuple(map(Path.resolve, paths))) for name, paths in study.folders.items()),
        resolution=study.resolution,
        caption=study.caption,
        parser=parser,
        parses=study.parses.resolve(),
        kept_out=kept_out,
    )


def describe_photographs(study: PhotographStudy) -> dict[tuple[str, str], RealData]:
    """Describe the photographs that cells train on, by sources and parser, and print their numbers. Photographs that
    tests show are left out: those of COCO's validation set and of all benchmarks on disk."""
    place = Place(study.data_root, study.resolution, folders=study.folders)
    out, found = images_of_tests(place, allow_unknown=study.allow_unknown), {}
    for sources, parser in dict.fromkeys((place.sources, place.parser) for _, place in study.training_places()):
        opening = opening_of(study, sources, parser, out)
        if parser != DEFAULT:
            opening = replace(opening, unanswered=parse_captions(opening, study.allow_unanswered))
        opened = open_photographs(opening)
        numbers = count_opened(opened, len(opening.unanswered))
        found[sources, parser] = RealData(opened.identity, sources, parser, opening, numbers, any_relation(opened))
        print(f"{sources}: {numbers.images} photographs, {numbers.held_out} held out; {numbers.captions} captions")
        for what, left in (("photographs", numbers.left_out), ("texts", numbers.refused)):
            print("".join(f"  left out of {sources}: {count} {what}, {reason}\n" for reason, count in left), end="")
        sys.stdout.flush()
    return found


def parse_captions(opening: PhotographOptions, allow_unanswered: bool) -> frozenset[str]:
    """Parse all captions of some sources with a progress bar, and keep the graphs. Returns the captions without an
    answer.

    Raises for such captions unless they are allowed.
    """
    parser = open_parser(opening.parser, opening.parses, allow_unanswered)
    texts: dict[str, None] = {}

    def collect(text: str) -> SceneGraph:
        texts[text] = None
        return one_node(text)

    for name in opening.sources:
        load_source(name).open(opening.place(name, collect))
    try:
        if texts:
            parse_all(parser, list(texts))
    except Unanswered as error:
        raise UserError(f"{error}, or take them as one node with --allow-unanswered") from error
    return frozenset(parser.unanswered())


def any_relation(opened: OpenedPhotographs) -> bool:
    """Return whether any caption states a relation."""
    return any(
        caption.graph.edges
        for source in opened.sources
        for start in range(0, len(source), BLOCK)
        for caption in source.captions(
            range(start, min(start + BLOCK, len(source))), [0] * min(BLOCK, len(source) - start)
        )
    )


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
    subjects = {} if study.dry_run else read_subjects(study, dict.fromkeys(arm.labels["parser"] for arm in arms))
    return PreparedPhotographs(photos, arms, subjects)


def read_subjects(study: PhotographStudy, parsers: Iterable[str]) -> dict[str, Sequence[Subject]]:
    """Read the benchmarks with each parser's graphs. Raises if one that the user names can't be read."""
    workers = study.workers or usable_cores()
    place = Place(study.data_root, workers=workers, allow_missing=study.allow_missing, folders=study.folders)
    read = read_benchmarks(load_benchmarks(study.benchmarks), bool(study.benchmarks), place)
    return {parser: subjects_of(read, parser, study.parses) for parser in parsers}
