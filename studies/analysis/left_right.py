"""The rungs of the ladder from one-dimensional images to ours: what each changes, and how many images have the opposite
caption in their batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.models.recipe import Recipe


@dataclass(frozen=True)
class Rung:
    """A setting: another rung, with changes."""

    after: str
    """The rung that this one changes; empty for the first."""
    says: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the split, of training and of towers."""


FIRST, LAST = "their setting", "one order"
# CLIP's tuned recipe of the spatial grid (studies/recipes/laptop.json), as far as it differs.
OUR_RATES = {
    "learning_rate": 0.00074732,
    "warmup": 389,
    "weight_decay": 0.04486687,
    "singles_share": 0.3703788,
    "single_object_phase": 0.25,
}
RUNGS = {
    FIRST: Rung("", "15 names, a row of ten columns, one layer, all training pairs in both orders; “left of” only"),
    "both words": Rung(
        FIRST, "captions name either object first: “left of” or “right of”", {"mention_order": "random"}
    ),
    "two layers": Rung("both words", "two layers in each tower", {"architecture": "row-mini"}),
    "20 names": Rung("two layers", "20 names", {"world": "row"}),
    "two places": Rung("20 names", "objects stand in two columns only", {"world": "row-two-places"}),
    "square patches": Rung("two places", "patches of 8 by 8 pixels, behind convolutions", {"architecture": "mini"}),
    "bodies": Rung("square patches", "rendered animals in place of patterns", {"world": "pug-plain"}),
    "textures": Rung("bodies", "four textures and five backgrounds, in captions too", {"world": "pug", "views": 2}),
    "varied images": Rung("textures", "training images are zoomed and shifted", {"augment": True}),
    "small batches": Rung("varied images", "64 images a batch; as many images", {"batch": 64, "steps": 2000}),
    "our rates": Rung("small batches", "CLIP's recipe of the spatial grid, with single animals first", OUR_RATES),
    "64 pixels": Rung("our rates", "64 pixels, not 40", {"resolution": 64}),
    LAST: Rung("64 pixels", "40 % of the pairs, in one order each", {"hard_negatives": 0.0, "pairs": 0.4}),
}
PATH = tuple(RUNGS)
RUNGS |= {
    "5 names": Rung(FIRST, "5 names", {"world": "row-5"}),
    "10 names": Rung(FIRST, "10 names", {"world": "row-10"}),
    "half in both orders": Rung(FIRST, "half of the training pairs in both orders", {"hard_negatives": 0.5}),
    "none in both orders": Rung(FIRST, "each training pair in one order", {"hard_negatives": 0.0}),
    "no positions": Rung(FIRST, "no position embeddings of columns", {"architecture": "row-no-positions"}),
    "sinusoidal positions": Rung(FIRST, "fixed sines as position embeddings", {"architecture": "row-sinusoidal"}),
    "16 images a batch": Rung(FIRST, "16 images a batch; as many images", {"batch": 16, "steps": 8000}),
    "250 steps": Rung(FIRST, "a quarter of the steps", {"steps": 250}),
    "textures in a row": Rung(FIRST, "four textures, five backgrounds", {"world": "row-15-textures", "views": 2}),
}
BESIDE = tuple(name for name in RUNGS if name not in PATH)
RUNGS |= {
    "swapped captions": Rung(
        "our rates", "each image's caption with objects exchanged as a negative", {"text_negatives": ("swap",)}
    ),
    "swapped images": Rung("our rates", "images are shown together with their swaps", {"image_negatives": True}),
    "still images": Rung("our rates", "training images aren't zoomed or shifted", {"augment": False}),
    "four times the steps": Rung("our rates", "four times the steps", {"steps": 8000}),
}
REMEDIES = tuple(name for name in RUNGS if name not in (*PATH, *BESIDE))


def rung_fields(name: str) -> dict[str, Any]:
    """Return all fields in which a rung differs from the first rung."""
    rung = RUNGS[name]
    return (rung_fields(rung.after) if rung.after else {}) | dict(rung.changes)


def opposite_share(split: SpatialRecipe, training: Recipe) -> float:
    """Return the expected share of images of pairs whose batch also has the opposite caption, with the same objects
    exchanged; the recipe's false captions count too. Only that caption differs in the order alone."""
    if "swap" in training.text_negatives:
        return 1.0
    world, counts = load_world(split.world), split.counts()
    opposite = 2 * counts.swapped / (counts.train + counts.swapped)
    if training.image_negatives:
        return opposite
    captions = (counts.train + counts.swapped) * len(world.textures) ** 2 * len(world.backgrounds)
    singles = len(world.animals) * len(world.textures) * len(world.backgrounds) * len(split.single_slots)
    lone = training.singles_share if training.singles_share is not None else singles / (singles + captions)
    return opposite * (1 - (1 - 1 / captions) ** ((1 - lone) * training.batch - 1))
