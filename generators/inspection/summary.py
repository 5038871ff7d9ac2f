"""A split file in numbers: its recipe, its subsets, and the part of its world that train shows."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from math import comb
from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import plain
from menagerie.generators.audit.findings import animal_pair
from menagerie.generators.inspection.matrices import (
    Counts,
    attribute_counts,
    in_relation,
    mentioned_relations,
    pair_coverage,
)
from menagerie.generators.splits.recipe import ENTROPIES, at_least_one
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import LEFT_OUT, Split, read_split

COLUMNS = (
    "subset",
    "scenes",
    "distinct images",
    "distinct captions",
    "animal pairs",
    "with hard negative",
    "single animals",
    "views",
)


class SubsetRow(NamedTuple):
    """One subset in numbers."""

    subset: str
    scenes: int
    images: int
    captions: int
    pairs: int
    """Number of animal pairs, in any order."""
    negatives: int
    """Number of scenes with a hard negative."""
    singles: int
    """Number of scenes with a single animal."""
    views: tuple[int, ...]
    """Numbers of the views, without duplicates."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The row as texts, one for each of `COLUMNS`."""
        singles = f"{self.singles / self.scenes:.0%}" if self.scenes else "–"
        return (self.subset, *map(str, self[1:6]), singles, ranges(self.views))


def open_inspected(path: Path) -> Split:
    """Open a split that is undamaged and has train and validation; else raise."""
    split = read_split(path)
    for name in ("train", "validation"):
        choose(f"subset of {path}", name, split.subsets)
    return split


def facts(split: Split) -> dict[str, str]:
    """The split's properties, and the part of its world that train shows: name -> short text."""
    recipe, v, train = split.recipe, split.vocabulary, split.subsets["train"].scenes
    words = f"{len(v.animals)} animals, {len(v.textures)} textures, {len(v.backgrounds)} backgrounds"
    words += f", {len(v.sizes)} sizes" if v.sizes else ""
    return {
        "kind": recipe["kind"],
        "world": f"{recipe['world']}: {words}",
        "recipe": ", ".join(changed(recipe)) or "all fields have their defaults",
        "seed": str(recipe["seed"]),
        "resolution": f"{split.resolution} × {split.resolution} pixels",
        "store": split.identity,
        "hold-out rules": "; ".join(recipe["hold_out"]) or "none",
        **fractions(split),
        **train_pairs(split),
        **({"left out": left_out_text(split)} if LEFT_OUT in recipe else {}),
        **({"entropies": entropies_text(split)} if ENTROPIES in recipe else {}),
        "textures in train": shares(attribute_counts(train, v, "texture"), v.textures),
        **({"sizes in train": shares(attribute_counts(train, v, "size"), v.sizes)} if v.sizes else {}),
    }


def left_out_text(split: Split) -> str:
    """How many scenes of each subset were left out because too much of a thing is hidden."""
    left = split.recipe[LEFT_OUT]
    return "too much hidden: " + ", ".join(f"{len(numbers)} of {name}" for name, numbers in sorted(left.items()))


def entropies_text(split: Split) -> str:
    """How many bits say which things a scene shows, and how many say which of them has which texture."""
    bits = split.recipe[ENTROPIES]
    return f"{bits['which']:.4g} bits say which animals and textures, {bits['binding']:g} bit which has which"


def changed(recipe: dict) -> list[str]:
    """The fields of a recipe that differ from their defaults, except those that `facts` lists separately."""
    defaults = {field.name: field.default for field in fields(KINDS[choose("kind of split", recipe["kind"], KINDS)])}
    separate = ("world", "seed", "hold_out")
    return [
        f"{name} {' '.join(map(str, recipe[name])) if isinstance(default, tuple) else recipe[name]}"
        for name, default in defaults.items()
        if name not in separate and name in recipe and plain(recipe[name]) != plain(default)
    ]


def fractions(split: Split) -> dict[str, str]:
    """The realised and the requested fractions of a split of pairs, as texts under a label, for each relation: of
    training pairs among all but those of reserve and validation, and of training pairs with their swap."""
    recipe, every, texts = split.recipe, comb(len(split.vocabulary.animals), 2), {}
    kinds = {"binding": "with hard negatives in train", "spatial": "in both orders"}
    most = every - sum(at_least_one(recipe[share], every) for share in ("reserve", "validation"))
    known = not recipe["hold_out"] and recipe.get("objects", 1.0) == 1.0  # else some pairs may have no scene left
    for relation in mentioned_relations(split) if recipe["kind"] in kinds else ():
        roles, label = pair_coverage(split, relation), f", {relation}" if relation else ""
        swapped, once = (int((roles == role).sum()) // 2 for role in (0, 1))
        named = f"{'' if known else 'at most '}{most}"
        texts[f"training pairs{label}"] = share_text(swapped + once, most, named, recipe["pairs"])
        texts[f"pairs {kinds[recipe['kind']]}{label}"] = share_text(
            swapped, swapped + once, f"{swapped + once}", recipe["hard_negatives"]
        )
    return texts


def share_text(count: int, of: int, named: str, requested: float) -> str:
    return f"{count} of {named} = {count / max(of, 1):.3f}, requested {requested:.3f}"


def train_pairs(split: Split) -> dict[str, str]:
    """How many of the world's animal pairs train shows, as text under a label: overall or, if captions state relations,
    for each relation."""
    total = comb(len(split.vocabulary.animals), 2)
    texts = {}
    for relation in mentioned_relations(split):
        pairs = {animal_pair(scene) for scene in in_relation(split.subsets["train"].scenes, relation)} - {None}
        text = f"{len(pairs)} of the world's {total} animal pairs are in train"
        texts[f"coverage, {relation}" if relation else "coverage"] = text
    return texts


def shares(table: Counts, names: Sequence[str]) -> str:
    """The share of each column of a table (animals, names) in the table's sum, as text."""
    counts = table.sum(0)
    return ", ".join(f"{name} {n / max(counts.sum(), 1):.1%}" for name, n in zip(names, counts, strict=True))


def subset_rows(split: Split) -> list[SubsetRow]:
    """A row for every subset, train first."""
    names = sorted(split.subsets, key=lambda name: (name != "train", name))
    return [subset_row(name, split.subsets[name]) for name in names]


def subset_row(name: str, records: Records) -> SubsetRow:
    return SubsetRow(
        subset=name,
        scenes=len(records),
        images=len(set(records.scenes)),
        captions=len(set(records.captions)),
        pairs=len({animal_pair(scene) for scene in records.scenes} - {None}),
        negatives=sum(map(bool, records.negatives)),
        singles=sum(len(scene.things) == 1 for scene in records.scenes),
        views=tuple(sorted({scene.view for scene in records.scenes})),
    )


def ranges(numbers: Iterable[int]) -> str:
    """Sorted whole numbers as ranges: "0–3, 7"; a dash if there are none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs) or "–"
