"""Sets of animals: rules that name one mean all of its animals, and a split file keeps what they meant."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit
from menagerie.generators.rules.hold_out import with_sets
from menagerie.generators.rules.parser import parse_rule
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import recorded_fields
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import read_split, split_name
from menagerie.studies.runs.data import SplitData
from tests.helpers.own_animals import LYNX
from tests.helpers.splits import failed, make_split

GROUPS = ("birds={penguin}", "big ones={elephant, crocodile}")
WORLD = with_sets(load_world("tiny"), GROUPS)
SCENES = list(WORLD.factorial())
TINY = {"world": "tiny", "pairs": 0.5, "views": 1, "test_views": 1, "test_scenes": 20}


@pytest.mark.parametrize(
    ("grouped", "written_out"),
    [
        ("animal=big ones", "animal={elephant, crocodile}"),
        ("animal='big ones' & texture=red", "animal={elephant, crocodile} & texture=red"),
        ("animal!=big ones", "animal!={elephant, crocodile}"),
        ("not animal={birds, rabbit}", "not animal={penguin, rabbit}"),
        ("animal[0]=big ones & texture[0]=texture[1]", "animal[0]={elephant, crocodile} & texture[0]=texture[1]"),
        ("relation=under & first=big ones", "relation=under & first={elephant, crocodile}"),
        ("second=birds", "second=penguin"),
        ("pair={birds, rabbit}", "pair={penguin, rabbit}"),
        ("pair={big ones, rabbit}", "pair={elephant, rabbit} | pair={crocodile, rabbit}"),
        ("pair={big ones, birds}", "pair={elephant, penguin} | pair={crocodile, penguin}"),
        ("pair={big ones, big ones}", "pair={elephant, crocodile}"),
    ],
)
def test_a_set_means_its_animals(grouped, written_out):
    rule, other = parse_rule(grouped, WORLD), parse_rule(written_out, WORLD)
    matched = [rule.matches(scene) for scene in SCENES]
    assert matched == [other.matches(scene) for scene in SCENES]
    assert 0 < sum(matched) < len(SCENES)
    assert {name for name, _ in rule.sets} == {name for name in ("birds", "big ones") if name in grouped}
    assert other.sets == ()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("animal=brids", "unknown animal 'brids'; did you mean 'birds'"),
        ("texture=birds", "unknown texture 'birds'"),
        ("background=birds", "unknown background 'birds'"),
        ("pair=big ones", "pair is a set of two animals"),
    ],
)
def test_a_set_stands_for_animals_only(rule, message):
    with pytest.raises(UserError, match=message):
        parse_rule(rule, WORLD)


def test_names_of_other_kinds_keep_their_meaning():
    world = with_sets(load_world("tiny"), ("red={penguin}", "city={rabbit}"))
    for text in ("texture=red", "background=city"):
        assert [parse_rule(text, world).matches(s) for s in SCENES] == [
            parse_rule(text, WORLD).matches(s) for s in SCENES
        ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sets]\nbirds = []", "set 'birds' is empty"),
        ('[sets]\nbirds = ["pengin"]', "set 'birds': unknown animal 'pengin'; did you mean 'penguin'"),
        ('[sets]\nrabbit = ["penguin"]', "set 'rabbit' is named like an animal"),
        ('[sets]\nbirds = "penguin"', "set 'birds' is not of its form: Expected `array`, got `str`"),
        ('[sets]\n"Big 1" = ["penguin"]', "set 'Big 1': a name is lower-case words"),
        ('sets = ["birds"]', "must be a name and its animals, such as felines={cat, lion}"),
        ('sets = ["birds={penguin}", "birds={rabbit}"]', "'birds' is there twice"),
        ("sets = 3", "sets can't be 3"),
    ],
)
@pytest.mark.parametrize("rules", ["", 'hold_out = ["animal=crocodile & texture=red"]\n'])
def test_a_wrong_set_of_a_recipe_is_named(tmp_path, rules, text, message):
    (tmp_path / "r.toml").write_text(f'kind = "binding"\nworld = "tiny"\n{rules}{text}')
    with pytest.raises(UserError, match=message):
        read_recipe(str(tmp_path / "r.toml")).subsets()


def test_a_recipe_with_sets_makes_the_split_of_the_rules_written_out(tmp_path):
    (tmp_path / "r.toml").write_text(
        'kind = "spatial"\nworld = "tiny"\npairs = 0.5\nviews = 1\ntest_views = 1\ntest_scenes = 20\n'
        'hold_out = ["relation=above & first=big ones"]\n[sets]\n"big ones" = ["elephant", "crocodile"]\n'
    )
    recipe = read_recipe(str(tmp_path / "r.toml"))
    assert recipe.sets == ("big ones={elephant, crocodile}",)
    written_out = SpatialRecipe(**TINY, hold_out=("relation=above & first={elephant, crocodile}",))
    assert recipe.subsets() == written_out.subsets()
    path = make_split(tmp_path, recipe)
    assert failed(path) == []
    assert read_split(path).recipe["sets"] == ["big ones={elephant, crocodile}"]


def test_only_sets_that_rules_name_are_part_of_a_split():
    rule = "animal=birds & texture=red"
    bare, spare = BindingRecipe(**TINY, hold_out=("texture=red",)), ("birds={penguin}", "big ones={elephant}")
    assert split_name(replace(bare, sets=spare)) == split_name(bare)
    assert recorded_fields(replace(bare, sets=spare))["sets"] == ()
    used = replace(bare, hold_out=(rule,), sets=spare)
    assert recorded_fields(used)["sets"] == ("birds={penguin}",)
    other = replace(used, sets=("birds={rabbit}",))
    assert len({split_name(recipe) for recipe in (bare, used, other)}) == 3
    assert SplitData(used, "store").settings != SplitData(other, "store").settings


def own_world(folder: Path, birds: str = '["penguin"]') -> BindingRecipe:
    """A world with a set and an animal of its own, and a recipe with a rule on the set."""
    (folder / "grouped lynx.py").write_text(LYNX)
    (folder / "mine.toml").write_text(
        f'extends = "tiny"\nanimals = ["elephant", "penguin", "rabbit", "crocodile", "catlike"]\n'
        f'[animal.catlike]\nfile = "grouped lynx.py"\n[sets]\nbirds = {birds}\ncats = ["catlike"]\n'
    )
    return BindingRecipe(**TINY | {"world": str(folder / "mine.toml")}, hold_out=("animal=birds & texture=red",))


def test_a_set_of_the_world_is_part_of_the_split_and_not_of_the_store(tmp_path):
    first = own_world(tmp_path)
    name, store = split_name(first), SplitFolder(tmp_path, load_world(first.world), 16)
    assert recorded_fields(first)["sets"] == ("birds={penguin}",)
    other = own_world(tmp_path, '["penguin", "rabbit"]')
    assert split_name(other) != name
    assert SplitFolder(tmp_path, load_world(other.world), 16).folder == store.folder
    with pytest.raises(UserError, match="set 'birds' is penguin, rabbit in the world 'mine' and catlike here"):
        replace(other, sets=("birds={catlike}",)).subsets()


def test_a_packed_split_opens_elsewhere_and_executes_nothing(tmp_path):
    """Audited, inspected, read and exported where its world's files are not, or are others that must not be run."""
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    made.mkdir()
    elsewhere.mkdir()
    recipe = own_world(made)
    path = make_split(made, recipe)
    assert failed(path) == []
    pack(path)
    shutil.copy(path, elsewhere / "packed.h5")
    for file in made.glob("*.*y"):
        file.unlink()
    trap = "open('executed', 'w').close()\nraise RuntimeError"
    (made / "grouped lynx.py").write_text(trap)
    program = (
        "import runpy, sys; from menagerie import SplitDataset\n"
        "from menagerie.generators.benchmarks.split_tests import SplitTests\n"
        "for name in ('train', 'held_out', 'validation'):\n"
        "    data = SplitDataset('packed.h5', name); data[0]; name == 'train' or SplitTests(data)\n"
        "assert 'catlike' in data.split.vocabulary.animals\n"
        "for line in ('audit packed.h5', 'inspect packed.h5', 'pack packed.h5',\n"
        "             'export packed.h5 --format coco --out coco'):\n"
        "    sys.argv = ['menagerie', *line.split()]\n"
        "    try: runpy.run_module('menagerie', run_name='__main__', alter_sys=True)\n"
        "    except SystemExit as end: assert not end.code, line\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (elsewhere / "coco").exists()
    assert not list(tmp_path.rglob("executed"))
    assert "a rule holds out every scene of held_out" in {finding.claim for finding in audit(elsewhere / "packed.h5")}


def test_a_world_file_is_opened_by_the_audit_if_the_user_names_it(tmp_path):
    recipe = own_world(tmp_path)
    path = make_split(tmp_path, recipe)
    pack(path)
    (reason,) = {finding.detail for finding in audit(path) if finding.skipped}
    assert f"if you trust it, --world {recipe.world}" in reason
    named = audit(path, world_file=Path(recipe.world))
    assert [finding for finding in named if finding.skipped or not finding.holds] == []
    (tmp_path / "mine.toml").unlink()
    reasons = {finding.detail for finding in audit(path, world_file=Path(recipe.world)) if finding.skipped}
    assert all("give the world's file by --world" in reason for reason in reasons)
