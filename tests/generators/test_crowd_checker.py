"""An independent checker (h5py alone) agrees with crowd splits on every number, and finds planted faults."""

import json
import shutil
from dataclasses import replace
from itertools import chain

import h5py
import numpy as np
import pytest

from menagerie.generators.benchmarks.benchmark import QUAD
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import Split, write_tables
from tests.generators.crowd_cell_checker import shown_cells
from tests.generators.crowd_checker import problems
from tests.generators.crowd_file import cells, four_cells, read
from tests.generators.crowd_question_checker import Question, question_problems
from tests.generators.test_crowd import FAULTS, FULL, PART, SMALL
from tests.helpers.planting import joined, taken, with_subsets
from tests.helpers.splits import in_memory, make_split

WORLD = """
extends = "eight-textures"
animals = ["rabbit", "crow", "elephant", "penguin"]
textures = ["red", "white", "grass", "blue"]
backgrounds = ["city", "desert"]
"""
# In `overlap` some things are hidden by more than 0.3, so that scenes are left out.
RENDERED = CrowdRecipe(
    **{"layout": "overlap", "things": (2, 3), "test_things": (2, 3), "views": 1},
    **{"train_scenes": 80, "test_scenes": 12, "test_views": 1, "least_visible": 0.7},
    **{"hard_negatives": 0.05, "relations_stated": 1},
)
CHAINS = replace(SMALL, things=(2, 4), test_things=(3, 5), relations_stated=3, hard_negatives=0.2, layout="rows")
ELSEWHERE = replace(PART, test_layout="rows", template="free-conjunction", world="pug-textures", train_scenes=900)
RECIPES = {"full": FULL, "part": PART, "chains": CHAINS, "elsewhere": ELSEWHERE, "small": SMALL}


def written(folder, split: Split):
    """The file of a split without images."""
    path = folder / "split.h5"
    with h5py.File(path, "w") as file:
        write_tables(file, split)
    return path


@pytest.fixture(scope="session")
def rendered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowd")
    world = folder / "four.toml"
    world.write_text(WORLD)
    return make_split(folder, replace(RENDERED, world=str(world)), resolution=24)


@pytest.mark.parametrize("name", RECIPES)
def test_the_checker_agrees(name, tmp_path):
    assert problems(written(tmp_path, in_memory(RECIPES[name]))) == []


def test_the_checker_agrees_on_what_shows(rendered):
    assert problems(rendered) == []
    file = read(rendered)
    assert {name for name in file.subsets if file.left(name)} >= {"train", "seen_3"}, "else this tests less"


def test_coverages_are_nested_and_have_one_test_of_unseen_cells(tmp_path):
    shown, asked = [], []
    for quarters in (1, 2, 3):
        path = written(tmp_path, in_memory(replace(SMALL, coverage=quarters / 4, test_things=(3,))))
        assert problems(path) == []
        file = read(path)
        shown.append(shown_cells(file))
        asked.append([record.scene for record in file.subsets["unseen_3"]])
    assert shown[0] < shown[1] < shown[2]
    assert asked[0] == asked[1] == asked[2]
    for scene in asked[0]:
        assert set(cells(scene)) - four_cells(scene) <= shown[0]


def one_for_another(split: Split) -> Split:
    """The first record of a test takes the place of its last one."""
    r = split.subsets["seen_3"]
    return with_subsets(split, seen_3=taken(r, [*range(len(r) - 1), 0]))


def as_in_train(split: Split) -> Split:
    """A test in the views of train."""
    r = split.subsets["seen_2"]
    return with_subsets(split, seen_2=replace(r, scenes=[replace(s, view=s.view - 2) for s in r.scenes]))


def validation_of_a_test(split: Split) -> Split:
    """Validation has scenes of tests."""
    both = [taken(split.subsets[name], range(12)) for name in ("seen_2", "seen_3")]
    return with_subsets(split, validation=joined(*both))


OURS = (one_for_another, as_in_train, validation_of_a_test)
ALL_FAULTS = FAULTS | {plant.__name__: (PART, None, plant) for plant in OURS}


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_planted_faults_are_found(fault, tmp_path):
    recipe, _, plant = ALL_FAULTS[fault]
    assert problems(written(tmp_path, plant(in_memory(recipe))))


def more_area(split, shard):
    row = split["subsets/seen_3/scene"][0]
    shard["areas"][row] = shard["areas"][row] * 4


def another_row(split, shard):
    split["subsets/train/scene"][:2] = split["subsets/train/scene"][:2][::-1]


def scenes_as_partners(split, shard):
    split["subsets/seen_2/partner"][:] = split["subsets/seen_2/scene"][:]


def partners_in_train(split, shard):
    split["subsets/train/partner"][:] = 0


def less_allowed(split, shard):
    recipe = json.loads(split.attrs["recipe"]) | {"least_visible": 0.2}
    split.attrs["recipe"] = json.dumps(recipe)


def nothing_left_out(split, shard):
    recipe = json.loads(split.attrs["recipe"])
    del recipe["left_out"]
    split.attrs["recipe"] = json.dumps(recipe)


def bare_masks(split, shard):
    row = split["subsets/train/scene"][0]
    shard["masks"][row] = np.where(shard["masks"][row] == 1, 0, shard["masks"][row])


STORE_FAULTS = [
    *(more_area, another_row, scenes_as_partners, partners_in_train, less_allowed, nothing_left_out, bare_masks),
]


@pytest.mark.parametrize("plant", STORE_FAULTS)
def test_faults_of_rows_are_found(plant, rendered, tmp_path):
    folder = shutil.copytree(rendered.parent, tmp_path / "store")
    with h5py.File(folder / rendered.name, "r+") as split, h5py.File(folder / "shard-00000.h5", "r+") as shard:
        plant(split, shard)
    assert problems(folder / rendered.name)


def questions(recipe: CrowdRecipe) -> list[Question]:
    """The questions of all tests but searches, which have their swap alone."""
    split, found = in_memory(recipe), []
    for test in (test for test in recipe.tests if not test.startswith("search")):
        items = SplitTests(SplitDataset(split, test, preload=False)).items
        asked = (item for item in items if item.group != QUAD)
        found += [Question(test, i.group, i.images[0], tuple(text.text for text in i.texts), i.true) for i in asked]
    return found


@pytest.mark.parametrize("name", ["full", "part", "chains", "elsewhere"])
def test_the_checker_agrees_on_questions(name, tmp_path):
    file, asked = read(written(tmp_path, in_memory(RECIPES[name]))), questions(RECIPES[name])
    assert list(chain.from_iterable(question_problems(file, one) for one in asked)) == []
    tasks = {one.task for one in asked}
    assert {"swap", "illusion", "paraphrase"} <= tasks
    assert ({"replace texture", "replace animal"} <= tasks) == (name != "part"), "its classes have two names each"
    assert ("order" in tasks) == (RECIPES[name].relations_stated > 0)
    assert any(task.startswith("assignment") for task in tasks) == (RECIPES[name].coverage == 1)


QUESTION_FAULTS = {
    "assignment of 3": lambda one: one._replace(texts=one.texts[:-1]),
    "assignment of 4": lambda one: one._replace(texts=(*one.texts[:-1], one.texts[1])),
    "illusion": lambda one: one._replace(texts=one.texts[::-1]),
    "order": lambda one: one._replace(texts=(one.texts[0], one.texts[0])),
    "paraphrase": lambda one: one._replace(texts=(one.texts[0], one.texts[0], one.texts[2])),
    "swap all": lambda one: one._replace(texts=(one.texts[1], one.texts[0])),
    "two mentioned": lambda one: one._replace(task="swap all"),
    "replace texture": lambda one: one._replace(task="replace animal"),
    "replace animal": lambda one: one._replace(task="swap"),
}


@pytest.mark.parametrize("task", QUESTION_FAULTS)
def test_faults_of_questions_are_found(task, tmp_path):
    recipe = next(r for r in (FULL, CHAINS, PART) if any(one.task == task for one in questions(r)))
    file = read(written(tmp_path, in_memory(recipe)))
    for one in questions(recipe):
        if one.task == task:
            assert list(question_problems(file, QUESTION_FAULTS[task](one)))
