"""Inspection: its numbers are those of the records."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from menagerie.generators.inspection import describe_split, subset_rows
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.dependence import normalised_mutual_information
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.split_file import read_split
from tests.command import run_here
from tests.helpers.splits import make_split

SIZES = {"world": "tiny", "views": 2, "test_views": 1, "test_scenes": 20}
RECIPES = {
    "binding": BindingRecipe(pairs=0.75, hard_negatives=0.5, **SIZES),
    "spatial": SpatialRecipe(pairs=0.75, hard_negatives=0.5, **SIZES),
    "held_out": BindingRecipe(pairs=1.0, hold_out=("texture=red & animal=rabbit", "texture[0]=grass"), **SIZES),
    "held_out_orders": SpatialRecipe(pairs=1.0, hold_out=("relation=above & first=rabbit",), **SIZES),
}


@pytest.fixture(scope="module", params=RECIPES)
def made(request, tmp_path_factory) -> Path:
    """A split of each kind, with and without hold-out rules."""
    return make_split(tmp_path_factory.mktemp(request.param), RECIPES[request.param])


def run(*options: object) -> subprocess.CompletedProcess:
    return run_here([sys.executable, "-m", "menagerie", "inspect", *map(str, options)], Path.cwd())


def test_inspect_counts_the_records_of_each_subset(made):
    split = read_split(made)
    rows = subset_rows(split)
    assert [row["subset"] for row in rows] == ["train", *sorted(set(split.subsets) - {"train"})]
    for row in rows:
        records = split.subsets[row["subset"]]
        animals = [sorted(obj.animal for obj in scene.objects) for scene in records.scenes]
        assert row["scenes"] == str(len(records.scenes))
        assert row["distinct images"] == str(len({scene.key for scene in records.scenes}))
        assert row["distinct captions"] == str(len(Counter(records.captions)))
        assert row["animal pairs"] == str(len({tuple(names) for names in animals if len(names) == 2}))
        assert row["with hard negative"] == str(len(records.negatives) - records.negatives.count(""))
        singles = sum(len(names) == 1 for names in animals) / max(len(animals), 1)
        assert row["single animals"] == (f"{singles:.0%}" if animals else "–")
        assert row["views"] == ("0–1" if row["subset"] == "train" else "2" if records.scenes else "–")


def test_the_reported_numbers_are_those_of_the_records(made):
    split = read_split(made)
    reported, train = describe_split(split), split.subsets["train"].scenes
    assert reported["kind"] == split.recipe["kind"]
    assert reported["world"] == "tiny: 4 animals, 3 textures, 2 backgrounds"
    assert f"pairs {split.recipe['pairs']}" in reported["recipe"]
    assert "test_pairs" not in reported["recipe"]  # has its default
    binding = split.recipe["kind"] == "binding"
    assert ("views 2" in reported["recipe"].split(", ")) == binding  # 2 is spatial's default
    assert reported["resolution"] == "16 × 16 pixels"
    assert reported["pictures"] in str(split.path.parent)
    assert reported["hold-out rules"] == ("; ".join(split.recipe["hold_out"]) or "none")
    for relation in ("left/right", "above/under"):
        pairs = {frozenset(t.animal for t in s.objects) for s in train if s.relation == relation}
        name = "coverage" if split.recipe["kind"] == "binding" else f"coverage, {relation}"
        if pairs:
            assert reported[name].startswith(f"{len(pairs)} of the world's 6 animal pairs are in train, ")
    red = [obj.texture == "red" for scene in train for obj in scene.objects]
    assert f"red {sum(red) / len(red):.1%}, " in reported["textures in train"]


def test_swapped_pairs_are_as_many_as_requested(split):
    reported = describe_split(read_split(split))
    coverage = "3 of the world's 6 animal pairs are in train, 2 of them with hard negatives in train"
    assert reported["coverage"] == coverage


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (np.outer([1, 2, 3], [4, 5]), 0.0),  # independent
        (5 * np.eye(4), 1.0),  # one texture per animal, and one animal per texture
        ([[1, 0], [1, 0], [0, 1], [0, 1]], 2 / 3),  # log 2 over the mean of log 4 and log 2
        ([[3, 1], [1, 3]], 1 - (0.75 * np.log2(4 / 3) + 0.25 * 2)),
        ([[7]], 0.0),
        (np.zeros((2, 3)), 0.0),
    ],
)
def test_normalised_mutual_information_agrees_with_scikit_learn(table, expected):
    assert normalised_mutual_information(np.array(table, np.int64)) == pytest.approx(expected, abs=1e-12)


def test_the_command_prints_every_row(split):
    lines = [line.split() for line in run(split).stdout.splitlines()]
    for row in subset_rows(read_split(split)):
        assert [word for text in row.values() for word in text.split()] in lines
