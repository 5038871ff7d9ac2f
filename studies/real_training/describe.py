"""Reads the photographs of a study once, in the command itself: what they are, how many, and their graphs.

A rehearsal has rendered scenes as the files of COCO, through the same readers and without any outside file: what
`menagerie export` writes becomes JPEG files with COCO's numbers for names.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.reading import LARGEST_TEXT, read_json
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.shown import images_of_tests
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.export.write import export
from menagerie.generators.parsers.parser import Unanswered
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.captions_file import parse_all
from menagerie.generators.sources.folders import Given
from menagerie.generators.sources.kept_out import KeptOut
from menagerie.generators.sources.registry import SourcePlace, load, names, one_node
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.frame.arm import Arm
from menagerie.studies.real_training.benchmarks import FOLDER, read_subjects
from menagerie.studies.real_training.cells import (
    Described,
    Photos,
    arms_of,
    check_false_captions,
    grid_of,
    places,
)
from menagerie.studies.real_training.photographs import Numbers, Opened, Opening, names_of, numbers_of, open_photographs
from menagerie.studies.runs.split_file import make_splits
from menagerie.studies.scoring.benchmark_piece import Subject
from menagerie.studies.scoring.check import folders_given
from menagerie.studies.scoring.study import forget_left_out

SEED = 1000  # above those of the study: other assignments of textures than its own scenes have
# COCO's parts by the subset of a split that takes their place.
PARTS = {"train": "train2017", "unseen_pairs": "val2017"}
QUALITY = 95


def write_files(recipe: SplitRecipe, out: Path, store: Path, resolution: int, workers: int) -> Path:
    """Render, export and rename; returns the data root. What is there already stays."""
    others = replace(recipe, seed=recipe.seed + SEED)
    images = ImageStore(store, load_world(recipe.world), resolution)
    split = make_splits(images, [others], workers)[others]
    root, exported = out / "rendered", out / "rendered" / "export"
    root.mkdir(parents=True, exist_ok=True)
    subsets = [subset for subset in PARTS if subset in {"train", *recipe.all_tests}]
    export(split, "coco", exported, subsets)
    first = 1
    for subset in subsets:
        content = read_json(exported / f"{subset}.json", most=LARGEST_TEXT)
        write_part(content, exported / "images", root / "coco", PARTS[subset], first)
        first += len(content["images"])
    return root


def write_part(content: Mapping[str, Any], images: Path, folder: Path, part: str, first: int) -> None:
    """One part of COCO, its photographs numbered from `first`: no two of COCO have one number."""
    annotations = folder / "annotations" / f"captions_{part}.json"
    if annotations.exists():  # which is written last
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


def folders_of(study: Any) -> Given:
    """`--images` by what they replace, of sources and of benchmarks; a folder that sources read is one."""
    from menagerie.generators.benchmarks import registry

    if not study.images:
        return {}
    read_by_sources = {folder for name in names() for folder in load(name).images}
    tests = {folder for name in registry.names() for folder in registry.load(name).images}
    given = folders_given(study.images, read_by_sources | tests)
    if twice := next((name for name in sorted(read_by_sources) if len(given.get(name, ())) > 1), None):
        raise UserError(f"--images {twice} is given {len(given[twice])} times; training reads one folder for it")
    return given


def first_of_each(folders: Given) -> dict[str, Path]:
    """The folders of sources, of which there is one each."""
    return {name: paths[0] for name, paths in folders.items()}


def kept_out(study: Any, root: Path, folders: Given) -> KeptOut:
    """The photographs that tests have: COCO's validation set, and those of every benchmark on disk."""
    return images_of_tests(
        SourcePlace(root, study.resolution, folders=first_of_each(folders)), allow_unknown=study.allow_unknown
    )


def opening_of(study: Any, sources: str, parser: str, root: Path, folders: Given, out: KeptOut) -> Opening:
    """The settings by which photographs are found and read."""
    return Opening(
        sources=names_of(sources),
        root=root.resolve(),
        folders=tuple((name, path.resolve()) for name, path in first_of_each(folders).items()),
        resolution=study.resolution,
        caption=study.caption,
        parser=parser,
        parses=study.parses.resolve(),
        kept_out=out,
    )


def described(study: Any, root: Path, folders: Given) -> dict[tuple[str, str], Described]:
    """Collect what cells train on, by their sources and parser, and print the counts."""
    out = kept_out(study, root, folders)
    found = {}
    for sources, parser in dict.fromkeys((place.sources, place.parser) for _, place in places(study)):
        opening = opening_of(study, sources, parser, root, folders, out)
        if parser != DEFAULT:
            opening = replace(opening, unanswered=parse_captions(opening, study.allow_unanswered))
        opened = open_photographs(opening)
        numbers = numbers_of(opened, len(opening.unanswered))
        found[sources, parser] = Described(opened.identity, opening, numbers, relational(opened))
        print("\n".join(lines_of(sources, numbers)), flush=True)
    return found


@dataclass
class Collector:
    """Takes the captions that need a parser, and parses none."""

    texts: dict[str, None] = field(default_factory=dict)

    def __call__(self, text: str) -> SceneGraph:
        """One node."""
        self.texts[text] = None
        return one_node(text)


def parse_captions(opening: Opening, allow_unanswered: bool) -> frozenset[str]:
    """Parse all captions of some sources with a bar, and keep their graphs; returns those without an answer.

    Raises for them unless they are allowed.
    """
    parser = open_parser(opening.parser, opening.parses, allow_unanswered)
    collector = Collector()
    for name in opening.sources:
        load(name).open(opening.place(name, collector))
    try:
        if collector.texts:
            parse_all(parser, list(collector.texts))
    except Unanswered as error:
        raise UserError(f"{error}, or take them as one node with --allow-unanswered") from error
    return frozenset(parser.unanswered())


def relational(opened: Opened) -> bool:
    """Whether any caption states a relation."""
    return any(
        caption.graph.edges
        for source in opened.sources
        for start in range(0, len(source), 1024)
        for caption in source.captions(
            range(start, min(start + 1024, len(source))), [0] * min(1024, len(source) - start)
        )
    )


def lines_of(sources: str, numbers: Numbers) -> list[str]:
    """Lines that tell a user how much there is and what was left out."""
    lines = [f"{sources}: {numbers.images} photographs, {numbers.held_out} held out; {numbers.captions} captions"]
    lines += [f"  left out of {sources}: {count} photographs, {reason}" for reason, count in numbers.left_out]
    lines += [f"  left out of {sources}: {count} texts, {reason}" for reason, count in numbers.refused]
    return lines


class Prepared(NamedTuple):
    """What a study has read."""

    photos: Photos
    arms: list[Arm]
    """Its cells."""
    subjects: Mapping[str, Sequence[Subject]]
    """The benchmarks, as each parser reads their texts."""


def prepared(study: Any, out: Path) -> Prepared:
    """Read all that a study trains on and is scored on, of a rehearsal after rendering it into the folder."""
    grid, folders, root = grid_of(study), folders_of(study), study.data_root
    if study.rehearse:
        root = write_files(grid.recipe_given, out, study.store, study.resolution, study.cores)
    photos = described(study, root, folders)
    arms = arms_of(study, photos)
    check_false_captions(arms)
    forget_left_out(out / FOLDER)
    parsers = [arm.labels["parser"] for arm in arms]
    return Prepared(photos, arms, {} if study.dry_run else read_subjects(study, parsers, root, folders))
