"""What is a better text embedding worth? Changes of CLIP's text, as shares of OC-CLIP's lead over CLIP.

Text vectors encode less binding than image vectors. Remedies are a deeper or wider text tower, phrases that are read
alone or have a vector each, more or less complete captions, false captions in the loss. Each row is CLIP with one
change, or OC-CLIP, which is the upper row. All have the same steps and images, on both grids.

    python studies/text_embeddings.py --preset smoke      # tiny, under 90 seconds on 2 cores
    python studies/text_embeddings.py                     # laptop: 12 animals, 32 px, three seeds, about an hour
    python studies/text_embeddings.py --rows "wider text tower" "model=sparo" OC-CLIP

Rows by name are in studies/analysis/ablations.toml; a row of your own is a line of configuration. Measured are swaps on
unseen pairs, and how much information image embedding, text embedding and score have on exactly one bit: which animal
has which texture, or on the spatial grid which of two objects is left (studies/measures/bits.py). Ends with
`report.html`, `results.csv`, `remedies.csv` and `bits.csv` in `--out`. Run again, it skips what is finished."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, MODEL
from menagerie.envs.core.validation import SHARE, Range
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.ablations import AblationStudy
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.command import main
from menagerie.studies.frame.study import AnyStudy, SplitStudy

if TYPE_CHECKING:
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records
    from menagerie.studies.measures.bits import Bits

# Between the tuned recipes of CLIP and of OC-CLIP on twelve animals (studies/recipes/twelve.json).
RECIPE = Recipe(steps=1000, learning_rate=8e-4, weight_decay=0.3, singles_share=0.5)
READ = ("tokens", "embedding")
"""Layers that are probed: all patches, and the embeddings."""


@dataclass(frozen=True)
class TextEmbeddings(AblationStudy):
    """What is a better text embedding worth?"""

    model: Annotated[str, MODEL, FIRST] = "clip"
    """The model whose text embedding is changed."""
    cell: Annotated[str, DATA, FIRST] = "breadth"
    """Preset of binding_grid.py and spatial_grid.py: resolution, steps, numbers of scenes."""
    upper: Annotated[str, MODEL, FIRST] = "OC-CLIP"
    """The row whose lead counts as 100 %."""
    world: Annotated[str, DATA, FIRST] = "twelve"
    """Vocabulary of the scenes: a name, or a TOML file."""
    pairs: Annotated[float, DATA, FIRST, SHARE] = 0.6
    """Fraction of the trainable animal pairs, large enough that CLIP is above chance."""
    hard_negatives: Annotated[float, DATA, FIRST, SHARE] = 0.0
    """Fraction of these pairs that have hard negatives too."""
    architecture: Annotated[str, MODEL, FIRST] = "mini"
    """Towers of all rows that name no others."""
    most_animals: Annotated[int, DATA, Range(4, 1000)] = 12
    """Largest number of animals of the probe set, which takes the world's first."""

    @property
    def title(self) -> str:
        return "What is a better text embedding worth?"

    def narrow(self, grid: SplitStudy) -> SplitStudy:
        if self.base or self.split:
            return replace(super().narrow(grid), architecture=self.architecture, tuned="")
        given: dict[str, Any] = {"pairs": (self.pairs,), "hard_negatives": (self.hard_negatives,), "tuned": ""}
        recipe = replace(RECIPE, steps=grid.recipe.steps) if self.cell != "smoke" else grid.recipe
        given |= {"world": self.world, "architecture": self.architecture, "recipe": recipe, "hold_out": self.hold_out}
        return replace(grid, **given)

    def check_given(self, preset: AnyStudy) -> None:
        for name in ("world", "pairs", "hard_negatives") if self.base or self.split else ():
            if getattr(self, name) != getattr(preset, name):
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} changes nothing beside --recipe or --split, which decide it; leave it out")

    def check(self) -> None:
        """Raise if the row whose lead counts as 100 % is missing, or if a row can't be built."""
        first, *others = self.lines
        if self.upper not in others:
            raise UserError(
                f"--upper {self.upper!r} is not among the rows that are compared with {first}; these are: "
                f"{', '.join(others) or 'none'}"
            )
        super().check()

    @cached_property
    def bits(self) -> "dict[str, Bits]":
        """The measure of each split: bits on which animal has which texture, or on which of two objects is left."""
        return {split: self.bits_of(grid) for split, grid in self.grids.items()}

    def bits_of(self, grid: SplitStudy) -> "Bits":
        from menagerie.envs.worlds import load_world
        from menagerie.studies.measures.bits import Bits

        animals = load_world(grid.world).animals
        some = animals[: self.most_animals] if len(animals) > self.most_animals else ()
        return Bits(ProbeRecipe(world=grid.world, animals=some), self.store, grid.resolution, READ, self.related(grid))

    @staticmethod
    def related(grid: SplitStudy) -> bool:
        from menagerie.generators.splits.recipe_file import KINDS

        return KINDS[grid.kind].relational

    @cached_property
    def probed(self) -> "Mapping[str, Bits]":
        """The measures, after rendering their probe sets."""
        for bits in self.bits.values():
            bits.make(self.cores)
        return self.bits

    def measurements(self, arm: Arm) -> "Sequence[Bits]":
        return [self.probed[arm.labels["split"]]]

    def page(self, records: "Records") -> "Iterable[Part]":
        from menagerie.studies.pages.text_embeddings import parts

        return parts(self, records)

    def export(self, records: "Records") -> None:
        from menagerie.studies.pages.text_embeddings import export_remedies

        export_remedies(self, records)


PRESETS: dict[str, TextEmbeddings] = {
    "smoke": TextEmbeddings(
        **{"rows": ("swapped captions", "OC-CLIP"), "cell": "smoke", "seeds": 1, "steps": 30},
        **{"world": "tiny", "pairs": 0.5, "architecture": "nano"},
    ),
    "laptop": TextEmbeddings(steps=1000),
}

if __name__ == "__main__":
    main(PRESETS)
