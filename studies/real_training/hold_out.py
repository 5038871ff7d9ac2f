"""Photographs that are held out of training, and a test on them: which of five captions is an image's own?

Looks while a run trains are taken on them; nothing is selected by it.
"""

from collections.abc import Iterable, Sequence

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.identity import generator, seed_of
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.captions.templates import Caption

SHARE, LEAST = 0.05, 10  # of the photographs; of few a fifth at most
OTHERS = 4  # captions of other photographs
GROUP = "caption"


def held_out(names: Iterable[str]) -> frozenset[str]:
    """The names of photographs that aren't trained on: those with the least hashes, whatever else is in the data.

    A photograph that two sources have has one name, and is held out of both.
    """
    ranked = sorted(set(names), key=lambda name: (seed_of(0, "held out", name), name))
    count = max(round(SHARE * len(ranked)), min(LEAST, len(ranked) // 5))
    return frozenset(ranked[:count])


class HeldOut(Benchmark):
    """Items of one photograph with its caption and those of some others, all of them held out."""

    looked_at = GROUP

    def __init__(self, sources: Sequence[Captioned], names: Sequence[Sequence[str]], chosen: frozenset[str]) -> None:
        """`names` are those of the photographs of each source."""
        self.name, self.sources = "the held-out photographs", list(sources)
        self.places: dict[str, tuple[int, int]] = {}
        for s, own in enumerate(names):
            for i, name in enumerate(own):
                if name in chosen:
                    self.places.setdefault(name, (s, i))
        known = {name: self._caption(name) for name in sorted(self.places)}
        self.order = list(known)
        self.numbers = {name: number for number, name in enumerate(known)}
        self.items = [item for name in known if (item := self._item(name, known))]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        """The photographs of these numbers, as their sources read them."""
        import torch

        places = [self.places[self.order[number]] for number in numbers]
        none = self.sources[0].images([])  # gives an empty batch its size
        return torch.cat([none, *(self.sources[s].images([i]) for s, i in places)])

    def _caption(self, name: str) -> Caption:
        """The one caption that the item of a photograph has of it."""
        s, i = self.places[name]
        return self.sources[s].captions([i], [seed_of(0, "held-out caption", name)])[0]

    def _item(self, name: str, known: dict[str, Caption]) -> Item | None:
        """None where no other photograph has another caption."""
        others: list[Caption] = []
        said = {plain_text(known[name].text)}
        for k in generator(0, "other captions", name).permutation(len(known)).tolist():
            text = known[self.order[k]]
            if plain_text(text.text) not in said:
                others.append(text)
                said.add(plain_text(text.text))
            if len(others) == OTHERS:
                break
        return Item(name, GROUP, (self.numbers[name],), (known[name], *others), name) if others else None
