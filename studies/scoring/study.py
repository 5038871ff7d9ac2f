"""What `evaluate` and `transfer` share: a study that trains nothing, whose arms are pieces of an evaluation."""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, MODEL, PLACE, WHAT
from menagerie.envs.core.validation import SIDE, SOME_PROCESSES
from menagerie.models.judges.questions import JudgeOptions
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.machine import check_device_here
from menagerie.studies.runs.results import LEFT_OUT

if TYPE_CHECKING:
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records
    from menagerie.studies.scoring.models import Model
    from menagerie.studies.scoring.piece import Piece


@dataclass(frozen=True)
class ScoringStudy(AnyStudy):
    """A study that trains nothing: its arms are pieces of an evaluation, or keep why they can't be scored."""

    called: ClassVar[str] = "pieces"
    on: ClassVar[str]  # the label of what models are scored on
    written_by: ClassVar[str]  # the name of its `writer`

    threads: Annotated[int, PLACE, SOME_PROCESSES] = 0
    """Threads of torch; 0 leaves the choice to torch."""
    workers: Annotated[int, PLACE, FIRST, SOME_PROCESSES] = 0
    """Models that are scored at once; 0: one at a time, with all cores for its images."""
    models: Annotated[tyro.conf.Positional[tuple[str, ...]], WHAT, FIRST] = ()
    """Runs, cells, checkpoints, open_clip names (ViT-B-16/openai, ViT-B-16/FILE@openai), Hugging Face folders,
    chat:URL#MODEL, file.py:Class."""
    code: Annotated[tuple[str, ...], MODEL] = ()
    """Classes of your own (file.py:Class) whose checkpoints may be loaded: their files are run."""
    architecture: Annotated[str, MODEL] = "micro"
    """Towers of a file.py:Class without a checkpoint, at --resolution."""
    resolution: Annotated[int, DATA, SIDE] = 64
    """Side of the images of a file.py:Class without a checkpoint, in pixels."""
    judge: Annotated[JudgeOptions, MODEL] = field(default_factory=JudgeOptions)
    """How chat models and Hugging Face's image-text-to-text models are asked."""
    dry_run: Annotated[bool, WHAT, FIRST] = False
    """Only report what would be scored."""

    @classmethod
    def growing(cls) -> frozenset[str]:
        return frozenset(item.name for item in fields(cls))  # what decides a piece is part of its id

    @property
    def at_once(self) -> int:
        return self.workers or 1

    @property
    def writer(self) -> ModuleType:
        """The module with `COLUMNS` of results.csv, the numbers (`scores`) and further `parts` of the page."""
        return import_module(f"menagerie.studies.scoring.{self.written_by}")

    @property
    def pages(self) -> ModuleType:
        """The module that writes pages; it loads pandas, as the writer does."""
        from menagerie.studies.scoring import page

        return page

    @cached_property
    def tested(self) -> "Sequence[Model]":
        return self.models_named(*self.models)

    def models_named(self, *names: str) -> "Sequence[Model]":
        from menagerie.models.towers.config import TowerConfig
        from menagerie.studies.scoring.models import parse_models

        return parse_models(names, self.code, TowerConfig(self.architecture, "", self.resolution), self.judge)

    @property
    def how(self) -> dict[str, Any]:
        """How pieces are scored. Only the last digits of results depend on it."""
        return {"device": self.device, "threads": self.threads}

    @abstractmethod
    def pieces(self) -> "Iterable[Piece]":
        """Return a piece for each model and each split or benchmark that it is scored on."""

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        return (Arm(piece, {self.on: piece.label}) for piece in self.pieces())

    def check(self) -> None:
        """Raise for unknown models, and for a device that isn't here; say if options of judges are unused."""
        from menagerie.models.library.judged import JudgeSource

        judges = [model for model in self.tested if isinstance(model.source, JudgeSource)]
        if self.judge != JudgeOptions() and not judges:
            print("note: --judge changes nothing: no model among those given answers questions")
        if self.cluster.engine != "slurm":
            check_device_here(self.device)

    def forecast(self) -> bool:
        """Print what would be scored, and how many questions would be asked, without loading a model."""
        pieces = list(self.pieces())
        images, questions = sum(piece.steps for piece in pieces), sum(piece.questions for piece in pieces)
        print(f"{len(pieces)} pieces of {len(self.tested)} models: {images} images, each read once for its piece")
        if questions:
            print(f"{questions} questions to models that answer them; what was answered before isn't asked again")
        return True

    def prepare(self, out: Path) -> "ScoringStudy":
        forget_left_out(out)
        return self

    def tables(self, records: "Records") -> None:
        self.pages.write_results(records, self.writer.COLUMNS)

    def page(self, records: "Records") -> "Iterable[Part]":
        scores = self.writer.scores(records)
        return self.pages.score_page(records, scores, self.writer.parts(records, scores))

    def conclude(self, records: "Records") -> None:
        """Print the main numbers and the notes. Raises if nothing could be scored, or if a judge gave no verdict."""
        left = left_out_pieces(records)
        if not records.results and left:
            raise UserError(f"no model can be scored on anything: {next(iter(left.values()))}")
        self.pages.print_headlines(self.writer.scores(records))
        for model, test, note in self.pages.note_rows(records.where(lambda arm: not records.left_out(arm))):
            print(f"{model} on {test}: {note}")
        check_verdicts(records)


def check_verdicts(records: "Records") -> None:
    """Raise if none of a judge's answers gave a verdict."""
    from menagerie.models.judges.judge import PROBLEMS

    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for arm, result in records.results:
        counts[arm.cell.model].update(result.get("judged") or {})
    for model, count in counts.items():
        if 0 < count["items"] == count["undecided"]:
            why = ", ".join(f"{count[problem]} {problem}" for problem in PROBLEMS if count[problem])
            why = f"none of {count['items']} items has a verdict (answers: {why}), so nothing was measured"
            raise UserError(f"{model}: {why}; ask another model, or ask in another way (--judge)")


def forget_left_out(out: Path) -> None:
    """Forget why pieces in a folder were left out, so that they are tried again."""
    for file in out.glob(f"*/*/{LEFT_OUT}"):
        file.unlink()
        if not any(file.parent.iterdir()):
            file.parent.rmdir()


def left_out_pieces(records: "Records") -> dict[str, str]:
    """Return why pieces were left out, by the pieces' names."""
    return {arm.cell.name: why for arm in records.arms if (why := records.left_out(arm))}
