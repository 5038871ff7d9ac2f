"""Strata of unseen compositions and ladders of data, on records of known skill: nothing is trained."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from menagerie.envs.core.errors import UserError
from menagerie.studies.frame.draw import write_page_part
from menagerie.studies.frame.ladder import CHANGE, ladder_parts, lead_rows
from menagerie.studies.frame.parts import EstimateTable
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.strata import (
    ALL,
    UNSEEN,
    correlate_ranks,
    rank_correlation,
    stratum_changes,
    stratum_parts,
)
from menagerie.studies.sample_efficiency import PRESETS
from tests.command import read_rows
from tests.studies.stored import stored_run

MODELS = [f"model {k}" for k in range(6)]
TESTS = ("unseen_pairs", "different_bag", "one_unseen_composition", "two_unseen_compositions")


def points_of(skills, seeds=3, pairs=24, records=6):
    """Records of models by their skill in each stratum; a pair is harder or easier for all models."""
    random, rows = np.random.default_rng(0), []
    hard = random.normal(size=pairs) * 0.05
    strata = [(model, *both) for model, its in skills.items() for both in zip(UNSEEN, its, strict=True)]
    for (model, stratum, share), seed, pair in product(strata, range(seeds), range(pairs)):
        key = {"model": model, "seed": seed, "subset": stratum, "task": "swap", "animals": f"pair {pair}"}
        for k, right in enumerate(random.random(records) < share + hard[pair]):
            rows.append(key | {"scene": f"{stratum} {pair} {k}", "caption": "a", "value": float(right)})
    return pd.DataFrame(rows)


def test_changes_are_those_of_the_means_and_intervals_hold_what_was_planted():
    points = points_of({"one": (0.9, 0.7, 0.5), "other": (0.8, 0.8, 0.8)})
    found = {(model, name): its for model, name, its in stratum_changes(points)}
    means = points.groupby(["model", "subset"])["value"].mean()
    assert found["one", "0 to 1"].value == pytest.approx(means["one", "1"] - means["one", "0"])
    for (model, name), planted in {("one", "slope"): -0.2, ("one", "1 to 2"): -0.2, ("other", "slope"): 0.0}.items():
        its = found[model, name]
        assert its.low < planted < its.high < its.low + 0.2
    assert found[ALL, "slope"].value == pytest.approx((found["one", "slope"].value + found["other", "slope"].value) / 2)


def test_rank_correlations_are_spearmans():
    random = np.random.default_rng(1)
    one, other = random.integers(0, 5, (2, 8, 6)).astype(float)
    assert correlate_ranks(one, other) == pytest.approx(
        [spearmanr(*both).statistic for both in zip(one, other, strict=True)]
    )


def test_models_keep_their_order_change_it_or_differ_by_noise_alone():
    levels = np.linspace(0.55, 0.95, 6)
    kept = points_of({m: (level, level - 0.05, 1.5 - level) for m, level in zip(MODELS, levels, strict=True)})
    same, turned = rank_correlation(kept, "0", "1"), rank_correlation(kept, "0", "2")
    assert same.value > 0.9
    assert same.low > 0.5
    assert turned.high < 0
    alike = rank_correlation(points_of(dict.fromkeys(MODELS, (0.7, 0.7, 0.7))), "0", "1")
    assert not alike.known, "noise alone is no change of order"


def strata_records(out, models):
    runs = product(range(3), enumerate(models))
    arms = (stored_run(out, model, seed, {}, 0.4 + 0.1 * k, 24, tests=TESTS) for seed, (k, model) in runs)
    return Records(tuple(arms), out)


def test_a_page_has_strata_with_numbers_and_orders_of_six_models_or_more(tmp_path):
    swaps = strata_records(tmp_path / "six", MODELS).where(task="swap")
    parts = {part.name: part for part in stratum_parts(swaps) if hasattr(part, "name")}
    assert list(parts) == ["strata", "strata-changes", "strata-orders"]
    for part in parts.values():
        write_page_part(part, tmp_path)
    (row,) = [r for r in read_rows(tmp_path / "strata-orders.csv") if (r["stratum"], r["other"]) == ("0", "2")]
    assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
    counted = {row["subset"]: int(row["n"]) for row in read_rows(tmp_path / "strata.csv") if row["model"] == MODELS[0]}
    assert counted.keys() == set(UNSEEN)
    assert sum(counted.values()) == len(swaps.where(model=MODELS[0], subset=TESTS).points)
    five = strata_records(tmp_path / "five", MODELS[:5]).where(task="swap")
    assert not [part for part in stratum_parts(five) if getattr(part, "name", "") == "strata-orders"]
    assert not list(stratum_parts(swaps.where(subset=TESTS[:2]).regroup(("a",), lambda arm: {})))


def test_a_lead_is_what_its_rungs_say(tmp_path):
    skills = {("clip", 0.1): 0.5, ("oc-clip", 0.1): 0.9, ("clip", 1.0): 0.9, ("oc-clip", 1.0): 0.95}
    cost = {"flops": 2e12, "cpu_seconds": 1.0}
    arms = [
        stored_run(tmp_path, model, seed, {"steps": 8, "pairs": pairs, **cost}, skill, pairs=24)
        for (model, pairs), skill in skills.items()
        for seed in range(3)
    ]
    records = Records(tuple(arms), tmp_path)
    leads = lead_rows(records.where(task="swap", subset="unseen_pairs"))
    assert list(leads) == [("oc-clip", 8, name) for name in ("10%", "100%", CHANGE)]
    least, most, change = leads.values()
    assert change.value == pytest.approx(least.value - most.value)
    assert 0 < change.low < 0.35 < change.high
    parts = {part.name: part for part in ladder_parts(records, ("unseen_pairs",)) if hasattr(part, "name")}
    assert isinstance(parts["leads"], EstimateTable)
    write_page_part(parts["leads"], tmp_path)
    assert [float(row["value"]) for row in read_rows(tmp_path / "leads.csv")] == pytest.approx(
        [i.value for i in leads.values()]
    )


def test_a_ladder_trains_all_models_alike_on_rising_data():
    study = replace(PRESETS["smoke"], ladder=(0.0, 1.0), seeds=1)
    arms = list(study.plan(Records((), study.store)))
    assert [(arm.cell.model, arm.labels["pairs"]) for arm in arms] == [
        (m, p) for p in (0.0, 1.0) for m in ("clip", "oc-clip")
    ]
    assert {arm.cell.recipe.steps for arm in arms} == {study.recipe.steps}
    for wrong in ((0.5,), (1.0, 0.5)):
        with pytest.raises(UserError, match="--ladder"):
            replace(study, ladder=wrong).check()
