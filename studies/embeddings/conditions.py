"""The conditions on an ideal CLIP, tested on a trained scorer: the share of scenes in which each holds, and in which
all hold.

Kang et al. 2025 (Is CLIP ideal? No. Can we fix it? Yes!) state them as inequalities between scores. Here each names
pairs of texts of a scene of which the first has to score above the second, so that scorers without vectors can be
tested too. Of scorers with one vector for each image and each text, conditions between two images or two texts are also
tested.

The texts of a scene have names. For a scene of a red cat on the left and a white dog on the right, where a pig and a
bear are absent, `one` is "a red cat" and `other` is "a white dog".
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num

from menagerie.envs.core.errors import UserError
from menagerie.studies.embeddings.alignment import units
from menagerie.studies.embeddings.axes import ProbeAxes
from menagerie.studies.embeddings.measured import Measured, no_number, share_right

CATEGORISATION, BINDING, PLACE, NEGATION = "categorisation", "attribute binding", "place", "negation"
CONDITIONS = (CATEGORISATION, BINDING, PLACE, NEGATION)
ALL, EVERY, INDEPENDENT = "all", "every part", "if independent"
SWAP, MIRROR = "swap", "mirror"
SAYS = {
    "one": "a red cat",
    "other": "a white dog",
    "one absent": "a red pig",
    "other absent": "a white bear",
    "one wrong": "a white cat",
    "other wrong": "a red dog",
    "both": "a red cat and a white dog",
    "both swapped": "a white cat and a red dog",
    "placed": "a white dog to the right of a red cat",
    "turned": "a red cat to the right of a white dog",
    "one, not absent": "a red cat and no white bear",
    "one, not other": "a red cat and no white dog",
    "other, not absent": "a white dog and no red pig",
    "other, not one": "a white dog and no red cat",
    "no absent": "no white bear",
    "no other": "no white dog",
    "no absent one": "no red pig",
    "no one": "no red cat",
}
"""Map the name of each text to that text for the scene of the module's docstring, as a template without relations words
it. A template with relations also states one in "both" and "both swapped"."""


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
OTHER_ATTRIBUTES = "images: other attributes nearer than another object"
OTHER_VIEW = "images: another view nearer than the swap"
NEGATED = ("one", "other", "no one", "no other")  # texts of the conditions between texts
Scores = Mapping[str, Float[np.ndarray, "v p q"]]
"""Map the name of a text to the score of each scene with its text of that name."""


class ConditionResult(NamedTuple):
    """In which share of scenes a part of a condition holds, or by what margin."""

    condition: str
    part: str
    measure: str
    """holds: the share of scenes; margin: how far the texts score above the others, on average."""
    measured: Measured


def by_scores(scores: Scores, axes: ProbeAxes, lacking: Mapping[str, str]) -> Iterator[ConditionResult]:
    """Yield the share of scenes in which each part holds, with its margin; in which each condition holds; and in which
    all conditions hold that can be tested. Also yield what the last share would be if conditions were independent.

    `lacking` has the reasons why conditions can't be tested, by condition.
    """
    asked = [part for part in PARTS if part.condition not in lacking]
    holds = {part: scenes_in_which_holds(scores, part, axes) for part in asked}
    for part in asked:
        yield ConditionResult(part.condition, part.name, "holds", Measured(holds[part].mean(), chance_of_parts([part])))
        yield ConditionResult(part.condition, part.name, "margin", Measured(mean_margin(scores, part), 0.0))
    shares = {}
    for name in CONDITIONS:
        parts = [part for part in asked if part.condition == name]
        if not parts:
            yield ConditionResult(name, EVERY, "holds", no_number(lacking[name]))
            continue
        shares[name] = float(np.all([holds[part] for part in parts], 0).mean())
        yield ConditionResult(name, EVERY, "holds", Measured(shares[name], chance_of_parts(parts)))
    if asked:
        together = np.all(list(holds.values()), 0).mean()
        yield ConditionResult(ALL, EVERY, "holds", Measured(together, chance_of_parts(asked)))
        yield ConditionResult(ALL, INDEPENDENT, "holds", Measured(prod(shares.values()), None))


def scenes_in_which_holds(scores: Scores, part: ConditionPart, axes: ProbeAxes) -> Bool[np.ndarray, "v p q"]:
    """Return in which scenes a part holds. With a tie between two scores it doesn't."""
    found = np.all([scores[one] > scores[other] for one, other in part.above], 0)
    if part.counterfactual == SWAP:
        return found & found[:, :, axes.swaps]
    if part.counterfactual == MIRROR:
        return found & found[:, axes.mirrors][:, :, axes.swaps]
    return found


def mean_margin(scores: Scores, part: ConditionPart) -> float:
    return float(np.mean([scores[one] - scores[other] for one, other in part.above]))


def chance_of_parts(parts: Iterable[ConditionPart]) -> float:
    """Return the share of scenes in which all parts hold if every order of the scores is equally likely.

    A text is above k others with probability 1 / (k + 1). Raises `ValueError` if a text has to be below several others,
    or above one and below another: such comparisons depend on one another.
    """
    pairs = [
        ((scene, one), (scene, other))
        for part in parts
        for scene in ("", *filter(None, [part.counterfactual]))
        for one, other in part.above
    ]
    upper, lower = zip(*pairs, strict=True)
    if len({*lower}) < len(lower) or {*lower} & {*upper}:
        raise ValueError("a text has to be above another, and below a third")
    return prod(1 / (1 + below) for below in Counter(upper).values())


def by_embeddings(
    images: Num[np.ndarray, "v p q d"], texts: Mapping[str, Num[np.ndarray, "v p q d"]], axes: ProbeAxes
) -> Iterator[ConditionResult]:
    """Yield the conditions between images: each image is compared with images of the next view. If `texts` are given,
    yield the conditions between texts of negation too. A tie counts one half."""
    axes.check(images, least=2)
    x, swaps, mirrors = units(images), axes.swaps, axes.mirrors
    following = np.roll(x, -1, 0)
    new = {side: following[:, replacing_pairs(axes, side)] for side in (0, 1)}
    scene, swap, mirror = (
        cosines(x, y) for y in (following, following[:, :, swaps], following[:, mirrors][:, :, swaps])
    )
    other = cosines(x, new[0][:, :, swaps])
    stays, moves = cosines(x, new[1]), cosines(x, following[:, mirrors[replacing_pairs(axes, 1)]][:, :, swaps])
    pairs = {
        (CATEGORISATION, OTHER_ATTRIBUTES): (swap, other),
        (BINDING, OTHER_VIEW): (scene, swap),
        (PLACE, "images: another view nearer than the mirror"): (scene, mirror),
        (PLACE, "images: the same place beside another object nearer than another place"): (stays, moves),
    }
    if texts:
        one, two, no_one, no_two = (units(texts[name]) for name in NEGATED)
        pairs[NEGATION, "texts: another object nearer than the denial of this one"] = (
            cosines(one, two),
            cosines(one, no_one),
        )
        pairs[NEGATION, "texts: two denials nearer than two affirmations"] = cosines(no_one, no_two), cosines(one, two)
    for (condition, name), (near, far) in pairs.items():
        yield ConditionResult(condition, name, "holds", share_right(near - far))
        yield ConditionResult(condition, name, "margin", Measured((near - far).mean(), 0.0))


def cosines(x: Float[np.ndarray, "v p q d"], y: Float[np.ndarray, "v p q d"]) -> Float[np.ndarray, "v p q"]:
    return (x * y).sum(-1)


def replacing_pairs(axes: ProbeAxes, side: int) -> Num[np.ndarray, " p"]:
    """Return, for each pair of animals, the pair with the left (0) or right (1) replaced by the next other animal."""
    number = {tuple(pair): p for p, pair in enumerate(axes.animals.tolist())}
    kinds, found = axes.kinds[0], []
    if kinds < 3:
        raise UserError(
            "the probe set has two animals, and a third is needed to compare with; make one with more animals"
        )
    for pair in axes.animals.tolist():
        others = ((pair[side] + step) % kinds for step in range(1, kinds))
        pair[side] = next(animal for animal in others if animal not in pair)
        found.append(number[tuple(pair)])
    return np.array(found)
