"""How much of a benchmark of photographs a model's training had: whole texts, and image files by their bytes."""

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import read_record
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.benchmarks.tested_photographs import images_of_tests
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.place import Place
from menagerie.generators.trained_on import Training, read_part
from menagerie.studies.runs.folder import CONFIG
from menagerie.studies.runs.results import read_result
from menagerie.studies.sources.photographs import PhotographOptions, hold_out, open_photographs, split_sources

Files = list[tuple[ImageFiles, list[int]]]
"""Readers of image files, each with the numbers of its images."""


def training_had(training: Training, bench: PhotographBenchmark) -> str:
    """Say how many texts and image files of a benchmark a training had, and what isn't known about it."""
    texts, files, gaps = set(), [], list(training.unknown)
    for part in training.parts:
        texts |= read_part(part).texts
    for cell in training.photographs:
        try:
            more, its = photographs_in(cell)
        except (UserError, KeyError) as error:
            gaps.append(f"its photographs ({error})")
        else:
            texts |= more
            files += its
    gaps = [f"unknown: {'; '.join(gaps)}"] if gaps else []
    if len(gaps) and not (texts or files):
        return gaps[0]
    tested = {text.text for text in bench.texts}
    shown = len(set(bench.files.names))
    counts = (
        f"{len(tested & texts)} of {len(tested)} texts, {count_shared_files(files, bench.files)} of {shown} image files"
    )
    return "; ".join([counts, *gaps])


def count_shared_files(trained: Files, tested: ImageFiles) -> int:
    """Count the tested files with the same bytes as a trained file. Only files of the same size are read."""
    sizes = {files.bytes_of(index) for files, indices in trained for index in indices}
    of_test = [(tested, [index for index in range(len(tested)) if tested.bytes_of(index) in sizes])]
    of_both = {tested.bytes_of(index) for _, indices in of_test for index in indices}
    known = digests_of_sizes(trained, of_both)
    ((_, alike),) = of_test
    return len({tested.names[index] for index in alike if tested.digest_of(index) in known})


def digests_of_sizes(every: Files, sizes: Collection[int]) -> set[str]:
    """Return the digests of the files with one of these sizes."""
    return {files.digest_of(index) for files, indices in every for index in indices if files.bytes_of(index) in sizes}


@lru_cache(maxsize=2)
def photographs_in(cell: Path) -> tuple[frozenset[str], Files]:
    """Return the texts and image files that a cell was trained on. Raises if they have moved or changed."""
    result, run = read_result(cell) or {}, cell.parents[1]
    config = read_record(run / CONFIG)["config"]
    root = run / "rendered" if config["rehearse"] else Path(config["data_root"])
    folders: dict[str, tuple[Path, ...]] = {}
    for name, _, path in (text.partition("=") for text in config["images"]):
        folders[name] = (*folders.get(name, ()), Path(path).resolve())
    place = Place(root, config["resolution"], folders=folders)
    opening = PhotographOptions(
        sources=split_sources(result["sources"]),
        root=root.resolve(),
        folders=tuple(folders.items()),
        resolution=config["resolution"],
        caption=config["caption"],
        parser=result["parser"],
        parses=Path(config["parses"]).resolve(),
        kept_out=images_of_tests(place, allow_unknown=config["allow_unknown"]),
    )
    opened = open_photographs(opening)
    if opened.identity != result["settings"]["data"]["photographs"]:
        raise UserError(f"those in {root} have changed since")
    chosen = hold_out(name for source in opened.sources for name in source.names_of_images)
    texts: set[str] = set()
    files: Files = []
    for source in opened.sources:
        places = [k for k, name in enumerate(source.names_of_images) if name not in chosen]
        texts.update(text for k in places for text in source.texts_of(k))
        files.append((source.files, places))
    return frozenset(texts), files
