"""Does diversity of training make a model generalise to compositions that it has never seen, and does language?

Training has animals in more or fewer of the textures (`coverage`), with equally many images and steps. Every model is
tested on the same images, of animals in textures that no training has on them. Three kinds of supervision have the same
image tower: captions, captions of animals alone, and classes of animals (Abbasi et al. 2024). Further runs are in
worlds with other numbers of animals and textures, and with more images of the same compositions (Uselis et al. 2025).

    python studies/diversity.py --preset smoke           # tiny, a minute on 2 cores
    python studies/diversity.py                          # laptop: 8 animals, 8 textures, 32 px, three seeds
    python studies/diversity.py --models clip sparo      # captions for each of them
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import log
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.coverage import round_coverage
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.claims import Verdict, claim_parts, if_learnt, make_verdict
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import LEARNS, SHALLOW, SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Heading, Lines, Paragraph, Part, Rows, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.measures.recognition import (
    ANIMAL,
    COMPOSITION,
    NAME,
    Recognised,
    Recognition,
    recognition_chances,
)

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate
    from menagerie.studies.measures.robustness import Statistic

Supervision = Literal["captions", "objects", "classes"]
Groups = Sequence[Mapping[str, Any]]
"""The labels of the runs of each group of records."""
Tested = tuple[str, str, Groups, Any, str, int]
"""A claim, the row of its table, and what decides it: a statistic of groups on a task, and its sign."""
CLASSIFIER = "classifier"
CAPTIONS, CLASSES = "captions", "classes"
SEEN, UNSEEN = "seen", "unseen"


@dataclass(frozen=True)
class Diversity(SplitStudy):
    """Diversity, language and unseen compositions"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split",)

    models: tuple[str, ...] = ("clip",)
    """Scorers that train on captions. On classes a classifier is trained, whose image tower has CLIP's size."""
    supervision: Annotated[tuple[Supervision, ...], WHAT, FIRST, GROWS, Several(1)] = ("captions", "objects", "classes")
    """Supervision of training: captions with textures, captions of animals alone, or classes of animals."""
    coverage: Annotated[Axis[float], SHARE] = (0.167, 0.333, 0.5, 0.667, 0.833)
    """Shares of the compositions (animal and texture) in training: multiples of 1 / `classes`, below 1."""
    classes: Annotated[int, DATA, FIRST, Range(2, 1000)] = 6
    """Classes of animals, and of textures; training leaves out combinations of an animal and a texture class."""
    worlds: Annotated[tuple[str, ...], DATA, FIRST, GROWS] = ("four-textures", "eight-textures")
    """Further worlds, of n animals and n textures: with captions only, training has each animal in k of the n textures,
    for every even k below n."""
    more_scenes: Annotated[tuple[int, ...], DATA, FIRST, SCENES, GROWS] = (12_000,)
    """Further numbers of training images, with captions at the lowest coverage."""
    objects: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(1, MOST)] = (1, 2)
    """Numbers of objects in training images."""
    test_objects: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2,)
    """Numbers of objects in test images."""
    layout: Annotated[Literal["apart", "rows", "overlap"], DATA, FIRST] = "apart"
    """Where objects stand: side by side and above, in two rows, or in front of one another."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 4000
    """Training images of every run but those of `more_scenes`."""
    world: Annotated[str, DATA, FIRST] = "twelve-textures"
    """World, with at least twice as many animals and textures as --classes."""

    def check(self) -> None:
        super().check()
        if CLASSIFIER in self.models:
            raise UserError(
                f"--models {CLASSIFIER}: it learns from classes; give models that read captions, and --supervision "
                "classes for it"
            )
        if max(self.coverage) >= 1:
            raise UserError("--coverage 1 leaves no composition unseen for tests; give shares below 1")
        for share in self.coverage:
            round_coverage(share, self.classes)
        for name in self.worlds:
            if (n := sides(load_world(name))[0]) != sides(load_world(name))[1] or n % 2 or n < 4:
                raise UserError(f"--worlds {name} needs as many textures as animals, and an even number from 4 on")

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        place = {"world": self.world, "classes": self.classes, "images": self.train_scenes}
        for seed in self.seed_numbers:
            for share in self.coverage:
                for supervision in self.supervision:
                    for model in self.models if supervision != "classes" else (CLASSIFIER,):
                        yield self.run(model, seed, supervision, share, **place)
            for model in self.models:
                for world in self.worlds:
                    classes = sides(load_world(world))[0] // 2
                    for shown in range(1, classes):
                        share = round(shown / classes, 3)
                        yield self.run(model, seed, "captions", share, self.train_scenes, world, classes)
                for images in self.more_scenes:
                    yield self.run(model, seed, "captions", min(self.coverage), images, self.world, self.classes)

    def run(self, model: str, seed: int, supervision: str, share: float, images: int, world: str, classes: int) -> Arm:
        names = load_world(world)
        fields: dict[str, Any] = {"coverage": share, "classes": classes, "world": world, "train_scenes": images}
        fields["attributes"] = float(supervision == "captions")
        options = {"animals": names.animals} if supervision == "classes" else {}
        arm = self.at(model, seed, **fields, **options)
        labels = {"supervision": self.name_of(supervision, model), "world": world, "coverage": share, "images": images}
        shown = round_coverage(share, classes) * sides(names)[1] / classes
        return arm._replace(labels=labels | {"values": min(sides(names)), "combinations": round(shown, 2)})

    def name_of(self, supervision: str, model: str) -> str:
        """Return a supervision's name in tables, with the model's name if several models train on captions."""
        return supervision if supervision == "classes" or len(self.models) == 1 else f"{supervision}, {model}"

    def measurements(self, arm: Arm) -> Sequence[Recognition]:
        return (self.recognition(arm),)

    def recognition(self, arm: Arm) -> Recognition:
        """Return the measure of a run: recognition of animals, and of textures if its captions have them."""
        return Recognition(textures=str(arm.labels["supervision"]).startswith("captions"))

    def page(self, records: Records) -> Iterator[Part]:
        given = {item.name: getattr(records, item.name) for item in fields(records)}
        objects = Recognised(**given, measure_of=self.recognition)
        if not len(objects.scores):
            yield Paragraph("Nothing is measured yet: recognition is measured once all runs have ended.")
            return
        main = objects.where(world=self.world, images=self.train_scenes)
        words: dict[str, Any] = {"coverage": {share: f"{share:.0%}" for share in self.coverages}}
        words |= {"subset": {test: f"{kind} compositions" for kind in (SEEN, UNSEEN) for test in self.tests_of(kind)}}
        swaps = records.where(task="swap", subset=(*self.tests_of(SEEN), *self.tests_of(UNSEEN)))
        yield from claim_parts(list(self.verdicts(objects, swaps)) if CAPTIONS in self.supervision else [], CLAIMS)
        shown = main.where(task=(ANIMAL, COMPOSITION), subset=(*self.tests_of(SEEN), *self.tests_of(UNSEEN)))
        chances = {task: 100 * self.chance(self.world, task) for task in (ANIMAL, NAME, COMPOSITION)}
        look: dict[str, Any] = {"colour": "supervision", "stroke": "subset", "panels": ("task",), "words": words}
        yield Lines("diversity", shown, x="coverage", chances=chances, says=SAYS, **look)
        yield Heading("Robustness", ROBUSTNESS)
        header = ("supervision", "coverage", "effective robustness", "relative robustness")
        yield Rows("robustness", header, list(self.robustness(objects, main.labels("supervision"))))
        place = ("supervision", "world", "images", "coverage")
        yield Heading("Swaps", SWAPS)
        captioned = swaps.where(lambda arm: str(arm.labels["supervision"]).startswith(CAPTIONS))
        yield Table("swaps", captioned, place, ("subset",), intervals=True, words=words)
        yield Heading("All numbers", NUMBERS)
        own = [tuple(arm.labels[name] for name in place) for arm in main.arms]
        beside = {"NMI": {key: f"{self.nmi(key[-1]):.3f}" for key in own}}
        yield Table("recognition", objects, place, ("subset", "task"), intervals=True, words=words, beside=beside)

    def robustness(self, objects: Recognised, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield a row for each supervision and coverage: effective and relative robustness on animals."""
        from menagerie.studies.frame.estimate import estimate_or_dash
        from menagerie.studies.measures.robustness import effective_robustness, gain

        every = [{"supervision": CLASSES, "coverage": share} for share in self.coverages]
        base = [{"kind": kind} | its for kind in (SEEN, UNSEEN) for its in every]
        for name in (name for name in names if name != CLASSES):
            for share in self.coverages:
                seen, unseen = ({"kind": kind, "supervision": name, "coverage": share} for kind in (SEEN, UNSEEN))
                effective = self.delta(objects, ANIMAL, [seen, unseen, *base], effective_robustness(1))
                relative = self.delta(objects, ANIMAL, [unseen | {"supervision": CLASSES}, unseen], gain)
                yield name, f"{share:.0%}", *map(estimate_or_dash, (effective, relative))

    @property
    def coverages(self) -> list[float]:
        return sorted(self.coverage)

    @property
    def captions(self) -> str:
        """The supervision that claims are about: the captions of the first model."""
        return self.name_of(CAPTIONS, self.models[0])

    def tests_of(self, kind: str) -> tuple[str, ...]:
        return tuple(f"{kind}_{n}" for n in self.test_objects)

    def chance(self, world: str, task: str) -> float:
        """Return the chance of a task in a world, for the tests with the fewest objects."""
        return recognition_chances(*sides(load_world(world)), min(self.test_objects))[task]

    def nmi(self, share: float) -> float:
        """Return the normalised mutual information of animals and textures at a coverage with equal frequencies."""
        shown = round_coverage(share, self.classes) / self.classes
        return abs(-2 * log(shown) / sum(map(log, sides(load_world(self.world)))))

    def delta(self, objects: Recognised, task: str, groups: Groups, statistic: "Statistic") -> "Estimate | None":
        """Estimate a statistic of groups of records of a task, on seen or unseen compositions (`kind`). What a group
        doesn't name is as in the study's own world, on unseen compositions."""
        from menagerie.studies.frame.estimate import contrast

        place = {"world": self.world, "images": self.train_scenes, "supervision": self.captions, "kind": UNSEEN}
        places = [place | labels for labels in groups]
        tests = [self.tests_of(its.pop("kind")) for its in places]
        parts = [objects.where(task=task, subset=of, **its).points for its, of in zip(places, tests, strict=True)]
        return contrast(parts, statistic, signed=True)

    def verdicts(self, objects: Recognised, swaps: Records) -> Iterator[Verdict]:
        """Yield verdicts on the claims of both papers for which this study has runs."""
        for claim, row, groups, statistic, task, sign in (*self.of_coverage(objects), *self.of_worlds(objects)):
            delta = self.delta(objects, task, groups, statistic)
            verdict = make_verdict(claim, row, f"unseen compositions: {task}", delta, sign)
            yield if_learnt(verdict, self.least_learnt(swaps, groups))

    def least_learnt(self, swaps: Records, groups: Groups) -> float:
        """Return the least accuracy on swaps of seen compositions among the runs of groups that read textures."""
        place = {"world": self.world, "images": self.train_scenes, "supervision": self.captions}
        runs = [place | {name: value for name, value in its.items() if name != "kind"} for its in groups]
        read = [its for its in runs if str(its["supervision"]).startswith(CAPTIONS)]
        found = [swaps.where(subset=self.tests_of(SEEN), **its).estimates(("task",)) for its in read]
        return min((its.value for of_run in found for its in of_run.values()), default=0.0)

    def of_coverage(self, objects: Recognised) -> Iterator[Tested]:
        from menagerie.studies.measures import robustness as its

        shares = self.coverages
        every, several = [{"coverage": share} for share in shares], len(shares) > 1
        if several:
            slope = its.slope_along([self.nmi(share) for share in shares])
            yield DIVERSE, "greatest coverage above the least", [every[0], every[-1]], its.gain, COMPOSITION, 1
            yield INFORMATIVE, f"by {its.STEP:g} of NMI", every, slope, COMPOSITION, -1
        if CLASSES in self.supervision:
            own, base = (
                {kind: [place | {"kind": kind, "supervision": name} for place in every] for kind in (SEEN, UNSEEN)}
                for name in (self.captions, CLASSES)
            )
            both = [*base[UNSEEN], *own[UNSEEN]]
            yield RELATIVE, "captions above classes, all coverages", both, its.mean_gain, ANIMAL, 1
            if several:
                groups = [*own[SEEN], *own[UNSEEN], *base[SEEN], *base[UNSEEN]]
                above = its.effective_robustness(len(every))
                yield EFFECTIVE, "captions above the fit of classes", groups, above, ANIMAL, 1
        if self.more_scenes and several:
            images = max(self.more_scenes)
            row = f"coverage {shares[1]:.0%} in {self.train_scenes} images above {shares[0]:.0%} in {images}"
            both = [{"coverage": shares[0], "images": images}, {"coverage": shares[1]}]
            yield QUANTITY, row, both, its.gain, COMPOSITION, 1
        if (jump := its.jump_along(shares)) is not None:
            yield JUMP, f"rise by {its.STEP:.0%} of coverage there above that elsewhere", every, jump, COMPOSITION, 1

    def of_worlds(self, objects: Recognised) -> Iterator[Tested]:
        """Yield the claims of Uselis et al. on worlds of n animals and n textures, with each animal in k textures."""
        from menagerie.studies.measures.robustness import gain, gain_from

        counts = self.square_worlds(objects)
        for n, (world, ks) in counts.items():
            if len(ks) > 1:
                both = [{"world": world, "combinations": k} for k in (ks[0], ks[-1])]
                yield MORE_COMBINATIONS, f"n = {n}: k = {ks[-1]:g} above k = {ks[0]:g}", both, gain, COMPOSITION, 1
        if len(counts) > 1:
            few, many = (counts[n] for n in (min(counts), max(counts)))
            for k in [k for k in few[1] if k in many[1]][:1]:
                row = f"k = {k:g}: n = {max(counts)} above n = {min(counts)}, of the way from chance"
                both = [{"world": world, "combinations": k} for world, _ in (few, many)]
                above = gain_from([self.chance(world, COMPOSITION) for world, _ in (few, many)])
                yield MORE_VALUES, row, both, above, COMPOSITION, 1

    def square_worlds(self, objects: Recognised) -> dict[int, tuple[str, list[float]]]:
        """Map the number of values of a factor to its world, and to the numbers of compositions per value, rising."""
        found: dict[int, tuple[str, list[float]]] = {}
        for world in dict.fromkeys((*self.worlds, self.world)):
            arms = objects.where(world=world, images=self.train_scenes, supervision=self.captions).arms
            if arms and len({*sides(load_world(world))}) == 1:
                found[arms[0].labels["values"]] = world, sorted({arm.labels["combinations"] for arm in arms})
        return dict(sorted(found.items()))


def sides(world: World) -> tuple[int, int]:
    """Return the numbers of animals and of textures."""
    return len(world.animals), len(world.textures)


DIVERSE = "Abbasi et al. 2024: more diverse training generalises better to unseen compositions"
INFORMATIVE = "Abbasi et al. 2024: the less animals tell about their textures, the better"
RELATIVE = "Abbasi et al. 2024: language has more relative robustness than supervised classes"
EFFECTIVE = "Abbasi et al. 2024: language has more effective robustness than supervised classes"
MORE_COMBINATIONS = "Uselis et al. 2025: more combinations of each value help"
MORE_VALUES = "Uselis et al. 2025: more values of each concept help"
QUANTITY = "Uselis et al. 2025: the diversity of data helps, not their number"
JUMP = "Uselis et al. 2025: accuracy jumps between 30 and 40 % coverage"
SAYS = """Accuracy (%) by coverage, the share of all combinations of animal and texture that training showed, in equally
many images and steps. An object is right if its class scores above all classes that the image doesn't show."""
ROBUSTNESS = """Accuracy on animals in unseen compositions (%), both as Taori et al. 2020 define them. Relative: points
above classes at the same coverage. Effective: points above what accuracy on seen compositions predicts, by a line in
log-odds through the classifiers of all coverages."""
CLAIMS = """A difference is over the seeds that all its runs have. The papers' numbers are of other images, models and
sizes, and with our number of steps training may end before curves are flat."""
SWAPS = """Accuracy (%) on swaps; chance is 50. A model can't carry over to unseen compositions what it hasn't learnt of
seen ones."""
NUMBERS = f"""Accuracy (%). {ANIMAL}: one of all animals, by captions of the kind that training had, in the object's own
texture. {NAME}: by captions without textures. {COMPOSITION}: one of all animals in all textures. NMI: the normalised
mutual information of animals and textures in training, which coverage determines, so that their effects can't be
separated."""

PRESETS = {
    "smoke": Diversity(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24, "recipe": Recipe(steps=30, batch=32, warmup=5)},
        **{"classes": 4, "coverage": (0.25, 0.75), "worlds": ("four-textures",), "more_scenes": (360,)},
        **{"train_scenes": 240, "views": 4},
    ),
    # Captions that leave objects out teach captions of one object, by which animals are recognised.
    "laptop": Diversity(
        **LEARNS | {"recipe": replace(LEARNS["recipe"], steps=8000)},
        **{"classes": 4, "coverage": (0.25, 0.5, 0.75), "worlds": ("four-textures",), "more_scenes": (24_000,)},
        **{"train_scenes": 8000, "views": 64, "base": MultiObjectRecipe(mentioned=0.5)},
    ),
    "shallow": Diversity(**SHALLOW | {"world": "twelve-textures", "recipe": Recipe(steps=1500)}),
}

if __name__ == "__main__":
    main(PRESETS)
