"""What a set of captions says of its nouns: what is seen with what makes false captions likely ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from menagerie.generators.false_captions.located import Form, LocatedCaption, stem

LEAST = 5  # fewest images with a noun that takes another's place
NEAREST = 8  # nouns that may take a noun's place
APART = 0.03  # largest share of images whose captions name both
Context = tuple[str, str]  # a role ("is", "subject", "object"), and an attribute or a predicate


class SeenWords:
    """The attributes, contexts, images and forms of nouns in captions."""

    def __init__(self, captions: Iterable[LocatedCaption]) -> None:
        self.attributes: dict[str, Counter[str]] = defaultdict(Counter)  # by the noun's head
        self.contexts: dict[str, Counter[Context]] = defaultdict(Counter)
        self.images: dict[str, set[str]] = defaultdict(set)
        self.forms: dict[str, set[Form]] = defaultdict(set)
        for caption in captions:
            for thing in caption.things:
                self.attributes[thing.head].update(thing.values)
                self.images[thing.noun].add(caption.image)
                self.contexts[thing.noun].update(("is", word) for word in thing.values)
                self.forms[thing.noun].add(thing.form)
            for predicate, *ends in caption.edges:
                for role, end in zip(("subject", "object"), ends, strict=True):
                    self.contexts[caption.things[end].noun][role, predicate] += 1

    def values(self, head: str) -> list[str]:
        """The attributes of a noun's head, the most frequent first."""
        return sorted(self.attributes[head], key=lambda word: (-self.attributes[head][word], word))

    def similar(self, noun: str) -> list[str]:
        """The nouns in the most similar contexts that captions of one image hardly ever name beside this one."""
        if noun not in self._rows:
            return []
        nouns, row = list(self._rows), self._rows[noun]
        likeness = (self._vectors @ self._vectors[[row]].T).toarray()[:, 0]
        near = (nouns[k] for k in np.lexsort((np.arange(len(nouns)), -likeness)) if likeness[k] > 0)
        found = (other for other in near if self._apart(noun, other))
        return [other for _, other in zip(range(NEAREST), found, strict=False)]

    def _apart(self, noun: str, other: str) -> bool:
        fewer = min(len(self.images[noun]), len(self.images[other]))
        together = len(self.images[noun] & self.images[other])
        return together <= APART * fewer and not {*map(stem, noun.split())} & {*map(stem, other.split())}

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The nouns of enough images, with their rows among the vectors."""
        return {n: k for k, n in enumerate(sorted(n for n, images in self.images.items() if len(images) >= LEAST))}

    @cached_property
    def _vectors(self) -> csr_array:
        """Unit vectors of contexts, each weighted by the inverse number of nouns that have it."""
        shared = Counter(context for counts in self.contexts.values() for context in counts)
        columns = {context: k for k, context in enumerate(sorted(shared))}
        entries = [
            (number / shared[context], row, columns[context])
            for noun, row in self._rows.items()
            for context, number in self.contexts[noun].items()
        ]
        numbers, rows, places = (np.array(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
        made = csr_array((numbers, (rows, places)), shape=(len(self._rows), len(columns)))
        lengths = np.sqrt(made.multiply(made).sum(axis=1))
        return csr_array(made.multiply(1 / np.maximum(lengths, 1e-12)[:, None]))
