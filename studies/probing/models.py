"""The options of probing given models on one probe set, without training."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.models.judges.options import JudgeOptions
from menagerie.studies.scoring.study import ScoringStudy, left_out_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records
    from menagerie.studies.measures.bits import Bits
    from menagerie.studies.probing.piece import ProbePiece
    from menagerie.studies.scoring.models import Model
    from menagerie.studies.scoring.trained_on import ScoredTest

# For models that no study here trained.
WORLD, RESOLUTION = "pug", 64
NOTHING_LEFT_OUT = "Bits are computed from all scenes of the probe set."


@dataclass(frozen=True)
class ProbeModels(ScoringStudy):
    """Inside the embeddings of models as they are"""

    called: ClassVar[str] = "models"
    on: ClassVar[str] = "probed on"

    judge: Annotated[JudgeOptions, tyro.conf.Fixed, tyro.conf.Suppress] = field(default_factory=JudgeOptions)
    """Options of models that answer questions; unused, because such models have no embeddings."""
    world: Annotated[str, DATA, FIRST] = ""
    """World of the probe set; empty takes that of the models' training, or pug."""
    resolution: Annotated[int, DATA, FIRST, Range(0, SIDE.high)] = 0
    """Side of the probe set's images in pixels, which each model resizes; 0 takes that of our models' training, or
    64."""
    probe_animals: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Animals of the probe set; empty: all of the world."""
    probe_textures: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Textures of the probe set; empty: all of the world."""
    layers: Annotated[tuple[str, ...], WHAT, FIRST, Several()] = ()
    """Layers to probe, such as stem "block 6" tokens embedding; empty: all. Scores are probed too."""

    @cached_property
    def tested(self) -> "Sequence[Model]":
        from menagerie.models.towers.config import TowerConfig
        from menagerie.studies.scoring.models import parse_models

        return parse_models(self.models, self.code, TowerConfig(self.architecture, "", self.resolution or RESOLUTION))

    @cached_property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which layers are probed. Raises if models were trained in several worlds and none is given."""
        from menagerie.studies.probing.piece import agreed_setting
        from menagerie.studies.scoring.models import recorded_world

        found = {model.label: recorded_world(model) for model in self.tested}
        world = agreed_setting("--world", self.world, found, WORLD)
        return ProbeRecipe(world=world, animals=self.probe_animals, textures=self.probe_textures)

    @cached_property
    def bits(self) -> "Bits":
        """The measure. Raises if models were trained with images of several sizes and none is given."""
        from menagerie.studies.measures.bits import Bits
        from menagerie.studies.probing.piece import agreed_setting, side_of

        found = {model.label: side_of(model) for model in self.tested}
        side = agreed_setting("--resolution", self.resolution, found, RESOLUTION)
        return Bits(self.probe_set, self.store, side, self.layers)

    def check(self) -> None:
        """Raise for models that can't be loaded, or lack animals, textures or words of the probe set."""
        from menagerie.envs.worlds import load_world
        from menagerie.studies.probing.piece import check_layers, check_model_knows

        if not self.models:
            raise UserError("give one or more models: runs, cells, checkpoints, open_clip names, Hugging Face folders")
        if 0 < self.resolution < SIDE.low:
            raise UserError(f"--resolution must be at least {SIDE.low:g}, got {self.resolution}")
        super().check()
        choose_names(self.probe_set, load_world(self.probe_set.world))
        for model in self.tested:
            check_model_knows(model, self.bits.recipe)
        if self.layers:
            call_in_child(check_layers, self.tested, self.layers)

    def prepare(self, out: Path) -> "ProbeModels":
        """Render the missing atlas entries of the probe set."""
        super().prepare(out)
        self.bits.make(self.cores)
        return self

    def pieces(self) -> "Iterator[ProbePiece]":
        from menagerie.studies.probing.piece import probe_piece
        from menagerie.studies.scoring.models import by_training

        called = by_training(self.tested)
        return (probe_piece(model, *called[model.label], self.bits, **self.how) for model in self.tested)

    def tables(self, records: "Records") -> None:
        from menagerie.studies.frame.records import write_cells

        write_cells(records)

    def export(self, records: "Records") -> None:
        """Write all rows of the measure into `bits.csv`."""
        from menagerie.studies.pages.probes import rows_at_steps, write_measure_rows

        write_measure_rows(records.out / "bits.csv", rows_at_steps(records, self.bits))

    def page(self, records: "Records") -> "Iterator[Part]":
        from menagerie.studies.frame.parts import Facts, Heading
        from menagerie.studies.pages.probes import parts, rows_at_steps
        from menagerie.studies.scoring.page import about_models
        from menagerie.studies.scoring.trained_on import coverage_parts as on_training

        names = self.names(records)
        yield from parts(rows_at_steps(records, self.bits), (), {}, names)
        labels = {model.label: model.label for model in self.tested}
        yield from on_training(self.trained, "probe-set", labels, NOTHING_LEFT_OUT)
        if left := left_out_pieces(records):
            yield Heading("Left out")
            yield Facts(left)
        yield from about_models(records, names)

    @cached_property
    def trained(self) -> "list[ScoredTest]":
        """How much of the probe set the training of each model had."""
        from menagerie.generators.storage.split_file import read_split, split_name
        from menagerie.generators.trained_on import measure_overlap
        from menagerie.studies.scoring.trained_on import ScoredTest

        split = read_split(self.bits.images.folder / split_name(self.probe_set))
        both = ((model, test) for model in self.tested for test in self.probe_set.tests)
        every = ((model.label, test, measure_overlap(model.training, split, test)) for model, test in both)
        # No scene is left out of the bits; the counts say how many of them training had.
        return [
            ScoredTest(name, "The probe set", test, replace(had, left_out=frozenset())) for name, test, had in every
        ]

    def names(self, records: "Records") -> dict[str, str]:
        """Return the names of models in tables."""
        from menagerie.studies.scoring.models import by_training, short_labels

        return short_labels(list({model.label: model for model, _ in by_training(self.tested).values()}.values()))

    def conclude(self, records: "Records") -> None:
        """Print the sentences of the page; raises if no model could be probed."""
        from menagerie.studies.frame.parts import Sentence
        from menagerie.studies.pages.probes import parts, rows_at_steps
        from menagerie.studies.scoring.trained_on import print_training

        left = left_out_pieces(records)
        if not records.results and left:
            raise UserError(f"no model can be probed: {next(iter(left.values()))}")
        for part in parts(rows_at_steps(records, self.bits), (), {}, self.names(records)):
            if isinstance(part, Sentence):
                print(part.text)
        print_training(self.trained, {model.label: model.label for model in self.tested})
