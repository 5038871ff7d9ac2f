"""What of a model's gap to 100 percent is due to the form of its score, its width, its encoders, and its data.

M is the trained model's score on a test. E is that of the same model, trained equally long on equally many images of
all compositions (`all_pairs`), W what free codes of its form get at its width, F at any width (`tested_codes`). The
parts are 100 - F, F - W, W - E and E - M.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST
from menagerie.envs.core.validation import SHARE
from menagerie.generators.splits.all_pairs import AllPairsRecipe
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.analysis.intervals import Estimate
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.options import CaptionOptions
from menagerie.studies.frame.parts import Chart, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.measures.recognition import COMPOSITION, Recognised, Recognition

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.measures.tested_codes import CodesOfTests

FORMS = dict.fromkeys(("clip", "negclip", "siglip", "filip"), "vector")
FORMS |= dict.fromkeys(("filip-phrases", "oc-clip"), "slots")
"""The form of free codes that a model's score allows. FILIP's vectors of words, and of patches, may all be alike."""
SOME_PAIRS, ALL_PAIRS = "some pairs", "all pairs"
TEST_OF_M, TEST_OF_E = "unseen_pairs", "shown_pairs"  # the same images, in the split of each training
LEVELS = ("100", "F", "W", "E", "M")
PARTS = {"form": "100 - F", "width": "F - W", "encoders": "W - E", "data": "E - M"}
"""Each part with its two levels."""


@dataclass(frozen=True)
class Gap(CaptionOptions, SplitStudy):
    """What of a model's gap is form, width, encoders, data"""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split", "hold_out")

    models: tuple[str, ...] = ("clip",)
    """Scorers whose score has the form of free codes: one vector, words and patches, or phrases and patches."""
    pairs: Annotated[float, DATA, FIRST, SHARE] = 0.2
    """Fraction of the trainable animal pairs in the model's own training."""

    def check(self) -> None:
        super().check()
        if odd := [model for model in self.models if model not in FORMS]:
            raise UserError(f"--models {odd[0]}: no form of free codes is its score's; give some of {', '.join(FORMS)}")

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        trainings = {SOME_PAIRS: self, ALL_PAIRS: replace(self, base=AllPairsRecipe())}
        for seed in self.seed_numbers:
            for model in self.models:
                for name, study in trainings.items():
                    yield study.at(model, seed)._replace(labels={"training": name})

    def measurements(self, arm: Arm) -> Sequence[Measure]:
        return (Recognition(), *[self.codes(arm.cell.model)] * (arm.labels["training"] == SOME_PAIRS))

    def codes(self, model: str) -> "CodesOfTests":
        from menagerie.studies.measures.tested_codes import CodesOfTests

        return CodesOfTests(FORMS[model], TEST_OF_M)

    def page(self, records: Records) -> Iterator[Part]:
        """Yield a sentence for each model and test, stacked bars, a table with intervals, and the widths."""
        points = self.points(records)
        found = list(gap_rows(points)) if len(points) else []
        if not found:
            yield Paragraph("Nothing is measured yet: that needs a seed's runs on some pairs and on all pairs.")
            return
        for row in found:
            said = ", ".join(f"{name} {part_text(row[name])}" for name in PARTS)
            lacks = f"{title_of(row['model'])} has {row['M']} % of {row['test']} right"
            yield Sentence(f"{lacks}. In points of what it lacks: {said}.")
        yield Chart("gap", gap_chart(found), says=FIGURE)
        parts = (f"{name} ({levels})" for name, levels in PARTS.items())
        header = ("model", "test", *LEVELS[1:], *parts, "numbers in a vector of F and W")
        names = ("model", "test", *LEVELS[1:], *PARTS, "widths")
        yield Rows("parts", header, [[part_text(row[name]) for name in names] for row in found], says=TABLE)
        yield Paragraph(DIFFERENCES)

    def points(self, records: Records) -> "pd.DataFrame":
        """Return a row for each record and level: model, seed, task, scene, caption, animals, value."""
        import pandas as pd

        from menagerie.studies.measures.tested_codes import ANY_WIDTH, OWN_WIDTH

        given = {item.name: getattr(records, item.name) for item in fields(records)}
        swaps, objects = records.where(task="swap"), Recognised(**given).where(task=COMPOSITION)
        models = [its.where(subset=(TEST_OF_M, TEST_OF_E)).points for its in (swaps, objects)]
        models = [
            its.assign(level=its["training"].map({SOME_PAIRS: "M", ALL_PAIRS: "E"})) for its in models if len(its)
        ]
        parts = []
        for model in dict.fromkeys(arm.cell.model for arm, _ in records.results):
            rows = records.where(model=model).rows_of(self.codes(model))
            parts += [rows.assign(level=rows["codes"].map({ANY_WIDTH: "F", OWN_WIDTH: "W"}))] if len(rows) else []
        whole = [its[its["level"] == "F"].assign(level="100", value=1.0) for its in parts]
        every = [*models, *parts, *whole]
        return pd.concat(every, ignore_index=True).assign(subset=TEST_OF_M) if every else pd.DataFrame()


def part_text(its: Any) -> str:
    """Write a part of the gap; one that is 0 in every record without an interval."""
    same = isinstance(its, Estimate) and its.value == its.low == its.high == 0
    return "0" if same else str(its)


def gap_rows(points: "pd.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield for each model and test its levels, as estimates, and the four parts as paired differences of these. Seeds
    that lack a level are left out."""
    from menagerie.studies.frame.estimate import estimates

    by = ("model", "task", "level")
    points = points[points.groupby(["model", "seed"])["level"].transform("nunique") == len(LEVELS)]
    kept = points[[*by, "seed", "subset", "scene", "caption", "animals", "value"]]
    levels = estimates(kept, by)
    gaps = {name: estimates(kept, by, against={"level": text.split(" - ")[1]}) for name, text in PARTS.items()}
    for model, task in dict.fromkeys((model, task) for model, task, _ in levels):
        own = points[(points["model"] == model) & (points["task"] == task)]
        widths = " and ".join(str(int(n)) for n in own["width"].dropna().unique())
        row = {"model": model, "test": TEST_NAMES[task], "widths": widths}
        row |= {level: levels[model, task, level] for level in LEVELS}
        row |= {level: row[level].written(row[level].value) for level in ("F", "W")}  # of codes, not of new seeds
        yield row | {name: gaps[name][model, task, text.split(" - ")[0]] for name, text in PARTS.items()}


def gap_chart(found: Sequence[dict[str, Any]]) -> Any:
    """Return stacked bars: each test's score, and what it lacks by part."""
    import altair as alt
    import pandas as pd

    names = ["score", *reversed(PARTS)]
    rows = [
        {"model": title_of(row["model"]), "test": row["test"], "part": name, "points": 100 * its.value, "order": order}
        | {"low": 100 * its.low, "high": 100 * its.high}
        for row in found
        for order, name in enumerate(names)
        for its in [row["M" if name == "score" else name]]
    ]
    x = alt.X("points:Q", title="percent")
    colour = alt.Color("part:N", sort=names, scale=alt.Scale(domain=names), title=None)
    bars = alt.Chart(pd.DataFrame(rows)).mark_bar().encode(x, alt.Y("test:N", title=None, sort=None), colour)
    return (
        bars.encode(order="order:O", tooltip=["part", "points", "low", "high"])
        .properties(width=420)
        .facet(row=alt.Row("model:N", title=None, sort=None))
    )


TEST_NAMES = {"swap": "swaps of unseen pairs", COMPOSITION: "captions of one object"}
FIGURE = """What a model has right, and what of the rest is due to its data, its encoders, its width and its form. A
part is left of 0 where a level is above the one that should bound it."""
TABLE = """M: the model's score, in percent. E: that of the same model trained on all pairs. W: free codes with vectors
as wide as the model's, fitted to these images and captions; better ones may exist. F: the same at any width. Where F is
100 the form has no part by construction, which is nothing that was measured of a model: one-hot vectors have every
record right. Intervals are for new seeds and pairs; a part that is 0 in every record has none. Captions of one object:
that of each object must be above those of all animals and textures that the image doesn't show, on the same
background."""
DIFFERENCES = """E and M are tested on the same images and captions, in views that neither trained on. Both train on the
same images of one animal, and on equally many images of two in equally many steps, with the same recipe. M's show some
of the pairs, each in one assignment of textures; E's show all pairs, validation's and the test's among them, in all
assignments, so each much less often. So data is what other images would bring, not more of them, and encoders is what
training with these doesn't reach: towers, loss and steps. Unless `--mentioned` is below 1, captions of training name
all animals that an image shows, for E too: then what is lost on captions of one object because no image of two had one
counts as encoders."""
