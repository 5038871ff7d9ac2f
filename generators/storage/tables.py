"""Scenes and graphs as HDF5 tables, and HDF5 files opened with clear errors."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np

from envs.common.errors import UserError
from generators.captions.graph import Edge, SceneGraph

TEXT = h5py.string_dtype("utf-8")


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
    """Open `path` to read; a file that is missing, truncated or of another kind raises with `remedy`."""
    if not path.is_file():
        raise UserError(f"there is no file {path}; {remedy}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, IndexError, ValueError, TypeError, RuntimeError) as error:
        detail = str(error).strip("'\"")
        raise UserError(f"{path} is damaged or not of this project ({detail}); {remedy}") from error
