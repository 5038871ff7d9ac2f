"""One model on one benchmark of photographs: scored once, kept as a finished piece."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.identity import digest
from menagerie.generators.benchmarks.photographs import PhotographSet
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.models.contract import attempt
from menagerie.models.evaluation.codes import Codes
from menagerie.models.library.loaded import LoadedScorer
from menagerie.studies.evaluation.loop import cut_record
from menagerie.studies.evaluation.models import Model
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.transferring.rating import (
    groups_of,
    headlines_of,
    images_of,
    rated,
    surely_wrong,
    write_scores,
    write_texts,
)
from menagerie.studies.transferring.texts import identity_of, parsed, parsed_by, readable

VERSION = 3  # of how records are scored
FILE, TEXTS = "scores.csv", "texts.csv"


@dataclass(frozen=True)
class Subject:
    """A benchmark whose files were read."""

    spec: BenchmarkSpec
    bench: PhotographSet = field(repr=False)
    records: str
    """Hash of its records and of the sizes of their images."""
    parser: CaptionParser | None = None
    """What made the scene graphs of its texts; None where every text is one node."""

    @property
    def label(self) -> str:
        return self.spec.name


@dataclass(frozen=True)
class Piece:
    """A model and a benchmark, and the folder of their results."""

    model: Model
    subject: Subject
    out: Path
    skip: bool
    """Whether words that a model doesn't know are left out."""
    id: str

    @property
    def folder(self) -> Path:
        """Its result and its scores."""
        return self.out / "pieces" / self.id

    @property
    def name(self) -> str:
        return f"{self.model.label} on {self.subject.label}"


class Loaded(NamedTuple):
    """A model that is ready to score."""

    model: LoadedScorer
    codes: Codes


def subject_of(spec: BenchmarkSpec, bench: PhotographSet, parser: CaptionParser | None = None) -> Subject:
    """A benchmark with the identity of its content."""
    hashed = hashlib.sha256()
    for line in bench.content():
        hashed.update(f"{line}\n".encode())
    return Subject(spec, bench, hashed.hexdigest()[:16], parser)


def subjects_of(read: Sequence[tuple[BenchmarkSpec, PhotographSet]], parser: str, parses: Path) -> list[Subject]:
    """Benchmarks that were read, with the graphs of a parser, which are kept in the folder `parses`."""
    if not read:
        return []
    opened, benches = parsed([bench for _, bench in read], parser, parses)
    return [subject_of(spec, bench, opened) for (spec, _), bench in zip(read, benches, strict=True)]


def pieces_of(models: Sequence[Model], subjects: Sequence[Subject], out: Path, skip: bool) -> list[Piece]:
    contents = [
        {"benchmark": one.label, "records": one.records, **identity_of(one.bench, one.parser)} for one in subjects
    ]
    return [
        Piece(model, one, out, skip, digest({"model": model.weights, **what, "skip": skip, "version": VERSION}))
        for model in models
        for one, what in zip(subjects, contents, strict=True)
    ]


def score_piece(piece: Piece, loaded: Loaded, start: Callable[[int], Callable[[int], None]]) -> None:
    """Score all records, and write their scores and then the result.

    `start` receives the number of images and gives what is to be called with those that are encoded. Raises where the
    model can't, or where its scores are no numbers.
    """
    began = time.perf_counter()
    (model, codes), label, parser = loaded, piece.model.label, piece.subject.parser
    bench, space = piece.subject.bench.framed(*model.framing), model.scorer.texts
    words, skipped = readable(bench, space.words, space.context, piece.skip, label)
    cut = attempt(label, "fails", lambda: cut_record(model.scorer, words.texts))
    results = attempt(label, "fails", lambda: rated(codes, words, start(images_of(words))))
    write_scores(piece.folder / FILE, results)
    if bench.made_texts:
        write_texts(piece.folder / TEXTS, bench)
    result = {
        **{"id": piece.id, "model": label, "benchmark": piece.subject.label},
        **{"groups": groups_of(bench, results), "headlines": headlines_of(bench, results)},
        "wrong": surely_wrong(results),
        **parsed_by(bench, parser),
        "cut": cut,
        **{"skipped": skipped._asdict(), "seconds": round(time.perf_counter() - began, 1), "provenance": provenance()},
    }
    write_result(piece.folder, result)


def measured(result: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every number of a result: "group" or "headline", its name, its values."""
    for kind in ("groups", "headlines"):
        yield from ((kind[:-1], name, values) for name, values in result[kind].items())
