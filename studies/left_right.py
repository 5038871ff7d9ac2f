"""Left and right: CLIP is reported to learn them from one-dimensional images, but doesn't from ours. Where does it
break?

Yamamoto, Noguchi and Tanizawa (ICML 2026, arXiv 2601.12809) train a one-layer CLIP on images of ten positions in a row,
each a label or empty, and find left and right learnt for pairs of labels that were never shown together. This study
goes from that setting to ours in rungs, each with one change more (studies/analysis/left_right.py).

    python studies/left_right.py --preset smoke        # two rungs, under 90 seconds on 2 cores
    python studies/left_right.py                       # laptop: all rungs, three seeds, under an hour
    python studies/left_right.py --rungs "their setting" "5 names" --seeds 5
    python studies/left_right.py --models clip oc-clip

Ends with `report.html`, `results.csv`, `cells.jsonl` and per-record predictions in `--out`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import WHAT
from menagerie.envs.core.validation import Range
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SEEN, TESTED, SpatialRecipe, subset_name
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis.left_right import BESIDE, FIRST, PATH, REMEDIES, RUNGS, opposite_share, rung_fields
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Bars, Heading, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy
from menagerie.studies.runs.command_line import scorer_options

if TYPE_CHECKING:
    from menagerie.studies.frame.claims import Verdict
    from menagerie.studies.frame.estimate import Estimate

RELATION = "left/right"
SEEN_ORDER, UNSEEN_ORDER, UNSEEN_PAIRS = (subset_name(RELATION, kind) for kind in (SEEN, *TESTED))
TESTS = {SEEN_ORDER: "orders that train shows", UNSEEN_ORDER: "other orders", UNSEEN_PAIRS: "unseen pairs"}
CLAIMED = 0.9  # of unseen pairs, where training shows both orders and fifteen labels
FEWER = {
    "5 names": "more with fifteen labels than with five",
    "none in both orders": "more with both orders than with one",
}


@dataclass(frozen=True)
class LeftRight(SplitStudy):
    """Left and right: from one-dimensional images to ours"""

    plain_recipe: ClassVar[SplitRecipe] = SpatialRecipe(
        relations=(RELATION,), pairs=0.9, hard_negatives=1.0, test_pairs=0.2, seen_order=True, mention_order="slots"
    )

    rungs: Axis[str] = (*PATH, *BESIDE, *REMEDIES)
    """Rungs by name: those of the path, variants of its first rung, and remedies for "our rates"."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.75
    """Accuracy on unseen pairs below which left and right count as not learnt."""

    def check_given(self, preset: AnyStudy) -> None:
        if self.split or self.base:
            raise UserError("--split and --recipe: rungs change the split here; leave them out, and choose --rungs")
        for rung in self.rungs:
            choose("rung", rung, RUNGS)
        super().check_given(preset)

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan every rung with every model, seed by seed."""
        for seed in range(self.seeds):
            for rung in self.rungs:
                for model in self.models:
                    yield self.at(model, seed, **rung_fields(rung))._replace(labels={"rung": rung})

    def page(self, records: Records) -> Iterator[Part]:
        """Yield where the path breaks, a figure of unseen pairs, a table for each group of rungs, and the claims."""
        from menagerie.studies.frame.claims import claims_section

        swaps = records.where(task="swap")
        levels = swaps.where(subset=UNSEEN_PAIRS).estimates(("model", "rung"))
        for model in self.models:
            yield Sentence(self.answer(title_of(model), {rung: its for (m, rung), its in levels.items() if m == model}))
        unseen = swaps.where(lambda arm: arm.labels["rung"] in (*PATH, *REMEDIES), subset=UNSEEN_PAIRS)
        yield Bars("unseen-pairs", unseen, rows=("rung",), panels=("model",), dots=True, says=FIGURE_SAYS)
        for name, rungs, title, text in TABLES:
            if chosen := tuple(rung for rung in rungs if rung in self.rungs):
                yield Heading(title, text)
                yield self.table(name, swaps, chosen)
        yield from claims_section(self.verdicts(swaps), "points above 90 %, or above the other rung", CLAIMS)

    def table(self, name: str, swaps: Records, rungs: tuple[str, ...]) -> Table:
        """Return a table of rungs: accuracy on orders that training shows, on other orders and on unseen pairs; what
        each rung changes; and how often a batch has the opposite caption."""
        cells = {(m, rung): self.at(m, 0, **rung_fields(rung)).cell for m in self.models for rung in rungs}
        beside = {
            "changes": {key: RUNGS[key[1]].says for key in cells},
            "opposite in the batch": {
                k: f"{opposite_share(cell.data.recipe, cell.recipe):.1%}" for k, cell in cells.items()
            },
        }
        found = swaps.where(subset=tuple(TESTS), rung=rungs)
        return Table(name, found, ("model", "rung"), intervals=True, beside=beside, words={"subset": TESTS})

    def answer(self, model: str, levels: Mapping[str, "Estimate"]) -> str:
        """Say at which rungs of the path the accuracy falls below `enough`, and at which it recovers."""
        path = [rung for rung in PATH if rung in levels]
        if not path:
            return f"{model}: no rung of the path is finished yet."
        learnt = {rung: levels[rung].value >= self.enough for rung in path}
        said = {rung: f"“{rung}”, {100 * levels[rung].value:.1f} % [{levels[rung].bounds}]" for rung in path}
        parts = [
            f"recovers at {said[rung]}" if learnt[rung] else f"breaks at {said[rung]}, after {said[before]}"
            for before, rung in pairwise(path)
            if learnt[rung] != learnt[before]
        ]
        verb = "distinguishes" if learnt[path[0]] else "doesn't distinguish"
        start = f"{model} {verb} left and right in unseen pairs at {said[path[0]]}"
        stays = [f"stays so up to {said[path[-1]]}"] if len(path) > 1 else []
        return "; it ".join([start, *(parts or stays)]) + "."

    def verdicts(self, swaps: Records) -> "list[Verdict]":
        """Judge what the paper claims of CLIP: at least 0.9 on unseen pairs, and less with fewer labels or one order of
        each pair."""
        from menagerie.studies.frame.claims import make_verdict, points_above
        from menagerie.studies.frame.estimate import compare_groups

        unseen = swaps.where(subset=UNSEEN_PAIRS)
        points = {rung: unseen.where(model="clip", rung=rung).points for rung in (FIRST, *FEWER)}
        if not len(points[FIRST]):
            return []
        level = unseen.where(model="clip", rung=FIRST).estimates(("model",))["clip",]
        gaps = {rung: compare_groups(points[rung], points[FIRST])[2] if len(points[rung]) else None for rung in FEWER}
        first = make_verdict(
            f"at least {CLAIMED:.0%} of unseen pairs right", FIRST, "unseen pairs", points_above(level, CLAIMED), 1
        )
        others = (
            make_verdict(text, f"{FIRST}, not {rung}", "unseen pairs", gaps[rung], 1) for rung, text in FEWER.items()
        )
        return [first, *others]


FIGURE_SAYS = """Accuracy (%) on pairs that training never shows together: the path from one-dimensional images to ours,
then possible remedies for “our rates”. Chance is 50."""
PATH_SAYS = """Each rung is the one above it with one change more. Accuracy (%) on swaps: the caption against the same
with its two objects exchanged; chance is 50. A model that fails on the orders of training hasn't fitted them. “Opposite
in the batch”: the share of images of pairs whose batch has the caption with the two objects exchanged. All other
captions name other objects."""
TABLES = (
    ("path", PATH, "From their setting to ours", PATH_SAYS),
    ("changes", BESIDE, "Changes of their setting", f"Each rung is “{FIRST}” with one change."),
    ("remedies", REMEDIES, "Remedies", "Each rung is “our rates” with one change."),
)
CLAIMS = """Yamamoto, Noguchi and Tanizawa (ICML 2026) train on images of ten positions as here, with towers of one
layer. Sizes, steps and captions are ours: at this rung captions always name the left object first."""

ROW: dict[str, Any] = {"models": ("clip",), "world": "row-15", "resolution": 40, "architecture": "row", "views": 8}
PRESETS = {
    "smoke": LeftRight(
        **ROW | {"views": 2},
        **{"rungs": (FIRST, "both words"), "test_views": 1, "test_scenes": 48, "scorers": scorer_options("smoke")},
        recipe=Recipe(steps=60, batch=32, warmup=5, augment=False),
    ),
    "laptop": LeftRight(**ROW, seeds=3, recipe=Recipe(steps=1000, batch=128, learning_rate=1e-3, augment=False)),
}

if __name__ == "__main__":
    main(PRESETS)
