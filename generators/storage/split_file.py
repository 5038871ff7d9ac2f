"""Split files: for each subset a table of scenes and of what their captions say, and on request pictures and texts.

    /                 attributes: format, recipe (JSON), vocabulary (JSON), identity of the images, resolution,
                      version of the recipe, digest (SHA-256 of all but pictures and texts)
    /SUBSET/          background, view, animal, texture, slot, [size]   numbers of names (`vocabulary.Columns`)
                      phrasing, mentioned, textured, negative, [denied]   what captions say (`columns.encode_contents`)
                      counterfactual   row of the swapped scene, or -1;  [pair]    in probe sets
                      [images (n, h, w, 3), masks (n, h, w), caption, false_caption]   (`pack`)

All are plain contiguous HDF5 datasets, which are mapped into memory. The attribute `records` of a subset is the number
of its records; rows of further counterfactuals follow them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import defaults_version, digest, identity_of, json_value
from menagerie.envs.core.reading import check_shape, parse_json
from menagerie.generators.splits.recipe import ENTROPIES, VERSION, SplitRecipe, recorded_fields
from menagerie.generators.splits.recipe_file import KINDS, read_recorded
from menagerie.generators.storage.hdf5 import map_column, open_hdf5, read_attribute, write_attribute, write_hdf5
from menagerie.generators.storage.records import CONTENT_COLUMNS, Records
from menagerie.generators.vocabulary import SCENE, Columns, Vocabulary

FORMAT = "menagerie split 6"
REMEDY = "make it again with 'menagerie make'"
LEFT_OUT = "left_out"  # in recorded recipes: by subset the numbers of the scenes that hide too much to be used
BESIDE = (LEFT_OUT, ENTROPIES)  # what recorded recipes have beside the fields of their kind
COLUMNS = (*SCENE[:-1], *CONTENT_COLUMNS, "counterfactual")  # of every subset
PICTURED = ("images", "masks", "caption", "false_caption")  # what `pack` adds to a subset
SETTINGS = ("recipe", "vocabulary", "identity", "resolution", "recipe_version")


@dataclass(frozen=True)
class Split:
    """A split file, opened. A pickle is its path: each process maps the file, and all share the system's copy of it."""

    path: Path
    recipe: dict
    identity: str
    """What decides the pixels of its images (`image_identity`)."""
    resolution: int
    vocabulary: Vocabulary
    recipe_version: str
    """The result of `recipe_version` when the split was made."""
    subsets: dict[str, Records]
    digest: str

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen_split, (self.path.absolute(), self.digest)

    @property
    def kind(self) -> type[SplitRecipe]:
        """The kind of the split."""
        return KINDS[self.recipe["kind"]]

    @cached_property
    def made_by(self) -> SplitRecipe:
        """The recipe that made the split. Raises if its fields are another version's."""
        try:
            return read_recorded(self.recipe)
        except UserError as error:
            raise UserError(f"the recipe in {self.path}: {error}; {REMEDY}") from error

    @property
    def content(self) -> str:
        """The identity of recipe, scenes and texts; a packed split has the same."""
        return self.digest[:16]


def split_name(recipe: SplitRecipe) -> str:
    """A file name with the recipe's fractions, unique for the recipe; a new field at its default doesn't change it."""
    name = digest({"kind": recipe.kind, "version": VERSION, **identity_of(recipe.with_used_sets())})[:8]
    return f"{recipe.kind}-p{recipe.pairs:g}-n{recipe.hard_negatives:g}-s{recipe.seed}-{name}.h5"


def recipe_version(recipe: SplitRecipe | type[SplitRecipe]) -> str:
    """The version of a kind of recipe; it changes when the same fields give other scenes or texts."""
    kind = recipe if isinstance(recipe, type) else type(recipe)
    return f"{VERSION}.{defaults_version(kind).get('defaults', 1)}"


def check_recipe(split: Split, recipe: SplitRecipe, images: str) -> None:
    """Raise unless a split was made from this recipe, in its current version, with images of this identity.

    A file's name proves nothing: another split may have been copied there.
    """
    same = is_made_by(split, recipe) and split.identity == images
    if not same or split.subsets.keys() != {"train", "validation", *recipe.all_tests}:
        raise UserError(f"{split.path} is another split than its name says; start the study again, which makes it anew")


def is_made_by(split: Split, recipe: SplitRecipe) -> bool:
    """Whether a split records this recipe, in its current version."""
    written = {name: value for name, value in split.recipe.items() if name not in BESIDE}
    return written == json_value(recorded_fields(recipe)) and split.recipe_version == recipe_version(recipe)


def write_split(
    path: Path,
    recipe: Mapping[str, Any],
    vocabulary: Vocabulary,
    images: tuple[str, int],
    version: str,
    subsets: Mapping[str, tuple[Columns, int]],
) -> None:
    """Write a split file without pictures, whole or not at all: the columns of each subset, and the number of its
    records. `images` are what decides the pixels, and the resolution."""
    texts = (json.dumps(recipe), json.dumps(asdict(vocabulary)), images[0], str(images[1]), version)
    settings = dict(zip(SETTINGS, texts, strict=True))

    def fill(file: h5py.File) -> None:
        for name, text in {"format": FORMAT, "digest": digest_content(settings, subsets), **settings}.items():
            write_attribute(file, name, text)
        for subset, (columns, count) in subsets.items():
            group = file.create_group(subset)
            group.attrs["records"] = count
            for name, values in columns.items():
                group.create_dataset(name, data=values)

    size = sum(column.nbytes for columns, _ in subsets.values() for column in columns.values())
    write_hdf5(path, fill, size + sum(map(len, texts)))


def digest_content(settings: Mapping[str, str], subsets: Mapping[str, tuple[Columns, int]]) -> str:
    """SHA-256 of settings and columns."""
    hashed = hashlib.sha256(json.dumps(dict(sorted(settings.items()))).encode())
    for subset, (columns, count) in sorted(subsets.items()):
        for name, values in sorted(columns.items()):
            hashed.update(f"\0{subset}/{name} {count} {values.dtype.str} {values.shape}\0".encode())
            hashed.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def read_split(path: Path, verify: bool = True) -> Split:
    """Open a split file; raises if it is damaged or refers to other files. Without `verify` its content isn't compared
    with its digest."""
    path = Path(path)
    with open_hdf5(path, REMEDY) as file:
        if "format" not in file.attrs or read_attribute(file, "format") != FORMAT:
            raise UserError(f"{path} is not a split file of this version; {REMEDY}")
        settings = {name: read_attribute(file, name) for name in SETTINGS}
        recipe = check_shape(parse_json(settings["recipe"], "its recipe"), dict[str, Any], "its recipe")
        if recipe.get("kind") not in KINDS:
            raise UserError(f"{path} is of an unknown kind; {REMEDY}")
        vocabulary = Vocabulary.from_json(settings["vocabulary"])
        subsets = {name: columns_in(file, name) for name in file}
        written = read_attribute(file, "digest")
        if verify and digest_content(settings, subsets) != written:
            raise UserError(f"{path} is damaged (its digest is wrong); {REMEDY}")
        records = {name: Records(recipe, vocabulary, *found) for name, found in subsets.items()}
        images, side, version = settings["identity"], int(settings["resolution"]), settings["recipe_version"]
        return Split(path, recipe, images, side, vocabulary, version, records, written)


def reopen_split(path: Path, digest: str) -> Split:
    """Open a split file in another process; raises if another one lies there by now."""
    split = read_split(path, verify=False)
    check_unreplaced(split.path, split.digest, digest)
    return split


def check_unreplaced(path: Path, digest: str, before: str) -> None:
    """Raise if a file's digest isn't the one that it had before."""
    if digest != before:
        raise UserError(f"{path} was replaced by another split since it was opened; start again")


def columns_in(file: h5py.File, subset: str) -> tuple[dict[str, np.ndarray], int]:
    """The columns of a subset, and the number of its records. Raises `ValueError` if they differ in length."""
    group = file[subset] if isinstance(file.get(subset, getlink=True), h5py.HardLink) else None
    if not isinstance(group, h5py.Group):
        raise ValueError(f"{subset} is no table")
    columns = {name: map_column(group, name) for name in group if name not in PICTURED}
    if missing := sorted({*COLUMNS} - columns.keys()):
        raise ValueError(f"{subset} has no {missing[0]}")
    count, lengths = int(group.attrs["records"]), {len(column) for column in columns.values()}
    if len(lengths) != 1 or not 0 <= count <= lengths.pop():
        raise ValueError(f"the columns of {subset} differ in length")
    return columns, count
