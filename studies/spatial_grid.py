"""Which models distinguish left from right, and above from under, and how much data do they need?

The experiment of OC-CLIP's appendix A.5.1 (figure 7), the spatial counterpart of the binding grid: a grid of (fraction
of animal pairs in training, for each relation) x (fraction of those also in the other order), one training run per
model, place and seed.

    python studies/spatial_grid.py --preset smoke      # tiny world, under 90 seconds on 2 cores
    python studies/spatial_grid.py                     # laptop: the hardest place, one seed, minutes
    python studies/spatial_grid.py --preset figure7    # 4 x 4 places, one seed, an hour or two
    python studies/spatial_grid.py --preset breadth    # every scorer, 8 animals, 32 px
    python studies/spatial_grid.py --oc-clip.local-weight 0    # without the local relation loss
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.options import DATA, WHAT
from menagerie.envs.core.validation import SHARE
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, PAPER, PAPER_PLACES, SMOKE, Grid


@dataclass(frozen=True)
class Config(Grid):
    """A grid of spatial splits."""

    plain_recipe: ClassVar[SplitRecipe] = SpatialRecipe()

    views: int = 2
    """Views of each training scene."""
    pairs: tuple[float, ...] = (0.4, 0.8)
    """Fractions of the trainable animal pairs, drawn for each relation by itself."""
    relations: Annotated[tuple[str, ...], WHAT] = ("left/right", "above/under")
    """Relations, tested apart."""
    singles_slots: Annotated[tuple[str, ...], DATA] = ()
    """Places of single animals; empty takes places at the heights of those of pairs."""
    unseen_under: Annotated[Literal["all", "own"], DATA] = "all"
    """Relations in which an unseen pair is never in training: all, or only the tested one (own)."""
    mentioned: Annotated[float, DATA, SHARE] = 1.0
    """Probability that an animal of a training pair is mentioned in its caption; one always is. Below 1, `add relation`
    is tested."""
    attributes: Annotated[float, DATA, SHARE] = 1.0
    """Probability that a training caption includes the texture of an animal that it mentions."""
    seen_order: Annotated[bool, DATA] = False
    """Also test the orders of training in other views: a test `seen_order` of each relation. A model that fails there
    hasn't fitted; one that fails only on the other tests hasn't generalised."""


PRESETS: dict[str, Config] = {
    "smoke": Config(**SMOKE, pairs=(0.5,), views=1),
    # Recipes that were tuned for binding.
    "laptop": Config(tuned="depth", pairs=(0.4,), hard_negatives=(0.0,)),
    "corners": Config(tuned="depth"),
    "figure7": Config(tuned="depth", pairs=(0.4, 0.6, 0.8, 1.0), hard_negatives=(0.0, 0.25, 0.5, 1.0)),
    "breadth": Config(**BREADTH, tuned="breadth-spatial", pairs=(0.5,), base=SpatialRecipe(**APART)),
    "paper": Config(**PAPER, **PAPER_PLACES),
}


if __name__ == "__main__":
    main(PRESETS)
