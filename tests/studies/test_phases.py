"""The phase diagram: curves against ones that are known, which runs there are, and what the page says of them."""

from dataclasses import replace
from itertools import chain, product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from menagerie.envs.core.errors import UserError
from menagerie.studies.frame.arm import KnownResults
from menagerie.studies.frame.parts import Chart, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures import boundary as its
from menagerie.studies.measures import phase_map
from menagerie.studies.phases import PRESETS, Place, fewest_classes, place_in_diagram

SHARES = (0.2, 0.333, 0.5, 0.667, 0.8)
TRUE = {"clip": (-1.0, 1.2, 0.6, -0.6), "filip": (0.4, 1.6, 0.3, -0.2)}
"""Coefficients of the curves of two forms."""
TOP = 0.95
SMALL = replace(
    PRESETS["laptop"], models=tuple(TRUE), budgets=(40,), coverage=SHARES, completeness=(0.6, 1.0), checked=4, rounds=2
)

CLIP = replace(SMALL, models=("clip",), checked=2)


def true_u(form, objects, coverage, completeness):
    a, b, c, d = TRUE[form]
    return TOP * expit(
        a + b * (coverage - 0.5) / 0.25 + c * (completeness - 0.8) / 0.2 + d * (np.log2(objects / 2) - 0.5)
    )


def runs_of(seed, cells, seeds=3, shift=0.4):
    """Runs whose seeds shift the curve by a normal number, with tests of 200 scenes."""
    random, rows = np.random.default_rng(seed), []
    for cell, k in product(cells, range(seeds)):
        u, pairs = true_u(*cell), cell[1] / 2
        moved = TOP * expit(np.log(u / (TOP - u)) + shift * random.normal())
        right = {
            name: (random.binomial(200, ((1 + x) / 2) ** pairs) / 200) ** (1 / pairs)
            for name, x in (("seen", TOP), ("unseen", moved))
        }
        rows.append(dict(zip(its.PLACE, cell, strict=True)) | {"seed": k, "learnt": 0.5 + TOP / 2} | right)
    return pd.DataFrame(rows)


CELLS = list(product(TRUE, (2, 4), SHARES, (0.6, 0.8, 1.0)))


def test_a_known_line_is_in_its_interval_nineteen_times_in_twenty():
    lines = pd.DataFrame(list(product(TRUE, (2, 4), (0.6, 0.8, 1.0))), columns=["model", "objects", "completeness"])
    a, b, c, d = np.array([TRUE[form] for form in lines["model"]]).T
    needed = np.log(0.5 / (TOP - 0.5)) - a - c * (lines["completeness"] - 0.8) / 0.2
    true = 0.5 + 0.25 * (needed - d * (np.log2(lines["objects"] / 2) - 0.5)) / b
    found = [its.Boundary(runs_of(seed, CELLS), 200).critical(lines) for seed in range(10)]
    held = np.mean([true.between(each["low"], each["high"]) for each in found])
    assert held > 0.88
    assert np.mean([each["high"] - each["low"] for each in found]) < 0.25
    assert np.mean([each["critical"] for each in found], axis=0) == pytest.approx(true, abs=0.03)


def test_cells_that_were_not_fitted_lie_in_their_intervals_and_coverage_alone_errs_more():
    inside, widths, errors = [], [], []
    for seed in range(8):
        runs, random = runs_of(seed, CELLS), np.random.default_rng(seed)
        held = pd.MultiIndex.from_frame(runs[its.PLACE]).isin([CELLS[i] for i in random.permutation(len(CELLS))[:12]])
        checks = its.held_out_checks(its.Boundary(runs[~held], 200), runs[held])
        assert len(checks) == 12
        inside.append(checks["inside"].mean())
        widths.append((checks["high"] - checks["low"]).mean())
        errors.append([its.rmse(checks[name], checks["measured"]) for name in ("predicted", "only_coverage")])
    assert 0.88 < np.mean(inside) < 1
    assert np.mean(widths) < 0.16
    assert np.mean(errors, axis=0)[0] < 0.6 * np.mean(errors, axis=0)[1]


def test_a_form_that_never_rises_has_no_line():
    runs = runs_of(0, [cell for cell in CELLS if cell[0] == "clip"], shift=0)
    flat = its.Boundary(runs.assign(unseen=0.5))
    line = next(flat.lines.query("objects == 2 and completeness == 1").itertuples())
    assert line.low > max(SHARES)
    assert phase_map.critical_text(line, (0.2, 0.8), 0.9) == "above 0.80 [above 0.80, above 0.80]"
    assert phase_map.critical_text(line, (0.2, 0.8), 0.99) == phase_map.NOT_TESTABLE


def test_a_form_that_is_always_above_the_line_needs_less_than_any_coverage():
    runs = runs_of(0, [cell for cell in CELLS if cell[0] == "clip"])
    lines = its.Boundary(runs.assign(unseen=runs["seen"])).lines
    assert (lines["high"] < 0.3).all()


def test_a_seen_level_that_few_runs_give_widens_the_interval():
    def widths(spread):
        runs = runs_of(0, [cell for cell in CELLS if cell[0] == "clip" and cell[2] in (0.333, 0.667)], shift=0)
        signs = np.where(runs["coverage"] > 0.5, spread, -spread)
        found = its.Boundary(runs.assign(seen=0.85 + signs), 200)
        white = 2 * its.Z * found.curve(runs.assign(coverage=0.7))[1]
        return (found.lines["high"] - found.lines["low"]).mean(), white.mean()

    (narrow, white), (wide, wider_white) = widths(0.0), widths(0.06)
    assert wide > 1.3 * narrow
    assert wider_white > 1.3 * white


def test_intervals_of_map_and_table_agree():
    fitted = its.Boundary(runs_of(1, CELLS, shift=0.8), 200)
    lines = fitted.lines[np.isfinite(fitted.lines["high"])]
    for side, sign in (("low", 1), ("high", -1)):
        mean, deviation = fitted.curve(lines.assign(coverage=lines[side]))
        assert mean + sign * its.Z * deviation == pytest.approx(np.full(len(lines), its.LINE), abs=0.06)


def test_what_has_no_fitted_run_is_not_predicted():
    runs = runs_of(0, CELLS)
    held = pd.MultiIndex.from_frame(runs[its.PLACE]).isin([CELLS[0], CELLS[-1]])
    lacking = runs[held | (runs["model"] != "filip") | (runs["objects"] != 4)]
    diagram = its.fit_diagram(lacking, [CELLS[0], CELLS[-1]], 200)
    assert len(diagram.checks) == 1
    assert diagram.checks.notna().all(axis=None)
    assert "1 held-out cells have no result" in phase_map.check_text(diagram.checks, diagram.number_held)
    assert its.fit_diagram(runs[held], [CELLS[0], CELLS[-1]], 200) is None


class Known(KnownResults):
    """Runs that have ended, as the true curves say."""

    owner = "test"

    def over(self, arm):
        return arm.id in self.ended

    def has_diverged(self, arm):
        return False

    def __init__(self):
        self.ended = set()

    def score(self, arm, subset="validation", task="swap"):
        if arm.id not in self.ended:
            return None
        u = true_u(arm.cell.model, *place_in_diagram(arm)) if subset.startswith("unseen") else TOP
        return ((1 + u) / 2) ** (1 if task == "swap" else place_in_diagram(arm).objects / 2)


def planned(study):
    """The runs of each step of a plan that is asked again when all its runs have ended."""
    known, steps = Known(), []
    while new := [arm for arm in study.plan(known) if arm.id not in known.ended]:
        steps.append(new)
        known.ended |= {arm.id for arm in new}
    return known, steps


@pytest.fixture(scope="module")
def course():
    return planned(SMALL)


def test_rounds_are_near_the_line_and_never_in_held_out_cells(course):
    _, (first, *rounds) = course
    held = {(form, at) for form in SMALL.models for at in SMALL.held_out(form)}
    start = {(form, at) for form in SMALL.models for at in SMALL.start}
    assert len(held) == SMALL.checked
    assert not held & start
    assert {(arm.cell.model, place_in_diagram(arm)) for arm in first} == held | start
    assert len(first) == len(start) + len(held) * SMALL.seeds
    assert len(rounds) == SMALL.rounds
    for arm in rounds[0]:
        form, at = arm.cell.model, place_in_diagram(arm)
        others = [at._replace(coverage=share) for share in SHARES]
        free = [place for place in others if (form, place) not in held]
        distance = {place: abs(true_u(form, *place) - its.LINE) for place in free}
        assert distance[at] <= min(distance.values()) + 0.06
    seeds = pd.DataFrame([(arm.cell.model, *place_in_diagram(arm), arm.cell.seed) for arm in chain(first, *rounds)])
    assert not seeds.duplicated().any()
    counts = seeds.groupby(list(range(4))).size()
    assert {*counts} == {1, SMALL.seeds}
    assert (counts == 1).sum() < len(start)


def test_no_two_cells_of_a_form_share_a_seed_and_forms_share_them(course):
    seeds = {form: {at: SMALL.seeds_of(at) for at in SMALL.places} for form in SMALL.models}
    assert len(set(chain(*seeds["clip"].values()))) == len(SMALL.places) * SMALL.seeds
    for arm in chain(*course[1]):
        assert arm.cell.seed in seeds[arm.cell.model][place_in_diagram(arm)]
        assert arm.cell.data.recipe.seed == arm.cell.seed


def test_another_first_seed_plans_as_many_runs(course):
    _, steps = planned(replace(CLIP, first_seed=100))
    assert [len(step) for step in steps] == [sum(arm.cell.model == "clip" for arm in step) for step in course[1]]
    assert min(arm.cell.seed for arm in chain(*steps)) >= 100


def test_a_number_of_objects_without_results_gets_no_further_runs():
    known = Known()
    first = list(CLIP.plan(known))
    known.ended |= {arm.id for arm in first}
    known.has_diverged = lambda arm: place_in_diagram(arm).objects == 4
    more = [arm for arm in CLIP.plan(known) if arm.id not in known.ended]
    assert {place_in_diagram(arm).objects for arm in more} == {2}
    known.has_diverged = lambda arm: True
    assert all(arm.id in known.ended for arm in CLIP.plan(known))


def test_held_out_cells_depend_on_nothing_but_the_form():
    assert SMALL.held_out("clip") == replace(SMALL, rounds=9, seeds=5).held_out("clip") != SMALL.held_out("filip")


def test_laptop_has_at_least_300_runs_at_ten_coverages():
    study = PRESETS["laptop"]
    assert len(study.coverage) >= 10
    assert len(study.models) * len(study.held_out("clip")) == 20
    runs = len(study.models) * (len(study.start) + study.seeds * (5 + study.rounds * len(study.conditions)))
    assert runs >= 300


def test_a_run_tests_all_objects_in_unseen_compositions():
    arm = SMALL.arm("clip", Place(4, 0.5, 0.6), 1)
    recipe = arm.cell.data.recipe
    assert (recipe.objects, recipe.test_objects, recipe.classes) == ((1, 2, 3, 4), (4,), 2)
    assert (recipe.coverage, recipe.mentioned, recipe.attributes, recipe.seed) == (0.5, 0.6, 0.6, 1)
    assert {"seen_4", "seen_in_pairs_4", "unseen_in_pairs_4"} < set(arm.cell.tests)
    assert arm.labels == {"objects": 4, "coverage": 0.5, "completeness": 0.6, "steps": 40}
    assert replace(SMALL, budgets=(40, 70)).arm("filip", Place(2, 0.5, 1.0), 0).cell.recipe.steps == 70


def test_notes_have_the_steps_that_are_taken():
    for study, steps in ((PRESETS["laptop"], PRESETS["laptop"].budgets), (replace(SMALL, trial=(20, 50)), (50, 50))):
        notes = study.notes()
        for form, number in zip(study.models, steps, strict=True):
            assert f"; steps {number}, " in notes[f"recipe of {form}"]


def test_classes_are_the_fewest_that_give_a_coverage():
    assert [fewest_classes(share, 1, 6) for share in (0.5, 0.333, 0.75, 0.2, 0.833)] == [2, 3, 4, 5, 6]
    assert fewest_classes(0.5, 3, 6) == 4
    with pytest.raises(UserError, match=r"--coverage 0\.125"):
        fewest_classes(0.125, 1, 6)


def test_page_says_where_the_line_is_and_how_good_the_map_is(course):
    known, steps = course
    runs = pd.DataFrame([SMALL.scored(known, arm) for arms in steps for arm in arms])
    parts = list(phase_map.phase_parts(SMALL.diagram(runs), SMALL.enough))
    assert sum(isinstance(part, Sentence) for part in parts) == len(TRUE) + 1
    rows = {part.name: part.rows for part in parts if isinstance(part, Rows)}
    assert len(rows["critical"]) == len(TRUE) * len(SMALL.conditions)
    assert len(rows["checks"]) == SMALL.checked
    frame = next(part.chart for part in parts if isinstance(part, Chart)).data
    numbers, areas = frame[frame["kind"] == "number"], frame[frame["kind"] == "area"]
    assert len(numbers) == runs.groupby(its.PLACE).ngroups
    assert numbers["held"].sum() == SMALL.checked
    for area in areas[areas["area"].isin([phase_map.ABOVE, phase_map.BELOW])].itertuples():
        middle = true_u(area.model, area.objects, (area.x + area.x2) / 2, (area.y + area.y2) / 2)
        assert (middle > its.LINE) == (area.area == phase_map.ABOVE)
    assert {*areas["area"]} >= {phase_map.ABOVE, phase_map.BELOW, phase_map.OPEN}


def test_exported_tables_have_the_numbers_of_the_page(course, tmp_path):
    known, arms = course[0], [*chain(*course[1])]
    records = Records(tuple(arms), tmp_path)
    for arm in arms:
        n = place_in_diagram(arm).objects
        task = f"exchanges of {n // 2}"
        asked = (f"seen_in_pairs_{n}", task), (f"unseen_in_pairs_{n}", task), (f"seen_{n}", "swap")
        subsets = {subset: {task: {"accuracy": known.score(arm, subset, task)}} for subset, task in asked}
        records.snapshot[records.folder(arm)] = {"subsets": subsets}
    SMALL.export(records)
    checks, critical = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("checks", "critical"))
    text = phase_map.check_text(checks, SMALL.checked)
    assert f"{100 * np.sqrt(((checks['predicted'] - checks['measured']) ** 2).mean()):.1f} points" in text
    assert len(critical) == len(TRUE) * len(SMALL.conditions)
    assert (critical["low"] <= critical["critical"]).all()


def test_what_was_not_learnt_is_grey_and_budgets_say_so():
    runs = runs_of(0, CELLS).assign(learnt=0.7)
    frame = phase_map.draw_map(its.Boundary(runs), runs, np.zeros(len(runs), bool), 0.9).data
    assert phase_map.UNLEARNT in {*frame["area"]}
    assert phase_map.BELOW not in {*frame["area"]}
    trials = pd.DataFrame({"model": "clip", "steps": [600, 600, 1200, 1200], "learnt": [0.95, 0.8, 0.97, 0.91]})
    (sentence,) = phase_map.trial_parts(trials, 0.9)
    assert "1200 steps" in sentence.text


def test_pilot_trains_each_form_at_the_ends_of_objects(tmp_path):
    study = replace(SMALL, trial=(20, 50))
    arms = list(study.plan(Records((), tmp_path)))
    assert {(arm.cell.recipe.steps, place_in_diagram(arm)) for arm in arms} == {
        (steps, Place(n, 0.5, 0.6)) for steps in (20, 50) for n in (2, 4)
    }
    assert len(arms) == 8


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"budgets": (1, 2, 3)}, "--budgets"),
        ({"checked": 3}, "--checked"),
        ({"checked": 300}, "--checked"),
        ({"coverage": (0.5, 1.0)}, "--coverage"),
        ({"objects": (2, 3)}, "--objects 3"),
        ({"coverage": (*SHARES, 0.125)}, "--coverage 0.125"),
    ],
)
def test_what_cannot_work_is_refused(change, names):
    with pytest.raises(UserError, match=names):
        replace(SMALL, **change).check()
