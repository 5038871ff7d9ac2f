"""The questions that tests of crowds ask of a scene, for `tests.generators.crowd_checker`: texts alone, parsed anew."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import factorial
from typing import NamedTuple

from tests.generators.crowd_file import File, Scene, cells, exchanged, swap
from tests.generators.crowd_text_checker import CONVERSE, Reader, Told, bag, is_false, mentioned, relation, told_of


class Question(NamedTuple):
    """Texts about one record of a subset; the first `true` are true, all others false."""

    subset: str
    task: str
    number: int
    texts: tuple[str, ...]
    true: int


def question_problems(file: File, asked: Question) -> Iterator[str]:
    """What is wrong with a question."""
    scene, reader = file.subsets[asked.subset][asked.number].scene, Reader(file)
    said = [reader.read(text, scene.background) for text in asked.texts]
    truths = [holds(*one, scene) for one in said]
    if truths != [True] * asked.true + [False] * (len(said) - asked.true):
        yield f"{asked.task}: true are {truths} of {asked.texts}"
    elif not FITS[asked.task.split(" of ")[0]](file, scene, said):
        yield f"{asked.task}: {asked.texts} don't suit {cells(scene)}"
    relations_change = asked.task in ("order", "paraphrase") and file.recipe["relations_stated"]
    if asked.task in SAME_WORDS and not relations_change and any(bag(t) != bag(asked.texts[0]) for t in asked.texts):
        yield f"{asked.task}: other words in {asked.texts}"


def holds(told: Sequence[Told], edges: Sequence[str], scene: Scene) -> bool:
    """Whether a caption is true: it shows all things, and no relation is other than stated."""
    try:
        places = mentioned(told, scene)
    except ValueError:
        return False
    ends = zip(pairwise(places), edges, strict=False)
    return all(relation(scene.things[i], scene.things[j]) == edge for (i, j), edge in ends)


Said = Sequence[tuple[list[Told], list[str]]]


def fits_swap(file: File, scene: Scene, said: Said) -> bool:
    """Two captions, the second of which is of the swap; all things are mentioned in `swap all`."""
    (told, edges), (other, other_edges) = said
    places = mentioned(told, scene)
    return edges == other_edges and other == told_of([swap(scene).things[i] for i in places])


def fits_swap_all(file: File, scene: Scene, said: Said) -> bool:
    return fits_swap(file, scene, said) and len(said[0][0]) == len(scene.things)


def fits_two(file: File, scene: Scene, said: Said) -> bool:
    return fits_swap(file, scene, said) and sorted(mentioned(said[0][0], scene)) == sorted(exchanged(scene))


def fits_assignment(file: File, scene: Scene, said: Said) -> bool:
    """All permutations of the textures of so many things, each once."""
    most = max(file.recipe["things"])
    k = min(4, len(scene.things), max(most, 2))
    ways = {tuple(texture for _, texture, _ in told) for told, _ in said}
    animals = {tuple((size, animal) for size, _, animal in told) for told, _ in said}
    right = len(said) == len(ways) == factorial(k) and len({frozenset(way) for way in ways}) == 1
    return right and len(animals) == 1 and len(said[0][0]) == k and len(set(said[0][0])) == k


def fits_illusion(file: File, scene: Scene, said: Said) -> bool:
    """A thing, and the same animal with the other exchanged thing's texture."""
    (((size, texture, animal),), _), (((other_size, other, same),), _) = said
    pair = {(scene.things[i].animal, scene.things[i].texture) for i in exchanged(scene)}
    rest = {t for a, t in pair if (a, t) != (animal, texture)}
    return (size, animal) == (other_size, same) and (animal, texture) in pair and {other} == rest


def fits_order(file: File, scene: Scene, said: Said) -> bool:
    """The same things; two of them exchanged, or one predicate turned; a relation is false and not only unsaid."""
    (told, edges), (other, other_edges) = said
    moved = sum(one != two for one, two in zip(told, other, strict=True))
    turned = [i for i, (one, two) in enumerate(zip(edges, other_edges, strict=True)) if one != two]
    places = mentioned(other, scene)
    ends = [(scene.things[i], e, scene.things[j]) for (i, j), e in zip(pairwise(places), other_edges, strict=False)]
    small = (moved, len(turned)) in ((2, 0), (0, 1)) and all(CONVERSE[edges[i]] == other_edges[i] for i in turned)
    return sorted(told) == sorted(other) and small and any(is_false(*end) for end in ends)


def fits_paraphrase(file: File, scene: Scene, said: Said) -> bool:
    """Two true captions of the same things in two orders; the false one has either's order and relations."""
    (one, edges), (other, other_edges), (false, false_edges) = said
    chained = len(edges) + 1 if edges else len(one)
    backwards = one[:chained][::-1] + one[chained:][::-1] == other
    swaps = [told_of([swap(scene).things[i] for i in mentioned(told, scene)]) for told in (one, other)]
    return backwards and (false, false_edges) in zip(swaps, (edges, other_edges), strict=True)


def fits_replaced(field: int, file: File, scene: Scene, said: Said) -> bool:
    """One word of an exchanged thing is replaced by one that isn't shown, below full coverage by one of its class."""
    (told, edges), (other, other_edges) = said
    changed = [(one, two) for one, two in zip(told, other, strict=True) if one != two]
    if edges != other_edges or len(changed) != 1:
        return False
    ((one, two),) = changed
    shown = {words[field] for words in told_of(scene.things)}
    train = {cell for record in file.subsets["train"] for cell in cells(record.scene)}
    seen = [{cell[field - 1] for cell in train if cell[2 - field] == words[field]} for words in (one, two)]
    alike = [k for k in range(3) if one[k] != two[k]] == [field]
    pair = {told_of(scene.things)[i] for i in exchanged(scene)}
    return alike and one in pair and two[field] not in shown and (file.recipe["coverage"] == 1 or seen[0] == seen[1])


FITS = {
    "swap": fits_swap,
    "swap all": fits_swap_all,
    "two mentioned": fits_two,
    "assignment": fits_assignment,
    "illusion": fits_illusion,
    "order": fits_order,
    "paraphrase": fits_paraphrase,
    "replace texture": partial(fits_replaced, 1),
    "replace animal": partial(fits_replaced, 2),
}
SAME_WORDS = (
    "swap",
    "swap all",
    "two mentioned",
    "assignment of 2",
    "assignment of 3",
    "assignment of 4",
    "order",
    "paraphrase",
)
