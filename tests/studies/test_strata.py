"""Strata of unseen compositions, on records of known skill: nothing is trained."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from menagerie.envs.worlds import load_world
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.draw import write_page_part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.strata import (
    ALL_MODELS,
    GROUPS,
    PAIRS,
    STRATA,
    correlate_ranks,
    rank_correlation,
    stratum_changes,
    stratum_parts,
)
from tests.command import read_rows
from tests.studies.stored import stored_run

MODELS = [f"model {k}" for k in range(6)]
TESTS = ("unseen_pairs", "different_bag", "one_unseen_composition", "two_unseen_compositions")


def points_of(skills, seeds=3, pairs=24, records=6, easier=0.0):
    """Records of models by their skill in each stratum; a pair is harder or easier for all models. Every other pair is
    of training and, with `easier`, its records are right more often and, of stratum 0, six times as many."""
    random, rows = np.random.default_rng(0), []
    hard = random.normal(size=pairs) * 0.05
    strata = [(model, *both) for model, its in skills.items() for both in zip(STRATA, its, strict=True)]
    for (model, stratum, share), seed, pair in product(strata, range(seeds), range(pairs)):
        subset, trained = f"{stratum}: {PAIRS[pair % 2]}", pair % 2 == 0
        key = {"model": model, "seed": seed, "subset": subset, "task": "swap", "animals": f"pair {pair}"}
        number = records * (6 if easier and trained and stratum == "0" else 1)
        for k, right in enumerate(random.random(number) < share + hard[pair] + easier * trained):
            rows.append(key | {"scene": f"{stratum} {pair} {k}", "caption": "a", "value": float(right)})
    return pd.DataFrame(rows)


def test_changes_are_those_of_the_means_and_intervals_hold_what_was_planted():
    points = points_of({"one": (0.9, 0.7, 0.5), "other": (0.8, 0.8, 0.8)})
    found = {(model, name): its for model, name, its in stratum_changes(points)}
    halves = points.groupby(["model", "subset"])["value"].mean()["one"]
    means = {n: np.mean([halves[f"{n}: {pairs}"] for pairs in PAIRS]) for n in STRATA}
    assert found["one", "0 to 1"].value == pytest.approx(means["1"] - means["0"])
    for (model, name), planted in {("one", "slope"): -0.2, ("one", "1 to 2"): -0.2, ("other", "slope"): 0.0}.items():
        its = found[model, name]
        assert its.low < planted < its.high < its.low + 0.2
    assert found[ALL_MODELS, "slope"].value == pytest.approx(
        (found["one", "slope"].value + found["other", "slope"].value) / 2
    )


def test_another_share_of_easier_pairs_is_no_change():
    points = points_of({"one": (0.6, 0.6, 0.6)}, easier=0.3)
    pooled = points.groupby(points["subset"].str[0])["value"].mean()
    (*_, slope), *_ = stratum_changes(points)
    assert pooled["2"] < pooled["0"] - 0.08
    assert abs(slope.value) < 0.02
    assert slope.low < 0 < slope.high


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


def test_rank_correlations_are_of_the_seeds_that_all_models_have():
    levels = np.linspace(0.55, 0.95, 6)
    points = points_of({m: (level, level, level) for m, level in zip(MODELS, levels, strict=True)}, seeds=4)
    fewer = points[(points["model"] != MODELS[0]) | (points["seed"] > 0)]
    assert rank_correlation(fewer, "0", "1") == rank_correlation(points[points["seed"] > 0], "0", "1")
    assert rank_correlation(fewer, "0", "1").seeds == 3
    assert not rank_correlation(points[(points["model"] == MODELS[0]) == (points["seed"] > 1)], "0", "1").seeds


def strata_records(out, models):
    """Runs of a real plan; every animal pair of the world has records, of training or not."""
    study = replace(PRESETS["strata"], models=models, seeds=3)
    pairs = [" + ".join(sorted(pair)) for pair in load_world("twelve").pairs]
    arms = list(study.plan(Records((), out)))
    for arm in arms:
        skill, how = 0.4 + 0.08 * models.index(arm.cell.model), {"tests": TESTS, "animals": pairs.__getitem__}
        stored_run(out, arm.cell.model, arm.cell.seed, {}, skill, len(pairs), arm.id, drawn_by=arm.cell.model, **how)
    return Records(tuple(arms), out)


def test_a_page_has_strata_with_numbers_and_orders_of_six_models_or_more(tmp_path):
    models = PRESETS["strata"].models[:6]
    records = strata_records(tmp_path / "six", models)
    swaps = records.where(task="swap")
    parts = {part.name: part for part in stratum_parts(swaps) if hasattr(part, "name")}
    assert list(parts) == ["strata", "strata-changes", "strata-orders"]
    for part in parts.values():
        write_page_part(part, tmp_path)
    (row,) = [r for r in read_rows(tmp_path / "strata-orders.csv") if (r["stratum"], r["other"]) == ("0", "2")]
    assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
    world, planted = load_world("twelve"), Counter()
    for arm in swaps.where(model=models[0]).arms:
        trained = {" + ".join(sorted(its)) for its in arm.cell.data.recipe.roles(world, "left/right")[0].train}
        points = swaps.where(lambda its, arm=arm: its == arm, subset=TESTS).points
        strata = points["subset"].map(dict(zip(TESTS, "0012", strict=True)))
        planted.update(
            strata + ": " + points["animals"].isin(trained).map(dict(zip((True, False), PAIRS, strict=True)))
        )
    counted = {row["subset"]: int(row["n"]) for row in read_rows(tmp_path / "strata.csv") if row["model"] == models[0]}
    assert counted == planted
    assert counted.keys() == set(GROUPS)
    five = swaps.where(model=models[:5])
    assert not [part for part in stratum_parts(five) if getattr(part, "name", "") == "strata-orders"]
    assert not list(stratum_parts(swaps.where(subset=TESTS[:2]).regroup(("a",), lambda arm: {})))
