"""Which models bind attributes to objects, and how many animal pairs and hard negatives do they need?

The experiment of OC-CLIP's section 4.1 (figures 2 and 6): a grid of (fraction of animal pairs in
training) x (fraction of those with hard negatives), one training run per model, place and seed.

    python studies/binding_grid.py --preset smoke      # tiny world, under 90 seconds on 2 cores
    python studies/binding_grid.py                     # laptop: the hardest place, one seed, minutes
    python studies/binding_grid.py --preset figure2    # 4 x 4 places, one seed, an hour or two
    python studies/binding_grid.py --preset breadth    # every scorer, 8 animals, 32 px
    python studies/binding_grid.py --preset paper --device cuda
"""

from dataclasses import dataclass, replace
from typing import Annotated

from menagerie.envs.core.options import DATA
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, LEARNS, PAPER, PAPER_PLACES, SMOKE, Grid
from menagerie.studies.frame.options import CaptionOptions


@dataclass(frozen=True)
class Config(CaptionOptions, Grid):
    """A grid of binding splits."""

    seen_arrangements: Annotated[bool, DATA] = False
    """Also test the arrangements of training in other views: a test `seen_arrangements`. A model that fails there
    hasn't fitted; one that fails only on the other tests hasn't generalised."""


PRESETS: dict[str, Config] = {
    "smoke": Config(**SMOKE, pairs=(0.5,), views=4),
    "laptop": Config(tuned="depth", pairs=(0.2,), hard_negatives=(0.0,)),
    "corners": Config(tuned="depth"),
    "figure2": Config(tuned="depth", pairs=(0.2, 0.4, 0.6, 0.8), hard_negatives=(0.0, 0.25, 0.5, 1.0)),
    "breadth": Config(**BREADTH, tuned="breadth", pairs=(0.25,), base=BindingRecipe(**APART)),
    # All scorers, with CLIP's towers and rates, where plain CLIP has learnt training's pairs.
    "learnt": Config(
        **LEARNS | {"models": BREADTH["models"], "recipe": replace(LEARNS["recipe"], singles_share=0.5)},
        **{"pairs": (0.25,), "hard_negatives": (1.0,)},
    ),
    # Training lacks a quarter of the combinations of animal and texture. All models have CLIP's towers and rates.
    "strata": Config(
        **LEARNS | {"world": "twelve", "recipe": replace(LEARNS["recipe"], singles_share=0.5)},
        **{"views": 8, "test_views": 2, "pairs": (1.0,), "hard_negatives": (0.2,)},
        models=("clip", "siglip", "fdt", "sparo", "filip", "filip-phrases", "oc-clip"),
        base=BindingRecipe(compositions=0.75, **APART),
    ),
    "paper": Config(**PAPER, **PAPER_PLACES),
}


if __name__ == "__main__":
    main(PRESETS)
