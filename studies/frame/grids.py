"""A grid: a training run per model, place (fraction of pairs, of hard negatives, ...) and seed, and its page.

A grid is a subclass of `Grid` with the recipe of its splits (`plain_recipe`) and presets: `studies/binding_grid.py`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from menagerie.envs.core.files import file_names
from menagerie.envs.core.validation import SHARE
from menagerie.generators.captions.hard_negatives.tasks import HALF_TRUTHS
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of, specs
from menagerie.studies.frame.arm import Arm, KnownResults, as_column, label_text
from menagerie.studies.frame.cells import PAPER_RECIPES, title_of
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Bars, Cases, Heading, HeatMap, Lines, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy, grid
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.runs.data import FRACTIONS


@dataclass(frozen=True)
class Grid(SplitStudy):
    """The options of every grid."""

    pairs: Annotated[Axis[float], SHARE] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0, 1.0)
    """Fractions of these pairs that have hard negatives too."""

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The fields of the recipe that are varied, with their values."""
        return {name: getattr(self, name) for name in FRACTIONS}

    @property
    def tests(self) -> tuple[str, ...]:
        if self.split:
            return tuple(dict.fromkeys(test for data in self.files for test in data.tests))
        return self.split_of(0, **self.places[0]).all_tests  # as at all places

    @property
    def places(self) -> list[dict[str, Any]]:
        """The places of the grid in order, each with a value for every axis."""
        if self.split:
            return [data.axes for data in self.files]
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]

    @property
    def title(self) -> str:
        names = [title_of(model) for model in self.models]
        return f"{self._kind.title}: {', '.join(names) if len(names) <= MOST_LISTED else f'{len(names)} models'}"

    @property
    def unseen(self) -> tuple[str, ...]:
        """The tests of hold-out rules and of unseen pairs or, without these, all tests that are called unseen."""
        unseen = tuple(test for test in self.tests if test.endswith("unseen_pairs") or test.startswith(HELD_OUT))
        return unseen or tuple(test for test in self.tests if "unseen" in test)

    @property
    def _kind(self) -> type[SplitRecipe]:
        from menagerie.generators.splits.recipe_file import KINDS

        return KINDS[self.kind]

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        return grid(self, **self.axes)

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.frame.strata import stratum_parts  # not needed for `--help`

        swaps, place = records.where(task="swap", subset=self.tests), tuple(self.places[0])
        rows = ("model", *place)
        yield from self.answer(swaps)
        yield self.figure(swaps)
        yield Table("summary", swaps, rows, words={"pairs": fractions(records)}, says=SUMMARY)
        if len(self.models) > 1:
            says = f"Percentage points above {title_of(self.models[0])} on the same records, with intervals."
            yield Table("differences", swaps, rows, against={"model": self.models[0]}, says=says)
            if len((half := records.where(task=HALF_TRUTHS, subset=self.tests)).scores):
                says = f"{HALF_SAYS} Points above {title_of(self.models[0])} on the same records."
                yield Table("half-truths", half, rows, ("subset", "task"), against={"model": self.models[0]}, says=says)
        yield from stratum_parts(swaps)
        yield Heading("All tasks", INCOMPLETE)
        scores, files = records.scores, file_names(self.tests)
        for test in self.tests:
            found = records.where(subset=test)
            if len(scores) and not found.scores["n"].any():
                continue  # no split has scenes for it
            yield Heading(self.label(test), level=3)
            yield Table(f"tasks-{files[test]}", found, rows, ("task",))
        yield Heading("Where the models err")
        yield Cases("cases", records.where(subset=self.tests), rows, says="By what images show.")

    def answer(self, swaps: Records) -> Iterator[Part]:
        """Yield a sentence for each test of `unseen`: accuracies of at most `MOST_LISTED` models at the first place."""
        first = self.places[0]
        where = ", ".join(f"{n.replace('_', ' ')} {label_text(n, as_column(v))}" for n, v in first.items())
        for test in self.unseen:
            found = swaps.where(subset=test, **first).estimates(("model",))
            said = [f"{title_of(m)} {100 * e.value:.1f} % [{e.bounds}]" for (m,), e in found.items()][:MOST_LISTED]
            if said:
                on = self.label(test).replace("_", " ")
                yield Sentence(f"On {on}, with {where}, swaps are right in: {', '.join(said)}. Chance is 50 %.")

    def figure(self, swaps: Records) -> Part:
        """Choose a figure: a heat map if two axes have three values or more, lines if one has, else bars."""
        values = {axis: len(set(map(as_column, (place[axis] for place in self.places)))) for axis in self.places[0]}
        varied = sorted((axis for axis in values if values[axis] > 1), key=lambda axis: axis not in FRACTIONS)
        long = [axis for axis in varied if values[axis] > FEW]
        short = [axis for axis in varied if values[axis] <= FEW]
        if self.split or not long:
            rows = ("model", *(axis for axis in varied if axis == "split" or not self.split))
            words = {"model": marked_models(swaps)}
            return Bars("accuracy", swaps, rows=rows, panels=("subset",), dots=True, words=words, says=FOREST)
        if len(long) == 1:
            stroke, *others = *short, ""
            panels = ("subset", *filter(None, others))
            return Lines("accuracy", swaps, x=long[0], stroke=stroke, panels=panels, says=SAYS)
        up, across, *rest = long
        return HeatMap("accuracy", swaps, x=across, y=up, panels=("subset", *rest, *short, "model"), says=SAYS)


MOST_LISTED = 5  # models in a title or a sentence
FEW = 2  # values of an axis, too few for a side of a heat map
SAYS = """Accuracy (%) on swaps by test and model, and by what varies. Pairs: the fraction of animal pairs in training;
hard negatives: the fraction of these pairs whose swapped images are in training too."""
FOREST = """Accuracy (%) on swaps by test and model, with 95 % intervals; each pale dot a seed. Beside a model: whether
it reads the true graph of each caption, and what its loss sees as false beside other images and their captions."""
SUMMARY = """Accuracy (%) on swaps, mean over seeds. In brackets the number of animal pairs in training, of all that are
kept neither for validation nor for unseen pairs."""
HALF_SAYS = "Half-truths: the false caption is the true one and a false detail; half of it is true, and it is longer."
INCOMPLETE = """Captions that leave out an animal or a texture are of a kind that training didn't have, unless its
recipe says so: an accuracy below chance there is mostly a preference for shorter or longer captions."""


def marked_models(records: Records) -> dict[str, str]:
    """Write beside each model's name whether it reads graphs, and which false texts and images its loss sees."""
    marks = {}
    for arm, result in records.results:
        reads = ["reads graphs"] * ("graphs" in spec_of(arm.cell.model).reads)
        sees = [f"sees {' and '.join(false)}"] if (false := result.get("loss_negatives")) else []
        marks[arm.cell.model] = ", ".join([title_of(arm.cell.model), *reads, *sees])
    return marks


def fractions(records: Records) -> dict[float, str]:
    """Write each share of pairs with the numbers of pairs that it stands for: "20% (2 of 11)"."""
    found: dict[float, dict[str, None]] = {}
    for arm, result in records.results:
        if "all_pairs" in result:
            text = f"({result['training_pairs']} of {result['all_pairs']})"
            found.setdefault(arm.place["pairs"], {})[text] = None
    return {share: " ".join([label_text("pairs", share), *sorted(texts)]) for share, texts in found.items()}


SMOKE: dict[str, Any] = {
    "world": "tiny",
    "resolution": 32,
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
# Here plain CLIP learns what training shows: its text tower needs the second layer (docs/results/objects.md).
LEARNS: dict[str, Any] = EIGHT | {
    "world": "eight-textures",
    "architecture": "mini",
    "recipe": Recipe(steps=4000, learning_rate=1e-3, decay=0.2, single_object_phase=0.125),
    "seeds": 3,
}
# One layer a tower, with which plain CLIP stays at chance on such scenes.
SHALLOW: dict[str, Any] = EIGHT | {"world": "eight-textures", "seeds": 3}
# The hardest cell of all scorers but controls, in a world small enough for many of them. Of its 28 pairs 6 are the
# test's and 6 validation's.
BREADTH: dict[str, Any] = EIGHT | {
    "models": tuple(name for name, spec in specs().items() if not spec.control),
    "hard_negatives": (0.0,),
    "seeds": 3,
}
APART: dict[str, float] = {"test_pairs": 0.2, "validation": 0.2}
# 224 px and ViT-B/16 as in OC-CLIP's paper, but from scratch unless --pretrained names weights; each model with
# the rates of its paper, and all with our number of steps.
PAPER: dict[str, Any] = {
    "resolution": 224,
    "seeds": 3,
    "test_scenes": 2000,
    "architecture": "ViT-B-16",
    "tuned": PAPER_RECIPES,
    "recipe": Recipe(steps=10_000, batch=256, learning_rate=5e-4, warmup=1000, weight_decay=0.5),
    "scorers": scorer_options("paper"),
    "loaders": 4,
}
PAPER_PLACES: dict[str, Any] = {"pairs": (0.2, 0.4, 0.6, 0.8, 1.0), "hard_negatives": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}
