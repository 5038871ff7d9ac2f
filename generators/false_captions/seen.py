"""What a set of captions says of its nouns: what is seen with what makes false captions likely ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import sqrt

from menagerie.generators.false_captions.located import Form, LocatedCaption, stem

LEAST = 5  # fewest images with a noun that takes another's place
NEAREST = 5  # nouns that may take a noun's place
APART = 0.03  # largest share of images whose captions name both
Context = tuple[object, str]  # "is", 1 for a subject or 2 for an object; an attribute or a predicate


class SeenWords:
    """The attributes, contexts, images and forms of nouns in captions."""

    def __init__(self, captions: Iterable[LocatedCaption]) -> None:
        self.attributes: dict[str, Counter[str]] = defaultdict(Counter)  # by the noun's head
        self.images: dict[str, set[str]] = defaultdict(set)
        self.forms: dict[str, set[Form]] = defaultdict(set)
        self.contexts: dict[str, set[Context]] = defaultdict(set)
        self.nouns: dict[Context, set[str]] = defaultdict(set)
        self._near: dict[str, list[str]] = {}
        for caption in captions:
            for thing in caption.things:
                self.attributes[thing.head].update(thing.values)
                self.images[thing.noun].add(caption.image)
                self.forms[thing.noun].add(thing.form)
                self.contexts[thing.noun].update(("is", word) for word in thing.values)
            for edge in caption.edges:
                for role in (1, 2):
                    self.contexts[caption.things[edge[role]].noun].add((role, edge.predicate))
        for noun, contexts in self.contexts.items():
            for context in contexts if len(self.images[noun]) >= LEAST else ():
                self.nouns[context].add(noun)

    def values(self, head: str) -> list[str]:
        """The attributes of a noun's head, the most frequent first."""
        return sorted(self.attributes[head], key=lambda word: (-self.attributes[head][word], word))

    def similar(self, noun: str) -> list[str]:
        """The nouns in the most similar contexts that captions of one image hardly ever name beside this one."""
        if noun not in self._near:
            likeness = Counter[str]()
            for context in sorted(self.contexts[noun], key=str) if len(self.images[noun]) >= LEAST else ():
                for other in self.nouns[context]:
                    likeness[other] += 1 / len(self.nouns[context]) / sqrt(len(self.contexts[other]))
            near = sorted(likeness, key=lambda other: (-likeness[other], other))
            self._near[noun] = [other for other in near if self._apart(noun, other)][:NEAREST]
        return self._near[noun]

    def _apart(self, noun: str, other: str) -> bool:
        fewer = min(len(self.images[noun]), len(self.images[other]))
        together = len(self.images[noun] & self.images[other])
        return together <= APART * fewer and not {*map(stem, noun.split())} & {*map(stem, other.split())}
