"""Recipes as TOML files, and the commands that read them."""

import sys
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.run import audit, audit_records
from menagerie.generators.splits.recipe_file import FROZEN, SHIPPED, describe_recipe, read_recipe
from menagerie.generators.splits.spatial import SpatialRecipe
from tests.command import run_here
from tests.forked import Forked
from tests.helpers.splits import in_memory

TINY = 'world = "tiny"\nviews = 1\ntest_views = 1\ntest_scenes = 10\n'


def generators(*arguments, folder):
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], folder)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_makes_a_sound_split(name):
    """With its own world, fractions and rules, in few views; its images are made for others of its kind."""
    assert describe_recipe(name)
    recipe = read_recipe(name)
    few = {"views": 1, "test_views": 1, "test_scenes": 10} if recipe.trains else {"animals": ("cat", "lion", "bear")}
    few |= {"train_scenes": 600} if hasattr(recipe, "train_scenes") else {}
    findings = audit_records(in_memory(replace(recipe, **few)))
    assert all(finding.holds and not finding.skipped for finding in findings)


def test_a_recipe_file_sets_fields(tmp_path):
    (tmp_path / "r.toml").write_text('kind = "spatial"\npairs = 1\nrelations = ["left/right"]\nseed = 3\n')
    assert read_recipe(str(tmp_path / "r.toml")) == SpatialRecipe(pairs=1.0, relations=("left/right",), seed=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown kind of split ''; known: all-pairs, binding, counting"),
        ('kind = "bindin"', "did you mean 'binding'"),
        ('kind = "binding"\npars = 0.2', "unknown field 'pars'; did you mean 'pairs'"),
        ('kind = "binding"\npairs = "0.2"', "pairs can't be '0.2': Expected `float`"),
        ('kind = "binding"\nviews = true', "views can't be True: Expected `int`"),
        ('kind = "binding"\npairs = 2', "pairs must be at most 1, got 2"),
        ('kind = "spatial"\nrelations = ["beside"]', "unknown relation 'beside'"),
        ('kind = "binding"\ntemplate = "pug-conjuncton"', "unknown template 'pug-conjuncton'; did you mean 'pug-con"),
        ('kind = "binding"\ntemplate = "relation"', "states a relation, but no binding split does; choose conj"),
        ('kind = "spatial"\ntemplate = "pug-conjunction"', "states no relation, but every spatial split does; choose"),
        ("kind = ", "is no TOML"),
    ],
)
def test_a_wrong_recipe_file_is_named(text, message, tmp_path):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(UserError, match=r"r\.toml") as raised:
        read_recipe(str(tmp_path / "r.toml"))
    assert message in str(raised.value)


def test_make_takes_a_recipe_with_overrides_and_renders_once(tmp_path):
    (tmp_path / "r.toml").write_text('kind = "spatial"\n' + TINY)
    options = ("make", "r.toml", "--resolution", 16, "--test-scenes", 1000, "--pairs", 1)  # all test scenes
    dry = generators(*options, "--dry-run", folder=tmp_path)
    assert dry.returncode == 0, dry.stderr
    assert "8 of 8 trainable pairs in train" in dry.stdout
    assert "atlas entries" in dry.stdout.splitlines()[-1]
    assert not list(tmp_path.glob("store/*/*.h5"))
    first, again = (generators(*options, folder=tmp_path).stdout for _ in range(2))
    assert first == again
    assert all(finding.holds for finding in audit(tmp_path / first.splitlines()[-1]))
    other = generators(*options[:-1], 0.5, "--dry-run", folder=tmp_path)
    assert ", 0 of them to build" in other.stdout, "a second split of what is rendered renders nothing"


def test_a_misspelt_recipe_is_refused_and_recipes_are_listed(tmp_path):
    wrong = generators("make", "spatil", folder=tmp_path)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert "did you mean 'spatial'" in wrong.stderr
    listed = generators("recipes", folder=tmp_path).stdout
    assert all(name in listed for name in (*SHIPPED, *FROZEN))


def test_two_commands_on_one_store_both_end_right(tmp_path):
    (tmp_path / "r.toml").write_text('kind = "spatial"\n' + TINY)
    start = [sys.executable, "-m", "menagerie", "make", "r.toml", "--resolution", "16", "--pairs"]
    for command in [Forked([*start, pairs], tmp_path) for pairs in ("0.5", "1")]:
        done = command.ended()
        assert done.returncode == 0, done.stderr
        assert all(finding.holds for finding in audit(tmp_path / done.stdout.splitlines()[-1]))
