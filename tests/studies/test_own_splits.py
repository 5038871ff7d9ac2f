"""A user's own split in every study: a recipe, rules on the command line, a file that was made before."""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe_file import KINDS, read_recipe
from menagerie.studies import binding_grid, sample_efficiency, spatial_grid, split_study
from menagerie.studies.frame.study import all_arms
from tests.command import ROOT, read_rows, run_here, succeed

STUDY = [sys.executable, str(ROOT / "studies" / "split_study.py")]
RULES = ("texture=red & animal=rabbit", "texture[0]=grass")
MINE = f"""kind = "binding"
world = "tiny"
pairs = 0.5
views = 2
test_views = 1
test_scenes = 24
hold_out = ["{RULES[0]}", "{RULES[1]}"]
"""
SHORT = ["--preset", "smoke", "--steps", "6", "--batch", "8", "--models", "clip"]
BOTH = [*SHORT, "oc-clip"]
TESTS = {"seen_pairs", "unseen_pairs", "different_bag", "train_pairs", "held_out", "held_out 1", "held_out 2"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.toml").write_text(MINE)
    succeed([*STUDY, *BOTH, "--recipe", "mine.toml", "--out", "runs/recipe"], folder, page=False)
    return folder


def split_file(folder: Path) -> Path:
    (file,) = folder.glob("store/tiny-32px-*/binding-*.h5")
    return file


def test_each_rule_has_a_test_of_its_own(folder):
    rows = read_rows(folder / "runs/recipe/results.csv")
    assert {row["subset"] for row in rows} == {"validation", *TESTS}
    counts = {row["subset"]: int(row["n"]) for row in rows if row["task"] == "swap" and row["model"] == "clip"}
    assert counts["held_out"] == counts["held_out 1"] == counts["held_out 2"] == 24


def test_rules_on_the_command_line_are_those_of_a_recipe(folder):
    plain = MINE.replace(MINE.splitlines()[-1], "")
    (folder / "plain.toml").write_text(plain)
    command = [*STUDY, *SHORT, "--recipe", "plain.toml", "--hold-out", *RULES, "--out", "runs/rules"]
    succeed(command, folder, page=False)
    both = read_rows(folder / "runs/recipe/results.csv")
    assert read_rows(folder / "runs/rules/results.csv") == [row for row in both if row["model"] == "clip"]


def test_a_packed_split_elsewhere_gives_the_same(folder, tmp_path):
    """Made on one machine, opened on another: there is neither store nor recipe there."""
    generators = [sys.executable, "-m", "menagerie"]
    shutil.copy(split_file(folder), tmp_path / "packed.h5")
    succeed([*generators, "pack", "packed.h5"], tmp_path)
    succeed([*STUDY, *BOTH, "--split", "packed.h5", "--out", "runs/file"], tmp_path, page=False)
    assert not (tmp_path / "store").exists()
    assert read_rows(tmp_path / "runs/file/results.csv") == read_rows(folder / "runs/recipe/results.csv")


def test_tuning_trains_on_an_own_split(folder):
    command = [sys.executable, str(ROOT / "studies/tune.py"), *SHORT, "--trials", "1", "--seeds", "1"]
    succeed([*command, "--split", str(split_file(folder)), "--out", "runs/tune"], folder, page=False)
    (cell,) = (json.loads(file.read_text()) for file in (folder / "runs/tune").glob("cells/*/result.json"))
    assert cell["subsets"].keys() == {"validation", *TESTS}


def test_sample_efficiency_searches_over_a_recipe(folder):
    command = [sys.executable, str(ROOT / "studies" / "sample_efficiency.py"), *SHORT]
    refused = run_here([*command, "--split", str(split_file(folder))], folder)
    assert refused.returncode == 2
    assert "decides it itself" in refused.stderr
    study = sample_efficiency.PRESETS["smoke"].with_recipe(read_recipe(str(folder / "mine.toml")))
    arms = all_arms(replace(study, hard_negatives=(0.0, 0.5)))  # the rules leave no more
    assert {arm.cell.data.recipe.world for arm in arms} == {"tiny"}
    assert all("held_out 2" in arm.cell.tests for arm in arms)


def test_a_kind_without_a_grid_has_a_study(tmp_path):
    options = ["--world", "tiny", "--axes", "test_pairs=0.25,0.5", "--pairs", "1.0"]
    small = ["--views", "1", "--test-views", "1", "--test-scenes", "12"]
    command = [*STUDY, *SHORT, "--recipe", "counting", *options, *small, "--out", "runs/count"]
    succeed(command, tmp_path, page=False)
    rows = read_rows(tmp_path / "runs/count/results.csv")
    assert {row["test_pairs"] for row in rows} == {"0.25", "0.5"}
    assert {row["subset"] for row in rows} == {"validation", "seen_counts", "unseen_counts"}


def test_the_two_grids_are_presets_of_one_study():
    """The same splits whichever study names them."""
    for grid, kind in ((binding_grid.PRESETS["laptop"], "binding"), (spatial_grid.PRESETS["laptop"], "spatial")):
        study = split_study.Config(views=grid.views, pairs=grid.pairs, hard_negatives=grid.hard_negatives)
        given = study.with_recipe(KINDS[kind](views=grid.views))
        for place in grid.places:
            assert given.split_of(0, **place) == grid.split_of(0, **place)


@pytest.mark.parametrize("name", sorted(set(KINDS) | {"negation", "no_red_cat"}))
def test_grids_take_every_recipe_as_it_is(name):
    recipe = read_recipe(name)
    for grid in (split_study.PRESETS["laptop"], binding_grid.PRESETS["smoke"], spatial_grid.PRESETS["laptop"]):
        taken = grid.with_recipe(recipe)
        assert taken.split_of(0, **taken.places[0]) == recipe
        assert taken.tests == recipe.all_tests
    for preset in ("laptop", "fixed"):  # a search keeps its range
        grid = sample_efficiency.PRESETS[preset].with_recipe(BindingRecipe(world="tiny", pairs=0.3))
        assert (grid.pairs, grid.world) == ((0.0, 1.0), "tiny")


def test_a_dry_run_makes_nothing(tmp_path):
    done = succeed([*STUDY, *BOTH, "--dry-run"], tmp_path)
    assert re.search(r"^clip, nano, batch \d+: 1 runs, 6 steps", done.stdout, re.MULTILINE)
    assert re.search(r"^oc-clip, nano, batch \d+: 1 runs, 6 steps", done.stdout, re.MULTILINE)
    # No results decide what follows.
    assert re.search(r"^the steps take at most about .+ in all, \d runs at once", done.stdout, re.M)
    assert not list(tmp_path.rglob("*.h5"))
    assert not (tmp_path / "runs").exists()
