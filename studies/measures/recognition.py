"""What a scorer recognises in the images of tests: which animals there are, and which animals in which textures.

Each object is a record, which is right if the object's class scores above all classes that the image doesn't show. The
texts are captions of one object on the image's background, worded as in training.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.studies.frame.measure import Measure, Row, read_measured
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.data import Material

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.generators.benchmarks.split_tests import SplitTests
    from menagerie.models.scorer import Scorer
    from menagerie.studies.frame.arm import Arm

ANIMAL, NAME, COMPOSITION = "animal", "animal by its name alone", "animal and texture"
Class = tuple[str, str]
"""An animal and a texture; "" leaves the texture out."""


@dataclass(frozen=True)
class Recognition(Measure):
    """A row for each object and task, whose value is 1 if the object is recognised, less for a tie, else 0. Tasks are
    `ANIMAL`, of all animals, and with `textures` also `COMPOSITION`, of all animals in all textures, and `NAME`."""

    textures: bool = True
    """Whether captions of training name textures. If so, no caption named an animal alone, and the captions of all
    animals name the object's own texture; the task `NAME` tests the animal's name alone."""

    def rows(self, scorer: "Scorer", material: Material, seed: int) -> Iterator[Row]:
        words, spec = material.words, CaptionSpec(material.train.split.recipe)
        names = [(animal, "") for animal in words.animals]
        compositions = list(product(words.animals, words.textures)) if self.textures else []
        for test, benchmark in material.tests.items():
            every = class_scores(scorer, benchmark, spec, names + compositions) if test != "validation" else ()
            for scene, scores in every:
                yield from ({"subset": test} | row for row in self.of_scene(scene, names, compositions, scores))

    def of_scene(
        self, scene: Scene, names: Sequence[Class], compositions: Sequence[Class], scores: Float[np.ndarray, " classes"]
    ) -> Iterator[Row]:
        """Yield the rows of one image. `scores` are its scores with the names, then with the compositions."""
        from menagerie.generators.splits.multi_object import MultiObjectRecipe

        alone, composed = scores[: len(names)], scores[len(names) :]
        about = {"scene": scene.key, "animals": MultiObjectRecipe.cluster(scene)}
        named = [(obj.animal, obj.texture) for obj in scene.objects]
        shown = np.isin([name for name, _ in names], [animal for animal, _ in named])
        both = np.array([pair in named for pair in compositions], bool)
        for animal, texture in named:
            own, row = names.index((animal, "")), {"caption": f"{texture} {animal}"} | about
            answers = {ANIMAL: (alone, own, shown)}
            if self.textures:
                its = compositions.index((animal, texture))
                in_texture = composed.reshape(len(names), -1)[:, its % (len(composed) // len(names))]
                answers = {ANIMAL: (in_texture, own, shown), NAME: answers[ANIMAL], COMPOSITION: (composed, its, both)}
            for task, (values, place, true) in answers.items():
                yield {"task": task, "value": recognition_value(float(values[place]), values, true)} | row


def recognition_value(own: float, scores: Float[np.ndarray, " n"], shown: Bool[np.ndarray, " n"]) -> float:
    """Return the probability that a class scores above all that aren't shown, if ties are broken at random."""
    others = scores[~shown]
    return 0.0 if (others > own).any() else 1 / (1 + int((others == own).sum()))


def class_scores(
    scorer: "Scorer", test: "SplitTests", spec: CaptionSpec, classes: Sequence[Class]
) -> Iterator[tuple[Scene, Float[np.ndarray, " classes"]]]:
    """Yield each scene of a test, with the scores of its image with all classes."""
    from menagerie.generators.benchmarks.matrix import Pool
    from menagerie.models.evaluation.scoring import encode_blocks, score_pool

    scenes, encode = test.data.records.scenes, partial(encode_blocks, scorer, test.images)
    by_background: dict[str, list[int]] = defaultdict(list)
    for number, scene in enumerate(scenes):
        by_background[scene.background].append(number)
    for numbers in by_background.values():
        first = scenes[numbers[0]]
        objects = [Object(animal, texture, first.objects[0].slot) for animal, texture in classes]
        texts = tuple((spec.caption(first, (obj,)),) for obj in objects)
        matrix = score_pool(scorer, Pool("", (), tuple(numbers), texts, ()), encode)
        yield from zip((scenes[number] for number in numbers), matrix, strict=True)


def recognition_chances(animals: int, textures: int, objects: int) -> dict[str, float]:
    """Return the chance of each task on images of `objects` different objects."""
    of_animals = 1 / (animals - objects + 1)
    return {ANIMAL: of_animals, NAME: of_animals, COMPOSITION: 1 / (animals * textures - objects + 1)}


@dataclass(frozen=True)
class Recognised(Records):
    """The records of `Recognition`, which a page shows in place of those of the tests' own tasks."""

    measure_of: "Callable[[Arm], Recognition]" = lambda arm: Recognition()

    @cached_property
    def points(self) -> "pd.DataFrame":
        """A row for each object of each finished arm that is measured, with its labels."""
        import pandas as pd

        found = [(arm, read_measured(self.folder(arm), self.measure_of(arm))) for arm, _ in self.results]
        parts = [self._narrow(pd.DataFrame(rows)).assign(**arm.place) for arm, rows in found if rows]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    @cached_property
    def scores(self) -> "pd.DataFrame":
        """A row for each finished arm, test and task: labels, accuracy, n."""
        return self._scores_of_points()
