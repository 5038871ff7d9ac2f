"""Photographs whose captions have false ones: published, made beforehand, or made while loading."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.identity import generator, seed_of
from menagerie.generators.captioned import Indices
from menagerie.generators.captions.templates import Caption
from menagerie.generators.false_captions.loaded import LOADED, make_loaded
from menagerie.generators.false_captions.located import plain_words
from menagerie.generators.false_captions.record import PART, VERSION, FalseCaption
from menagerie.generators.parsers.spacy_rules import Tagger, spacy_tags
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.place import one_node
from menagerie.generators.sources.texts import Texts
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES

REDRAWN = 64  # draws of another caption than those before
COUNTED = 5000  # captions of which ways while loading are tried, to count


class FalselyCaptioned(Photographs):
    """Photographs of a source, with false captions. The graph of a false caption is one node."""

    def __init__(
        self, whole: Photographs, false: Iterable[FalseCaption], loaded: Sequence[str] = (), tag: Tagger = spacy_tags
    ) -> None:
        """`loaded` names ways of `LOADED`, which need the tags of words. Of `false`, those of other images or of other
        captions of an image count in `unused`."""
        self.whole, self.loaded, self.tag = whole, tuple(dict.fromkeys(loaded)), tag
        self.name, self.files, self.names_of_images = whole.name, whole.files, whole.names_of_images
        self.left_out, self.refused_texts, self.listed = whole.left_out, whole.refused_texts, whole.listed
        by_image: dict[str, list[FalseCaption]] = defaultdict(list)
        for one in false:
            by_image[one.image].append(one)
        self.unused = sum(len(by_image[image]) for image in by_image.keys() - set(self.names_of_images))
        self.covered = dict.fromkeys((*TEXT_NEGATIVES, "part"), 0)
        self.known = Texts(
            json.dumps(self._add(k, by_image.get(name, ()))) for k, name in enumerate(whole.names_of_images)
        )
        kinds = {LOADED[name].kind for name in self.loaded} | {kind for kind, number in self.covered.items() if number}
        kinds |= {"replace"} if self.covered["part"] else set()
        self.text_negatives = tuple(kind for kind in TEXT_NEGATIVES if kind in kinds)

    def _add(self, index: int, false: Iterable[FalseCaption]) -> dict[str, Any]:
        """Collect an image's false captions: by kind and words of the caption, and the parts that have some."""
        own = {plain_words(text) for text in self.whole.texts_of(index)} if false and self.listed else set()
        found: dict[str, Any] = {"parts": []}
        for one in false:
            key, part = plain_words(one.caption), one.how.startswith(PART)
            if not part and key not in own:
                self.unused += 1
                continue
            if part and one.caption not in found["parts"]:
                found["parts"].append(one.caption)
            found.setdefault(one.kind, {}).setdefault(key, []).append(one.text)
        for kind in found.keys() - {"parts"}:
            self.covered[kind] += len(own & found[kind].keys())
        self.covered["part"] += len(found["parts"])
        return found

    def counts_false(self) -> dict[str, int]:
        """The number of captions that have a false one, by kind, and of parts ("part"). Ways while loading are tried
        on at most `COUNTED` captions, evenly chosen, and their number is an estimate if there are more."""
        captions = [(k, text) for k in range(len(self)) for text in dict.fromkeys(self._captions_of(k))]
        some = captions[:: -(-len(captions) // COUNTED)] if captions else []
        counts = dict(self.covered)
        for kind in {LOADED[name].kind for name in self.loaded}:
            having = sum(self._draw(k, k, text, kind) is not None for k, text in some)
            counts[kind] = max(counts[kind], round(having * len(captions) / max(len(some), 1)))
        return {kind: number for kind, number in counts.items() if number}

    def _captions_of(self, index: int) -> Iterable[str]:
        """An image's captions; one of them if they are made anew in each step."""
        return self.whole.texts_of(index) if self.listed else [self.whole.captions([index], [0])[0].text]

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return self.whole.images(indices)

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return self.whole.captions(indices, draws)

    def several(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """The lists of `Captioned.several`, but no text of an image twice as long as it has others."""
        each = [self._distinct(int(index), int(draw), count) for index, draw in zip(indices, draws, strict=True)]
        return [[texts[k] for texts in each] for k in range(count)]

    def _distinct(self, index: int, draw: int, count: int) -> list[Caption]:
        drawn, there = self.whole.captions([index], [draw]), len(set(self.whole.texts_of(index)))
        for k in range(1, count):
            had, tries = {caption.text for caption in drawn}, REDRAWN if len(drawn) < there or not self.listed else 1
            seeds = (seed_of(draw, "another caption", k, again) for again in range(tries))
            others = [self.whole.captions([index], [next(seeds)])[0]]
            while others[-1].text in had and (seed := next(seeds, None)) is not None:
                others.append(self.whole.captions([index], [seed])[0])
            drawn = [*drawn, others[-1]]
        return drawn

    def parts_of_captions(self, indices: Indices, draws: Indices, count: int) -> list[list[Caption]]:
        """Return `count` lists of one text for each index: first the result of `captions`, then parts of the caption
        that have a false version; of an image without any the caption, of few some twice."""
        captions = self.captions(indices, draws)
        places = zip(map(int, indices), map(int, draws), captions, strict=True)
        each = [self._parts(*place, count - 1) for place in places]
        return [captions, *([texts[k] for texts in each] for k in range(count - 1))]

    def _parts(self, index: int, draw: int, caption: Caption, count: int) -> list[Caption]:
        every, said = json.loads(self.known[index])["parts"], {*plain_words(caption.text).split()}
        own = [part for part in every if said >= {*plain_words(part).split()}] or every or [caption.text]
        order = generator(int(draw), "parts", self.names_of_images[index]).permutation(len(own))
        return [Caption(text, one_node(text)) for text in (own[order[k % len(own)]] for k in range(count))]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        return self.false_of(indices, draws, self.captions(indices, draws), kind)

    def false_of(
        self, indices: Indices, draws: Indices, captions: Sequence[Caption], kind: str
    ) -> list[Caption | None]:
        texts = (
            self._draw(int(k), int(draw), its.text, kind) for k, draw, its in zip(indices, draws, captions, strict=True)
        )
        return [text and Caption(text, one_node(text)) for text in texts]

    def _draw(self, index: int, draw: int, text: str, kind: str) -> str | None:
        """A false version of a text, by the draw: one that is known, or a way that makes one now."""
        known = json.loads(self.known[index]).get(kind, {}).get(plain_words(text), [])
        ways = [name for name in self.loaded if LOADED[name].kind == kind]
        random = generator(draw, "false caption", kind, self.names_of_images[index], text)
        for k in random.permutation(len(known) + len(ways)):
            made = known[k] if k < len(known) else make_loaded(ways[k - len(known)], text, self.tag, random)
            if made:
                return made
        return None

    def texts_of(self, index: int) -> Iterable[str]:
        return self.whole.texts_of(index)

    def texts(self) -> Iterator[str]:
        """Yield those of the source, known false captions, and articles, which are made to fit."""
        yield from self.whole.texts()
        yield from ("a", "an")
        for its in map(json.loads, self.known):
            yield from its.pop("parts")
            yield from (text for by_caption in its.values() for texts in by_caption.values() for text in texts)

    def counts(self) -> dict[str, int]:
        return self.whole.counts()

    def content(self) -> Iterator[str]:
        yield from self.whole.content()
        yield f"false captions {VERSION} {self.loaded}"
        yield from self.known
