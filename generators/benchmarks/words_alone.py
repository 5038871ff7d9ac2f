"""What words alone decide: scores on a benchmark's items of readers that see no image, and of a bag of words.

All are tie-neutral: equal scores count as a guess. A bag of words that knows everything else is right wherever a false
text has other words than the true ones, and guesses where it has the same.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores

WORD = re.compile(r"[\w']+")
START, END = "<", ">"  # no words
LENGTHS = {"longer": 1, "shorter": -1}


def text_words(text: str) -> list[str]:
    """Return a text's words in lower case, without punctuation; a hyphen parts two."""
    return WORD.findall(text.lower())


def bag_scores(item: "Item") -> "Scores":
    """Return the scores of the best bag of words: 1 for texts with the words of a text that is true of the image."""
    bags = [sorted(text_words(text.text)) for text in item.texts]
    own = ([bags[k] for k in item.own(image)] for image in range(len(item.images)))
    return np.array([[bag in its for bag in bags] for its in own], float)


def blind_scores(item: "Item", read: Callable[[str], float]) -> "Scores":
    """Return the scores of a reader of texts alone, the same for each image."""
    return np.array([[read(text.text) for text in item.texts]] * len(item.images), float)


class WordsAlone(NamedTuple):
    """What words alone decide of some items; all but `records` are shares, means over the items."""

    records: int
    same: float
    """Items with a false text that has the same words as a true one."""
    bag: float
    """The best bag of words."""
    length: float
    """The better of two readers, one that prefers the text with more words, one that with fewer."""
    preferred: str
    """Which of the two it is, "longer" or "shorter"."""
    prior: float | None = None
    """The reader that was given, such as the prior of a captioner."""

    @property
    def text(self) -> str:
        return f"{self.same:.1%} have a false text of the same words, a bag of words gets at most {self.bag:.1%}"


def words_alone(
    bench: "Benchmark", items: Sequence["Item"], prior: Callable[[str], float] | None = None
) -> WordsAlone | None:
    """Measure what words alone decide of a benchmark's items; None without items that have false texts."""
    items = [item for item in items if len(item.texts) > item.true]
    if not items:
        return None

    def mean(read: Callable[["Item"], "Scores"]) -> float:
        return float(np.mean([bench.outcome(item, read(item)).neutral for item in items]))

    def blind(read: Callable[[str], float]) -> float:
        return mean(lambda item: blind_scores(item, read))

    lengths = {name: blind(lambda text, sign=sign: sign * len(text_words(text))) for name, sign in LENGTHS.items()}
    better = max(lengths, key=lengths.__getitem__)
    same = float(np.mean([bag_scores(item).sum() > len(item.images) * item.true for item in items]))
    known = None if prior is None else blind(prior)
    return WordsAlone(len(items), same, mean(bag_scores), lengths[better], better, known)


class TrigramPrior:
    """The prior of a captioner: a trigram model of words, smoothed as by Witten and Bell (1991): each order leaves as
    much to the next lower one as it has seen different words after a context; the lowest is uniform."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.after: dict[tuple[str, ...], Counter[str]] = {}
        for text in texts:
            words = [START, START, *text_words(text), END]
            for place in range(2, len(words)):
                for order in range(3):
                    self.after.setdefault(tuple(words[place - order : place]), Counter())[words[place]] += 1
        self.words = len(self.after.get((), ())) + 1  # one for all that are unknown

    def __call__(self, text: str) -> float:
        """Return the log probability of a text and its end."""
        words = [START, START, *text_words(text), END]
        return sum(math.log(self.chance(words[place], words[place - 2 : place])) for place in range(2, len(words)))

    def chance(self, word: str, context: Sequence[str]) -> float:
        """Return the probability of a word after a context of at most two words."""
        lower = self.chance(word, context[1:]) if context else 1 / self.words
        counts = self.after.get(tuple(context))
        if not counts:
            return lower
        return (counts[word] + len(counts) * lower) / (counts.total() + len(counts))
