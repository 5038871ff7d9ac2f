"""Checks that nobody can tell from the texts alone, without the picture, which of them is true.

A negative must have its caption's order and phrasing: once the exchanged words are masked, both texts are equal. And a
small classifier, which sees both texts and no picture, must not tell the true one from the false one. It is a ridge
regression on the difference of both texts' features, fitted on half of a test's animal pairs and scored on the other
half, and vice versa. There are two classifiers, with different features; for each, a random draw of the split (a coin,
see `statistics`) should make its answers right in half of the cases:

- `order`: neighbouring words, with all animals and all sizes masked, and which animal and which texture comes first.
  The draw is that of the order of mention, for each scene. If captions mention things in the order of their slots, it
  is the draw of the places, which in `unseen_order` and `seen_order` is made once for each pair;
- `words`: neighbouring words as they are ("red cat"). The draw is that of the answer. Dependence splits are excluded,
  because there an animal's texture is the same throughout a test, by design.

If the draw is fair, a classifier fitted on other pairs is right and wrong equally often, so the same bound as for
balance holds (see `statistics`): both halves of both classifiers in all tests form one test.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from menagerie.envs.scene import Scene
from menagerie.generators.audit.balance import CONTRAST_RATE, compared
from menagerie.generators.audit.findings import Finding, first, rules_for
from menagerie.generators.audit.statistics import (
    MENTION,
    Coin,
    Contrast,
    answer_coin,
    bound,
    coin_of,
    is_open,
)
from menagerie.generators.captions.phrases import plural
from menagerie.generators.storage.split_file import Records, Split
from menagerie.generators.vocabulary import Vocabulary

RIDGE = 1.0  # features are counts
NO_DIFFERENCE = 1e-9  # scores closer than this are equal, so that the classifier guesses

# Returns the features of a text.
Features = Callable[[str], Sequence[Hashable]]


class Pair(NamedTuple):
    """A scene, its true text and its false one."""

    scene: Scene
    true: str
    false: str


def names_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of `names` as whole words, longer names first."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\b")


@cache
def animals_in(words: Vocabulary) -> re.Pattern[str]:
    """A pattern that matches any animal, in singular or plural."""
    return names_pattern({*words.animals, *map(plural, words.animals)})


@cache
def exchanged_in(words: Vocabulary, kind: str) -> re.Pattern[str]:
    """A pattern that matches the words that hard negatives exchange in a kind of split."""
    both = {*words.animals, *words.textures, *words.sizes}
    return names_pattern(both if kind == "spatial" else words.textures)


def check_order(split: Split) -> Iterator[Finding]:
    """Check that a negative equals its caption in everything but the exchanged words."""
    kind = split.recipe["kind"]
    if kind == "counting":  # a check of its own compares both texts
        return
    pattern = exchanged_in(split.vocabulary, kind)
    # If textures are left out of some captions, whole phrases are exchanged: "a red cat" and "a dog".
    runs = re.compile(r"\*(?: \*)+" if kind == "spatial" and split.recipe.get("attributes", 1.0) < 1 else r"(?!)")

    def rest(text: str) -> str:
        return re.sub(r"\ban\b", "a", runs.sub("*", pattern.sub("*", text)))

    for name, r in split.subsets.items():
        rows = zip(r.scenes, r.captions, r.negatives, strict=True)
        strange = (f"{s.key}: {c!r} and {n!r}" for s, c, n in rows if n and rest(c) != rest(n))
        yield Finding(f"every negative of {name} has the order and the words of its caption", *first(strange))


def check_cues(split: Split) -> Iterator[Finding]:
    """Check that a classifier that sees only the texts of a test is right as often as wrong."""
    contrasts, shares = [], []
    for name, records in split.subsets.items():
        for what, coin, features in classifiers(split, name):
            halves = scored(pairs_of(split, name, records, coin), coin, features, f"{name}, {what}")
            contrasts += halves
            if tested := sum(half.records for half in halves):
                shares.append(f"{name} {what} {100 * sum(accuracy(half) for half in halves) / tested:.1f} %")
    limit = bound(len(contrasts), CONTRAST_RATE)
    strongest = max(contrasts, key=lambda contrast: contrast.strength, default=None)
    detail = f"accuracy without a picture: {', '.join(shares)}" if shares else "no texts to tell apart"
    claim = "no text alone gives away whether it is true"
    if strongest is None or strongest.strength <= limit:
        yield Finding(claim, True, detail)
    else:
        beyond = f"{strongest.subset}: {strongest.strength:.1f} above the bound {limit:.1f}"
        yield Finding(claim, False, f"{beyond}; {detail}")


def accuracy(half: Contrast) -> float:
    """The number of records on which a classifier is right; records on which it guesses count half."""
    return (half.records + half.total) / 2


def classifiers(split: Split, name: str) -> Iterator[tuple[str, Coin, Features]]:
    """For each classifier of a test, its name, the random draw (`Coin`) whose result it must not predict, and its
    features."""
    if name == "train":
        return
    kind, words = split.recipe["kind"], split.vocabulary
    drawn = split.recipe.get("mention_order", "") in ("", "random")
    if kind != "counting" and (coin := MENTION if drawn else coin_of("p", kind, name)) is not None:
        yield "order", coin, lambda text: order_features(text, words)
    if kind == "counting":
        yield "words", ANY_NUMBER, lambda text: word_features(text, words)
    elif (coin := answer_coin(kind, name)) is not None:
        yield "words", coin, lambda text: word_features(text, words)


# Any number could have been the true one and any other the negative's.
ANY_NUMBER = Coin(lambda scene: (scene.background, scene.view, *scene.things[0][:2]), lambda scene: scene)


def pairs_of(split: Split, name: str, records: Records, coin: Coin) -> list[Pair]:
    """Each record that has a negative, with its two texts, if hold-out rules allow both results of the draw `coin`."""
    rules = rules_for(split, name)
    scenes = (compared(split.recipe["kind"], scene) for scene in records.scenes)
    rows = map(Pair, scenes, records.captions, records.negatives)
    return [pair for pair in rows if pair.false and is_open(coin, rules, pair.scene)]


def order_features(text: str, words: Vocabulary) -> list[Hashable]:
    """The features of the classifier `order`: words and pairs of neighbours, with animals and sizes masked, and the
    order of animals and textures."""
    animals = animals_in(words).findall(text)
    textures = exchanged_in(words, "binding").findall(text)
    bare = animals_in(words).sub("ANIMAL", text)
    bare = names_pattern(words.sizes).sub("SIZE", bare) if words.sizes else bare
    firsts = [("first", found[0]) for found in (animals, textures) if found]
    sorted_so = [("sorted", i, found == sorted(found)) for i, found in enumerate((animals, textures))]
    return [*bare.split(), *pairwise(bare.split()), *firsts, *sorted_so]


def word_features(text: str, words: Vocabulary) -> list[Hashable]:
    """The features of the classifier `words`: words and pairs of neighbouring words."""
    joined = animals_in(words).sub(lambda match: match[0].replace(" ", "_"), text).split()
    return [*joined, *pairwise(joined)]


def scored(pairs: Sequence[Pair], coin: Coin, features: Features, what: str) -> list[Contrast]:
    """Fit a classifier on each half of the animal pairs and test it on the other half; returns for each half the
    contrast between right and wrong answers."""
    if not pairs:
        return []
    table = differences(pairs, features)
    kinds = [frozenset(thing.animal for thing in pair.scene.things) for pair in pairs]
    number = {kind: i for i, kind in enumerate(sorted(set(kinds), key=sorted))}
    half = np.array([number[kind] % 2 for kind in kinds])
    groups = [coin.group(pair.scene) for pair in pairs]
    found = []
    for tested in (0, 1):
        chosen = np.flatnonzero(half == tested)
        if len(chosen) and len(chosen) < len(pairs):
            scores = table[chosen] @ fitted(table[half != tested])
            signs = np.sign(np.where(np.abs(scores) < NO_DIFFERENCE, 0, scores)).astype(int).tolist()
            found.append(
                right_less_wrong(what, [(groups[i], sign) for i, sign in zip(chosen.tolist(), signs, strict=True)])
            )
    return found


def differences(pairs: Sequence[Pair], features: Features) -> Float64[np.ndarray, "n features"]:
    """The counts of all features in the true texts minus those in the false texts."""
    rows = [(features(pair.true), features(pair.false)) for pair in pairs]
    column = {
        feature: i
        for i, feature in enumerate(dict.fromkeys(feature for both in rows for text in both for feature in text))
    }
    table = np.zeros((len(pairs), len(column)))
    for row, both in zip(table, rows, strict=True):
        for sign, text in zip((1, -1), both, strict=True):
            for feature in text:
                row[column[feature]] += sign
    return table


def fitted(table: Float64[np.ndarray, "n features"]) -> Float64[np.ndarray, " features"]:
    """The weights of a ridge regression whose target is 1 for the difference "true minus false"."""
    return np.linalg.solve(table.T @ table + RIDGE * np.eye(table.shape[1]), table.sum(0))


def right_less_wrong(what: str, signs: Sequence[tuple[Hashable, int]]) -> Contrast:
    """The contrast of a classifier's signs, 1 if it is right and -1 if it is wrong.

    The half-width of a group is its number of records, because the other result of its draw need not reverse every
    sign.
    """
    sizes: dict[Hashable, int] = {}
    for group, _ in signs:
        sizes[group] = sizes.get(group, 0) + 1
    right, total = sum(sign > 0 for _, sign in signs), sum(sign for _, sign in signs)
    width = sum(size**2 for size in sizes.values()) ** 0.5
    return Contrast("the classifier is right", what, right, len(signs), float(total), width)
