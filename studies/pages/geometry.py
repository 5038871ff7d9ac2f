"""The page of the study of geometry: what predicts unseen pairs, which conditions hold, and what one pays for which."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from menagerie.studies.analysis.ranks import Correlation, correlation
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.codes.conditions import ALL, BINDING, CATEGORISATION, CONDITIONS, EVERY, INDEPENDENT, PARTS
from menagerie.studies.codes.ideal import IdealCode, least_margins
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import EXPECTED, Verdict, claims, sentence
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import BOTH, IMAGE, TEXT
from menagerie.studies.measures.code_geometry import EDITED
from menagerie.studies.pages.geometry_cells import (
    ACCURACY,
    NAMED,
    NEXT,
    PLACE,
    Tested,
    cells,
    judged,
    tested,
    took_part,
)
from menagerie.studies.pages.geometry_figures import Dots, TradeOff
from menagerie.studies.pages.probes import Mean, mean_of

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.geometry import Geometry

WEIGHTS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0)
CORRELATED = ("measure", "expected", "all cells", "within a place", "within a place and model", "p", "outcome")
ALIGNED: Mapping[str, tuple[str, str]] = {
    "text: binding share": (TEXT, "share"),
    "image: binding share": (IMAGE, "share"),
    "gap": (BOTH, "gap"),
    "cos of what a swap changes": (BOTH, "cosine"),
    "swaps right": (BOTH, "before"),
    "after one matrix": (BOTH, "after"),
    "edit: objects": (EDITED, "objects"),
    "other objects": (EDITED, "others"),
    "textures in places": (EDITED, "places"),
}


class Page:
    """The page of a study as far as its runs have come."""

    def __init__(self, study: "Geometry", records: Records) -> None:
        self.study = study
        self.geometry = records.measured(study.geometry)
        self.conditions = records.measured(study.conditions)
        every = cells(records, self.geometry)
        old = [self.took_part(row) for row in every.to_dict("records")]
        self.cells, self.left_out = (every[~np.array(old)] if old else every), sum(old)

    def took_part(self, row: Mapping[str, Any]) -> bool:
        return took_part(self.study.world, self.study.resolution, row["model"], row["seed"], dict(row))

    def parts(self) -> Iterator[Part]:
        """The sentences, then each of their sections."""
        if not len(self.conditions):
            yield Paragraph("Nothing is measured yet.")
            return
        found, shares = tested(self.cells) if len(self.cells) else [], self.by_cell("holds", EVERY)
        verdicts = list(self.verdicts(shares))
        yield from self.answer(found, shares)
        if verdicts:
            yield Sentence(sentence(verdicts, "Kang et al."))
        yield from self.of_prediction(found)
        yield from self.of_conditions()
        yield from self.of_trade_off(shares)
        yield from claims(verdicts, "difference or correlation", line(CLAIMS))
        yield Heading("Alignment and edits", line(EDITS))
        yield Rows("alignment", ("model", *ALIGNED), list(self.aligned()))

    def answer(self, found: list[Tested], shares: "pd.DataFrame") -> Iterator[Part]:
        """What predicts, what holds, and what is paid."""
        if found:
            first, *others = found
            yield Sentence(
                f"On {len(self.cells)} cells that played no part in choosing it, the {NAMED.name} has rank correlation "
                f"{first.over_all} with accuracy on unseen pairs: {first.outcome}. Within a place of the grid it is "
                f"{first.by_place}, within a place and model {first.by_model}."
            )
            said = (f"{its.predictor.name} {its.over_all} ({its.outcome})" for its in others)
            yield Sentence(f"The next three, corrected for their number: {'; '.join(said)}.")
        else:
            yield Paragraph("No cell has both a single vector for each text and a test of unseen pairs.")
        for model, its in self.at_first().items():
            if together := its.get((ALL, EVERY)):
                named = ", ".join(name for name in CONDITIONS if (name, EVERY) in its)
                yield Sentence(
                    f"{title_of(model)} meets all conditions that it has words for ({named}) in {percent(together)} % "
                    f"of scenes; {percent(its[ALL, INDEPENDENT], False)} % if they were independent."
                )
        if len(shares):
            yield Sentence(f"Over {len(shares)} cells, {line(TRADED)} {rho(shares)}.")

    def of_prediction(self, found: list[Tested]) -> Iterator[Part]:
        if not found:
            return
        shown = self.cells.drop(columns=[name for name in self.cells if name.startswith("Unnamed")])
        yield Dots("prediction", shown, [its.name for its in (NAMED, *NEXT)], ACCURACY, says=line(DOTS))
        left = f" {self.left_out} cells are left out, among which the measures were chosen." if self.left_out else ""
        rows = [
            (
                its.predictor.name,
                f"{its.predictor.sign:+d}"[0].replace("-", "−"),
                *map(str, (its.over_all, its.by_place, its.by_model)),
                DASH if np.isnan(its.p) else f"{its.p:.3f}",
                its.outcome,
            )
            for its in found
        ]
        yield Rows("correlations", CORRELATED, rows, says=line(CORRELATIONS) + left)

    def of_conditions(self) -> Iterator[Part]:
        """Each condition of each model, at the first place."""
        yield Heading("The conditions", line(CONDITIONS_SAY))
        yield Rows("conditions-by-model", ("model", *self.header()), list(self.condition_rows()))
        if notes := self.refusals():
            yield Paragraph(" ".join(notes))
        for by, title in (
            ("scores", "Their parts, by scores"),
            ("codes", "Between images, and between texts: by codes"),
        ):
            frame = self.first("holds", by)
            frame = frame[~frame["part"].isin((EVERY, INDEPENDENT))]
            if len(frame):
                yield Rows(f"parts-{by}", *part_table(frame), folded=title)

    def header(self) -> tuple[str, ...]:
        """The conditions, each with its chance in percent."""
        frame = self.first("holds", "scores").dropna(subset="chance")
        names = []
        for name in (*CONDITIONS, ALL):
            chances = frame[(frame["condition"] == name) & (frame["part"] == EVERY)]["chance"]
            text = " to ".join(sorted({f"{100 * value:.2g}" for value in chances}))
            names.append(f"{name} (chance {text})" if text else name)
        return (*names, INDEPENDENT)

    def condition_rows(self) -> Iterator[tuple[str, ...]]:
        for model, its in self.at_first().items():
            keys = [*((name, EVERY) for name in (*CONDITIONS, ALL)), (ALL, INDEPENDENT)]
            yield title_of(model), *(percent(its[key]) if key in its else DASH for key in keys)

    def refusals(self) -> list[str]:
        """Why conditions have no number."""
        frame = self.first("holds", "scores")
        frame = frame[frame["value"].isna()]
        found = frame.groupby(["condition", "refused"], sort=False)["model"].unique()
        return [
            f"{condition.capitalize()} is refused for {', '.join(map(title_of, models))}: {reason}."
            for (condition, reason), models in found.items()
        ]

    def of_trade_off(self, shares: "pd.DataFrame") -> Iterator[Part]:
        yield Heading("Is binding paid for with categorisation?", line(TRADE_OFF))
        names = [next(part.name for part in PARTS if part.condition == name) for name in (CATEGORISATION, BINDING)]
        margins = self.by_cell("margin", *names)
        coded = set(self.geometry[self.geometry["part"] == IMAGE]["model"]) if len(self.geometry) else set()
        if len(margins):
            margins = margins[margins["model"].isin(coded)]
        frame = self.conditions.dropna(subset="chance")
        chance = {
            n: frame[(frame["condition"] == n) & (frame["part"] == EVERY)]["chance"].mean() for n in CONDITIONS[:2]
        }
        yield TradeOff("trade-off", margins, shares, CATEGORISATION, BINDING, chance, says=line(CURVE_SAYS))
        columns = [least_margins(IdealCode(weight)) for weight in WEIGHTS]
        rows = [(name, *(f"{its[name]:.3f}" for its in columns)) for name in columns[0]]
        yield Rows("by-hand", ("least margin", *(f"weight {weight:g}" for weight in WEIGHTS)), rows, says=line(BY_HAND))

    def verdicts(self, shares: "pd.DataFrame") -> Iterator[Verdict]:
        """What Kang et al. claim, as far as this study has the runs."""
        least = min(least_margins(IdealCode(1.0)).values())
        yield Verdict(
            CLAIMED["ideal"], "a code made by hand, weight 1", "least margin of all four, all scenes",
            "contradicted" if least > 0 else "confirmed", EXPECTED[-1], f"{least:+.2f}, exact",
        )  # fmt: skip
        if len(shares):
            its = traded(shares)
            outcome = judged(its, -1, its.p)
            yield Verdict(CLAIMED["trade"], "all cells", "percent of scenes", outcome, EXPECTED[-1], str(its))
        for name in CONDITIONS[1:]:
            if gap := self.above("dcsm", "clip", name):
                outcome = (
                    "undecided" if not (gap.low > 0 or gap.high < 0) else "confirmed" if gap.low > 0 else "contradicted"
                )
                yield Verdict(
                    CLAIMED["dcsm"], f"DCSM − CLIP: {name}", "percent of scenes", outcome, EXPECTED[1], percent(gap)
                )

    def above(self, model: str, base: str, condition: str) -> Mean | None:
        """How far a model is above another in the share of scenes of a condition, over seeds; None without both."""
        frame = self.first("holds", "scores")
        frame = frame[(frame["condition"] == condition) & (frame["part"] == EVERY)].dropna(subset="value")
        each = [frame[frame["model"] == name].set_index("seed")["value"] for name in (model, base)]
        gaps = (each[0] - each[1]).dropna()
        return mean_of(list(gaps), -1.0) if len(gaps) else None

    def first(self, measure: str, by: str) -> "pd.DataFrame":
        """The rows of a measure of conditions at the first place."""
        frame = self.conditions
        kept = (frame["measure"] == measure) & (frame["by"] == by)
        for name, value in self.study.first_place.items():
            kept &= frame[name] == value
        return frame[kept]

    def at_first(self) -> dict[str, dict[tuple[str, str], Mean]]:
        """The conditions of each model that have a number."""
        found: dict[str, dict[tuple[str, str], Mean]] = {}
        groups = (
            self.first("holds", "scores").dropna(subset="value").groupby(["model", "condition", "part"], sort=False)
        )
        for (model, condition, part), rows in groups:
            found.setdefault(model, {})[condition, part] = mean_of(list(rows["value"]))
        return found

    def by_cell(self, measure: str, *parts: str) -> "pd.DataFrame":
        """A row for each cell, with its categorisation and its attribute binding."""
        frame = self.conditions
        frame = frame[(frame["measure"] == measure) & (frame["by"] == "scores") & frame["part"].isin(parts)]
        frame = frame[frame["condition"].isin((CATEGORISATION, BINDING))].dropna(subset="value")
        labels = ["model", "seed", *(name for name in PLACE if name in frame)]
        wide = frame.pivot_table("value", labels, "condition", sort=False).reset_index()
        wide.columns.name = None
        return wide

    def aligned(self) -> Iterator[tuple[str, ...]]:
        frame = self.geometry
        for model in dict.fromkeys(frame["model"]) if len(frame) else ():
            its = frame[frame["model"] == model]
            if len(its.dropna(subset="value")):
                yield title_of(model), *(seeds_mean(its, *where) for where in ALIGNED.values())


def seeds_mean(rows: "pd.DataFrame", part: str, measure: str) -> str:
    """The mean over seeds, places pooled, with the chance of a random direction or of no knowledge."""
    chosen = rows[(rows["part"] == part) & (rows["measure"] == measure)].dropna(subset="value")
    if not len(chosen):
        return DASH
    chance = chosen["chance"].mean()
    return f"{mean_of(list(chosen.groupby('seed')['value'].mean()), -np.inf, np.inf)} (chance {chance:.2f})"


def part_table(frame: "pd.DataFrame") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the parts of conditions: a column each model."""
    models = list(dict.fromkeys(frame["model"]))
    rows = []
    for (condition, part), its in frame.groupby(["condition", "part"], sort=False):
        each = [its[its["model"] == model]["value"].dropna() for model in models]
        texts = [percent(mean_of(list(values))) if len(values) else DASH for values in each]
        rows.append((condition, part, f"{100 * its['chance'].mean():.0f}", *texts))
    return ("condition", "part", "chance", *map(title_of, models)), rows


def traded(shares: "pd.DataFrame") -> Correlation:
    """The rank correlation of categorisation and binding over cells; a model's cells of one seed are drawn together."""
    runs = list(zip(shares["model"], shares["seed"], strict=True))
    return correlation(shares[CATEGORISATION].to_numpy(float), shares[BINDING].to_numpy(float), runs)


def rho(shares: "pd.DataFrame") -> str:
    return str(traded(shares))


def percent(its: Mean, interval: bool = True) -> str:
    bounds = f" [{100 * its.low:.0f}, {100 * its.high:.0f}]" if interval and not np.isnan(its.low) else ""
    return f"{100 * its.value:.1f}{bounds}"


def line(text: str) -> str:
    """A text of the page on one line."""
    return " ".join(text.split())


CLAIMED = {
    "ideal": "No space of codes with cosines as scores meets all conditions at once",
    "trade": "What does most for categorisation can't bind: who categorises better binds worse",
    "dcsm": "Maps of all patches and words (DCSM) meet the condition more often than CLIP",
}
TRADED = "categorisation and attribute binding (percent of scenes) have rank correlation"
DOTS = """A dot a cell. Accuracy on swaps of unseen pairs, by what was measured of codes on a probe set of scenes in views
that no training used. The first was named beforehand; it sees no image and no accuracy."""
CORRELATIONS = """Spearman's rank correlation of cells with 95 % intervals, by a bootstrap that draws whole trainings of a
model with a seed, all places together: seeds share their splits, so that intervals speak of further runs of these models
and not of new models. Pairs and hard negatives move everything alike: within a place, and within a place and model, ranks are
those of the cells there, pooled. p is of all cells; of the lower three it is corrected for their number (Holm)."""
CONDITIONS_SAY = """Percent of scenes in which a condition holds, all parts of it, with 95 % intervals over seeds; chance
is that of scores in random order. The conditions are those of Kang et al. 2025 on images of two things, with captions as
training has them. All: those that a model's captions have words for; beside it the product of these, what all would come
to if they were independent. All models at one place."""
TRADE_OFF = """As inequalities the conditions don't contradict one another: a code made by hand meets all. The most
that can be done for categorisation is to add up concepts, and that binds nothing."""
CURVE_SAYS = """Left: by how much "a red cat" is nearer to an image of a red cat and a white dog than a red thing that is
absent (to the right), and than a white cat (upwards), means over scenes; the curve is the code made by hand by its weight
of conjunctions. A dot a cell of scorers with one vector. Right: percent of scenes in which the conditions hold, a dot a
cell of every scorer."""
BY_HAND = """The least margin of each condition over all scenes, of unit vectors of object + attribute + weight (object
with attribute) + weight (object with place), 6 objects and 4 attributes; above 0 it holds everywhere."""
CLAIMS = """The first is a proof by example and needs no records. Paper and study differ in models, images and sizes; ours
are trained from scratch for a fixed number of steps, and may end before curves are flat."""
EDITS = """Means over seeds, places pooled, with 95 % intervals. One matrix between image and text is fitted on other
pairs: what LABCLIP could repair. Edits: share of the scenes judged rightly that flip to the swapped caption when the
image's code is moved by the mean codes of its objects, of objects of other animals, of textures in places; chance is a
random direction as long."""
