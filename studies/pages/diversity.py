"""The page of the study of diversity: accuracy by coverage and supervision, robustness, and what two papers claim."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.envs.worlds import load_world
from menagerie.generators.cells import round_coverage
from menagerie.studies.frame.claims import Verdict, claims, sentence, verdict
from menagerie.studies.frame.estimate import Estimate, curve_estimate
from menagerie.studies.frame.parts import Heading, HeatMap, Lines, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.recognition import ANIMAL, COMPOSITION, NAME, Recognised, chances

SEEN, UNSEEN = "seen", "unseen"
CAPTIONS, CLASSES = "captions", "classes"
STEP = 0.1  # of coverage and of information, by which slopes are said
BEFORE, AFTER = 0.3, 0.4  # coverages between which Uselis et al. saw accuracy jump
LEAST = 0.005  # share by which an accuracy is kept from 0 and 1 on the scale of log-odds
Means = Float64[np.ndarray, "draws groups"]
Statistic = Callable[[Means], Float64[np.ndarray, " draws"]]


@dataclass(frozen=True)
class Page:
    """The page of a study as far as its runs have come."""

    study: Any
    """A `Diversity`, whose file imports this one."""
    records: Records

    @cached_property
    def things(self) -> Recognised:
        """What was recognised, a record for each thing."""
        return Recognised(self.records.arms, self.records.out, self.records.chosen, self.study.recognition)

    @cached_property
    def main(self) -> Recognised:
        """The runs in the study's own world, with its number of images."""
        return self.things.where(world=self.study.world, images=self.study.train_scenes)

    @property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """The tests of seen and of unseen compositions."""
        return {kind: tuple(f"{kind}_{n}" for n in self.study.test_things) for kind in (SEEN, UNSEEN)}

    @property
    def coverages(self) -> list[float]:
        return sorted(self.study.coverage)

    @property
    def names(self) -> list[str]:
        """The supervisions, by their names in tables."""
        return list(dict.fromkeys(arm.labels["supervision"] for arm in self.main.arms))

    @property
    def captions(self) -> str:
        """The captions that claims are about: those of the first model."""
        return str(self.study.name_of(CAPTIONS, self.study.models[0]))

    def chance(self, world: str, task: str) -> float:
        """Chance of a task in a world, of the tests with the fewest things."""
        names = load_world(world)
        return chances(len(names.animals), len(names.textures), min(self.study.test_things))[task]

    def points(self, task: str = ANIMAL, kind: str = UNSEEN, **labels: Any) -> pd.DataFrame:
        """The records of a task on what is seen or unseen, of the runs with some labels."""
        place = {"world": self.study.world, "images": self.study.train_scenes, "supervision": self.captions} | labels
        return self.things.where(**place, subset=self.tests[kind], task=task).points

    def curve(self, supervision: str, kind: str, task: str = ANIMAL) -> list[pd.DataFrame]:
        """The records at each coverage, the least first."""
        return [self.points(task, kind, supervision=supervision, coverage=share) for share in self.coverages]

    def parts(self) -> Iterator[Part]:
        """Sentences, the figure, robustness, claims, and all else as tables."""
        if not len(self.things.scores):
            yield Paragraph("Nothing is measured yet.")
            return
        verdicts = list(self.verdicts())
        yield from self.answer()
        if verdicts:
            yield Sentence(sentence(verdicts, "two papers"))
        words = {"coverage": {share: f"{share:.0%}" for share in self.coverages}}
        words |= {"subset": {test: f"{kind} compositions" for kind, tests in self.tests.items() for test in tests}}
        shown = self.main.where(task=(ANIMAL, COMPOSITION), subset=sum(self.tests.values(), ()))
        in_percent = {task: 100 * self.chance(self.study.world, task) for task in (ANIMAL, NAME, COMPOSITION)}
        looks: dict[str, Any] = {"colour": "supervision", "stroke": "subset", "panels": ("task",)}
        yield Lines("diversity", shown, x="coverage", **looks, chances=in_percent, words=words, says=line(SAYS))
        yield Heading("Robustness", line(ROBUSTNESS))
        yield Rows("robustness", ROBUSTNESS_COLUMNS, list(self.robustness()))
        yield from claims(verdicts, "difference in points", line(CLAIMS))
        yield Heading("What training showed", line(INFORMATION))
        yield Rows("information", ("coverage", "textures of an animal", "NMI", self.captions), list(self.information()))
        yield from self.tables(words)

    def tables(self, words: Mapping[str, Mapping[Any, str]]) -> Iterator[Part]:
        """Numbers of animals and textures, numbers of images, and all tasks."""
        square = [world for world in dict.fromkeys((*self.study.worlds, self.study.world)) if is_square(world)]
        grid = self.things.where(world=tuple(square), images=self.study.train_scenes, supervision=self.captions)
        if grid.arms:
            yield Heading("n animals and n textures, each in k combinations", line(GRID))
            for kind, task in ((UNSEEN, ANIMAL), (UNSEEN, COMPOSITION)):
                found = grid.where(subset=self.tests[kind], task=task)
                yield HeatMap(
                    f"grid-{task.replace(' ', '-')}",
                    found,
                    x="combinations",
                    y="values",
                    panels=("task", "supervision"),
                )
        if self.study.more_scenes:
            yield Heading("More images of the same compositions")
            same = self.things.where(world=self.study.world, coverage=min(self.coverages), supervision=self.captions)
            yield Table("images", same, ("images",), ("subset", "task"), intervals=True, words=words)
        yield Heading("All numbers", line(TASKS))
        yield Table(
            "recognition", self.main, ("supervision", "coverage"), ("subset", "task"), intervals=True, words=words
        )
        tasks = self.records.where(world=self.study.world, images=self.study.train_scenes, subset=self.tests[UNSEEN])
        told = tasks.where(supervision=tuple(name for name in self.names if name.startswith(CAPTIONS)))
        if told.arms:
            yield Table("tasks", told, ("supervision", "coverage"), ("subset", "task"), words=words, says=line(SWAPS))

    def answer(self) -> Iterator[Part]:
        """A sentence for each supervision, and one of compositions: at the least and the greatest coverage."""
        ends = list(dict.fromkeys((min(self.coverages), max(self.coverages))))
        unseen = self.main.where(subset=self.tests[UNSEEN])
        for task, names in ((ANIMAL, self.names), (COMPOSITION, [self.captions])):
            found = unseen.where(task=task).estimates(("supervision", "coverage"))
            for name in names:
                said = [f"{at:.0%}: {found[name, at]}" for at in ends if (name, at) in found]
                if said:
                    yield Sentence(
                        f"Trained on {name}, right about {task} in unseen compositions (%, chance "
                        f"{100 * self.chance(self.study.world, task):.1f}), by coverage: {', '.join(said)}."
                    )

    def robustness(self) -> Iterator[tuple[str, ...]]:
        """Accuracy on animals, effective and relative robustness, of each supervision and coverage."""
        base = {kind: self.curve(CLASSES, kind) for kind in (SEEN, UNSEEN)}
        for name in self.names:
            own = {kind: self.curve(name, kind) for kind in (SEEN, UNSEEN)}
            for k, share in enumerate(self.coverages):
                levels = [contrast([own[kind][k]], lambda means: means[:, 0]) for kind in (SEEN, UNSEEN)]
                gaps: list[Estimate | None] = [None, None]
                if name != CLASSES:
                    one = [own[SEEN][k], own[UNSEEN][k]]
                    gaps[0] = contrast([*one, *base[SEEN], *base[UNSEEN]], effective, signed=True)
                    gaps[1] = contrast([base[UNSEEN][k], own[UNSEEN][k]], gain, signed=True)
                yield name, f"{share:.0%}", *(str(its) if its else "–" for its in (*levels, *gaps))

    def information(self) -> Iterator[tuple[str, ...]]:
        """Of each coverage the textures of an animal, the information, and accuracy on unseen compositions."""
        textures = len(load_world(self.study.world).textures)
        for share in self.coverages:
            number = round_coverage(share, self.study.classes) / self.study.classes
            its = contrast([self.points(COMPOSITION, coverage=share)], lambda means: means[:, 0])
            yield f"{share:.0%}", f"{number * textures:.3g}", f"{self.nmi(share):.3f}", str(its) if its else "–"

    def nmi(self, share: float) -> float:
        """The normalised mutual information of animals and textures in captions: all seen cells are equally
        frequent."""
        world = load_world(self.study.world)
        shown = round_coverage(share, self.study.classes) / self.study.classes
        return abs(-2 * log(shown) / (log(len(world.animals)) + log(len(world.textures))))

    def verdicts(self) -> Iterator[Verdict]:
        """What both papers claim, as far as this study has the runs."""
        if CAPTIONS in self.study.supervision:
            yield from self.of_language()
            yield from self.of_scale()

    def of_language(self) -> Iterator[Verdict]:
        """The claims of Abbasi et al."""
        unseen = self.curve(self.captions, UNSEEN, COMPOSITION)
        if len(self.coverages) > 1:
            ends = contrast([unseen[0], unseen[-1]], gain, signed=True)
            yield self.said("diversity", "greatest coverage above the least", COMPOSITION, ends, 1)
            slope = contrast(unseen, slope_along([self.nmi(share) for share in self.coverages]), signed=True)
            yield self.said("information", f"by {STEP:g} of NMI", COMPOSITION, slope, -1)
        if CLASSES in self.study.supervision:
            own, base = ({kind: self.curve(name, kind) for kind in (SEEN, UNSEEN)} for name in (self.captions, CLASSES))
            relative = contrast([*base[UNSEEN], *own[UNSEEN]], mean_gain, signed=True)
            yield self.said("relative", "captions above classes, all coverages", ANIMAL, relative, 1)
            every = [*own[SEEN], *own[UNSEEN], *base[SEEN], *base[UNSEEN]]
            gap = contrast(every, effective, signed=True) if len(self.coverages) > 1 else None
            yield self.said("effective", "captions above the fit of classes", ANIMAL, gap, 1)

    def of_scale(self) -> Iterator[Verdict]:
        """The claims of Uselis et al."""
        counts = self.grid()
        for n, (world, ks) in counts.items():
            if len(ks) > 1:
                both = [self.points(COMPOSITION, world=world, combinations=k) for k in (ks[0], ks[-1])]
                row = f"n = {n}: k = {ks[-1]:g} above k = {ks[0]:g}"
                yield self.said("k", row, COMPOSITION, contrast(both, gain, signed=True), 1)
        if len(counts) > 1:
            few, many = min(counts), max(counts)
            if shared := [k for k in counts[few][1] if k in counts[many][1]]:
                both = [self.above_chance(counts[n][0], shared[0]) for n in (few, many)]
                row = f"k = {shared[0]:g}: n = {many} above n = {few}, of the way from chance"
                yield self.said("n", row, COMPOSITION, contrast(both, gain, signed=True), 1)
        if self.study.more_scenes and len(self.coverages) > 1:
            yield self.quantity()
        if (found := jump_along(self.coverages)) is not None:
            unseen = self.curve(self.captions, UNSEEN, COMPOSITION)
            row = f"rise by {STEP:.0%} of coverage there above that elsewhere"
            yield self.said("jump", row, COMPOSITION, contrast(unseen, found, signed=True), 1)

    def quantity(self) -> Verdict:
        """More compositions in as many images, against more images of as few compositions."""
        least, following = self.coverages[:2]
        images = max(self.study.more_scenes)
        both = [
            self.points(COMPOSITION, coverage=least, images=images),
            self.points(COMPOSITION, coverage=following),
        ]
        row = f"coverage {following:.0%} in {self.study.train_scenes} images above {least:.0%} in {images}"
        return self.said("quantity", row, COMPOSITION, contrast(both, gain, signed=True), 1)

    def grid(self) -> dict[int, tuple[str, list[float]]]:
        """For each n, rising, its world and the values of k, rising."""
        found: dict[int, tuple[str, list[float]]] = {}
        for world in dict.fromkeys((*self.study.worlds, self.study.world)):
            arms = self.things.where(world=world, images=self.study.train_scenes, supervision=self.captions).arms
            if arms and is_square(world):
                found[arms[0].labels["values"]] = world, sorted({arm.labels["combinations"] for arm in arms})
        return dict(sorted(found.items()))

    def above_chance(self, world: str, k: float) -> pd.DataFrame:
        """The records of compositions, as parts of the way from chance to 1."""
        found, chance = self.points(COMPOSITION, world=world, combinations=k), self.chance(world, COMPOSITION)
        return found.assign(value=(found["value"] - chance) / (1 - chance)) if len(found) else found

    def said(self, claim: str, row: str, task: str, delta: Estimate | None, sign: int) -> Verdict:
        return verdict(CLAIMED[claim], row, f"unseen compositions: {task}", delta, sign)


def line(text: str) -> str:
    """A text of the page on one line."""
    return " ".join(text.split())


def is_square(world: str) -> bool:
    """Whether a world has as many animals as textures."""
    names = load_world(world)
    return len(names.animals) == len(names.textures)


def contrast(parts: Sequence[pd.DataFrame], function: Statistic, signed: bool = False) -> Estimate | None:
    """A statistic of the means of several groups of records, drawn together; None where one has no records."""
    if not all(map(len, parts)):
        return None
    return curve_estimate(parts, function)._replace(signed=signed)


def gain(means: Means) -> Float64[np.ndarray, " draws"]:
    """How far the second group is above the first."""
    return means[:, 1] - means[:, 0]


def mean_gain(means: Means) -> Float64[np.ndarray, " draws"]:
    """How far the second half of the groups is above the first, in the mean."""
    first, second = np.split(means, 2, axis=1)
    return (second - first).mean(1)


def effective(means: Means) -> Float64[np.ndarray, " draws"]:
    """Effective robustness: accuracy on what is unseen minus what the baseline's fit predicts of that on what is seen,
    in the mean (Taori et al. 2020, section 2: rho(f) = acc2(f) - beta(acc1(f)), where beta is linear in log-odds).

    Groups are the accuracies of n models on what is seen and then on what is unseen, and those of the baseline's.
    """
    own, base = split_groups(means)
    x, y = log_odds(base[0]), log_odds(base[1])
    spread = x - x.mean(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):  # without a spread there is no fit, and no number
        slope = (spread * y).sum(1, keepdims=True) / (spread**2).sum(1, keepdims=True)
    expected = y.mean(1, keepdims=True) + slope * (log_odds(own[0]) - x.mean(1, keepdims=True))
    return (own[1] - 1 / (1 + np.exp(-expected))).mean(1)


def split_groups(means: Means) -> tuple[list[Means], list[Means]]:
    """Seen and unseen accuracies of models, and those of a baseline of at least as many."""
    models = 1 if means.shape[1] % 4 else means.shape[1] // 4
    return np.split(means[:, : 2 * models], 2, axis=1), np.split(means[:, 2 * models :], 2, axis=1)


def log_odds(accuracy: Means) -> Means:
    kept = np.clip(accuracy, LEAST, 1 - LEAST)
    return np.log(kept / (1 - kept))


def slope_along(x: Sequence[float]) -> Statistic:
    """How much the means rise by `STEP` of `x`, by least squares."""
    spread = np.array(x) - np.mean(x)
    return lambda means: STEP * (means @ spread) / (spread @ spread)


def jump_along(coverages: Sequence[float]) -> Statistic | None:
    """How much more the means rise by `STEP` of coverage between the nearest coverages that hold 30 to 40 % than
    outside; None where none do, or nothing is outside."""
    low = [k for k, share in enumerate(coverages) if share <= BEFORE]
    high = [k for k, share in enumerate(coverages) if share >= AFTER]
    if not low or not high or len(coverages) < 3 or (low[-1], high[0]) == (0, len(coverages) - 1):
        return None
    a, b = low[-1], high[0]
    inside, outside = coverages[b] - coverages[a], coverages[-1] - coverages[0] - (coverages[b] - coverages[a])

    def more(means: Means) -> Float64[np.ndarray, " draws"]:
        there = means[:, b] - means[:, a]
        return STEP * (there / inside - (means[:, -1] - means[:, 0] - there) / outside)

    return more


CLAIMED = {
    "diversity": "Abbasi et al. 2024: more diverse training generalises better to unseen compositions",
    "information": "Abbasi et al. 2024: the less animals tell of their textures, the better",
    "relative": "Abbasi et al. 2024: language has more relative robustness than supervised classes",
    "effective": "Abbasi et al. 2024: language has more effective robustness than supervised classes",
    "k": "Uselis et al. 2025: more combinations of each value help",
    "n": "Uselis et al. 2025: more values of each concept help",
    "quantity": "Uselis et al. 2025: diversity of data helps, and not their number",
    "jump": "Uselis et al. 2025: accuracy jumps between 30 and 40 % coverage",
}
ROBUSTNESS_COLUMNS = ("supervision", "coverage", SEEN, UNSEEN, "effective robustness", "relative robustness")
SAYS = """Accuracy (%) by the share of all combinations of animal and texture that training showed, in equally many
images and steps. The images of unseen compositions are the same at every coverage and for every supervision. A thing
of an image is right if its class scores above all that the image doesn't show: one of all animals, or one of all
animals in all textures. Models trained on captions of animals alone, or on classes, can't name a texture. Chance:
dotted."""
ROBUSTNESS = """Accuracy (%) on animals in new images of seen and of unseen compositions. Relative robustness: points
above classes on unseen compositions at the same coverage. Effective robustness: points above what the accuracy on seen
compositions predicts, by a line through the classifiers of all coverages, in log-odds (Taori et al. 2020, section 2;
Abbasi et al. 2024 take both from there). The line has as many points as there are coverages, and says little where
these differ little on seen compositions; its uncertainty is in the intervals."""
CLAIMS = """In brackets the interval; several groups of records are drawn together. The papers' numbers are of other
images, models and sizes: photographs of one object with CLIP models of up to billions of pairs (Abbasi et al.), one
thing whose factors are classified (Uselis et al.). Our captions' images show several things. Training of a fixed number
of steps may end before curves are flat."""
INFORMATION = """Normalised mutual information of animals and textures in the captions of training, from 0, nothing, to
1 (`menagerie nmi FILE` measures it in any captions). It depends on coverage alone, so that this study can't tell one
from the other. At the right: accuracy (%) on animals and textures of unseen compositions."""
GRID = """Accuracy (%) on unseen compositions of worlds of n animals and n textures, of which training shows each animal
in k textures, in as many images (values: n, combinations: k): the setting of Uselis et al. Chance falls with n."""
TASKS = f"""{ANIMAL}: one of all animals, by captions of the kind that training had (with textures: the mean over all).
{NAME}: without a texture, which captions of training never left out. {COMPOSITION}: one of all animals in all
textures."""
SWAPS = """All tasks of the split on unseen compositions (%), of models that were told textures."""
