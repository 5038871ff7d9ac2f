"""Whether a text alone gives away that it is true, beyond its bag of words.

A negative must have its caption's order and phrasing: with what is exchanged left out, both are one text. And a small
classifier (`menagerie.generators.audit.text_classifier`), which sees no picture, must not tell the true text from the
false one:

- `order`: neighbouring words with all animals as one word and all sizes as one, and which animal and which texture
  comes first. What the coin of the mention order turns round, scene by scene; where slots decide that order, the coin
  of the places, which in `unseen_order` and `seen_order` falls once for each pair.
- `words`: neighbouring words as they are ("red cat"). What the coin of the answer turns round; not for dependence
  splits, where an animal's texture is always the same in a test, which is what they are about.

Under a fair coin, a classifier that was fitted on other pairs is right and wrong equally often, so that the same bound
holds as for balance (`menagerie.generators.audit.chance`): both halves of both classifiers in all tests are one test.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from itertools import pairwise

from menagerie.generators.audit.balance import RATE
from menagerie.generators.audit.chance import Contrast, bound
from menagerie.generators.audit.findings import Finding, first
from menagerie.generators.audit.symmetry import MENTION, Turn, answer_turn, open_to, rules_for, turn_of
from menagerie.generators.audit.text_classifier import Features, Pair, scored
from menagerie.generators.captions.phrases import plural
from menagerie.generators.storage.split_file import Records, Split
from menagerie.generators.vocabulary import Vocabulary


def names_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern of any of `names` as whole words, longer ones first."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\b")


@cache
def animals_in(words: Vocabulary) -> re.Pattern[str]:
    """The pattern of animals, one or several of a kind."""
    return names_pattern({*words.animals, *map(plural, words.animals)})


@cache
def exchanged_in(words: Vocabulary, kind: str) -> re.Pattern[str]:
    """The pattern of what a hard negative of a kind exchanges."""
    both = {*words.animals, *words.textures, *words.sizes}
    return names_pattern(both if kind == "spatial" else words.textures)


def check_order(split: Split) -> Iterator[Finding]:
    """A negative says all that its swap leaves as it is in the order and the words of its caption."""
    kind = split.recipe["kind"]
    if kind == "counting":  # whose own checks compare both texts
        return
    pattern = exchanged_in(split.vocabulary, kind)
    # Things whose textures are left out of some captions are exchanged whole: "a red cat" and "a dog".
    runs = re.compile(r"\*(?: \*)+" if kind == "spatial" and split.recipe.get("attributes", 1.0) < 1 else r"(?!)")

    def rest(text: str) -> str:
        return re.sub(r"\ban\b", "a", runs.sub("*", pattern.sub("*", text)))

    for name, r in split.subsets.items():
        rows = zip(r.scenes, r.captions, r.negatives, strict=True)
        strange = (f"{s.key}: {c!r} and {n!r}" for s, c, n in rows if n and rest(c) != rest(n))
        yield Finding(f"every negative of {name} has the order and the words of its caption", *first(strange))


def check_cues(split: Split) -> Iterator[Finding]:
    """A classifier that sees only the texts of a test is right as often as wrong."""
    contrasts, shares = [], []
    for name, records in split.subsets.items():
        for what, turn, features in classifiers(split, name):
            halves = scored(pairs_of(split, name, records, turn), turn, features, f"{name}, {what}")
            contrasts += halves
            if tested := sum(half.records for half in halves):
                shares.append(f"{name} {what} {100 * sum(accuracy(half) for half in halves) / tested:.1f} %")
    limit = bound(len(contrasts), RATE)
    strongest = max(contrasts, key=lambda its: its.strength, default=None)
    detail = f"accuracy without a picture: {', '.join(shares)}" if shares else "no texts to tell apart"
    claim = "no text alone gives away whether it is true"
    if strongest is None or strongest.strength <= limit:
        yield Finding(claim, True, detail)
    else:
        beyond = f"{strongest.subset}: {strongest.strength:.1f} above the bound {limit:.1f}"
        yield Finding(claim, False, f"{beyond}; {detail}")


def accuracy(half: Contrast) -> float:
    """Number of records that a classifier is right on, half of those that it can't tell among them."""
    return (half.records + half.total) / 2


def classifiers(split: Split, name: str) -> Iterator[tuple[str, Turn, Features]]:
    """The classifiers of a test: their names, the coin that they may not foresee, and their features."""
    if name == "train":
        return
    kind, words = split.recipe["kind"], split.vocabulary
    drawn = split.recipe.get("mention_order", "") in ("", "random")
    if kind != "counting" and (turn := MENTION if drawn else turn_of("p", kind, name)) is not None:
        yield "order", turn, lambda text: order_features(text, words)
    if kind == "counting":
        yield "words", ANY_NUMBER, lambda text: word_features(text, words)
    elif (turn := answer_turn(kind, name)) is not None:
        yield "words", turn, lambda text: word_features(text, words)


# The number of a scene and that of its negative could be each other.
ANY_NUMBER = Turn(lambda scene: (scene.background, scene.view, *scene.things[0][:2]), lambda scene: scene)


def pairs_of(split: Split, name: str, records: Records, turn: Turn) -> list[Pair]:
    """The texts of a subset's records of which a coin decides which is true."""
    rules = rules_for(split, name)
    rows = map(Pair, records.scenes, records.captions, records.negatives)
    return [pair for pair in rows if pair.false and open_to(turn, rules, pair.scene)]


def order_features(text: str, words: Vocabulary) -> list[Hashable]:
    """What `order` sees of a text."""
    animals = animals_in(words).findall(text)
    textures = exchanged_in(words, "binding").findall(text)
    bare = animals_in(words).sub("ANIMAL", text)
    bare = names_pattern(words.sizes).sub("SIZE", bare) if words.sizes else bare
    firsts = [("first", found[0]) for found in (animals, textures) if found]
    sorted_so = [("sorted", i, found == sorted(found)) for i, found in enumerate((animals, textures))]
    return [*bare.split(), *pairwise(bare.split()), *firsts, *sorted_so]


def word_features(text: str, words: Vocabulary) -> list[Hashable]:
    """What `words` sees of a text."""
    joined = animals_in(words).sub(lambda match: match[0].replace(" ", "_"), text).split()
    return [*joined, *pairwise(joined)]


CHECKS = (check_order, check_cues)
