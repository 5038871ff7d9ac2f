"""A cell: one training run with its evaluation, identified by the hash of its settings."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from menagerie.envs.core.identity import changed_fields, defaults_version, digest, identity_of
from menagerie.envs.core.plugins import own_sources
from menagerie.envs.core.reading import open_file
from menagerie.generators.parsers.graph_source import GENERATOR, GraphSource
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.models.towers.config import TowerConfig, file_and_tag
from menagerie.studies.runs.data import CellData

STATE, CHECKPOINT = "state.pt", "checkpoint"
DIVERGED = "diverged.txt"  # why a cell diverged, so that it never gets a result


@dataclass(frozen=True)
class Start:
    """Trained weights of a scorer of the same kind, from which a run starts (models/carry_over.py)."""

    weights: str
    """Hash of the checkpoint's files."""
    folder: Path = field(compare=False)
    """Folder of the checkpoint; it doesn't decide the result."""
    name: str = field(default="", compare=False)
    """Name that the user gave the checkpoint."""
    images_seen: int = field(default=0, compare=False)
    """Number of images in all steps of the weights' own training, if known."""


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one training run."""

    model: str
    seed: int
    data: CellData
    towers: TowerConfig
    recipe: Recipe
    options: dict[str, Any] = field(default_factory=dict)
    """Fields of the model's config that differ from its defaults."""
    device: str = "cpu"
    threads: int = 1
    files: str = ""  # hash of a model file of the user's own and of local weights
    negatives: tuple[str, ...] = ()
    """Content of batches that the model needs besides images and captions."""
    base: "Cell | None" = None
    """Cell whose trained scorer this one is built on."""
    start: Start | None = None
    """Trained weights of another study, from which training starts."""
    graphs: GraphSource = field(default_factory=GraphSource)
    """Source of the graphs that the model reads; the default source for a model that reads none."""
    parser: str = ""
    """Hash of everything that decides a parser's graphs; empty if no parser makes them."""

    @cached_property
    def id(self) -> str:
        return digest(self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that decide the result; recipes, towers and splits list only differences from defaults."""
        run = {"model": self.model, "seed": self.seed, "device": self.device, "threads": self.threads}
        run |= {"towers": identity_of(self.towers_recorded), "recipe": identity_of(self.recipe)}
        if self.towers.pretrained:  # such towers keep their own temperature
            run["towers"]["temperature"] = "kept"
        run["data"] = self.data.settings
        given = {"options": self.options, "files": self.files, "negatives": list(self.negatives)}
        given |= {"base": self.base and self.base.settings, "start": self.start and self.start.weights}
        given |= {"graphs": changed_fields(self.graphs), "parser": self.parser}
        given |= defaults_version(spec_of(self.model).config)
        return run | {name: value for name, value in given.items() if value}

    @property
    def towers_recorded(self) -> TowerConfig:
        """The towers as recorded: a file of weights has the tag whose preparation of images applies."""
        if not (self.towers.pretrained and self.files):  # without importing torch
            return self.towers
        from menagerie.models.towers.preparation import towers_to_record

        return towers_to_record(self.towers)

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
