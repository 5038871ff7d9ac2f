"""A split file of kind `crowd`, read with h5py alone, for `tests.generators.crowd_checker`: nothing of menagerie is
imported."""

import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import h5py

# Row -> columns of its places, by name.
THREE = {"left": -2.0, "middle": 0.0, "right": 2.0}
FOUR = {"left": -1.5, "middle left": -0.5, "middle right": 0.5, "right": 1.5}
ROWS = {"front": THREE, "near": FOUR, "back": THREE, "high": THREE}
COLUMN = {f"{row} {name}": column for row, names in ROWS.items() for name, column in names.items()}
UNEVEN = 0.25  # share by which the numbers of two cards of a deck may differ, for cards that didn't fit


class Thing(NamedTuple):
    animal: str
    texture: str
    place: str
    size: str


class Scene(NamedTuple):
    background: str
    view: int
    things: tuple[Thing, ...]


class Record(NamedTuple):
    scene: Scene
    caption: str
    negative: str
    graph: tuple[list[str], list[tuple]]  # nodes; edges as (predicate, subject, object)
    negative_graph: tuple[list[str], list[tuple]]
    row: int
    partner: int


class Stored(NamedTuple):
    """A row of the store."""

    scene: Scene
    shown: list[float]  # the share of each thing that shows


class File(NamedTuple):
    recipe: dict[str, Any]
    names: dict[str, list[str]]
    subsets: dict[str, list[Record]]
    store: list[Stored]  # empty for a file without images

    def left(self, subset: str) -> list[int]:
        """The numbers of the scenes that were dealt for a subset and left out."""
        return self.recipe.get("left_out", {}).get(subset, [])


def read(path: Path) -> File:
    with h5py.File(path) as file:
        recipe, names = (json.loads(text(file.attrs[name])) for name in ("recipe", "vocabulary"))
        subsets = {name: read_records(group, names) for name, group in file["subsets"].items()}
        store = [row for i in range(len(file["shard_table"])) for row in read_shard(file[f"shards/{i}"], names)]
    return File(recipe, names, subsets, store)


def text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def texts(table: h5py.Dataset) -> list[str]:
    return [text(value) for value in table[:].tolist()]


def read_records(group: h5py.Group, names: dict[str, list[str]]) -> list[Record]:
    columns = (
        scenes_of(group["factors"], names),
        *(texts(group[name]) for name in ("caption", "negative")),
        *(graphs_of(group[name]) for name in ("graph", "negative_graph")),
        *(group[name][:].tolist() for name in ("scene", "partner")),
    )
    return [Record(*row) for row in zip(*columns, strict=True)]


def scenes_of(table: h5py.Dataset, names: dict[str, list[str]]) -> list[Scene]:
    return [
        Scene(
            names["backgrounds"][row["background"]],
            int(row["view"]),
            tuple(
                Thing(names["animals"][a], names["textures"][t], names["slots"][p], names["sizes"][z] if z >= 0 else "")
                for a, t, p, z in zip(row["animal"], row["texture"], row["slot"], row["size"], strict=True)
                if a >= 0
            ),
        )
        for row in table[:]
    ]


def graphs_of(group: h5py.Group) -> list[tuple[list[str], list[tuple]]]:
    nodes, predicates = texts(group["nodes"]), texts(group["predicates"])
    edges = list(zip(predicates, group["subjects"][:].tolist(), group["objects"][:].tolist(), strict=True))
    starts = zip(group["node_start"][:].tolist(), group["edge_start"][:].tolist(), strict=True)
    return [(nodes[n:m], edges[e:f]) for (n, e), (m, f) in pairwise(starts)]


def read_shard(group: h5py.Group, names: dict[str, list[str]]) -> list[Stored]:
    rows = zip(scenes_of(group["scenes"], names), group["masks"][:], group["areas"][:], strict=True)
    return [
        Stored(scene, [(mask == i + 1).sum() / max(area, 1) for i, area in enumerate(areas[: len(scene.things)])])
        for scene, mask, areas in rows
    ]


def cells(scene: Scene) -> list[tuple[str, str]]:
    return [(thing.animal, thing.texture) for thing in scene.things]


def exchanged(scene: Scene) -> tuple[int, int]:
    """The two things that a swap changes: a checksum of places, background and view chooses among all pairs."""
    pairs = list(combinations(range(len(scene.things)), 2))
    key = f"{'+'.join(thing.place for thing in scene.things)}|{scene.background}|{scene.view}"
    return pairs[zlib.crc32(key.encode()) % len(pairs)]


def swap(scene: Scene) -> Scene:
    """The scene with two textures exchanged; a single thing keeps its own."""
    if len(scene.things) < 2:
        return scene
    things, (i, j) = list(scene.things), exchanged(scene)
    things[i] = things[i]._replace(texture=scene.things[j].texture)
    things[j] = things[j]._replace(texture=scene.things[i].texture)
    return scene._replace(things=tuple(things))


def four_cells(scene: Scene) -> set[tuple[str, str]]:
    """The cells of the exchanged things, before and after the exchange."""
    return {cells(one)[i] for one in (scene, swap(scene)) for i in exchanged(scene)}


def uneven(what: str, counts: Sequence[int], left: int = 0) -> Iterator[str]:
    """A problem if cards of a deck aren't dealt equally often; `left` of the scenes were left out later."""
    if max(counts) - min(counts) > 3 + left + UNEVEN * sum(counts) / len(counts):
        yield f"{what} are used {min(counts)} to {max(counts)} times"
