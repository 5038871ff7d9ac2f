"""How faults are planted: a split in memory is written, with right digests, with other contents than its recipe makes.

Texts and graphs are made of contents. A mistake of the code that makes them is planted by `with_texts`, in memory.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from menagerie.generators.audit.regeneration import current_recipe
from menagerie.generators.captions.templates import Content
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.hdf5 import write_attribute
from menagerie.generators.storage.pack import DIGEST
from menagerie.generators.storage.records import Records, blocks
from menagerie.generators.storage.split_file import PICTURED, Split, read_split, split_name, write_split

Plant = Callable[[Split], Split]
Changes = Mapping[str, Callable[[np.ndarray], np.ndarray] | None]  # of tables; None takes one away
PLANTED = "planted texts"


def with_subsets(split: Split, **subsets: Records) -> Split:
    """The split with other records in some subsets."""
    return replace(split, subsets={**split.subsets, **subsets})


def with_contents(split: Split, name: str, contents: Iterable[Content]) -> Split:
    """The split with other contents in a subset; counterfactuals and groups are those of their scenes."""
    recipe, given = replace(split.made_by), list(contents)
    following = iter(given)
    recipe.__dict__["content"] = lambda subset, scene: next(following)
    table, count = make_columns(name, [content.scene for content in given], recipe, split.vocabulary)
    return with_subsets(split, **{name: Records(split.recipe, split.vocabulary, table, count)})


def contents_of(split: Split, name: str) -> list[Content]:
    """What the captions of a subset say."""
    return split.subsets[name].contents_at(slice(len(split.subsets[name])))


def with_columns(split: Split, name: str, **columns: np.ndarray) -> Split:
    """The split with other columns in a subset, whose first rows are given."""
    its = split.subsets[name]
    whole = {column: np.concatenate([new, its.columns[column][len(new) :]]) for column, new in columns.items()}
    return with_subsets(split, **{name: Records(its.recipe, its.vocabulary, {**its.columns, **whole}, its.count)})


def with_texts(split: Split, name: str, **texts: Sequence) -> Split:
    """The split with other captions (`true`) or negatives (`false`) in a subset, as a bug would write them."""
    its = split.subsets[name]
    other = Records(its.recipe, its.vocabulary, its.columns, its.count)
    vars(other).update({PLANTED: texts, **texts})
    return with_subsets(split, **{name: other})


def claimed(**fields: object) -> Plant:
    """The split says that it is of another recipe."""
    return lambda split: replace(split, recipe={**split.recipe, **fields})


def changed(values: Sequence, index: int, value: object) -> list:
    """The values, one of which is another."""
    return [*values[:index], value, *values[index + 1 :]]


def light_file(folder: Path, split: Split, planted: Split | None = None) -> Split:
    """Write what was planted in a split, under the split's name; read it, and give it the texts that were planted."""
    path, wrong = folder / split_name(current_recipe(split)), planted or split
    tables = {name: (records.columns, records.count) for name, records in wrong.subsets.items()}
    write_split(path, wrong.recipe, wrong.vocabulary, (wrong.identity, 16), wrong.recipe_version, tables)
    found = read_split(path)
    for name, records in found.subsets.items():
        vars(records).update(vars(wrong.subsets[name]).get(PLANTED, {}))
    return found


def plant_in_pictures(path: Path, changes: Changes, sign: bool, subset: str = "train") -> None:
    """Change the pictures and texts of a subset of a packed file; with `sign`, their digest is computed again."""
    with h5py.File(path, "r+") as file:
        group = file[subset]
        for name, change in changes.items():
            table = group[name][:]
            del group[name]
            if change is not None:
                group[name] = change(table)
        if sign:
            hashed = hashlib.sha256()
            for rows in blocks(len(group["view"])):
                for name in PICTURED:
                    hashed.update(group[name][rows].tobytes() if name in group else b"")
            write_attribute(group, DIGEST, hashed.hexdigest())
