"""The tests of crowd splits: which cells the things of their scenes have."""

from collections.abc import Callable, Sequence

import numpy as np

from menagerie.generators.cells import Cell, Cells
from menagerie.generators.splits.dealing import Deck, NoCard, different

# Cells of the exchanged things and of all others, for the scenes of a test; None leaves the others to the deck.
Chosen = tuple[Sequence[Cell], Sequence[Cell] | None]
Chooser = Callable[[int], Chosen]  # of a number of things


def pairs(cells: Cells, tested: Sequence[Cell], random: np.random.Generator) -> Callable[[], list[Cell]]:
    """Deals the cells of two exchanged things: both of `tested`, and alike before and after the exchange."""
    deck = Deck(tested, random)

    def deal() -> list[Cell]:
        one = deck.deal()
        return [one, deck.deal(lambda cell: different(cell, one) and cells.alike(cell, one))]

    return deal


def of_pairs(cells: Cells, tested: Sequence[Cell], random: np.random.Generator) -> Chooser:
    """Scenes of different animals in different textures, whose exchanged things have cells of `tested`."""
    deal = pairs(cells, tested, random)
    return lambda things: (deal(), None)


def of_names(cells: Cells, tested: Sequence[Cell], names: set[str], random: np.random.Generator) -> Chooser:
    """Scenes of different animals in different textures; in half of them one of the exchanged things, in half of these
    both, have all the names that a cell can have."""
    most = max(len(names.intersection(cell)) for cell in tested)
    wanted = Deck([cell for cell in tested if len(names.intersection(cell)) == most], random)
    every = Deck(tested, random)

    def choose(things: int) -> Chosen:
        one = (wanted if random.random() < 0.75 else every).deal()
        other = wanted if random.random() < 0.5 else every
        return [one, other.deal(lambda cell: different(cell, one) and cells.alike(cell, one))], None

    return choose


def searched(cells: Cells, tested: Sequence[Cell], random: np.random.Generator, conjunction: bool) -> Chooser:
    """Scenes with a target, a red cat, and a white dog, with which it exchanges its texture. The others are red animals
    and cats of other textures (`conjunction`), or share nothing with either."""
    deal = pairs(cells, tested, random)

    def choose(things: int) -> Chosen:
        target, other = both = deal()
        taken, start = [*both], random.integers(2)
        for turn in range(things - len(both)):
            shared = 1 + int(start + turn) % 2 if conjunction else 0
            fitting = [cell for cell in tested if fits(cell, taken, target, other, shared)]
            if not fitting:
                raise NoCard
            taken.append(fitting[random.integers(len(fitting))])
        return both, taken[len(both) :]

    return choose


def fits(cell: Cell, taken: Sequence[Cell], target: Cell, other: Cell, shared: int) -> bool:
    """Whether a cell may join a search: 1 shares the target's texture alone, 2 its animal alone, 0 neither; with all
    others it shares nothing that would tell the target."""
    wanted = (cell[0] == target[0], cell[1] == target[1]) == (shared == 2, shared == 1)
    return (
        wanted
        and different(cell, other)
        and all((cell[0] != seen[0] or shared == 2) and (cell[1] != seen[1] or shared == 1) for seen in taken)
    )


def with_triplets(cells: Cells, tested: Sequence[Cell], random: np.random.Generator, triplets: int) -> Chooser:
    """Scenes of four things with 0, 1 or 2 triplets: a thing, another of its animal and another of its texture
    (Campbell et al. 2024)."""
    deal = pairs(cells, tested, random)

    def choose(things: int) -> Chosen:
        (animal, texture), (other_animal, other_texture) = both = deal()
        animals = [name for name in cells.animals if name not in (animal, other_animal)]
        textures = [name for name in cells.textures if name not in (texture, other_texture)]
        new_animal, new_texture = (names[random.integers(len(names))] for names in (animals, textures))
        rest = {
            1: [(animal, new_texture), (new_animal, texture)],  # the first exchanged thing with both
            2: [(animal, new_texture), (other_animal, new_texture)],  # these two, each with the other and one exchanged
        }[triplets]
        if not all(cells.seen(*cell) for cell in rest):
            raise NoCard
        return both, rest

    return choose if triplets else of_pairs(cells, tested, random)
