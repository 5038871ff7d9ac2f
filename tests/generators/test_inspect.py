"""Inspection: numbers match the records, matrices count every scene, and the page is self-contained."""

import base64
import io
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.figures import png
from menagerie.envs.slots import place_of
from menagerie.generators.inspection.matrices import (
    ROLES,
    animal_counts,
    attribute_counts,
    background_counts,
    count_matrix,
    pair_coverage,
    role_matrix,
)
from menagerie.generators.inspection.split_page import write_page
from menagerie.generators.inspection.summary import COLUMNS, facts, open_inspected, ranges, subset_rows
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.dependence import normalised_mutual_information
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.pack import pack
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


def test_rows_are_the_records(made):
    split = open_inspected(made)
    rows = subset_rows(split)
    assert [row.subset for row in rows] == ["train", *sorted(set(split.subsets) - {"train"})]
    for row in rows:
        records = split.subsets[row.subset]
        animals = [sorted(thing.animal for thing in scene.things) for scene in records.scenes]
        assert row.scenes == len(records.scenes)
        assert row.images == len({scene.key for scene in records.scenes})
        assert row.captions == len(Counter(records.captions))
        assert row.pairs == len({tuple(names) for names in animals if len(names) == 2})
        assert row.negatives == len(records.negatives) - records.negatives.count("")
        assert row.singles == sum(len(names) == 1 for names in animals)
        assert row.views == ((0, 1) if row.subset == "train" else (2,) if records.scenes else ())
        assert len(row.texts) == len(COLUMNS)


def test_facts(made):
    split = open_inspected(made)
    reported, train = facts(split), split.subsets["train"].scenes
    assert reported["kind"] == split.recipe["kind"]
    assert reported["world"] == "tiny: 4 animals, 3 textures, 2 backgrounds"
    assert f"pairs {split.recipe['pairs']}" in reported["recipe"]
    assert "reserve" not in reported["recipe"]  # has its default
    binding = split.recipe["kind"] == "binding"
    assert ("views 2" in reported["recipe"].split(", ")) == binding  # 2 is spatial's default
    assert reported["resolution"] == "16 × 16 pixels"
    assert reported["store"] in str(split.path.parent)
    assert reported["hold-out rules"] == ("; ".join(split.recipe["hold_out"]) or "none")
    fractions = [text for text in reported.values() if ", requested " in text]
    assert len(fractions) == (2 if split.recipe["kind"] == "binding" else 4)
    assert all(re.match(r"\d+ of (at most )?\d+ = [01]\.\d{3}, requested [01]\.\d{3}$", text) for text in fractions)
    for relation in ("left/right", "above/under"):
        pairs = {frozenset(t.animal for t in s.things) for s in train if s.relation == relation}
        name = "coverage" if split.recipe["kind"] == "binding" else f"coverage, {relation}"
        if pairs:
            assert reported[name] == f"{len(pairs)} of the world's 6 animal pairs are in train"
    red = [thing.texture == "red" for scene in train for thing in scene.things]
    assert f"red {sum(red) / len(red):.1%}, " in reported["textures in train"]


def test_matrices_count_every_scene(made):
    split = read_split(made)
    scenes, v = split.subsets["train"].scenes, split.vocabulary
    pairs = [scene for scene in scenes if len(scene.things) == 2]
    both = animal_counts(scenes, v)
    ordered = [animal_counts(scenes, v, relation) for relation in ("left/right", "above/under")]
    assert both.sum() == 2 * len(pairs) > 0
    assert (both == both.T).all()
    assert not both.diagonal().any()
    assert (sum(ordered) + sum(ordered).T == both).all()
    first, second = pairs[0].things
    place = v.animals.index(first.animal), v.animals.index(second.animal)
    scenes_of_both = [s for s in pairs if [t.animal for t in s.things] == [first.animal, second.animal]]
    assert sum(table[place] for table in ordered) == len(scenes_of_both)
    assert ordered[0][place] == sum(place_of(s.things[0].slot) == "left" for s in scenes_of_both)
    things = Counter(thing.animal for scene in scenes for thing in scene.things)
    for table in (attribute_counts(scenes, v, "texture"), background_counts(scenes, v)):
        assert table.sum(1).tolist() == [things[animal] for animal in v.animals]


def test_coverage_names_the_first_role_of_each_pair(made):
    split = read_split(made)
    relations = (None,) if split.recipe["kind"] == "binding" else ("left/right", "above/under")
    for relation in relations:
        of = {
            name: [s for s in records.scenes if len(s.things) == 2 and relation in (None, s.relation)]
            for name, records in split.subsets.items()
        }
        table = pair_coverage(split, relation)
        assert (table == table.T).all()
        for i, j in combinations(range(4), 2):
            pair = {split.vocabulary.animals[i], split.vocabulary.animals[j]}
            homes = [n for n, scenes in of.items() if any({t.animal for t in s.things} == pair for s in scenes)]
            assert ROLES[table[i, j]] == expected_role(split, pair, of["train"], homes)


def expected_role(split, pair, train, homes):
    """By the words of the captions alone, where the pair is in train."""
    own = [s for s in train if {t.animal for t in s.things} == pair]
    if split.recipe["kind"] == "binding":
        variants = {frozenset((t.animal, t.texture) for t in s.things) for s in own}
    else:
        variants = {s.things[0].animal for s in own}
    if variants:
        return "train, swapped too" if len(variants) == 2 else "train"
    roles = ["unseen_pairs" if name.endswith("unseen_pairs") else name for name in homes]
    return next((role for role in ROLES if role in roles), "another subset" if roles else "not in the file")


def test_swapped_pairs_are_as_many_as_requested(split):
    roles = Counter(ROLES[i] for i in pair_coverage(read_split(split))[np.triu_indices(4, 1)])
    assert (roles["train"], roles["train, swapped too"]) == (1, 2)


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
def test_normalised_mutual_information(table, expected):
    assert normalised_mutual_information(np.array(table, np.int64)) == pytest.approx(expected, abs=1e-12)


def test_page_stands_alone(made, tmp_path):
    split = open_inspected(made)
    write_page(split, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    sources = re.findall(r'<img src="([^"]+)" alt="([^"]+)"', html)
    figures = [alt for _, alt in sources if alt.startswith("Matrix")]
    assert len(figures) == (4 if split.recipe["kind"] == "binding" else 6)
    assert len(sources) == len(figures) + sum(min(5, len(records)) for records in split.subsets.values())
    for source, _ in sources:
        with Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))) as image:
            image.load()
    assert html.count("<img") == len(sources)
    assert not re.search(r"https?:|<link|<script\s|url\(|@import|href=", html)
    for records in split.subsets.values():
        shown = [i for i, caption in enumerate(records.captions) if f"✓ {caption}</p>" in html]
        assert len(shown) >= min(5, len(set(records.captions)))
        assert all(f"✗ {records.negatives[i]}</p>" in html for i in shown[:1] if records.negatives[i])
    assert str(tmp_path) not in html


def test_packed_gives_the_same_page(copied, tmp_path):
    write_page(open_inspected(copied), tmp_path / "one.html")
    pack(copied)
    write_page(open_inspected(copied), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_untrusted_names_are_no_formulas():
    names = ["$\\nonsense{$", "<b>cat</b>", "a_b^c"]
    counts = np.arange(9).reshape(3, 3)
    assert png(count_matrix(counts, names, names, ("", ""), "scenes"), fitted=True)
    assert png(role_matrix(np.full((3, 3), 6), names), fitted=True)


@pytest.mark.parametrize(
    ("numbers", "text"), [((), "–"), ((0,), "0"), ((0, 1, 2), "0–2"), ((1, 2, 5), "1–2, 5"), ((0, 2), "0, 2")]
)
def test_ranges(numbers, text):
    assert ranges(numbers) == text


def test_command_line(split, tmp_path):
    first = run(split, "--html", tmp_path / "page.html")
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"{tmp_path / 'page.html'}\n")
    lines = [line.split() for line in first.stdout.splitlines()]
    for row in subset_rows(open_inspected(split)):
        assert list(row.texts) in lines
    before = (tmp_path / "page.html").read_bytes()
    again, lost = run(split, "--html", tmp_path / "page.html"), run(split, "--html", tmp_path / "none/page.html")
    assert again.stderr == f"error: {tmp_path / 'page.html'} is there already; choose another --html\n"
    assert "there is no folder" in lost.stderr
    assert (again.returncode, again.stdout, lost.returncode, lost.stdout) == (2, "", 2, "")
    assert (tmp_path / "page.html").read_bytes() == before


def test_rules_are_reported_in_full(tmp_path):
    output = run(make_split(tmp_path, RECIPES["held_out"])).stdout
    assert "texture=red & animal=rabbit; texture[0]=grass" in " ".join(output.split())
    assert re.search(r"^held_out +\d+", output, re.MULTILINE)


def test_damaged_file_is_one_line(copied, tmp_path):
    content = bytearray(copied.read_bytes())
    copied.write_bytes(content[: len(content) // 2])
    result = run(copied, "--html", tmp_path / "page.html")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "is damaged" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_damaged_pixels_leave_no_page(split, tmp_path, monkeypatch):
    opened = open_inspected(split)

    def broken(*its):
        raise UserError("the atlas is damaged")

    monkeypatch.setattr("menagerie.generators.storage.pictures.SplitPictures.images", broken)
    with pytest.raises(UserError, match="atlas is damaged"):
        write_page(opened, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
