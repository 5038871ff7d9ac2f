"""The claims of two papers on diversity and language, compared with a study's runs, and the records of these runs."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from math import log
from typing import Any

import pandas as pd

from menagerie.envs.worlds import load_world
from menagerie.generators.coverage import round_coverage
from menagerie.studies.frame.claims import Verdict, make_verdict
from menagerie.studies.frame.estimate import Estimate
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.recognition import ANIMAL, COMPOSITION, Recognised, recognition_chances
from menagerie.studies.measures.robustness import (
    STEP,
    contrast,
    effective_robustness,
    gain,
    gain_from,
    jump_along,
    mean_gain,
    slope_along,
)

SEEN, UNSEEN = "seen", "unseen"
CAPTIONS, CLASSES = "captions", "classes"


@dataclass(frozen=True)
class DiversityClaims:
    """A study's finished runs, and their verdicts on the claims of two papers. `DiversityPage` shows them."""

    study: Any
    """A `Diversity`. It isn't named as the type, because its file imports this one."""
    records: Records

    @cached_property
    def objects(self) -> Recognised:
        """The records of recognition, one for each object."""
        given = {item.name: getattr(self.records, item.name) for item in fields(self.records)}
        return Recognised(**given, measure_of=self.study.recognition)

    @cached_property
    def main(self) -> Recognised:
        """The runs in the study's own world, with its number of images."""
        return self.objects.where(world=self.study.world, images=self.study.train_scenes)

    @property
    def tests(self) -> dict[str, tuple[str, ...]]:
        """The tests of seen and of unseen compositions."""
        return {kind: tuple(f"{kind}_{n}" for n in self.study.test_objects) for kind in (SEEN, UNSEEN)}

    @property
    def coverages(self) -> list[float]:
        return sorted(self.study.coverage)

    @property
    def names(self) -> list[str]:
        """The supervisions, by their names in tables."""
        return list(dict.fromkeys(arm.labels["supervision"] for arm in self.main.arms))

    @property
    def captions(self) -> str:
        """The name of the supervision that claims are about: the captions of the first model."""
        return str(self.study.name_of(CAPTIONS, self.study.models[0]))

    def chance(self, world: str, task: str) -> float:
        """Return the chance of a task in a world, for the tests with the fewest objects."""
        names = load_world(world)
        return recognition_chances(len(names.animals), len(names.textures), min(self.study.test_objects))[task]

    def points(self, task: str = ANIMAL, kind: str = UNSEEN, **labels: Any) -> pd.DataFrame:
        """Return the records of a task on seen or unseen compositions, of the runs with these labels. World, images and
        supervision are the main ones unless `labels` names others."""
        place = {"world": self.study.world, "images": self.study.train_scenes, "supervision": self.captions} | labels
        found = self.objects.points
        if not len(found):
            return found
        for name, value in place.items():
            found = found[found[name] == value]
        return found[found["subset"].isin(self.tests[kind]) & (found["task"] == task)]

    def curve(self, supervision: str, kind: str, task: str = ANIMAL) -> list[pd.DataFrame]:
        """Return the records at each coverage, the least first."""
        return [self.points(task, kind, supervision=supervision, coverage=share) for share in self.coverages]

    def nmi(self, share: float) -> float:
        """Return the normalised mutual information of animals and textures at a coverage with equal frequencies."""
        world = load_world(self.study.world)
        shown = round_coverage(share, self.study.classes) / self.study.classes
        return abs(-2 * log(shown) / (log(len(world.animals)) + log(len(world.textures))))

    def verdicts(self) -> Iterator[Verdict]:
        """Yield verdicts on the claims of both papers for which this study has runs."""
        if CAPTIONS in self.study.supervision:
            yield from self.of_language()
            yield from self.of_scale()

    def of_language(self) -> Iterator[Verdict]:
        """Yield verdicts on the claims of Abbasi et al."""
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
            gap = (
                contrast(every, effective_robustness(len(self.coverages)), signed=True)
                if len(self.coverages) > 1
                else None
            )
            yield self.said("effective", "captions above the fit of classes", ANIMAL, gap, 1)

    def of_scale(self) -> Iterator[Verdict]:
        """Yield verdicts on the claims of Uselis et al."""
        counts = self.grid()
        for n, (world, ks) in counts.items():
            if len(ks) > 1:
                both = [self.points(COMPOSITION, world=world, combinations=k) for k in (ks[0], ks[-1])]
                row = f"n = {n}: k = {ks[-1]:g} above k = {ks[0]:g}"
                yield self.said("k", row, COMPOSITION, contrast(both, gain, signed=True), 1)
        if len(counts) > 1:
            few, many = min(counts), max(counts)
            if shared := [k for k in counts[few][1] if k in counts[many][1]]:
                worlds = [counts[n][0] for n in (few, many)]
                both = [self.points(COMPOSITION, world=world, combinations=shared[0]) for world in worlds]
                more = gain_from([self.chance(world, COMPOSITION) for world in worlds])
                row = f"k = {shared[0]:g}: n = {many} above n = {few}, of the way from chance"
                yield self.said("n", row, COMPOSITION, contrast(both, more, signed=True), 1)
        if self.study.more_scenes and len(self.coverages) > 1:
            yield self.quantity()
        if (found := jump_along(self.coverages)) is not None:
            unseen = self.curve(self.captions, UNSEEN, COMPOSITION)
            row = f"rise by {STEP:.0%} of coverage there above that elsewhere"
            yield self.said("jump", row, COMPOSITION, contrast(unseen, found, signed=True), 1)

    def quantity(self) -> Verdict:
        """Return the verdict on whether more compositions in as many images help more than more images."""
        least, following = self.coverages[:2]
        images = max(self.study.more_scenes)
        both = [self.points(COMPOSITION, coverage=least, images=images), self.points(COMPOSITION, coverage=following)]
        row = f"coverage {following:.0%} in {self.study.train_scenes} images above {least:.0%} in {images}"
        return self.said("quantity", row, COMPOSITION, contrast(both, gain, signed=True), 1)

    def grid(self) -> dict[int, tuple[str, list[float]]]:
        """Map the number of values of a factor to its world, and to the numbers of compositions per value, rising."""
        found: dict[int, tuple[str, list[float]]] = {}
        for world in dict.fromkeys((*self.study.worlds, self.study.world)):
            arms = self.objects.where(world=world, images=self.study.train_scenes, supervision=self.captions).arms
            if arms and is_square(world):
                found[arms[0].labels["values"]] = world, sorted({arm.labels["combinations"] for arm in arms})
        return dict(sorted(found.items()))

    def said(self, claim: str, row: str, task: str, delta: Estimate | None, sign: int) -> Verdict:
        return make_verdict(CLAIMED[claim], row, f"unseen compositions: {task}", delta, sign)


def is_square(world: str) -> bool:
    """Return whether a world has as many animals as textures."""
    names = load_world(world)
    return len(names.animals) == len(names.textures)


CLAIMED = {
    "diversity": "Abbasi et al. 2024: more diverse training generalises better to unseen compositions",
    "information": "Abbasi et al. 2024: the less animals tell about their textures, the better",
    "relative": "Abbasi et al. 2024: language has more relative robustness than supervised classes",
    "effective": "Abbasi et al. 2024: language has more effective robustness than supervised classes",
    "k": "Uselis et al. 2025: more combinations of each value help",
    "n": "Uselis et al. 2025: more values of each concept help",
    "quantity": "Uselis et al. 2025: the diversity of data helps, not their number",
    "jump": "Uselis et al. 2025: accuracy jumps between 30 and 40 % coverage",
}
