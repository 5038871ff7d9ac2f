"""The captions of crowd splits, for `tests.generators.crowd_checker`: parsed by a regular expression of its own and
compared with scenes, graphs and recipe."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import comb, sqrt

from tests.generators.crowd_file import COLUMN, File, Record, Scene, Thing, cells, exchanged, swap

SIGMAS = 4.5  # a share that differs more from its probability is wrong: 7 of a million sound ones are
CONVERSE = {"to the left of": "to the right of", "above": "under", "in front of": "behind"}
CONVERSE |= {other: one for one, other in CONVERSE.items()}
ROWS_IN_DEPTH = ("front", "near", "high", "back")
Told = tuple[str, str, str]  # size, texture and animal; "" for what isn't said


def relation(one: Thing, other: Thing) -> str:
    """The predicate that is stated of two things, the first as its subject."""
    apart = COLUMN[other.place] - COLUMN[one.place]
    if abs(apart) >= 1.2:
        return "to the left of" if apart > 0 else "to the right of"
    row, other_row = one.place.split()[0], other.place.split()[0]
    if "high" in (row, other_row):
        return "above" if row == "high" else "under"
    return "in front of" if ROWS_IN_DEPTH.index(row) < ROWS_IN_DEPTH.index(other_row) else "behind"


def is_false(one: Thing, predicate: str, other: Thing) -> bool:
    """Whether a predicate is false of two things, and not only unsaid."""
    stated = relation(one, other)
    if predicate in (stated, CONVERSE[stated]):
        return predicate != stated
    sideways = predicate.startswith("to the")
    level = COLUMN[one.place] == COLUMN[other.place] if sideways else one.place.split()[0] == other.place.split()[0]
    return level


class Reader:
    """Parses the captions of a file."""

    def __init__(self, file: File) -> None:
        words = {kind: "|".join(sorted(file.names[kind], key=len, reverse=True)) for kind in file.names}
        size = rf"(?:({words['sizes']}) )?" if words["sizes"] else "()"
        self.thing = re.compile(rf"\b(an?|the) {size}(?:({words['textures']}) )?({words['animals']})\b")
        self.conjunction = file.recipe.get("conjunction", "and")
        self.plain = file.recipe["template"] == "conjunction" and not file.recipe.get("phrasings")

    def read(self, caption: str, background: str) -> tuple[list[Told], list[str]]:
        """The things that a caption mentions, and the predicates between them; raises `ValueError` for other words."""
        found = list(self.thing.finditer(caption))
        for match in found:
            article, word = match[1], match[0].split()[1]
            if article in ("a", "an") and (article == "an") != (word[0] in "aeiou"):
                raise ValueError(f"article of {match[0]!r}")
        joints = [caption[one.end() : other.start()].strip() for one, other in pairwise(found)]
        edges = [joint.removeprefix("that is ") for joint in joints if joint != self.conjunction]
        said = [f"that is {edge}" if i else edge for i, edge in enumerate(edges)]
        if joints != said + [self.conjunction] * (len(joints) - len(edges)) or not set(edges) <= set(CONVERSE):
            raise ValueError(f"joints {joints}")
        around = caption[: found[0].start()] + caption[found[-1].end() :] if found else caption
        if background not in around or (self.plain and not re.fullmatch(rf" (in|on|at) the {background}", around)):
            raise ValueError(f"{around!r} on the background {background}")
        return [(match[2] or "", match[3] or "", match[4]) for match in found], edges


def told_of(things: Sequence[Thing]) -> list[Told]:
    return [(thing.size, thing.texture, thing.animal) for thing in things]


def mentioned(told: Sequence[Told], scene: Scene) -> list[int]:
    """The things of a scene that are told, by their indices; raises `ValueError` for one that it doesn't show."""
    found = []
    for size, texture, animal in told:
        named = [i for i, thing in enumerate(scene.things) if (thing.size, thing.animal) == (size, animal)]
        fits = [i for i in named if texture in ("", scene.things[i].texture)]
        if not fits or fits[0] in found:
            raise ValueError(f"{' '.join(filter(None, (texture, animal)))} isn't there")
        found.append(fits[0])
    return found


def bag(caption: str) -> Counter[str]:
    """The words of a caption, with one article."""
    return Counter("a" if word == "an" else word for word in caption.split())


def check_captions(file: File) -> Iterator[str]:
    """Each caption is true, has its graph, and tells as much as the recipe says; its negative is of the swap."""
    reader = Reader(file)
    shown = {cell for record in file.subsets["train"] for cell in cells(record.scene)}
    for name, records in file.subsets.items():
        for record in records:
            try:
                yield from (f"{name}: {problem}" for problem in caption_problems(file, reader, name, record, shown))
            except ValueError as error:
                yield f"{name}: {record.caption!r}: {error}"


def caption_problems(file: File, reader: Reader, name: str, record: Record, shown: set) -> Iterator[str]:
    scene, caption = record.scene, record.caption
    told, edges = reader.read(caption, scene.background)
    places = mentioned(told, scene)
    if record.graph != graph_of(told, edges, scene):
        yield f"{caption!r} has the graph {record.graph}"
    if edges != [relation(scene.things[i], scene.things[j]) for i, j in pairwise(places)][: len(edges)]:
        yield f"{caption!r} states what isn't so"
    if len(edges) != min(file.recipe["relations_stated"], len(told) - 1):
        yield f"{caption!r} states {len(edges)} relations"
    most, n = max(file.recipe["things"]), len(scene.things)
    search, pair = name.startswith("search"), set(exchanged(scene)) if n > 1 else set()
    if name == "train":
        if not 1 <= len(told) <= most:
            yield f"{caption!r} mentions {len(told)} things"
        textured = {i for i, (_, texture, _) in zip(places, told, strict=True) if texture}
        swappable = bool(pair) and pair <= textured and set(cells(swap(scene))) <= shown
        if bool(record.negative) != swappable:
            yield f"{caption!r} has the negative {record.negative!r}"
    else:
        number = 1 if search else min(n, max(most, 2))
        of_pair = bool(pair & set(places)) if search else pair <= set(places)
        if len(told) != number or not of_pair or not all(texture for _, texture, _ in told):
            yield f"{caption!r} mentions {len(told)} things, not {number}, or not the exchanged ones"
        if name.startswith("search_conjunction") and not is_shared(scene, places[0]):
            yield f"{caption!r} doesn't name the target"
        if not record.negative:
            yield f"{caption!r} has no negative"
    if record.negative:
        yield from negative_problems(reader, record, search, places)
    elif record.negative_graph != ([], []):
        yield f"no negative, but the graph {record.negative_graph}"


def is_shared(scene: Scene, place: int) -> bool:
    """Whether another thing has the animal or the texture of a thing."""
    animal, texture = cells(scene)[place]
    return any(i != place and (a == animal or t == texture) for i, (a, t) in enumerate(cells(scene)))


def negative_problems(reader: Reader, record: Record, search: bool, places: Sequence[int]) -> Iterator[str]:
    """A negative tells the same things in the same order with two textures exchanged, so that the words are the same;
    in a search that of the target alone is another."""
    told, edges = reader.read(record.negative, record.scene.background)
    before, _ = reader.read(record.caption, record.scene.background)
    after = told_of([swap(record.scene).things[i] for i in places])
    if told != [(z, new if old else "", a) for (_, old, _), (z, new, a) in zip(before, after, strict=True)]:
        yield f"{record.negative!r} isn't the swap of {record.caption!r}"
    if not {(animal, texture) for _, texture, animal in told if texture} - set(cells(record.scene)):
        yield f"{record.negative!r} is true"
    if record.negative_graph != graph_of(told, edges, record.scene):
        yield f"{record.negative!r} has the graph {record.negative_graph}"
    if not search and bag(record.negative) != bag(record.caption):
        yield f"{record.negative!r} has other words than {record.caption!r}"


def graph_of(told: Sequence[Told], edges: Sequence[str], scene: Scene) -> tuple[list[str], list[tuple]]:
    nodes = [" ".join(filter(None, words)) for words in told]
    return [*nodes, scene.background], [(name, i, i + 1) for i, name in enumerate(edges)]


def check_shares(file: File) -> Iterator[str]:
    """Training captions mention things, textures and the salient thing as often as the recipe says."""
    r, reader, told, alone = file.recipe, Reader(file), Counter(), Counter()
    textures = mentions = 0
    totals = Counter(len(record.scene.things) for record in file.subsets["train"])
    for record in file.subsets["train"]:
        try:
            said, _ = reader.read(record.caption, record.scene.background)
            places = mentioned(said, record.scene)
        except ValueError:
            continue  # `check_captions` reports it
        n = len(record.scene.things)
        told[n, len(said)] += 1
        alone[n] += places == [salient(record.scene)]
        mentions += len(said)
        textures += sum(bool(texture) for _, texture, _ in said)
    for n, total in totals.items():
        chances = numbers_told(n, r["mentioned"], max(r["things"]))
        for k in range(1, n + 1):
            chance = (1 - r["salient"]) * chances[k] + r["salient"] * (k == 1)
            yield from share(f"captions of {n} things that mention {k}", told[n, k], total, chance)
        chance = r["salient"] + (1 - r["salient"]) * chances[1] / n
        yield from share(f"captions of {n} things that mention the salient one alone", alone[n], total, chance)
    yield from share("mentions with their texture", textures, mentions, r["attributes"])


def salient(scene: Scene) -> int:
    """The thing in the foremost row, there the biggest, of several the first."""
    rank = [(ROWS_IN_DEPTH.index(t.place.split()[0]), t.size == "small", i) for i, t in enumerate(scene.things)]
    return min(rank)[2]


def numbers_told(n: int, mentioned: float, most: int) -> Counter[int]:
    """The probability of each number of mentioned things: at least one, at most `most`."""
    chances: Counter[int] = Counter()
    for k in range(n + 1):
        chances[min(max(k, 1), most)] += comb(n, k) * mentioned**k * (1 - mentioned) ** (n - k)
    return chances


def share(what: str, found: int, total: int, chance: float) -> Iterator[str]:
    """A problem if a share differs from its probability."""
    if abs(found - chance * total) > SIGMAS * sqrt(total * chance * max(1 - chance, 0)) + 1e-6:
        yield f"{what}: {found} of {total}, not {chance:.3f}"


TEXT_CHECKS = (check_captions, check_shares)
