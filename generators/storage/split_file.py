"""Split files: named subsets of a store's scenes with captions, negatives and graphs.

A split file lies in its store's folder and refers to the shards there through HDF5 external links, so that plain h5py
reads pixels through it (`file["shards/0/images"]`). It refers only to files of its own folder. A packed split
(`menagerie.generators.storage.pack`) contains its only shard under the same name and refers to no other file; in its
table of shards the file is "".
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.identity import defaults_version, digest, identity_of, plain
from menagerie.envs.core.reading import Inaccessible, parse_json, shaped
from menagerie.envs.scene import Scene
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.splits.recipe import ENTROPIES, VERSION, SplitRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.generators.storage.shards import Shard, ShardLocation, check_shard, read_shard_table, shard_table
from menagerie.generators.storage.tables import (
    open_hdf5,
    read_attribute,
    read_graphs,
    read_table,
    read_texts,
    text_column,
    write_attribute,
    write_graphs,
    write_hdf5,
)
from menagerie.generators.vocabulary import SCENE_TYPE, Vocabulary

FORMAT = "menagerie split 5"
REMEDY = "make it again with 'menagerie make'"
NO_GRAPH = SceneGraph(())
LEFT_OUT = "left_out"  # in recorded recipes: by subset the numbers of the scenes that hide too much to be used
BESIDE = (LEFT_OUT, ENTROPIES)  # what recorded recipes have beside the fields of their kind
# Fields of a recipe that a split file records only if they differ from their defaults.
ONLY_IF_SET = {"phrasings", "conjunction", "mention_order", "article", "groups"}
ONLY_IF_SET_OF = {"spatial": {"singles_views", "attributes", "seen_order"}, "binding": {"objects"}}


@dataclass(frozen=True)
class Records:
    """One subset: scenes, their rows in the store, captions and hard negatives.

    A scene without a hard negative (for example a single animal, or one with an incomplete training
    caption) has the empty text and graph for it. In tests and validation each scene has a partner, the
    scene that its hard negative describes: two images and two captions make a quad.
    """

    scenes: list[Scene]
    rows: Int64[np.ndarray, " n"]
    partners: Int64[np.ndarray, " n"]  # rows of the partners; -1 for none
    captions: list[str]
    negatives: list[str]
    graphs: list[SceneGraph]
    negative_graphs: list[SceneGraph]
    groups: Int64[np.ndarray, " n"] | None = None  # in probe sets: what is split must be split by these

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
    intact: bool  # whether the content matches the checksum written with it
    recipe_version: str  # the result of `recipe_version` when the split was made

    def location(self, index: int) -> ShardLocation:
        """The location of shard `index`: beside the split, or inside a packed one."""
        file = self.shards[index].file
        if file:
            return ShardLocation(self.path.parent / file)
        return ShardLocation(self.path, f"/shards/{index}", "pack it again, or request a new copy")


def describe(subset: str, scenes: Sequence[Scene], row_of: Mapping[Scene, int], recipe: SplitRecipe) -> Records:
    """Make the records of a subset: rows, captions, hard negatives and graphs; training scenes have no partners."""
    partners = [-1 if subset == "train" else row_of[recipe.swap(scene)] for scene in scenes]
    texts = [recipe.texts(subset, scene) for scene in scenes]
    return Records(
        scenes=list(scenes),
        rows=np.array([row_of[scene] for scene in scenes], np.int64),
        partners=np.array(partners, np.int64),
        captions=[true.text for true, _ in texts],
        negatives=[false.text if false else "" for _, false in texts],
        graphs=[true.graph for true, _ in texts],
        negative_graphs=[false.graph if false else NO_GRAPH for _, false in texts],
        groups=recipe.groups_of(scenes),
    )


def split_name(recipe: SplitRecipe) -> str:
    """A file name with the recipe's fractions, unique for the recipe; a new field at its default doesn't change it."""
    name = digest({"kind": recipe.kind, "version": VERSION, **identity_of(recipe.resolved())})[:8]
    return f"{recipe.kind}-p{recipe.pairs:g}-n{recipe.hard_negatives:g}-s{recipe.seed}-{name}.h5"


def recipe_version(recipe: SplitRecipe | type[SplitRecipe]) -> str:
    """The version of a kind of recipe; it changes when the same fields give other scenes or texts."""
    kind = recipe if isinstance(recipe, type) else type(recipe)
    return f"{VERSION}.{defaults_version(kind).get('defaults', 1)}"


def recorded(recipe: SplitRecipe) -> dict:
    """A recipe as split files record it: with the groups that its rules name, without fields of `only_if_set` that have
    their defaults."""
    defaults = {field.name: field.default for field in fields(recipe) if field.name in only_if_set(recipe.kind)}
    values = asdict(recipe.resolved()).items()
    return {"kind": recipe.kind} | {name: value for name, value in values if defaults.get(name, MISSING) != value}


def only_if_set(kind: str) -> set[str]:
    """The fields of a kind of recipe that are recorded only if they differ from their defaults."""
    return ONLY_IF_SET | ONLY_IF_SET_OF.get(kind, set())


def make_split(store: ImageStore, recipe: SplitRecipe) -> Path:
    """Write the split of `recipe` into the folder of `store`, which must have all its scenes.

    An existing file is kept if it is undamaged, consistent with the store and of this recipe.
    """
    path = store.folder / split_name(recipe)
    with store.locked():
        try:
            kept = read_split(path)
            check_store(kept)
            check_recipe(kept, recipe, store.identity)
        except Inaccessible:
            raise
        except UserError:
            write_planned(path, store, recipe, recipe.subsets())
    return path


def write_planned(path: Path, store: ImageStore, recipe: SplitRecipe, planned: Mapping[str, list[Scene]]) -> None:
    """Write a split file of planned subsets, without the scenes that hide too much; the store must have all scenes."""
    needed = recipe.with_partners(planned)
    row_of = dict(zip(needed, store.rows(needed).tolist(), strict=True))  # `rows` reads the whole index
    left = recipe.left_out(planned, too_hidden(planned, store, row_of, recipe.least_visible))
    kept = without(planned, left)
    subsets = {name: describe(name, scenes, row_of, recipe) for name, scenes in kept.items()}
    whole = recorded(recipe) | ({LEFT_OUT: left} if left else {}) | recipe.measured(kept)
    write_split(path, store, whole, subsets, recipe_version(recipe))


def too_hidden(
    planned: Mapping[str, Sequence[Scene]], store: ImageStore, row_of: Mapping[Scene, int], least_visible: float
) -> dict[str, list[int]]:
    """For each subset, the numbers of its scenes in which less than `least_visible` of some thing shows; subsets
    without any are left out.

    A swap hides as much as its scene, for textures change no outline.
    """
    if not least_visible:
        return {}
    rows = np.array([row_of[scene] for scenes in planned.values() for scene in scenes], np.int64)
    hidden = (np.nan_to_num(store.hidden(rows)) > 1 - least_visible).any(1)
    parts = np.split(hidden, np.cumsum([len(scenes) for scenes in planned.values()])[:-1])
    left = {name: np.flatnonzero(part).tolist() for name, part in zip(planned, parts, strict=True)}
    return {name: numbers for name, numbers in left.items() if numbers}


def without(planned: Mapping[str, list[Scene]], left: Mapping[str, Sequence[int]]) -> dict[str, list[Scene]]:
    """The planned subsets without the scenes whose numbers are in `left`."""
    dropped = {name: set(numbers) for name, numbers in left.items()}
    return {
        name: [scene for i, scene in enumerate(scenes) if i not in dropped[name]] if name in dropped else scenes
        for name, scenes in planned.items()
    }


def check_recipe(split: Split, recipe: SplitRecipe, store: str) -> None:
    """Raise unless a split was made from this recipe, in its current version, and from the image store with this
    identity.

    A file's name proves nothing: another split may have been copied there.
    """
    written = {name: value for name, value in split.recipe.items() if name not in BESIDE}
    same = written == plain(recorded(recipe)) and split.identity == store
    same &= split.recipe_version == recipe_version(recipe)
    if not same or split.subsets.keys() != {"train", "validation", *recipe.all_tests}:
        raise UserError(f"{split.path} is another split than its name says; start the study again, which makes it anew")


def write_split(path: Path, store: ImageStore, recipe: dict, subsets: Mapping[str, Records], version: str) -> None:
    """Write a split file, whole or not at all."""
    shards = store.listing().shards

    def fill(file: h5py.File) -> None:
        write_tables(file, Split(path, recipe, store.identity, store.vocabulary, shards, dict(subsets), True, version))
        links = file.create_group("shards")
        for i, shard in enumerate(shards):
            links[str(i)] = h5py.ExternalLink(shard.file, "/")

    write_hdf5(path, fill)


def write_tables(file: h5py.File, split: Split) -> None:
    """Write everything in a split except its shards."""
    write_attribute(file, "format", FORMAT)
    write_attribute(file, "recipe", json.dumps(split.recipe))
    write_attribute(file, "identity", split.identity)
    tables = {name: split.vocabulary.encode(records.scenes) for name, records in split.subsets.items()}
    write_attribute(file, "vocabulary", split.vocabulary.to_json(*tables.values()))
    write_attribute(file, "checksum", checksum(split.recipe, split.subsets))
    write_attribute(file, "recipe_version", split.recipe_version)
    file["shard_table"] = shard_table(split.shards)
    subsets = file.create_group("subsets")  # explicitly: HDF5 writes the time into implicit groups
    for name, records in split.subsets.items():
        write_records(subsets.create_group(name), tables[name], records)


def checksum(recipe: dict, subsets: Mapping[str, Records]) -> str:
    """SHA-256 of a split's recipe and records."""
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode())
    for name, r in sorted(subsets.items()):
        keys = [scene.key for scene in r.scenes]
        texts = [name, keys, r.rows.tolist(), r.partners.tolist(), r.captions, r.negatives, r.graphs, r.negative_graphs]
        texts += [] if r.groups is None else [r.groups.tolist()]
        digest.update(json.dumps(texts).encode())
    return digest.hexdigest()


def content_identity(split: Split) -> str:
    """A hash of a split's content without row numbers of its store: a split and its packed copy have the same."""
    records = {name: replace(r, rows=r.rows[:0], partners=r.partners[:0]) for name, r in split.subsets.items()}
    return hashlib.sha256(f"{split.identity} {checksum(split.recipe, records)}".encode()).hexdigest()[:16]


def write_records(group: h5py.Group, factors: np.ndarray, records: Records) -> None:
    """Write one subset: store rows, scene factors, texts and graphs. `factors` is the table of its scenes."""
    group["scene"] = records.rows
    group["partner"] = records.partners
    group["factors"] = factors
    group["caption"] = text_column(records.captions)
    group["negative"] = text_column(records.negatives)
    write_graphs(group.create_group("graph"), records.graphs)
    write_graphs(group.create_group("negative_graph"), records.negative_graphs)
    if records.groups is not None:
        group["group"] = records.groups


def read_records(group: h5py.Group, vocabulary: Vocabulary) -> Records:
    """Read a subset that `write_records` wrote."""
    return Records(
        scenes=vocabulary.decode(read_table(group, "factors", SCENE_TYPE)),
        rows=read_table(group, "scene", np.dtype("i8")),
        partners=read_table(group, "partner", np.dtype("i8")),
        captions=read_texts(group, "caption"),
        negatives=read_texts(group, "negative"),
        graphs=read_graphs(group["graph"]),
        negative_graphs=read_graphs(group["negative_graph"]),
        groups=read_table(group, "group", np.dtype("i8")) if "group" in group else None,
    )


def read_split(path: Path, verify: bool = True) -> Split:
    """Read a split file; raises if it is damaged or refers outside its folder.

    Without `verify` a wrong checksum doesn't raise; `intact` is False.
    """
    path = Path(path)
    with open_hdf5(path, REMEDY) as file:
        if "format" not in file.attrs or read_attribute(file, "format") != FORMAT:
            raise UserError(f"{path} is not a split file of this version; {REMEDY}")
        check_links(file, path)
        vocabulary = Vocabulary.from_json(read_attribute(file, "vocabulary"))
        recipe = shaped(parse_json(read_attribute(file, "recipe"), "its recipe"), dict[str, Any], "its recipe")
        subsets = {name: read_records(group, vocabulary) for name, group in file["subsets"].items()}
        intact = checksum(recipe, subsets) == read_attribute(file, "checksum")
        if verify and not intact:
            raise ValueError("its checksum is wrong")  # `open_hdf5` adds path and remedy
        shards = read_shard_table(file, "shard_table")
        version, identity = (read_attribute(file, name) for name in ("recipe_version", "identity"))
        return Split(path, recipe, identity, vocabulary, shards, subsets, intact, version)


def check_links(file: h5py.File, path: Path) -> None:
    """Raise if a link leads to anything but a shard in the split's folder, or to any file if the split is packed."""
    shards = read_shard_table(file, "shard_table")
    packed = any(not shard.file for shard in shards)

    def refuse(name: str) -> None:
        bounds = "itself, though it is packed" if packed else "its own folder"
        raise UserError(f"{path} refers to {name!r}, outside {bounds}; do not trust this file")

    def walk(group: h5py.Group) -> None:
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                if packed or group.name != "/shards" or Path(link.filename).name != link.filename:
                    refuse(link.filename)
            elif isinstance(link, h5py.SoftLink):
                refuse(link.path)
            elif isinstance(item := group[name], h5py.Group):
                walk(item)
            elif not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
                refuse(item.name)

    walk(file)
    for shard in shards:
        if Path(shard.file).name != shard.file or (packed and shard.file):
            refuse(shard.file)


def check_store(split: Split) -> None:
    """Raise unless the shards of `split` are undamaged, of its store, and have its scenes and their partners."""
    swap = SWAPS[choose(f"kind of {split.path}", split.recipe["kind"], SWAPS)]
    tables, start = [], 0
    for i, shard in enumerate(split.shards):
        if not split.location(i).file.exists():
            raise UserError(f"{split.path} needs {shard.file} beside it; keep it in the folder of its store")
        tables.append(check_shard(split.location(i), split.identity))
        if (shard.start, shard.rows) != (start, len(tables[-1])):
            named = f"{split.path} lists {shard.file or 'its shard'} with other rows than it has"
            raise UserError(f"{named}, which show other scenes in this store; {REMEDY}")
        start += shard.rows
    shown = np.concatenate(tables) if tables else np.empty(0, SCENE_TYPE)
    for name, records in split.subsets.items():
        in_range = (records.rows >= 0) & (records.rows < len(shown))
        if not in_range.all() or (shown[records.rows] != split.vocabulary.encode(records.scenes)).any():
            raise UserError(f"the rows of {name} in {split.path} show other scenes in this store; {REMEDY}")
        paired = records.partners >= 0
        try:
            swapped = [swap(scene) for scene, has in zip(records.scenes, paired, strict=True) if has]
        except ValueError as error:  # a single thing has nothing to exchange
            raise UserError(f"a scene of {name} in {split.path} can have no partner ({error}); {REMEDY}") from error
        rows = records.partners[paired]
        if (rows >= len(shown)).any() or (shown[rows] != split.vocabulary.encode(swapped)).any():
            raise UserError(f"the partners of {name} in {split.path} show other scenes in this store; {REMEDY}")
