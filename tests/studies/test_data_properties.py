"""Two-level designs, the runs of the study of data properties, and the effects on its page."""

from dataclasses import replace
from itertools import combinations
from math import prod

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.spec import CaptionSpec, expected_binding_share
from menagerie.models.recipe import Recipe
from menagerie.studies.data_properties import OPTIONS, PRESETS
from menagerie.studies.frame.claims import contrasts, design, effects
from menagerie.studies.frame.records import Records
from tests.command import ROOT
from tests.studies.stored import stored_run

STUDY = replace(PRESETS["laptop"], factors=tuple(OPTIONS), salient=(0.0, 0.5), held="steps", recipe=Recipe(steps=1200))
NONE = Records((), ROOT)


@pytest.mark.parametrize("factors", range(1, 7))
def test_designs_are_balanced_and_orthogonal(factors):
    runs = design(factors)
    assert len({*runs}) == len(runs) == 2 ** (factors if factors < 5 else factors - 1)
    names = "abcdef"[:factors]
    columns = {effect: [prod(signs[names.index(f)] for f in effect) for signs in runs] for effect in effects(names)}
    assert len(columns) == factors + factors * (factors - 1) // 2
    assert all(sum(column) == 0 for column in columns.values())
    for one, other in combinations(columns.values(), 2):
        assert sum(a * b for a, b in zip(one, other, strict=True)) == 0


def test_runs_differ_in_factors_alone_and_share_their_tests():
    arms = list(replace(STUDY, seeds=1).plan(NONE))
    assert len({arm.id for arm in arms}) == len(arms) == 32
    alike = [replace(arm.cell.data.recipe, **recipe_fields(arms[0])) for arm in arms]
    assert {*alike} == {arms[0].cell.data.recipe}
    assert {replace(arm.cell.recipe, batch=64, image_negatives=False) for arm in arms} == {STUDY.recipe}
    for arm in arms:
        recipe, training = arm.cell.data.recipe, arm.cell.recipe
        assert {name: getattr(recipe, name) for name in OPTIONS if name != "batch"} == recipe_fields(arm)
        assert training.batch == arm.labels["batch"]
        assert training.image_negatives == (recipe.hard_negatives > 0)
    world = load_world("eight-textures")
    few = [replace(arm.cell.data.recipe, train_scenes=300, test_scenes=20) for arm in (arms[0], arms[-1])]
    assert few[0].objects != few[1].objects
    tests = [{(scene, recipe.texts("seen_2", scene)) for scene in recipe.plan(world)["seen_2"]} for recipe in few]
    assert tests[0] == tests[1]
    assert len(tests[0]) == 20


def recipe_fields(arm):
    return {name: value for name, value in arm.labels.items() if name != "batch"}


def test_factors_that_are_not_varied_stay_as_in_the_recipe():
    arms = list(replace(STUDY, seeds=1, factors=("salient",)).plan(NONE))
    rest = {"attributes": 1, "objects": (1, 2), "mentioned": 1, "batch": 64, "hard_negatives": 0}
    assert [arm.labels for arm in arms] == [rest | {"salient": 0}, rest | {"salient": 0.5}]


def test_images_seen_can_be_held_constant():
    arms = list(replace(STUDY, seeds=1, factors=("batch",), held="images").plan(NONE))
    assert [(arm.cell.recipe.batch, arm.cell.recipe.steps) for arm in arms] == [(32, 2400), (128, 600)]
    with pytest.raises(UserError, match="aren't a multiple of the batch 36"):
        list(replace(STUDY, factors=("batch",), batches=(32, 36), held="images").plan(NONE))


@pytest.mark.parametrize("arm", [0, 5, 12, 31])
def test_the_expected_share_of_captions_that_bind_is_the_counted_one(arm):
    recipe = list(replace(STUDY, seeds=1).plan(NONE))[arm].cell.data.recipe
    recipe = replace(recipe, train_scenes=4000, test_scenes=1, hard_negatives=0.0)
    scenes = [scene for scene in recipe.training_scenes(load_world("eight-textures")) if len(scene.objects) > 1]
    contents = map(CaptionSpec(vars(recipe)).training_content, scenes)
    counted = sum(sum(bool(obj.texture) for obj in content.objects) > 1 for content in contents) / len(scenes)
    assert expected_binding_share(vars(recipe)) == pytest.approx(counted, abs=0.03)


SMALL = replace(STUDY, seeds=3, factors=("attributes", "salient", "batch"), enough=0.75)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Runs that are right more often the more attributes captions have, less without the salient object's, and most
    where both help."""
    out = tmp_path_factory.mktemp("properties")
    arms = []
    for arm in SMALL.plan(NONE):
        many, salient = arm.labels["attributes"] == 1, arm.labels["salient"] > 0
        skill = 0.55 + 0.1 * many - 0.05 * salient + 0.25 * (many and not salient)
        name = f"{len(arms)}"
        labels = {**arm.labels, "objects": list(arm.labels["objects"])}
        arms.append(stored_run(out, "clip", arm.cell.seed, labels, skill, pairs=28, name=name, tests=("seen_2",)))
    return Records(tuple(arms), out)


def test_effects_are_differences_of_means(records):
    swaps = records.where(subset="seen_2", task="swap")
    found = contrasts(swaps, SMALL.levels)["clip",]
    means = swaps.estimates(("attributes", "salient", "batch"))

    def mean(keep):
        values = [its.value for (a, s, b), its in means.items() if keep(a == 1, s > 0, b == 128)]
        return sum(values) / len(values)

    assert found[("attributes",)].value == pytest.approx(mean(lambda a, s, b: a) - mean(lambda a, s, b: not a))
    assert found[("salient",)].value == pytest.approx(mean(lambda a, s, b: s) - mean(lambda a, s, b: not s))
    pair = found[("attributes", "salient")]
    assert pair.value == pytest.approx(mean(lambda a, s, b: a == s) - mean(lambda a, s, b: a != s))
    assert pair.value == pytest.approx(-0.125, abs=0.04)
    assert pair.high < 0 < found[("attributes",)].low
    assert found[("batch",)].low < 0 < found[("batch",)].high


def test_seeds_with_a_missing_run_are_left_out(records):
    fewer = replace(records, arms=records.arms[1:]).where(subset="seen_2", task="swap")
    assert {its.seeds for its in contrasts(fewer, SMALL.levels)["clip",].values()} == {2}
