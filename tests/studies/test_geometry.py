"""The study of geometry: its runs, and what its page concludes from planted measures."""

import csv
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.studies import geometry as study_file
from menagerie.studies.frame.measure import write_measured
from menagerie.studies.frame.records import Records
from menagerie.studies.geometry import OTHERS, PRESETS, VECTORS
from menagerie.studies.measures.conditions import (
    ALL,
    BINDING,
    CATEGORISATION,
    CONDITIONS,
    EVERY,
    INDEPENDENT,
    NEGATION,
)
from menagerie.studies.measures.predictors import (
    NAMED,
    NEXT,
    OF_PAPERS,
    RISE,
    cells_with_predictors,
    correlate_predictors,
    coverage_rows,
    measures_chosen_on,
    predictor_rows,
)
from tests.command import ROOT, run_here
from tests.studies.stored import stored_run

STUDY = PRESETS["laptop"]


@pytest.fixture(scope="module")
def arms(tmp_path_factory):
    return list(STUDY.plan(Records((), tmp_path_factory.mktemp("none"))))


def test_laptop_plans_enough_cells_and_every_scorer_at_the_first_place(arms):
    assert len({arm.id for arm in arms}) == len(arms)
    assert sum(arm.cell.model in VECTORS for arm in arms) >= 60
    first = [arm for arm in arms if dict(arm.labels) == STUDY.first_place]
    assert {(arm.cell.model, arm.cell.seed) for arm in first} == {(m, s) for m in VECTORS + OTHERS for s in range(3)}
    assert {arm.cell.data.recipe.negated for arm in first} == {0.5}
    assert {arm.cell.data.recipe.negated for arm in arms if arm not in first} == {0.0}
    assert len({arm.cell.recipe.steps for arm in arms}) == 1
    tuned = {arm.cell.towers.architecture for arm in arms if arm.cell.model == "labclip"}
    assert tuned == {"broad"}, "who is trained once is tuned too"


def test_options_that_do_not_fit_a_split_are_refused(tmp_path):
    study = PRESETS["spatial"]
    assert {arm.cell.data.recipe.kind for arm in study.plan(Records((), tmp_path))} == {"spatial"}
    study.check()
    assert study.probe_set.template == "conjunction"
    assert replace(STUDY, template="pug-conjunction").probe_set.template == "pug-conjunction"
    with pytest.raises(UserError, match="--negated"):
        replace(study, negated=0.5).check()
    with pytest.raises(UserError, match="has 3"):
        replace(STUDY, probe_animals=load_world("eight").animals[:3]).check()


@pytest.mark.parametrize(
    ("world", "side", "changed", "chosen"),
    [
        *(("pug", 64, {}, True), ("eight", 64, {}, False), ("pug", 32, {}, False), ("pug", 64, {"seed": 5}, False)),
        *(("pug", 64, {"model": "sparo"}, False), ("pug", 64, {"hard_negatives": 1.0}, False)),
        ("pug", 64, {"seed": 0, "hard_negatives": 1.0}, True),
    ],
)
def test_cells_on_which_the_measure_was_chosen_are_known(world, side, changed, chosen):
    cell = {"model": "clip", "seed": 3, "pairs": 0.2, "hard_negatives": 0.0}
    assert measures_chosen_on(world, side, cell | changed) == chosen


def geometry_rows(share, others):
    place = {"layer": "embedding", "read": "mean", "chance": 0.0, "refused": ""}
    yield place | {"part": NAMED.part, "measure": NAMED.measure, "value": share}
    for its, value in zip(NEXT, others, strict=True):
        yield place | {"part": its.part, "measure": its.measure, "value": value}


def condition_rows(shares):
    for condition, value in shares.items():
        refused = "" if value is not None else "no text of training says 'left'"
        row = {"by": "scores", "condition": condition, "part": EVERY, "measure": "holds"}
        yield row | {"value": value, "chance": 0.25, "refused": refused}
    known = [value for value in shares.values() if value is not None]
    row = {"by": "scores", "condition": ALL, "measure": "holds", "chance": None, "refused": ""}
    yield row | {"part": EVERY, "value": min(known), "chance": 0.01}
    yield row | {"part": INDEPENDENT, "value": float(np.prod(known))}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Runs whose binding share grows with their accuracy; the next three measures are random."""
    out, random, found = tmp_path_factory.mktemp("stored"), np.random.default_rng(0), []
    models = ("clip", "sparo", "dcsm")
    for seed in range(5):
        for pairs in (0.25, 0.5, 1.0):
            for k, model in enumerate(models):
                skill = 0.35 + 0.2 * k + 0.2 * pairs
                labels = {"pairs": pairs, "hard_negatives": 0.0, "negated": 0.5}
                arm = stored_run(out, model, seed, labels, skill, pairs=12)
                folder = out / "cells" / arm.id
                share = skill / 5 + random.normal(0, 0.002)
                rows = geometry_rows(share, random.random(3)) if model != "dcsm" else geometry_rows(None, [None] * 3)
                write_measured(folder, STUDY.geometry, None, rows)
                shares = dict.fromkeys(CONDITIONS) | {CATEGORISATION: skill, BINDING: skill / 2, NEGATION: skill - 0.1}
                write_measured(folder, STUDY.conditions, None, condition_rows(shares))
                found.append(arm)
    return Records(tuple(found), out)


def test_only_the_planted_correlation_is_confirmed(stored):
    found = cells_with_predictors(stored, stored.rows_of(STUDY.geometry))
    assert len(found) == 30, "DCSM has no text embedding"
    first, *others = correlate_predictors(found)
    assert first.over_all.value > 0.8
    assert first.over_all.seeds == 10, "a model with a seed"
    assert first.outcome == "confirmed"
    assert first.by_place.value > 0.5
    assert {its.outcome for its in others} == {"undecided"}
    assert all(its.p >= its.over_all.p for its in others), "corrected for their number"
    turned = correlate_predictors(found.assign(**{NAMED.name: -found[NAMED.name]}))[0]
    assert turned.outcome == "contradicted"


def test_what_papers_name_predicts_within_each_model_if_it_follows_accuracy(stored):
    scores = stored.where(test=(("unseen_pairs", "swap"),)).scores
    scores = scores[scores["model"] != "dcsm"].reset_index(drop=True)
    first, *others = OF_PAPERS
    random = np.random.default_rng(0)
    values = {first: scores["accuracy"] + 1} | {its: random.random(len(scores)) for its in others}
    labels = scores[["model", "seed", "pairs", "hard_negatives", "negated"]]
    rows = [labels.assign(part=its.part, measure=its.measure, value=value) for its, value in values.items()]
    found = pd.DataFrame(predictor_rows(stored, pd.concat(rows))).set_index(["predictor", "over"])
    one = Records(stored.arms[:1], stored.out)
    assert not list(predictor_rows(one, pd.concat(rows))), "a single run has no correlation"
    assert {*found["test"]} == {"unseen_pairs"}, "no run has tests of unseen compositions"
    for over, runs in {"all runs": 30, "within a setting": 30, "clip": 15, "sparo": 15}.items():
        row = found.loc[(first.name, over)]
        assert (row["value"], row["runs"]) == (pytest.approx(1), runs)
    other = found.loc[(others[0].name, "clip")]
    assert other["low"] < other["value"] < other["high"]
    assert other["low"] < 0 < other["high"]


def test_fits_of_products_are_compared_at_the_least_and_the_greatest_coverage():
    rows = pd.DataFrame(
        {"model": "clip", "seed": seed, "part": "image", "measure": "product_gain", "compositions": share,
         "value": 0.4 * share + 0.1 * seed}
        for seed in range(3) for share in (0.75, 0.25, 0.5)
    )  # fmt: skip
    found = pd.DataFrame(coverage_rows(rows)).set_index("coverage")
    assert list(found.index) == ["0.25", "0.5", "0.75", RISE]
    assert found["value"].tolist() == pytest.approx([0.2, 0.3, 0.4, 0.2])
    rise = found.loc[RISE]
    assert (rise["low"], rise["high"]) == (pytest.approx(0.2), pytest.approx(0.2)), "seeds differ, their rises don't"
    assert found.loc["0.25", "low"] < 0.2 - 0.1
    assert not list(coverage_rows(rows.drop(columns="compositions"))), "without an axis there is nothing to compare"
    refused = rows.assign(value=rows["value"].where(rows["compositions"] == 0.5))
    assert not list(coverage_rows(refused)), "a single coverage has no rise"


def test_the_page_shows_shares_of_scenes_and_judges_claims_at_the_first_place(stored, monkeypatch):
    monkeypatch.setattr(study_file, "CURVE", [1.0])
    parts = {part.name: part for part in STUDY.page(stored) if hasattr(part, "name")}
    table = parts["conditions-by-model"]
    assert table.header == ("condition", "chance", "CLIP", "SPARO", "DCSM")
    lines = {row[0]: row[1:] for row in table.rows}
    assert lines[BINDING] == ("25", *[f"{50 * skill:.1f} [no spread: no interval]" for skill in (0.4, 0.6, 0.8)])
    assert lines["place"] == ("25", "–", "–", "–")
    outcomes = {row[1]: row[-1] for row in parts["claims"].rows}
    assert outcomes["DCSM − CLIP, attribute binding: points"] == "undecided", "four equal gaps have no interval"
    assert outcomes["all runs: rank correlation"] == "contradicted"
    assert len(parts["prediction"].chart.data) == 4 * 30
    assert {*parts["trade-off"].chart.data["model"]} == {"constructed"}, "no margins are stored here"


def test_both_measures_are_taken_of_each_run(tmp_path):
    command = [sys.executable, str(ROOT / "studies/geometry.py"), "--preset", "smoke", "--out", "out"]
    command += ["--steps", "2", "--test-scenes", "12", "--workers", "1"]
    done = run_here(command, tmp_path, page=False)
    assert done.returncode == 0, done.stderr
    tables = {}
    for name in ("geometry", "conditions"):
        with (tmp_path / "out" / f"{name}.csv").open() as file:
            tables[name] = pd.DataFrame(csv.DictReader(file))
    negated = tables["conditions"][tables["conditions"]["condition"] == NEGATION]
    told = negated[negated["part"] == EVERY].set_index(["model", "negated"])
    assert told.loc[("clip", "0.0"), "value"] == ""
    assert "'no'" in told.loc[("clip", "0.0"), "refused"]
    assert all(0 <= float(told.loc[(model, "0.5"), "value"]) <= 1 for model in ("clip", "oc-clip"))
    assert {*tables["conditions"].query("by == 'embeddings'")["model"]} == {"clip"}
    lacking = tables["geometry"].query("model == 'oc-clip'")
    assert lacking["refused"].str.contains("no single vector").all()
    assert {*tables["geometry"].query("model == 'clip'")["part"]} == {"image", "text", "image and text", "edited image"}
