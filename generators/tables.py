"""Scenes and graphs as HDF5 tables, and HDF5 files opened with clear errors."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np

from envs.errors import UserError
from envs.scene import MOST_THINGS, Scene, Thing
from envs.slots import SLOTS
from envs.world import World
from generators.graph import Edge, SceneGraph

# Factor indices; -1 where a scene has fewer things, or its world no sizes.
SCENE_TYPE = np.dtype(
    [
        ("background", "i2"),
        ("view", "i4"),
        ("animal", "i2", (MOST_THINGS,)),
        ("texture", "i2", (MOST_THINGS,)),
        ("slot", "i2", (MOST_THINGS,)),
        ("size", "i2", (MOST_THINGS,)),
    ]
)
TEXT = h5py.string_dtype("utf-8")


@dataclass(frozen=True)
class Vocabulary:
    """The names behind the factor indices of a scene table."""

    animals: tuple[str, ...]
    textures: tuple[str, ...]
    backgrounds: tuple[str, ...]
    slots: tuple[str, ...]
    sizes: tuple[str, ...] = ()

    @classmethod
    def of(cls, world: World) -> "Vocabulary":
        """The vocabulary of `world`, with all slots there are."""
        return cls(world.animals, world.textures, world.backgrounds, tuple(SLOTS), world.sizes)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """The vocabulary that `to_json` wrote."""
        return cls(**{name: tuple(words) for name, words in json.loads(text).items()})

    def to_json(self) -> str:
        """All names as one JSON object."""
        return json.dumps(asdict(self))

    def encode(self, scenes: Sequence[Scene]) -> np.ndarray:
        """Scene table (n,) of `SCENE_TYPE`."""
        table = np.full(len(scenes), -1, SCENE_TYPE)
        for row, scene in zip(table, scenes, strict=True):
            row["background"] = self.backgrounds.index(scene.background)
            row["view"] = scene.view
            for i, thing in enumerate(scene.things):
                row["animal"][i] = self.animals.index(thing.animal)
                row["texture"][i] = self.textures.index(thing.texture)
                row["slot"][i] = self.slots.index(thing.slot)
                row["size"][i] = self.sizes.index(thing.size) if thing.size else -1
        return table

    def decode(self, table: np.ndarray) -> list[Scene]:
        """The scenes of a table; an index outside the vocabulary raises `IndexError`."""
        scenes = []
        for background, view, *columns in table.tolist():
            things = tuple(
                Thing(self.animals[a], self.textures[t], self.slots[s], self.sizes[z] if z >= 0 else "")
                for a, t, s, z in zip(*columns, strict=True)
                if a >= 0
            )
            scenes.append(Scene(self.backgrounds[background], things, view))
        return scenes


def write_graphs(group: h5py.Group, graphs: Sequence[SceneGraph]) -> None:
    """Node and edge tables: flat columns, and where each graph's rows start."""
    edges = [edge for graph in graphs for edge in graph.edges]
    group["nodes"] = np.array([node for graph in graphs for node in graph.nodes], dtype=TEXT)
    group["node_start"] = np.cumsum([0, *(len(graph.nodes) for graph in graphs)])
    group["predicates"] = np.array([edge.predicate for edge in edges], dtype=TEXT)
    group["subjects"] = np.array([edge.subject for edge in edges], dtype="i4")
    group["objects"] = np.array([edge.object for edge in edges], dtype="i4")
    group["edge_start"] = np.cumsum([0, *(len(graph.edges) for graph in graphs)])


def read_graphs(group: h5py.Group) -> list[SceneGraph]:
    """The graphs that `write_graphs` wrote."""
    nodes = group["nodes"].asstr()[:].tolist()
    columns = (group["predicates"].asstr()[:].tolist(), group["subjects"][:].tolist(), group["objects"][:].tolist())
    edges = [Edge(*row) for row in zip(*columns, strict=True)]
    node_start, edge_start = group["node_start"][:].tolist(), group["edge_start"][:].tolist()
    return [
        SceneGraph(tuple(nodes[node_start[i] : node_start[i + 1]]), tuple(edges[edge_start[i] : edge_start[i + 1]]))
        for i in range(len(node_start) - 1)
    ]


@contextlib.contextmanager
def open_hdf5(path: Path, remedy: str) -> Iterator[h5py.File]:
    """Open `path` to read; what is missing, cut short or not ours raises with `remedy`."""
    if not path.is_file():
        raise UserError(f"there is no file {path}; {remedy}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, IndexError, ValueError, TypeError, RuntimeError) as error:
        detail = str(error).strip("'\"")
        raise UserError(f"{path} is damaged or not of this project ({detail}); {remedy}") from error
