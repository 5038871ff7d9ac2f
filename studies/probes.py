"""Inside the embeddings: how much binding does each layer hold?

A wrong swap doesn't say whether binding was lost in the image's embedding, in the text's, or in their comparison.
Models are trained as in a binding grid. Then each of their layers is probed, in views that aren't in training: how much
information does the layer have on exactly one bit, which animal has which texture?

    python studies/probes.py --preset smoke            # tiny, under 90 seconds on 2 cores
    python studies/probes.py                           # laptop: 8 animals, 32 px, three seeds
    python studies/probes.py --preset pug              # 12 animals, 64 px, five seeds
    python studies/probes.py --keep-states 0 200 1000  # and over training
    python studies/probes.py runs/mine ViT-B-32/openai # given models, without training

Models that are named first are probed without training: runs (all their cells), cells, checkpoints, open_clip models
(without weights: random), folders of Hugging Face's CLIP or SigLIP (or hf:NAME), classes of your own. Their options:
`--preset models --help`.

Ends with `report.html`, `bits.csv` and `cells.jsonl` in `--out`; where models are trained, with `results.csv` and
per-record predictions too.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import WHAT
from menagerie.envs.core.validation import SHARE, Several
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, SMOKE
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy, grid
from menagerie.studies.probing.models import ProbeModels
from menagerie.studies.runs.data import FRACTIONS

if TYPE_CHECKING:
    from menagerie.studies.measures.bits import Bits


@dataclass(frozen=True)
class Probes(SplitStudy):
    """Inside the embeddings: how much binding does each layer hold?"""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()

    pairs: Annotated[Axis[float], SHARE] = (0.2,)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0,)
    """Fractions of these pairs that have hard negatives too."""
    probe_animals: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Animals of the probe set; empty: all of the world."""
    probe_textures: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Textures of the probe set; empty: all of the world."""

    def check_given(self, preset: AnyStudy) -> None:
        if self.split:
            raise UserError("--split can't be used, because the probe set needs the world of a --recipe; leave it out")
        super().check_given(preset)

    def check(self) -> None:
        """Raise for animals and textures of which no probe set can be made."""
        from menagerie.envs.worlds import load_world

        super().check()
        choose_names(self.probe_set, load_world(self.world))

    @property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which layers are probed."""
        return ProbeRecipe(world=self.world, animals=self.probe_animals, textures=self.probe_textures)

    @property
    def bits(self) -> "Bits":
        from menagerie.studies.measures.bits import Bits

        return Bits(self.probe_set, self.store, self.resolution)

    @cached_property
    def probed(self) -> "list[Bits]":
        """The measure, after rendering its probe set."""
        self.bits.make(self.cores)
        return [self.bits]

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """Plan every model at every place."""
        return grid(self, pairs=self.pairs, hard_negatives=self.hard_negatives)

    def measurements(self, arm: Arm) -> "Sequence[Bits]":
        return self.probed

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.pages.probes import parts, rows_at_steps

        axes = [name for name in FRACTIONS if len(getattr(self, name)) > 1]
        lengths = {arm.cell.model: arm.cell.recipe.steps for arm in records.arms}
        return parts(rows_at_steps(records, self.bits, self.keep_states), axes, lengths)

    def export(self, records: Records) -> None:
        """Write all rows of the measure into `bits.csv`."""
        from menagerie.studies.pages.probes import rows_at_steps, write_measure_rows

        write_measure_rows(records.out / "bits.csv", rows_at_steps(records, self.bits, self.keep_states))


def names_models(arguments: Sequence[str]) -> bool:
    """Whether a command line begins with the name of a model, not with an option."""
    return bool(arguments) and not arguments[0].startswith("-")


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
    main(PRESETS, GIVEN_MODELS if names_models(sys.argv[1:]) else "laptop")
