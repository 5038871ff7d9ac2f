"""Split files: named subsets of a store's scenes with captions, negatives and graphs.

A split file lies in its store's folder and refers to the shards there through HDF5 external
links, so that plain h5py reads pixels through it (`file["shards/0/images"]`). It refers to
files of its own folder and to nothing else.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Int64

from envs.errors import UserError
from envs.files import whole_file
from envs.scene import Scene
from generators.binding import BindingRecipe, binding_scenes
from generators.captions import caption, hard_negative
from generators.graph import SceneGraph
from generators.store import INDEX, SHARD_TYPE, ImageStore, Shard, check_size
from generators.tables import TEXT, Vocabulary, open_hdf5, read_graphs, write_graphs

FORMAT = "menagerie split 1"
REMEDY = "make it again with 'python -m generators make'"
NO_GRAPH = SceneGraph(())


@dataclass(frozen=True)
class Records:
    """One subset: scenes, their rows in the store, captions and hard negatives.

    A scene without a hard negative (a lone animal) has the empty text and the empty graph.
    """

    scenes: list[Scene]
    rows: Int64[np.ndarray, " n"]
    captions: list[str]
    negatives: list[str]
    graphs: list[SceneGraph]
    negative_graphs: list[SceneGraph]

    def __len__(self) -> int:
        return len(self.scenes)


@dataclass(frozen=True)
class Split:
    """A split file in memory, without the pixels."""

    path: Path
    recipe: dict
    identity: str
    vocabulary: Vocabulary
    shards: list[Shard]
    subsets: dict[str, Records]


def describe(scenes: Sequence[Scene], rows: Int64[np.ndarray, " n"], seed: int) -> Records:
    """Captions, hard negatives and graphs of `scenes`."""
    captions = [caption(scene, seed) for scene in scenes]
    negatives = [hard_negative(scene, seed) for scene in scenes]
    return Records(
        scenes=list(scenes),
        rows=rows,
        captions=[c.text for c in captions],
        negatives=[c.text if c else "" for c in negatives],
        graphs=[c.graph for c in captions],
        negative_graphs=[c.graph if c else NO_GRAPH for c in negatives],
    )


def split_name(recipe: BindingRecipe) -> str:
    """A file name that says the fractions and differs whenever the recipe differs."""
    digest = hashlib.sha256(json.dumps(asdict(recipe), sort_keys=True).encode()).hexdigest()[:8]
    return f"binding-p{recipe.pairs:g}-n{recipe.hard_negatives:g}-s{recipe.seed}-{digest}.h5"


def make_binding_split(store: ImageStore, recipe: BindingRecipe) -> Path:
    """Write the split of `recipe` into the folder of `store`, which holds all its scenes."""
    path = store.folder / split_name(recipe)
    if not path.exists():
        subsets = {
            name: describe(scenes, store.rows(scenes), recipe.seed) for name, scenes in binding_scenes(recipe).items()
        }
        write_split(path, store, {"kind": "binding", **asdict(recipe)}, subsets)
    return path


def write_split(path: Path, store: ImageStore, recipe: dict, subsets: Mapping[str, Records]) -> None:
    """Write a split file, whole or not at all."""
    shards, _ = store.index()
    with whole_file(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["format"] = FORMAT
        file.attrs["recipe"] = json.dumps(recipe)
        file.attrs["identity"] = store.identity
        file.attrs["vocabulary"] = store.vocabulary.to_json()
        file["shard_table"] = np.array([(s.file.encode(), s.start, s.rows, s.bytes) for s in shards], SHARD_TYPE)
        for i, shard in enumerate(shards):
            file[f"shards/{i}"] = h5py.ExternalLink(shard.file, "/")
        for name, records in subsets.items():
            write_records(file.create_group(f"subsets/{name}"), store.vocabulary, records)


def write_records(group: h5py.Group, vocabulary: Vocabulary, records: Records) -> None:
    """Write one subset: store rows, scene factors, texts and graphs."""
    group["scene"] = records.rows
    group["factors"] = vocabulary.encode(records.scenes)
    group["caption"] = np.array(records.captions, dtype=TEXT)
    group["negative"] = np.array(records.negatives, dtype=TEXT)
    write_graphs(group.create_group("graph"), records.graphs)
    write_graphs(group.create_group("negative_graph"), records.negative_graphs)


def read_records(group: h5py.Group, vocabulary: Vocabulary) -> Records:
    """The subset that `write_records` wrote."""
    return Records(
        scenes=vocabulary.decode(group["factors"][:]),
        rows=group["scene"][:],
        captions=group["caption"].asstr()[:].tolist(),
        negatives=group["negative"].asstr()[:].tolist(),
        graphs=read_graphs(group["graph"]),
        negative_graphs=read_graphs(group["negative_graph"]),
    )


def read_split(path: Path) -> Split:
    """Read a split file; one that is damaged or refers outside its folder raises."""
    path = Path(path)
    with open_hdf5(path, REMEDY) as file:
        if file.attrs.get("format") != FORMAT:
            raise UserError(f"{path} is not a split file of this version; {REMEDY}")
        vocabulary = Vocabulary.from_json(file.attrs["vocabulary"])
        shards = [Shard(name.decode(), *map(int, rest)) for name, *rest in file["shard_table"][:]]
        for shard in shards:
            if Path(shard.file).name != shard.file:
                raise UserError(f"{path} refers to {shard.file!r}, outside its own folder; do not trust this file")
        return Split(
            path=path,
            recipe=json.loads(file.attrs["recipe"]),
            identity=file.attrs["identity"],
            vocabulary=vocabulary,
            shards=shards,
            subsets={name: read_records(group, vocabulary) for name, group in file["subsets"].items()},
        )


def check_store(split: Split) -> None:
    """Raise unless every shard lies beside `split`, whole, and belongs to the same store."""
    folder = split.path.parent
    remedy = f"keep {split.path.name} in the folder of its own store, or {REMEDY}"
    for path in [folder / INDEX, *(folder / shard.file for shard in split.shards)]:
        if path.name == INDEX and not path.exists():
            continue  # a split and its shards may travel without the index
        for shard in split.shards:
            if shard.file == path.name and path.exists():
                check_size(path, shard)
        with open_hdf5(path, remedy) as file:
            identity = file.attrs["identity"]
        if identity != split.identity:
            raise UserError(f"{split.path} belongs to store {split.identity}, but {path} to {identity}; {remedy}")
