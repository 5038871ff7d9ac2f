"""The study of capacity: which runs there are, and what its page says of finished ones."""

from dataclasses import replace

import pytest

from menagerie.envs.render.renderer import Renderer
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.analysis.errors import HIDDEN_SHARES, hidden_bins
from menagerie.studies.capacity import PRESETS
from menagerie.studies.frame.parts import Lines
from menagerie.studies.frame.records import Records
from tests.studies.stored import stored_run

STUDY = replace(
    PRESETS["laptop"],
    models=("clip", "oc-clip"),
    improved=False,
    seeds=2,
    most=(1, 2),
    test_objects=(2, 3, 4),
    enough=0.8,
)
TESTS = tuple(f"seen_{n}" for n in STUDY.test_objects)


def test_only_the_number_of_objects_in_training_varies(tmp_path):
    arms = list(STUDY.plan(Records((), tmp_path)))
    assert [(arm.cell.model, arm.cell.seed, arm.labels["objects"]) for arm in arms][:3] == [
        ("clip", 0, (1,)), ("oc-clip", 0, (1,)), ("clip", 0, (1, 2)),
    ]  # fmt: skip
    recipes = {arm.cell.data.recipe for arm in arms if arm.cell.seed == 0}
    assert {replace(recipe, objects=(1,)) for recipe in recipes} == {arms[0].cell.data.recipe}
    assert arms[0].cell.tests == (*TESTS, "triplets_0", "triplets_1", "triplets_2")


def test_improved_oc_clip_differs_in_its_competition_and_its_captions(tmp_path):
    arms = list(replace(STUDY, improved=True, most=(2,), seeds=1).plan(Records((), tmp_path)))
    assert [arm.place["model"] for arm in arms] == ["clip", "oc-clip", "oc-clip, improved"]
    plain, improved = (arm.cell for arm in arms[1:])
    assert improved.model == plain.model
    assert improved.options == plain.options | {"focus": True}
    assert improved.data.recipe == replace(plain.data.recipe, mentioned=0.7, attributes=0.8)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The page of runs in which OC-CLIP is right about everywhere, and CLIP nowhere."""
    out = tmp_path_factory.mktemp("capacity")
    skill = {"clip": 0.5, "oc-clip": 1.0}
    arms = [
        stored_run(out, model, seed, {"objects": objects}, skill[model], tests=TESTS)
        for seed in range(2) for model in skill for objects in STUDY.trained
    ]  # fmt: skip
    return list(STUDY.page(Records(tuple(arms), out)))


def test_accuracy_stands_along_the_number_of_objects(parts):
    from menagerie.studies.frame.figures import draw_lines

    (part,) = (part for part in parts if isinstance(part, Lines))
    frame = draw_lines(part).chart.data
    assert list(dict.fromkeys(frame["panel"])) == ["training: up to 1 objects", "training: up to 2 objects"]
    for _, panel in frame.groupby("panel"):
        clip, oc_clip = (its for _, its in panel.groupby("colour", sort=False))
        assert list(clip["x"]) == list(oc_clip["x"])
        assert len(clip) == len(TESTS)
        assert oc_clip["value"].min() > clip["value"].max()


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory):
    """The file of a split whose objects hide one another."""
    recipe = MultiObjectRecipe(
        **{"world": "eight-textures", "layout": "overlap", "objects": (2,), "train_scenes": 40, "views": 1},
        **{"test_objects": (2, 4), "test_scenes": 12, "test_views": 2},
    )
    store = SplitFolder(tmp_path_factory.mktemp("store"), load_world(recipe.world), 32)
    return store.make(recipe)


def test_scenes_are_grouped_by_the_share_of_the_exchanged_objects_that_is_hidden(overlapping):
    bins, split = hidden_bins(overlapping), read_split(overlapping)
    reader, direct, ends = SplitPictures(split), Renderer(load_world("eight-textures"), 32), list(HIDDEN_SHARES)
    rows = [(name, row) for name in ("seen_2", "seen_4") for row in range(len(split.subsets[name]))]
    assert len(rows) == 24
    for name, row in rows:
        scene = split.subsets[name].scenes[row]
        shares = []
        for i in exchanged_objects(scene):
            alone = direct.render([replace(scene, objects=(scene.objects[i],))]).masks[0]
            shares.append(1 - (reader.masks(name, [row]) == i + 1).sum() / (alone > 0).sum())
        assert bins[scene.key] == HIDDEN_SHARES[next(end for end in ends if max(shares) <= end)]
    assert len({*bins.values()}) > 2
