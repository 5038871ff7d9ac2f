"""The conditions on an ideal CLIP, as a measure of finished runs: the share of a probe set's scenes in which each
holds, and in which all hold.

Kang et al. 2025 (Is CLIP ideal? No. Can we fix it? Yes!) state them as inequalities between scores. Here each names
pairs of texts of a scene (`named_texts`) of which the first has to score above the second, so that scorers without
vectors can be tested too. Of scorers with one vector for each image and each text, conditions between two images or two
texts are also tested.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num, UInt8
from torch import Tensor

from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captions.templates import (
    Caption,
    Content,
    Template,
    phrasing_number,
    template_of,
    write_caption,
)
from menagerie.generators.splits.probe_scenes import objects_from_left, quartet
from menagerie.models.evaluation.scoring import score_items
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures import probe_set as probed
from menagerie.studies.measures.geometry import units
from menagerie.studies.measures.probe_set import Measured, ProbeAxes, no_number, share_right

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

LEFT, RIGHT = RELATIONS["left/right"].predicates
ABSENT_SEED = 0  # of the draw of absent animals
CATEGORISATION, BINDING, PLACE, NEGATION = "categorisation", "attribute binding", "place", "negation"
CONDITIONS = (CATEGORISATION, BINDING, PLACE, NEGATION)
ALL, EVERY, INDEPENDENT = "all", "every part", "if independent"
SWAP, MIRROR = "swap", "mirror"
OTHER_ATTRIBUTES = "images: other attributes nearer than another object"
OTHER_VIEW = "images: another view nearer than the swap"
SAME_PLACE = "images: the same place beside another object nearer than another place"
NEGATED = ("one", "other", "no one", "no other")  # texts of the conditions between texts
Named = dict[str, Caption]
Scores = Mapping[str, Float[np.ndarray, "v p q"]]
"""By the name of a text, the score of each scene with its text of that name."""


class ConditionPart(NamedTuple):
    """One part of a condition: texts that have to score above others."""

    condition: str
    name: str
    above: tuple[tuple[str, str], ...]
    """Pairs of names: the first text has to score above the second."""
    counterfactual: str = ""
    """The other scene, swap or mirror, for which the same must hold with its own texts; empty: none."""

    @property
    def texts(self) -> set[str]:
        return {name for both in self.above for name in both}


PARTS = (
    ConditionPart(CATEGORISATION, "present above absent", (("one", "one absent"), ("other", "other absent"))),
    ConditionPart(BINDING, "right attribute above the other's", (("one", "one wrong"), ("other", "other wrong"))),
    ConditionPart(BINDING, "caption above swap, and in the swap", (("both", "both swapped"),), SWAP),
    ConditionPart(PLACE, "right order, and in the mirror", (("placed", "turned"),), MIRROR),
    ConditionPart(
        NEGATION,
        "absent negated, beside what is there",
        (("one, not absent", "one, not other"), ("other, not absent", "other, not one")),
    ),
    ConditionPart(NEGATION, "absent negated, alone", (("no absent", "no other"), ("no absent one", "no one"))),
)


def named_texts_of_all(scenes: Sequence[Scene], template: Template, seed: int) -> list[Named]:
    animals = sorted({obj.animal for scene in scenes for obj in scene.objects})
    return [named_texts(scene, animals, template, seed) for scene in scenes]


def named_texts(scene: Scene, animals: Sequence[str], template: Template, seed: int) -> Named:
    """Return the named texts of a scene; comments have them for a red cat on the left and a white dog on the right,
    where a pig and a bear are absent. Absent animals are the same for a scene, its swap and its mirror."""
    number = phrasing_number(min(quartet(scene)) if len(template.phrasings) > 1 else scene, seed, template)

    def say(objects: tuple[Object, ...], *predicates: str, denied: tuple[Object, ...] = ()) -> Caption:
        return write_caption(Content(scene, objects, predicates, denied, number), template)

    one, other = objects_from_left(scene)
    new_one, new_other = absent_pair(one, other, animals)
    swapped = one._replace(texture=other.texture), other._replace(texture=one.texture)
    joint = (LEFT,) * template.relation  # a template with relations states one in "both" and "both swapped" too
    return {
        "one": say((one,)),  # a red cat
        "other": say((other,)),  # a white dog
        "one absent": say((new_one,)),  # a red pig
        "other absent": say((new_other,)),  # a white bear
        "one wrong": say(swapped[:1]),  # a white cat
        "other wrong": say(swapped[1:]),  # a red dog
        "both": say((one, other), *joint),  # a red cat and a white dog
        "both swapped": say(swapped, *joint),  # a white cat and a red dog
        "placed": say((other, one), RIGHT),  # a white dog to the right of a red cat
        "turned": say((one, other), RIGHT),  # a red cat to the right of a white dog
        "one, not absent": say((one,), denied=(new_other,)),  # a red cat and no white bear
        "one, not other": say((one,), denied=(other,)),  # a red cat and no white dog
        "other, not absent": say((other,), denied=(new_one,)),  # a white dog and no red pig
        "other, not one": say((other,), denied=(one,)),  # a white dog and no red cat
        "no absent": say((), denied=(new_other,)),  # no white bear
        "no other": say((), denied=(other,)),  # no white dog
        "no absent one": say((), denied=(new_one,)),  # no red pig
        "no one": say((), denied=(one,)),  # no red cat
    }


def absent_pair(one: Object, other: Object, animals: Sequence[str]) -> tuple[Object, Object]:
    """Return the two objects with their animals replaced by two that the scene doesn't show, of at least four."""
    both = sorted((one.animal, other.animal))
    left = [name for name in animals if name not in both]
    first, second = generator(ABSENT_SEED, "absent", *both).permutation(len(left))[:2]
    new = dict(zip(both, (left[first], left[second]), strict=True))
    return one._replace(animal=new[one.animal]), other._replace(animal=new[other.animal])


@dataclass(frozen=True)
class Conditions(probed.ProbeMeasure):
    """Rows of (by, condition, part, measure, value, chance, refused): by scores, and by embeddings if the scorer has
    one vector for each image and each text. The measure "holds" is the share of scenes, "margin" (of embeddings) by how
    much the first is nearer, on average. Captions are worded as in the scorer's training; a condition is refused if its
    texts have words that no training text has."""

    version: ClassVar[int] = 2  # ties between embeddings

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        data, _ = self.opened(scorer)
        axes, numbers = probed.probe_axes(data)
        recipe = material.train.split.recipe
        texts = named_texts_of_all(data.records.scenes, template_of(recipe), recipe["seed"])
        unsaid = unaskable_conditions(texts, material.texts)
        names = list(dict.fromkeys(name for p in PARTS if p.condition not in unsaid for name in sorted(p.texts)))
        bench = ProbeScenes(data, [tuple(its[name] for name in names) for its in texts])
        scores = np.concatenate(score_items(scorer, bench))[numbers]
        yield from by_scores({name: scores[..., k] for k, name in enumerate(names)}, axes, unsaid)
        if probed.has_vectors(scorer):
            asked = {name: [its[name] for its in texts] for name in NEGATED if NEGATION not in unsaid}
            of_texts = {name: probed.text_layers(scorer, its)[probed.VECTOR][numbers] for name, its in asked.items()}
            yield from by_embeddings(probed.image_layers(scorer, data)[probed.VECTOR][numbers], of_texts, axes)


class ProbeScenes(Benchmark):
    """A benchmark of the scenes of a probe set, each with its texts."""

    def __init__(self, data: "SplitDataset", texts: Sequence[tuple[Caption, ...]]) -> None:
        self.data, self.name = data, data.name
        keys = (scene.key for scene in data.records.scenes)
        self.items = [Item(key, "", (k,), its) for k, (key, its) in enumerate(zip(keys, texts, strict=True))]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        return self.data.images(numbers)


def unaskable_conditions(texts: Sequence[Named], known: Sequence[str]) -> dict[str, str]:
    """Return the conditions whose texts have words that no training text has, with the words as the reason."""
    found = {}
    for condition in CONDITIONS:
        names = {name for part in PARTS if part.condition == condition for name in part.texts}
        if reason := probed.unknown_words_reason({its[name].text for its in texts for name in names}, known):
            found[condition] = reason
    return found


def by_scores(scores: Scores, axes: ProbeAxes, lacking: Mapping[str, str]) -> Iterator[Row]:
    """Yield the share of scenes in which each part holds, each condition, and all conditions that can be tested; and
    what the last share would be if conditions were independent. `lacking` says by condition why it can't be tested."""

    def row(condition: str, part: str, its: Measured) -> Row:
        return its.row(by="scores", condition=condition, part=part, measure="holds")

    def shared(parts: Sequence[ConditionPart]) -> Measured:
        return Measured(float(np.all([holds[part] for part in parts], 0).mean()), chance_of_parts(parts))

    holds = {part: scenes_in_which_holds(scores, part, axes) for part in PARTS if part.condition not in lacking}
    yield from (row(part.condition, part.name, shared([part])) for part in holds)
    shares = {
        name: no_number(lacking[name]) if name in lacking else shared([its for its in holds if its.condition == name])
        for name in CONDITIONS
    }
    yield from (row(name, EVERY, its) for name, its in shares.items())
    if holds:
        yield row(ALL, EVERY, shared([*holds]))
        yield row(ALL, INDEPENDENT, Measured(prod(its.value for its in shares.values() if not its.refused), None))


def scenes_in_which_holds(scores: Scores, part: ConditionPart, axes: ProbeAxes) -> Bool[np.ndarray, "v p q"]:
    """Return in which scenes a part holds. With a tie between two scores it doesn't."""
    found = np.all([scores[one] > scores[other] for one, other in part.above], 0)
    others = {SWAP: found[:, :, axes.swaps], MIRROR: found[:, axes.mirrors][:, :, axes.swaps]}
    return found & others.get(part.counterfactual, found)


def chance_of_parts(parts: Iterable[ConditionPart]) -> float:
    """Return the share of scenes in which all parts hold if every order of the scores is equally likely. A text is
    above k others with probability 1 / (k + 1). No text of `PARTS` has to be below several others, or above one and
    below another: such comparisons would depend on one another."""
    upper = Counter(
        (scene, one) for part in parts for scene in ("", *filter(None, [part.counterfactual])) for one, _ in part.above
    )
    return prod(1 / (1 + below) for below in upper.values())


def by_embeddings(
    images: Num[np.ndarray, "v p q d"], texts: Mapping[str, Num[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[Row]:
    """Yield the conditions between images: each image is compared with images of the next view. If `texts` are given,
    yield the conditions between texts of negation too. A tie counts one half."""
    axes.check(images, least=2)
    x = units(images)
    following = np.roll(x, -1, 0)
    swap, mirror = following[:, :, axes.swaps], following[:, axes.mirrors][:, :, axes.swaps]
    left, right = (replacing_pairs(axes, side) for side in (0, 1))
    moved = following[:, axes.mirrors[right]][:, :, axes.swaps]
    # The condition, its name, and two embeddings of which the first has to be nearer.
    pairs = [
        (CATEGORISATION, OTHER_ATTRIBUTES, x, swap, following[:, left][:, :, axes.swaps]),
        (BINDING, OTHER_VIEW, x, following, swap),
        (PLACE, "images: another view nearer than the mirror", x, following, mirror),
        (PLACE, SAME_PLACE, x, following[:, right], moved),
    ]
    if texts:
        one, two, no_one, no_two = (units(texts[name]) for name in NEGATED)
        pairs.append((NEGATION, "texts: another object nearer than the denial of this one", one, two, no_one))
    margins = [(name, part, (z * near).sum(-1) - (z * far).sum(-1)) for name, part, z, near, far in pairs]
    if texts:
        denials = (no_one * no_two).sum(-1) - (one * two).sum(-1)
        margins.append((NEGATION, "texts: two denials nearer than two affirmations", denials))
    for condition, part, margin in margins:
        place = {"by": "embeddings", "condition": condition, "part": part}
        yield share_right(margin).row(**place, measure="holds")
        yield Measured(margin.mean(), 0.0).row(**place, measure="margin")


def replacing_pairs(axes: ProbeAxes, side: int) -> Int[np.ndarray, " p"]:
    """Return, for each pair of animals, the pair with the left (0) or right (1) replaced by the next other animal."""
    number = {tuple(pair): p for p, pair in enumerate(axes.animals.tolist())}
    kinds, found = axes.kinds[0], []
    for pair in axes.animals.tolist():
        others = ((pair[side] + step) % kinds for step in range(1, kinds))
        pair[side] = next(animal for animal in others if animal not in pair)
        found.append(number[tuple(pair)])
    return np.array(found)
