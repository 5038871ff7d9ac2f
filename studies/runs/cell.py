"""A cell: one training run with its evaluation, identified by the hash of its settings; and jobs of executors."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers
from menagerie.envs.core.identity import changed_fields, defaults_version, digest, identity_of
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.plugins import own_sources
from menagerie.envs.core.reading import open_file
from menagerie.generators.parsers.graph_source import GENERATOR, GraphSource
from menagerie.models.kept_states import missing_steps
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.models.towers.config import TowerConfig, file_and_tag
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import read_result, reason_in

STATE, CHECKPOINT = "state.pt", "checkpoint"
DIVERGED = "diverged.txt"  # why a cell diverged, so that it never gets a result


@dataclass(frozen=True)
class Start:
    """Trained weights of a scorer of the same kind, from which a run starts (models/carry_over.py)."""

    weights: str
    """Hash of the checkpoint's files; no other field decides the result."""
    folder: Path = field(compare=False)
    name: str = field(default="", compare=False)
    """Name that the user gave the checkpoint."""
    images_seen: int = field(default=0, compare=False)  # in the weights' own training, if known


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one training run."""

    model: str
    seed: int
    data: CellData
    towers: TowerConfig
    recipe: Recipe
    options: dict[str, Any] = field(default_factory=dict)  # fields of the model's config that aren't its defaults
    device: str = "cpu"
    threads: int = 1
    files: str = ""  # hash of a model file of the user's own and of local weights
    negatives: tuple[str, ...] = ()  # content of batches that the model needs besides images and captions
    base: "Cell | None" = None  # whose trained scorer this one is built on
    start: Start | None = None
    graphs: GraphSource = field(default_factory=GraphSource)  # the default source for a model that reads none
    parser: str = ""  # hash of everything that decides a parser's graphs; empty if no parser makes them

    @cached_property
    def id(self) -> str:
        return digest(self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that decide the result; recipes, towers and splits list only differences from defaults."""
        towers = self.towers
        if towers.pretrained and self.files:  # a file of weights has the tag whose preparation of images applies
            from menagerie.models.towers.preparation import towers_to_record

            towers = towers_to_record(towers)
        run = {"model": self.model, "seed": self.seed, "device": self.device, "threads": self.threads}
        run |= {"towers": identity_of(towers), "recipe": identity_of(self.recipe)}
        if self.towers.pretrained:  # such towers keep their own temperature
            run["towers"]["temperature"] = "kept"
        run["data"] = self.data.settings
        given = {"options": self.options, "files": self.files, "negatives": list(self.negatives)}
        given |= {"base": self.base and self.base.settings, "start": self.start and self.start.weights}
        given |= {"graphs": changed_fields(self.graphs), "parser": self.parser}
        given |= defaults_version(spec_of(self.model).config)
        return run | {name: value for name, value in given.items() if value}

    @property
    def trained_as(self) -> "Cell":
        """The cell with the same training that is scored with the defaults; often the cell itself."""
        graphs, scored = self.graphs.trained_with, spec_of(self.model).scored
        options = {name: value for name, value in self.options.items() if name not in scored}
        parser = self.parser if graphs.graphs != GENERATOR else ""
        return replace(self, graphs=graphs, parser=parser, options=options)

    @property
    def name(self) -> str:
        """Short text for progress bars."""
        start = f"from {self.start.name}" if self.start else ""
        return " ".join(filter(None, (self.model, self.data.name, start, f"seed {self.seed}")))

    @property
    def axes(self) -> dict[str, Any]:
        """The cell's place in a study, by axis."""
        return self.data.axes | ({"start": self.start.name} if self.start else {})

    @property
    def tests(self) -> tuple[str, ...]:
        """The test subsets of the cell's data, in the order of tables."""
        return self.data.tests

    @property
    def images_seen(self) -> int:
        """Number of images in all steps, including the training that the cell starts from."""
        before = self.base or self.start
        return self.recipe.steps * self.recipe.batch + (before.images_seen if before else 0)


def own_files(*paths: str) -> str:
    """Return a hash of a model's file (file.py:Class), of the files that it imports, or of weights; empty for names."""
    given = [file_and_tag(path)[0] for path in paths]
    parts = [part for path in given for part in ([path] if Path(path).is_file() else path.split("+"))]  # TEXT+IMAGE
    files = [Path(part.rpartition(":")[0] if ".py:" in part else file_and_tag(part)[0]) for part in parts]
    read = [own_sources(file) if file.suffix == ".py" else [file] for file in files if file.is_file()]
    hashed, files_read = hashlib.sha256(), [file for each in read for file in each]
    for path in files_read:
        with open_file(path) as file:
            hashed.update(file.read())
    return hashed.hexdigest()[:12] if files_read else ""


Report = Callable[[int, str], None]  # receives each finished step with a text on it


class AnyJob:
    """Work that writes files into a folder. A job is pickled to reach the process that does it."""

    id: str
    name: str
    """Short text for progress messages."""
    folder: Path
    """Folder of the job's files, to which nothing else writes while it runs."""
    group: str = ""
    """Jobs of one group load the same files, so one worker runs them one after another if it can; empty: no group."""
    steps: int = 1
    threads: int = 1
    """Threads of torch; 0 leaves torch the choice."""
    device: str = "cpu"
    has_processes: bool = False
    """Whether the job has child processes, so that it may be ended only when it reports a step."""
    needs: "Sequence[AnyJob]" = ()
    problem: str = ""
    """Why the job ended without a result; empty if it has one, or hasn't ended."""
    ended: bool
    """Whether the job is finished, according to the files in its folder."""
    held: bool = False
    """Whether another command runs the job now."""

    def run(self, report: Report, release: Callable[[], None]) -> None:
        """Do what is left, from where it was stopped. After `release()` the job may be ended at any moment. It has
        failed if it raises a `UserError`, unless it has `ended` with that, for example because it diverged."""
        raise NotImplementedError

    @property
    def outcome(self) -> str:
        """The line that is printed when the job has ended."""
        return f"no result of {self.name}: {self.problem}" if self.problem else f"finished {self.name}"


class Execution(NamedTuple):
    """Settings of a run that don't affect results: fields of `StudyOptions`."""

    loaders: int = 0
    images_on_gpu: float = 0.1
    log: tuple[str, ...] = ()
    validate_every: int = 0
    keep_states: tuple[int, ...] = ()
    grad_checkpointing: bool = False

    @classmethod
    def of(cls, config: Any) -> "Execution":
        """Read these settings from a study's configuration."""
        return cls(*(getattr(config, name) for name in cls._fields))


@dataclass(frozen=True)
class Job(AnyJob):
    """A cell to be trained. It has no group, so that steps shared by cells on the same data are done early."""

    cell: Cell
    data_file: Path
    out: Path  # folder of the run
    what: str = ""  # given by the study, before the cell's name
    execution: Execution = field(default_factory=Execution)

    @property
    def folder(self) -> Path:
        return self.out / "cells" / self.cell.id

    @property
    def name(self) -> str:
        return f"{self.what}: {self.cell.name}" if self.what else self.cell.name

    @property
    def id(self) -> str:
        return self.cell.id

    @property
    def steps(self) -> int:
        return self.cell.recipe.steps

    @property
    def threads(self) -> int:
        return self.cell.threads

    @property
    def device(self) -> str:
        return self.cell.device

    @property
    def has_processes(self) -> bool:
        return bool(self.execution.loaders or self.execution.log)

    @property
    def base(self) -> "Job | None":
        return replace(self, cell=self.cell.base, what="") if self.cell.base else None

    @property
    def same_training(self) -> "Job | None":
        """The job of the other cell with the same training (`Cell.trained_as`), whose weights this cell only scores.
        None if this cell takes its own steps, as with `--keep-states`, or if it differs only in graphs of tests and the
        other one isn't finished."""
        other = replace(self, cell=self.cell.trained_as)
        if other.cell == self.cell or self.execution.keep_states:
            return None
        return other if other.cell.options != self.cell.options or read_result(other.folder) is not None else None

    @property
    def needs(self) -> "list[Job]":
        return list(filter(None, (self.base, self.same_training)))

    @property
    def problem(self) -> str:
        """Why the cell diverged (loss, weights or scores weren't finite) and never gets a result; else empty."""
        return reason_in(self.folder, DIVERGED)

    @property
    def ended(self) -> bool:
        return read_result(self.folder) is not None or (self.folder / DIVERGED).exists()

    @property
    def lacking(self) -> list[int]:
        """Steps of `--keep-states` whose weights aren't kept yet, without those that the run doesn't reach."""
        return missing_steps(self.folder, (step for step in self.execution.keep_states if step <= self.steps))

    @property
    def lock(self) -> Path:
        return self.out / "locks" / f"{self.id}.lock"

    @property
    def held(self) -> bool:
        """Whether a process trains the cell now; False on file systems without locks."""
        lock = FileLock(self.lock)
        try:
            return self.lock.exists() and not lock.acquire(wait=False)
        except OSError:
            return False
        finally:
            lock.release()


@contextmanager
def one_training(job: Job) -> Iterator[None]:
    """Hold a cell's lock, if the file system has any, and delete files of killed processes. Raises if it is taken."""
    job.lock.parent.mkdir(parents=True, exist_ok=True)
    lock, alone = FileLock(job.lock), True
    try:
        if not lock.acquire(wait=False):
            raise UserError(f"{job.name} is trained by another command; repeat this one when that has ended")
    except OSError:
        alone = False
    try:
        clear_leftovers(job.folder, below=True, alone=alone)
        yield
    finally:
        if alone and job.ended:
            job.lock.unlink(missing_ok=True)  # whoever has opened it finds that the cell has ended
        lock.release()
