"""What the presets of several studies share."""

from typing import Any

from menagerie.models.recipe import Recipe
from menagerie.models.registry import specs
from menagerie.studies.frame.cells import PAPER_RECIPES
from menagerie.studies.runs.command_line import scorer_options

SMOKE: dict[str, Any] = {
    "world": "tiny",
    "resolution": 32,
    "pairs": (0.5,),
    "test_views": 1,
    "test_scenes": 48,
    "architecture": "nano",
    "recipe": Recipe(steps=60, batch=32, warmup=5),
    "scorers": scorer_options("smoke"),
}
# Eight animals at 32 px: minutes for a run on two cores.
EIGHT: dict[str, Any] = {
    "world": "eight",
    "resolution": 32,
    "test_scenes": 200,
    "recipe": Recipe(steps=1000, single_object_phase=0.25),
}
# The hardest cell of all scorers but controls, in a world small enough for many of them. Of its 28 pairs 6 are the
# test's and 6 validation's.
BREADTH: dict[str, Any] = EIGHT | {
    "models": tuple(name for name, spec in specs().items() if not spec.control),
    "hard_negatives": (0.0,),
    "seeds": 3,
}
APART: dict[str, float] = {"reserve": 0.2, "validation": 0.2}
# 224 px and ViT-B/16 as in OC-CLIP's paper, but from scratch unless --pretrained names weights; each model with
# the rates of its paper, and all with our number of steps.
PAPER: dict[str, Any] = {
    "resolution": 224,
    "pairs": (0.2, 0.4, 0.6, 0.8, 1.0),
    "hard_negatives": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "seeds": 3,
    "test_scenes": 2000,
    "architecture": "ViT-B-16",
    "tuned": PAPER_RECIPES,
    "recipe": Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
    "scorers": scorer_options("paper"),
    "loaders": 4,
}
