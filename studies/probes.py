"""Inside the embeddings: how much binding does each layer hold?

Models are trained as in a binding grid. Then each of their layers is probed, in views that aren't in training: how much
information does the layer have on exactly one bit, which animal has which texture? And what of it is used: activations
of a scene and of its swap are exchanged, part by part, to see which of them turn the choice between their captions.

    python studies/probes.py --preset smoke            # tiny, under 90 seconds on 2 cores
    python studies/probes.py                           # laptop: 8 animals, 32 px, three seeds
    python studies/probes.py --preset pug              # 12 animals, 64 px, five seeds
    python studies/probes.py --keep-states 0 200 1000  # and over training
    python studies/probes.py runs/mine ViT-B-32/openai # given models, without training
    python studies/probes.py --preset pug --models clip filip oc-clip sparo --seeds 3   # used where? 64 px

Models that are named first are probed without training: runs (all their cells), cells, checkpoints, open_clip models
(without weights: random), folders of Hugging Face's CLIP or SigLIP (or hf:NAME), classes of your own. Their options:
`--preset models --help`.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.processes import call_in_child
from menagerie.envs.core.validation import SHARE, SIDE, Range, Several
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.split_file import read_split, split_name
from menagerie.generators.trained_on import measure_overlap
from menagerie.models.judges.questions import JudgeOptions
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, SMOKE
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Facts, Heading, Part
from menagerie.studies.frame.records import Records, write_cells
from menagerie.studies.frame.study import AnyStudy, SplitStudy, grid
from menagerie.studies.runs.data import FRACTIONS
from menagerie.studies.scoring.study import ScoringStudy, left_out_pieces

if TYPE_CHECKING:
    from menagerie.studies.measures.bits import Bits, ProbePiece
    from menagerie.studies.measures.patching import Patching
    from menagerie.studies.measures.probe_set import ProbeMeasure
    from menagerie.studies.scoring.models import Model
    from menagerie.studies.scoring.page import ScoredTest


@dataclass(frozen=True)
class ProbeStudy(SplitStudy):
    """A study that measures embeddings of trained models on a probe set"""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split",)

    pairs: Annotated[Axis[float], SHARE] = (0.2,)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0,)
    """Fractions of these pairs that have hard negatives too."""
    probe_animals: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Animals of the probe set; empty: all of the world."""
    probe_textures: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Textures of the probe set; empty: all of the world."""

    def check(self) -> None:
        """Raise for animals and textures of which no probe set can be made."""
        super().check()
        choose_names(self.probe_set, load_world(self.world))

    @property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which embeddings are measured."""
        return ProbeRecipe(world=self.world, animals=self.probe_animals, textures=self.probe_textures)

    @property
    def probe_measures(self) -> "Sequence[ProbeMeasure]":
        raise NotImplementedError

    @cached_property
    def probed(self) -> "Sequence[ProbeMeasure]":
        """The measures, after rendering their probe set."""
        self.probe_measures[0].make(self.cores)
        return self.probe_measures

    def measurements(self, arm: Arm) -> "Sequence[ProbeMeasure]":
        return self.probed


@dataclass(frozen=True)
class Probes(ProbeStudy):
    """Inside the embeddings: how much binding does each layer hold?"""

    @property
    def bits(self) -> "Bits":
        from menagerie.studies.measures.bits import Bits

        return Bits(self.probe_set, self.store, self.resolution)

    @property
    def patching(self) -> "Patching":
        from menagerie.studies.measures.patching import Patching

        return Patching(self.probe_set, self.store, self.resolution)

    @property
    def probe_measures(self) -> "Sequence[Bits | Patching]":
        return [self.bits, self.patching]

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        return grid(self, pairs=self.pairs, hard_negatives=self.hard_negatives)

    def page(self, records: Records) -> "Iterator[Part]":
        from menagerie.studies.measures.bits import bit_parts, rows_at_steps
        from menagerie.studies.measures.used import used_parts

        axes = [name for name in FRACTIONS if len(getattr(self, name)) > 1]
        names = {arm.cell.model: title_of(arm.cell.model) for arm in records.arms}
        lengths = {arm.cell.model: arm.cell.recipe.steps for arm in records.arms}
        yield from bit_parts(rows_at_steps(records, self.bits, self.keep_states), names, axes, lengths)
        yield from used_parts(rows_at_steps(records, self.patching, self.keep_states), names, axes, lengths)

    def export(self, records: Records) -> None:
        export_rows(records, "bits.csv", self.bits, self.keep_states)
        export_rows(records, "patching.csv", self.patching, self.keep_states)


def export_rows(records: Records, file: str, measure: "Bits | Patching", states: Sequence[int] = ()) -> None:
    """Write all rows of a measure, but for the numbers of single animal pairs."""
    from menagerie.studies.analysis.tables import to_csv
    from menagerie.studies.measures.bits import rows_at_steps

    if len(rows := rows_at_steps(records, measure, states)):
        to_csv(records.out / file, rows.drop(columns=["moves", "wholes"], errors="ignore"))


WORLD, RESOLUTION = "pug", 64  # for models that no study here trained


@dataclass(frozen=True)
class ProbeModels(ScoringStudy):
    """Inside the embeddings of models as they are"""

    called: ClassVar[str] = "models"
    on: ClassVar[str] = "probed on"

    judge: Annotated[JudgeOptions, tyro.conf.Fixed, tyro.conf.Suppress] = field(default_factory=JudgeOptions)
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
        from menagerie.studies.scoring.models import parse_models

        return parse_models(self.models, self.code, TowerConfig(self.architecture, "", self.resolution or RESOLUTION))

    @cached_property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which layers are probed. Raises if models were trained in several worlds and none is given."""
        from menagerie.studies.measures.bits import agreed_setting
        from menagerie.studies.scoring.models import recorded_world

        found = {model.label: recorded_world(model) for model in self.tested}
        world = agreed_setting("--world", self.world, found, WORLD)
        return ProbeRecipe(world=world, animals=self.probe_animals, textures=self.probe_textures)

    @cached_property
    def bits(self) -> "Bits":
        """The measure. Raises if models were trained with images of several sizes and none is given."""
        from menagerie.studies.measures.bits import Bits, agreed_setting, side_of

        found = {model.label: side_of(model) for model in self.tested}
        side = agreed_setting("--resolution", self.resolution, found, RESOLUTION)
        return Bits(self.probe_set, self.store, side, self.layers)

    @cached_property
    def patching(self) -> "Patching":
        from menagerie.studies.measures.patching import Patching

        return Patching(self.probe_set, self.store, self.bits.resolution)

    def check(self) -> None:
        """Raise for models that can't be loaded, or lack animals, textures or words of the probe set."""
        from menagerie.studies.measures.bits import check_layers, check_model_knows

        if not self.models:
            raise UserError("give one or more models: runs, cells, checkpoints, open_clip names, Hugging Face folders")
        if 0 < self.resolution < SIDE.low:
            raise UserError(f"--resolution must be at least {SIDE.low:g}, got {self.resolution}")
        super().check()
        for model in self.tested:
            check_model_knows(model, self.bits.recipe)
        if self.layers:
            call_in_child(check_layers, self.tested, self.layers)

    def prepare(self, out: Path) -> "ProbeModels":
        super().prepare(out)
        self.bits.make(self.cores)
        return self

    def pieces(self) -> "Iterator[ProbePiece]":
        from menagerie.studies.measures.bits import probe_piece
        from menagerie.studies.scoring.models import less_seed

        return (probe_piece(model, *less_seed(model), (self.bits, self.patching), **self.how) for model in self.tested)

    def tables(self, records: Records) -> None:
        write_cells(records)

    def export(self, records: Records) -> None:
        export_rows(records, "bits.csv", self.bits)
        export_rows(records, "patching.csv", self.patching)

    def page(self, records: Records) -> "Iterator[Part]":
        from menagerie.studies.measures.bits import bit_parts, rows_at_steps
        from menagerie.studies.measures.used import used_parts
        from menagerie.studies.scoring.page import about_models, coverage_parts

        yield from bit_parts(rows_at_steps(records, self.bits), self.names)
        yield from used_parts(rows_at_steps(records, self.patching), self.names)
        yield from coverage_parts(self.trained, "probe-set", "No scene is left out of the bits.")
        if left := left_out_pieces(records):
            yield Heading("Left out")
            yield Facts(left)
        yield from about_models(records, self.names)

    @cached_property
    def trained(self) -> "list[ScoredTest]":
        """How much of the probe set the training of each model had. No scene is left out of the bits."""
        from menagerie.studies.scoring.page import ScoredTest

        split = read_split(self.bits.images.folder / split_name(self.probe_set))
        return [
            ScoredTest(
                *(model.label, "The probe set", test),
                replace(measure_overlap(model.training, split, test), left_out=frozenset()),
            )
            for model, test in product(self.tested, ProbeRecipe.tests)
        ]

    @cached_property
    def names(self) -> dict[str, str]:
        from menagerie.studies.scoring.models import less_seed, short_labels

        return short_labels(list({model.label: model for model, _ in map(less_seed, self.tested)}.values()))

    def conclude(self, records: Records) -> None:
        """Print the sentences of the page; raises if no model could be probed."""
        from menagerie.studies.measures.bits import rows_at_steps, stage_sentences

        if not records.results and (left := left_out_pieces(records)):
            raise UserError(f"no model can be probed: {next(iter(left.values()))}")
        if len(rows := rows_at_steps(records, self.bits)):
            print(*stage_sentences(rows, self.names), sep="\n")
        tests = ((its, f"{its.subset} of " * bool(its.had.counts) + its.split) for its in self.trained)
        print(*dict.fromkeys(f"training of {its.model} on {test}: {its.had}" for its, test in tests), sep="\n")


GIVEN_MODELS = "models"
FIVE = ("clip", "filip-phrases", "sparo", "fdt", "oc-clip")
PRESETS: dict[str, AnyStudy] = {
    "smoke": Probes(**SMOKE, **{"pairs": (0.5,), "views": 4, "keep_states": (0, 30)}),
    "laptop": Probes(
        **BREADTH | {"models": FIVE, "keep_states": (0, 125, 250, 500, 750)},
        **{"tuned": "breadth", "pairs": (0.25,), "base": BindingRecipe(**APART)},
    ),
    "pug": Probes(
        **{"models": FIVE, "seeds": 5, "keep_states": (0, 250, 500, 1000, 1500), "tuned": "laptop"},
        probe_animals=(
            *("goldfish", "caribou", "elephant", "camel", "penguin", "zebra"),
            *("bear", "crocodile", "armadillo", "cat", "gecko", "crow"),
        ),
    ),
    GIVEN_MODELS: ProbeModels(),
}

if __name__ == "__main__":
    named = bool(sys.argv[1:]) and not sys.argv[1].startswith("-")  # a model, not an option
    main(PRESETS, GIVEN_MODELS if named else "laptop")
