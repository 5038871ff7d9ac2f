"""Audits splits of random sound recipes: no check may fail.

    python -m tests.faults.random_recipes --recipes 500

Most are made in memory and audited without making them again; every tenth is rendered and audited whole. The same
seed draws the same recipes. Recipes that can't be made, because a rule leaves nothing to train on, are drawn again.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.run import CHECKS, audit, run_check
from menagerie.generators.captions.templates import TEMPLATES
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import Split
from tests.helpers.splits import make_split, of_planned

WHOLE = 10  # one of so many is rendered
SHARES = (0.0, 0.3, 0.5, 0.8, 1.0)
RULES = ("texture=red & animal=penguin", "background=city", "animal=rabbit & texture=white", "pair={elephant, rabbit}")
TOLD = {"mentioned": (0.5, 0.8, 1.0), "attributes": (0.5, 1.0), "salient": (0.0, 0.2)}
WORDED = {"article": ("", "the", "a"), "mention_order": ("", "slots", "random"), "conjunction": ("", "with", "and")}
PAIRS = {
    "world": ("tiny", "tiny-sizes", "eight"),
    "pairs": SHARES,
    "hard_negatives": SHARES,
    "test_scenes": (8, 20),
    "hold_out": ((), (), *((rule,) for rule in RULES), RULES[:2]),
}
CHOICES = {
    "binding": PAIRS | TOLD | {"negated": (0.0, 0.5), "compositions": (1.0, 0.75)},
    "spatial": PAIRS | {"attributes": (0.5, 1.0), "seen_order": (False, True), "unseen_under": ("all", "own")},
    "dependence": {"world": PAIRS["world"], "views": (12, 16), "information": (0.3, 0.5), "pairs": SHARES},
    "counting": {"world": PAIRS["world"], "pairs": SHARES, "test_scenes": (8, 20)},
    "multi-object": TOLD
    | {
        "world": ("four-textures", "eight-textures"),
        "layout": ("apart", "rows", "overlap"),
        "objects": ((1, 2), (2, 3), (1, 3)),
        "test_objects": ((2,), (2, 3), (4,)),
        "train_scenes": (120, 240),
        "test_scenes": (12,),
        "coverage": (0.5, 0.75, 1.0),
        "relations_stated": (0, 1, 2),
        "hard_negatives": (0.0, 0.1),
        "searches": ((), (2,), (1, 3)),
        "triplets": ((), (1,)),
        "hold_out": PAIRS["hold_out"],
    },
    "probe": {
        "world": ("tiny", "tiny-sizes", "four-textures"),
        "layout": ("", "apart", "overlap"),
        "objects": (2, 3),
        "quartets": (5, 20),
        "probe_views": (1, 2),
    },
}
ONE_VIEW = {"views": (1,), "test_views": (1,)}


def recipes(seed: int) -> Iterator[tuple[SplitRecipe, Split]]:
    """Draw recipes, and make their splits in memory."""
    draw = random.Random(seed)
    while True:
        kind = draw.choice(list(CHOICES))
        choices = ({} if kind == "probe" else ONE_VIEW) | CHOICES[kind] | WORDED
        stated = KINDS[kind].relational
        choices["template"] = [name for name, template in TEMPLATES.items() if template.relation == stated]
        few = draw.sample(list(choices), len(choices) // 2)
        given = {name: draw.choice(its) for name, its in choices.items() if name in few or len(its) < 4}
        given = {name: value for name, value in given.items() if value != ""}
        try:
            recipe = KINDS[kind](**given | {"seed": draw.randrange(100)})
            split = of_planned(recipe, recipe.subsets())
        except UserError:
            continue
        yield recipe, split


def findings(recipe: SplitRecipe, split: Split, resolution: int) -> list[Finding]:
    """All findings on a split in memory; with a resolution on its packed file, too."""
    found = [finding for check in CHECKS for finding in run_check(check, split)]
    if resolution:
        with tempfile.TemporaryDirectory() as folder:
            path = make_split(Path(folder), recipe, resolution)
            pack(path)
            found += audit(path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for number, (recipe, split) in enumerate(islice(recipes(options.seed), options.recipes)):
        resolution = 0 if number % WHOLE else (16, 32)[number // WHOLE % 2]
        for finding in findings(recipe, split, resolution):
            if not finding.holds or (finding.skipped and resolution):
                failed += 1
                print(f"{recipe}, {resolution} px: {finding.claim}: {finding.detail}", flush=True)
        if not (number + 1) % WHOLE:
            print(f"{number + 1} recipes, {failed} findings fail", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
