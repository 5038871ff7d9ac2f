"""Sample efficiency without its runs: counts of images, draws of searches, and when a setting is finished."""

import statistics
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from menagerie.generators.storage.dataset import SplitDataset
from menagerie.studies.analysis.pareto import Curve
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.data import distinct_images
from menagerie.studies.runs.shared import trunk_key
from menagerie.studies.sample_efficiency import PRESETS, Config, Setting, SettingRuns, Tried
from tests.helpers.splits import failed, make_split

SMOKE, FIXED = PRESETS["smoke"], PRESETS["fixed"]
CONVERGED = replace(PRESETS["laptop"], budgets=(500, 1000, 2000, 4000))


@pytest.mark.parametrize("params", [(0.5, 0.5, 1, 0.5), (1.0, 1.0, 2, 0.5), (0.0, 0.5, 2, 0.3)], ids=str)
def test_counted_images_are_those_of_the_split_file(params, tmp_path):
    study = replace(SMOKE, test_scenes=4)
    setting = study.setting_of(dict(zip(Setting._fields, params, strict=True)))
    recipe = study.arm("clip", setting, 1).cell.data.recipe
    path = make_split(tmp_path, recipe)
    train = SplitDataset(path, "train").records.scenes
    assert len(set(train)) == len(train) == study.images_of(setting) == distinct_images(recipe)
    lone = [scene for scene in train if len(scene.objects) == 1]
    assert {scene.view for scene in lone} == set(range(setting.singles_views))
    assert failed(path) == []


def test_settings_with_the_same_data_are_equal():
    few = {"pairs": 0.1, "hard_negatives": 0.1, "singles_views": 1, "singles_share": 0.5}
    same = few | {"pairs": 0.15}
    assert FIXED.setting_of(few) == FIXED.setting_of(same) == Setting(2 / 16, 0.0, 1, 0.5)
    assert FIXED.setting_of(few | {"pairs": 0.0, "hard_negatives": 1.0}).hard_negatives == 0


def test_settings_share_training_recipe_tests_and_validation():
    cells = [FIXED.arm("clip", setting, 0).cell for setting in (FIXED.least, FIXED.everything)]
    assert {cell.recipe for cell in cells} == {cells[0].recipe}
    assert (cells[0].recipe.steps, cells[0].recipe.warmup) == (700, round(389 * 700 / 2000))
    subsets = [cell.data.recipe.subsets() for cell in cells]
    for name in ("unseen_pairs", "validation"):
        assert subsets[0][name] == subsets[1][name]
    assert set(subsets[0]["train"]) < set(subsets[1]["train"])


def learnt(setting):
    """More pairs, more hard negatives and more views help; the share has a best value."""
    data = 16 * setting.pairs * (1 + 2 * setting.hard_negatives) * setting.singles_views**0.4
    return 0.5 + 0.5 * data / (data + 1 + 4 * abs(setting.singles_share - 0.6))


@dataclass(frozen=True)
class Untrained(Records):
    """A folder whose runs take no time."""

    ended: dict[str, float] = field(default_factory=dict)

    @property
    def owner(self):
        return "me"

    def score(self, arm, subset="validation", task="swap"):
        return self.ended.get(arm.id)

    def has_diverged(self, arm):
        return self.ended.get(arm.id) == 0.0

    def run(self, study, accuracy=lambda setting, seed, steps: learnt(setting), most=10**6):
        """Run what a study's plan asks for, at most `most` runs."""
        for _ in range(most):
            waiting = [arm for arm in study.plan(self) if arm.id not in self.ended]
            if not waiting:
                break
            setting = Setting(**{name: waiting[0].labels[name] for name in Setting._fields})
            self.ended[waiting[0].id] = accuracy(setting, waiting[0].cell.seed, waiting[0].cell.recipe.steps)
        return study.points(self)


def folder(path):
    path.mkdir(exist_ok=True)
    return Untrained((), path)


def drawn(points):
    return [(p.question, p.setting, p.images, p.accuracy, p.state) for p in points]


def test_a_stopped_search_draws_the_same_settings(tmp_path):
    study = replace(FIXED, models=("clip",), trials=9, seeds=1)
    once, stopped = folder(tmp_path / "a"), folder(tmp_path / "b")
    for most in (1, 4, 5):
        stopped.run(study, most=most)
    found = drawn(once.run(study))
    assert drawn(stopped.run(study)) == found
    assert len({setting for question, setting, *_ in found if question == "front"}) >= 8


def test_the_second_search_finds_few_images_and_stays_near_the_target(tmp_path):
    study = replace(FIXED, models=("clip",), trials=16, target=0.9, seeds=1)
    points = [p for p in folder(tmp_path / "a").run(study) if p.question == "target"]
    reached = min(p.images for p in points if p.accuracy >= 0.9)
    grid = product(np.linspace(0, 1, 21).tolist(), np.linspace(0, 1, 5).tolist(), range(1, 9), [0.6])
    settings = [study.setting_of(dict(zip(Setting._fields, point, strict=True))) for point in grid]
    fewest = min(study.images_of(setting) for setting in settings if learnt(setting) >= 0.9)
    print(fewest, reached, [(p.images, round(p.accuracy, 3)) for p in points])
    assert fewest <= reached <= 1.3 * fewest
    assert statistics.median(abs(p.accuracy - 0.9) for p in points[5:]) < 0.05


def test_diverging_settings_are_pruned_and_the_search_goes_on(tmp_path):
    study = replace(FIXED, models=("clip",), trials=5, seeds=1)
    points = folder(tmp_path / "a").run(study, lambda setting, seed, steps: learnt(setting) * (setting.pairs < 1))
    gone = [p for p in points if p.setting.pairs == 1]
    assert gone
    assert {p.state for p in gone} == {"pruned"}
    assert len(points) == 10


def test_longer_runs_continue_shorter_ones():
    cells = [CONVERGED.arm("oc-clip", CONVERGED.everything, 0, steps).cell for steps in (500, 2000)]
    recipes = [cell.recipe for cell in cells]
    assert [recipe.steps for recipe in recipes] == [500, 2000]
    assert {round(recipe.single_object_phase * recipe.steps) for recipe in recipes} == {125}
    assert len({recipe.warmup for recipe in recipes}) == 1
    assert trunk_key(cells[0]) == trunk_key(cells[1])
    assert CONVERGED.equal_steps == 1000


@pytest.mark.parametrize(
    ("rises", "trained", "best"),
    [
        ({500: 0.7, 1000: 0.75, 2000: 0.752, 4000: 0.9}, 3, 2000),  # no point more after 2000
        ({500: 0.7, 1000: 0.8, 2000: 0.85, 4000: 0.9}, 4, 4000),
        ({500: 0.7, 1000: 0.65, 2000: 0.9, 4000: 0.9}, 2, 500),
        ({500: 0.5, 1000: 0.5, 2000: 0.5, 4000: 0.8}, 4, 4000),  # at chance: it may not have begun to rise
        ({500: 0.7, 1000: 0.995, 2000: 1.0, 4000: 1.0}, 3, 2000),
        ({500: 0.995, 1000: 0.995, 2000: 1.0, 4000: 1.0}, 2, 500),
    ],
)
def test_a_setting_gets_budgets_until_the_mean_over_seeds_stops_rising(rises, trained, best, tmp_path):
    """Single seeds, here up or down by up to 10 points, decide nothing."""
    known, setting = folder(tmp_path / "a"), CONVERGED.everything
    for number in range(1, trained + 1):
        judged = CONVERGED.judge_setting(known, "clip", setting)
        steps = CONVERGED.budgets[number - 1]
        assert judged.accuracy is None
        assert [arm.cell.recipe.steps for arm in judged.arms[-5:]] == [steps] * 5
        for arm in judged.arms[-5:]:
            wave = 0.05 * (arm.cell.seed - 2) * (-1) ** CONVERGED.budgets.index(steps)
            known.ended[arm.id] = rises[steps] + wave
    judged = CONVERGED.judge_setting(known, "clip", setting)
    assert len(judged.arms) == 5 * trained
    assert [arm.cell.recipe.steps for arm in judged.chosen] == [best] * 5
    (equal,) = CONVERGED.equal_compute(known, [Tried("front", "clip", 0, "complete", setting, 9, 0.7, judged)])
    assert [arm.cell.recipe.steps for arm in equal.runs.chosen] == [1000] * 5
    assert equal.accuracy == pytest.approx(rises[1000])
    assert judged.accuracy == pytest.approx(rises[best])


def test_the_test_has_at_least_twenty_pairs():
    for setting in (CONVERGED.least, CONVERGED.everything):
        subsets = CONVERGED.arm("clip", setting, 0).cell.data.recipe.subsets()
        pairs = {frozenset(obj.animal for obj in scene.objects) for scene in subsets["unseen_pairs"]}
        assert len(pairs) >= 20


@pytest.mark.parametrize("study", [FIXED, CONVERGED, SMOKE, replace(FIXED, singles_shares=(0.2, 0.7))])
def test_the_first_setting_searched_has_all_data(study):
    (first,) = study.search("front", "clip").first
    assert all(study.space[name]._contains(study.space[name].to_internal_repr(value)) for name, value in first.items())
    assert first == pytest.approx(study.everything._asdict(), abs=0.06 if study.singles_shares == (0.2, 0.7) else 1e-9)


@dataclass(frozen=True)
class Made(Config):
    """A study whose runs have given scores, on every test."""

    def curve(self, records, points, tests=()):
        return Curve(
            [point.images for point in points],
            [
                [{f"pair {p}": [10 * value, 10] for p in range(20)} for value in point.runs.validations]
                for point in points
            ],
        )


class Given(Records):
    """Records whose arms are their scores."""

    def score(self, arm, subset="validation", task="swap"):
        return arm.value


def made(model, number, images, validations, equals):
    """A trial with given scores on validation at convergence and at equal compute."""
    steps = {1000: equals, 2000: validations}
    arms = {
        budget: [
            SimpleNamespace(
                id=f"{images} {k} {budget}", cell=SimpleNamespace(recipe=SimpleNamespace(steps=budget)), value=v
            )
            for k, v in enumerate(values)
        ]
        for budget, values in steps.items()
    }
    accuracy = statistics.mean(validations)
    runs = SettingRuns([*arms[1000], *arms[2000]], arms[2000], validations, accuracy)
    return Tried("front", model, number, "complete", CONVERGED.least, images, accuracy, runs)


def test_ratios_at_convergence_and_at_equal_compute_are_reported():
    """With enough steps CLIP needs twice the images; at equal compute four times as many."""
    given = {item.name: getattr(CONVERGED, item.name) for item in fields(CONVERGED)}
    study = Made(**given | {"seeds": 3, "models": ("clip", "oc-clip")})
    high, low = [0.95, 0.96, 0.97], [0.7, 0.7, 0.7]
    of = {"clip": [(100, low, low), (200, high, low), (400, high, high)]}
    of["oc-clip"] = [(100, high, high), (200, high, high)]
    points = [made(model, k, *each) for model, rows in of.items() for k, each in enumerate(rows)]
    known = Given((), Path())
    columns = list(zip(*study.ratios(known, points), strict=True))
    assert columns[1] == ("2.00", "4.00")
    assert columns[3] == ("at convergence", "at equal compute, 1000 steps")
    assert columns[4] == ("no spread: no interval",) * 2
    for model, row in (("clip", ["200", "1", "0.96", "0.96", "100"]), ("oc-clip", ["100", "0", "0.96", "0.96", "–"])):
        assert study.target_row(known, points, model) == [model, *row]
    assert [row[3] for row in replace(study, budgets=()).ratios(known, points)] == ["at equal steps"]
