"""Left and right: CLIP is reported to learn them from one-dimensional images, but doesn't from ours. Where does it
break?

Yamamoto, Noguchi and Tanizawa (ICML 2026, arXiv 2601.12809) train a one-layer CLIP on images of ten positions in a row,
each a label or empty, and find left and right learnt for pairs of labels that were never shown together. This study
goes from that setting to ours in rungs, each with one change more (studies/analysis/ablations.toml). They also find
that the diversity of labels drives generalisation more than that of layouts: a grid of both, at equal images and steps.

    python studies/left_right.py --preset smoke        # two rungs, under 90 seconds on 2 cores
    python studies/left_right.py                       # laptop: all rungs, three seeds, under an hour
    python studies/left_right.py --rungs "their setting" "5 names" --seeds 5
    python studies/left_right.py --preset diversity    # names x layouts: which helps unseen pairs more?
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from menagerie.envs.core import options
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.validation import Range
from menagerie.envs.world import WORLDS
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SEEN, TESTED, SpatialRecipe, subset_name
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.papers import RUNGS
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.claims import Verdict, claim_parts, make_verdict, points_above
from menagerie.studies.frame.command import main
from menagerie.studies.frame.options import GROWS
from menagerie.studies.frame.parts import Bars, Heading, HeatMap, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.rows import row_arm
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.command_line import scorer_options

if TYPE_CHECKING:
    from menagerie.studies.analysis.intervals import Estimate
    from menagerie.studies.measures.robustness import Statistic

RELATION = "left/right"
SEEN_ORDER, UNSEEN_ORDER, UNSEEN_PAIRS = (subset_name(RELATION, kind) for kind in (SEEN, *TESTED))
TESTS = {SEEN_ORDER: "orders that train shows", UNSEEN_ORDER: "other orders", UNSEEN_PAIRS: "unseen pairs"}
PATH, BESIDE, REMEDIES = (tuple(RUNGS[name]) for name in ("path", "beside", "remedies"))
FIRST = PATH[0]
OUR_RATES = "our rates"
SAYS = {rung: words for rungs in RUNGS.values() for rung, (_, words) in rungs.items()}
# The line by which each rung differs from the first: of the path with the lines of all rungs above it.
LINES = dict(zip(PATH, accumulate((line for line, _ in RUNGS["path"].values()), "{} {}".format), strict=True))
LINES |= {rung: line for rung, (line, _) in RUNGS["beside"].items()}
LINES |= {rung: f"{LINES[OUR_RATES]} {line}" for rung, (line, _) in RUNGS["remedies"].items()}
CLAIMED = 0.9  # of unseen pairs, where training shows both orders and fifteen labels
FEWER = {
    "5 names": "more with fifteen labels than with five",
    "none in both orders": "more with both orders than with one",
}
TURN = 45  # layouts of a row: two of ten columns
SHOWN, OTHER = "layouts that train shows", "other layouts"
TRAINED, UNSEEN = "trained pairs", "unseen pairs"
OF = {TRAINED: SEEN_ORDER, UNSEEN: UNSEEN_PAIRS}
NAMES, LAYOUTS, MORE = "names", "layouts", "names above layouts"


@dataclass(frozen=True)
class LeftRight(SplitStudy):
    """Left and right: from one-dimensional images to ours"""

    plain_recipe: ClassVar[SplitRecipe] = SpatialRecipe(
        relations=(RELATION,), pairs=0.9, hard_negatives=1.0, test_pairs=0.2, seen_order=True, mention_order="slots"
    )
    decides: ClassVar[tuple[str, ...]] = ("split", "base")

    rungs: Annotated[tuple[str, ...], options.WHAT, options.FIRST, GROWS] = (*PATH, *BESIDE, *REMEDIES)
    """Rungs by name: those of the path, variants of its first rung, and remedies for "our rates"."""
    names: Annotated[tuple[int, ...], options.DATA, GROWS] = ()
    """Numbers of names in a grid of names and layouts: 6, 10 or 20."""
    layouts: Annotated[tuple[int, ...], options.DATA, GROWS, Range(1, TURN - 1)] = ()
    """Numbers of layouts, of 45, that training shows in this grid."""

    def check(self) -> None:
        super().check()
        for rung in self.rungs:
            choose("rung", rung, LINES)
        for names in self.names:
            choose("world of --names", world_in_turn(names), WORLDS)
        if (self.names or self.layouts) and min(len({*self.names}), len({*self.layouts})) < 2:
            raise UserError("a slope needs two numbers of each: give --names and --layouts several, or neither")
        if not (self.rungs or self.names):
            raise UserError("nothing to train: give --rungs, or --names and --layouts")

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        for seed in self.seed_numbers:
            for rung in self.rungs:
                for model in self.models:
                    yield self.arm(model, rung, seed)
            for names, layouts, model in product(self.names, self.layouts, self.models):
                arm = self.at(model, seed, world=world_in_turn(names), views=layouts, test_views=TURN)
                yield arm._replace(labels={NAMES: names, LAYOUTS: layouts})

    def arm(self, model: str, rung: str, seed: int) -> Arm:
        return row_arm(self, spec_of(model), LINES[rung], seed, {"rung": rung})

    def page(self, records: Records) -> Iterator[Part]:
        if self.names:
            yield from self.diversity(records)
        if self.rungs:
            yield from self.ladder(records.where(lambda arm: "rung" in arm.labels, task="swap"))

    def ladder(self, swaps: Records) -> Iterator[Part]:
        yield from claim_parts(list(self.verdicts(swaps.where(subset=UNSEEN_PAIRS, model="clip"))), CLAIMS)
        unseen = swaps.where(lambda arm: arm.labels["rung"] in (*PATH, *REMEDIES), subset=UNSEEN_PAIRS)
        yield Bars("unseen-pairs", unseen, rows=("rung",), panels=("model",), dots=True, says=FIGURE_SAYS)
        for name, (title, text) in TABLES.items():
            if rungs := tuple(rung for rung in RUNGS[name] if rung in self.rungs):
                yield Heading(title, text)
                cells = {(model, rung): self.arm(model, rung, 0).cell for model in self.models for rung in rungs}
                shares = {key: f"{opposite_share(cell.data.recipe, cell.recipe):.1%}" for key, cell in cells.items()}
                beside = {"changes": {key: SAYS[key[1]] for key in cells}, "opposite in the batch": shares}
                look: dict[str, Any] = {"intervals": True, "beside": beside, "words": {"subset": TESTS}}
                yield Table(name, swaps.where(subset=tuple(TESTS), rung=rungs), ("model", "rung"), **look)

    def verdicts(self, unseen: Records) -> Iterator[Verdict]:
        """Yield verdicts on what the paper claims of CLIP: at least 0.9 on unseen pairs, and less with fewer labels or
        one order of each pair."""
        from menagerie.studies.frame.estimate import group_gap

        points = {rung: unseen.where(rung=rung).points for rung in (FIRST, *FEWER)}
        for level in unseen.where(rung=FIRST).estimates(("model",)).values():
            above = points_above(level, CLAIMED)
            yield make_verdict(f"at least {CLAIMED:.0%} of unseen pairs right", FIRST, "unseen pairs", above, 1)
            for rung, text in FEWER.items():
                gap = group_gap(points[rung], points[FIRST]) if len(points[rung]) else None
                yield make_verdict(text, f"{FIRST}, not {rung}", "unseen pairs", gap, 1)

    def diversity(self, records: Records) -> Iterator[Part]:
        """Yield the slopes of the grid of names and layouts, and its cells."""
        yield Heading("Names and layouts", DIVERSITY_SAYS)
        for (model, test, number), its in self.slopes(records).items():
            if test.startswith(UNSEEN) and number == MORE:
                yield Sentence(f"{model}, {test}: a doubling of names is worth {its} points more than one of layouts.")
        for pairs, subset in OF.items():
            cells, name = by_layout(records, subset), pairs.replace(" ", "-")
            yield HeatMap(name, cells, x=LAYOUTS, y=NAMES, says=f"Accuracy (%) on swaps of {pairs}.")
            yield Table(f"{name}-all", cells, ("model", NAMES, LAYOUTS), intervals=True)

    def slopes(self, records: Records) -> "dict[tuple[str, str, str], Estimate]":
        """Return, by model, test and number: the accuracy of the lowest cell; and per doubling of names and of layouts,
        how much accuracy rises over the grid, and how much more with names, over the seeds that all cells have."""
        from menagerie.studies.frame.estimate import contrast, estimate

        found, places = {}, list(product(self.names, self.layouts))
        for model, (pairs, subset) in product(self.models, OF.items()):
            points = by_layout(records, subset).where(model=model).points
            cells = dict(iter(points.groupby(["subset", NAMES, LAYOUTS]))) if len(points) else {}
            for layouts in (SHOWN, OTHER):
                parts, test = [cells.get((layouts, *place)) for place in places], f"{pairs}, {layouts}"
                if any(part is None for part in parts):
                    continue
                found[model, test, "lowest cell"] = min(map(estimate, parts), key=lambda its: its.value)
                for number, slope in doublings(places).items():
                    if rise := contrast(parts, slope, signed=True):
                        found[model, test, number] = rise
        return found

    def export(self, records: Records) -> None:
        """Write the slopes of the grid of names and layouts into `slopes.csv`, in shares."""
        if self.names:
            rows = [(*key, *its[:3], its.seeds) for key, its in self.slopes(records).items()]
            write_csv(records.out / "slopes.csv", ("model", "test", "number", "value", "low", "high", "seeds"), rows)


def world_in_turn(names: int) -> str:
    return f"row-{names}-in-turn"


def by_layout(records: Records, subset: str) -> Records:
    """Return the swaps of the grid in a test, sorted into layouts that train shows and others. A view shows the layout
    of its number in the turn, and training has the first ones."""
    swaps = records.where(lambda arm: NAMES in arm.labels, task="swap", subset=subset)
    layout = {key: int(key.rpartition("|")[2]) % TURN for key in (swaps.points["scene"] if len(swaps.points) else ())}

    def group(arm: Arm) -> Mapping[str, str]:
        return {key: SHOWN if its < arm.labels[LAYOUTS] else OTHER for key, its in layout.items()}

    return swaps.regroup((SHOWN, OTHER), group)


def doublings(places: Sequence[tuple[int, int]]) -> "dict[str, Statistic]":
    """Return the slopes of a plane through the means of cells, by the binary logarithms of their numbers of names and
    of layouts (least squares): those of names, of layouts, and the first minus the second."""
    import numpy as np

    from menagerie.studies.measures.robustness import clip_to_range

    logs = np.log2(places)
    names, layouts = np.linalg.pinv(logs - logs.mean(0))
    weights = {NAMES: names, LAYOUTS: layouts, MORE: names - layouts}
    return {name: clip_to_range(lambda means, its=its: means @ its, len(places)) for name, its in weights.items()}


@cache  # the page is drawn after every run
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


FIGURE_SAYS = """Accuracy (%) on pairs that training never shows together: the path from one-dimensional images to ours,
then possible remedies for “our rates”. Chance is 50."""
PATH_SAYS = """Each rung is the one above it with one change more; accuracy (%) on swaps, chance is 50. “Opposite in the
batch”: the share of images of pairs whose batch has the caption with the two objects exchanged."""
TABLES = {
    "path": ("From their setting to ours", PATH_SAYS),
    "beside": ("Changes of their setting", f"Each rung is “{FIRST}” with one change."),
    "remedies": ("Remedies", f"Each rung is “{OUR_RATES}” with one change."),
}
DIVERSITY_SAYS = """Training shows pairs of more or fewer names, in more or fewer layouts (choices of two of ten
columns, the same for all pairs and seeds), for equally many steps with as many images of pairs. All 45 layouts are
tested. Intervals are for these layouts: seeds don't draw others."""
CLAIMS = """Points above 90 %, or above the other rung. Yamamoto, Noguchi and Tanizawa (2026) train on images of ten
positions as here, with towers of one layer; sizes, steps and captions are ours."""

ROW: dict[str, Any] = {"models": ("clip",), "world": "row-15", "resolution": 40, "architecture": "row", "views": 8}
PRESETS = {
    "smoke": LeftRight(
        **ROW | {"views": 2},
        **{"rungs": (FIRST, "both words"), "test_views": 1, "test_scenes": 48, "scorers": scorer_options("smoke")},
        recipe=Recipe(steps=60, batch=32, warmup=5, augment=False),
    ),
    "laptop": LeftRight(**ROW, seeds=3, recipe=Recipe(steps=1000, batch=128, learning_rate=1e-3, augment=False)),
    "diversity": LeftRight(
        **ROW | {"rungs": (), "names": (6, 10, 20), "layouts": (2, 8, 32), "seeds": 3, "test_scenes": 2000},
        recipe=Recipe(steps=1000, batch=128, learning_rate=1e-3, augment=False, singles_share=0.1),
    ),
}

if __name__ == "__main__":
    main(PRESETS)
