"""The parts of a model's gap: free codes of a split's tests, the parts of planted scores, and the study's runs."""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.splits.all_pairs import AllPairsRecipe
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.studies.ceiling import PRESETS
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.free_codes import fit_codes
from menagerie.studies.measures.gap import FORMS, PARTS, gap_rows
from menagerie.studies.measures.recognition import COMPOSITION
from menagerie.studies.measures.tested_codes import CodeMatrix, CodesOfTests, width_of
from tests.generators.recipe_contract import many
from tests.helpers.splits import in_memory

FEW = {"world": "eight", "views": 2, "test_views": 1, "test_scenes": 30}


@pytest.fixture(scope="module")
def codes():
    split = in_memory(BindingRecipe(**FEW))
    return CodeMatrix(SplitTests(SplitDataset(split, "unseen_pairs")), split.vocabulary)


def test_all_pairs_differ_from_binding_in_the_scenes_of_two_alone():
    own, every = (kind(**FEW, pairs=0.5, hard_negatives=0.5).subsets() for kind in (BindingRecipe, AllPairsRecipe))
    assert every["shown_pairs"] == own["unseen_pairs"]
    assert len(every["train"]) == len(own["train"])
    two = many(every["train"])
    assert set(own["train"]) - set(every["train"]) <= set(many(own["train"]))
    pairs = Counter(frozenset(obj.animal for obj in scene.objects) for scene in two)
    items = Counter(frozenset(obj[:2] for obj in scene.objects) for scene in two)
    assert len(two) == len(many(own["train"])) == len({*two})
    assert len(pairs) == 28
    for counts in (pairs, items):
        assert max(counts.values()) - min(counts.values()) <= 1
    with pytest.raises(UserError, match="too few for all 28 pairs"):
        AllPairsRecipe(**FEW | {"views": 1}, pairs=0.05).counts()


def test_codes_are_told_what_is_true(codes):
    """A caption is true of the images that show its background and all of its objects."""
    its = codes
    for text, row in zip(its.world.captions, its.world.truth, strict=True):
        *objects, (place, _, _) = text
        said = {(its.words.animals[a], its.words.textures[t]) for a, t, _ in objects}
        where = its.words.backgrounds[place - len(its.words.animals)]
        shown = [where == s.background and said <= {obj[:2] for obj in s.objects} for s in its.scenes]
        assert row.tolist() == shown


def test_one_hot_codes_have_every_record_right(codes):
    width, scores = codes.one_hot_scores()
    words = codes.words
    assert width == len(words.animals) * len(words.textures) + len(words.backgrounds)
    rows = list(codes.values(scores))
    assert Counter(row["task"] for row in rows) == {"swap": 30, COMPOSITION: 60}
    assert all(row["value"] == 1 for row in rows)


def test_a_tie_is_a_guess_and_what_is_not_above_all_false_captions_is_wrong(codes):
    _, scores = codes.one_hot_scores()
    values = lambda changed: [list(map(row.get, ("task", "value"))) for row in codes.values(changed)][:3]  # noqa: E731
    true, false = (codes.number[text] for text in codes.swaps[0])
    one = codes.number[codes.captions_of_one_object[codes.scenes[0].background][0]]
    tied, above = scores.copy(), scores.copy()
    tied[false, 0] = scores[true, 0] + 1e-12
    assert values(tied)[0] == ["swap", 0.5]
    above[[false, one], 0] = 2
    lost = [0.0] * 2 if not codes.world.truth[one, 0] else [1.0, 0.0]
    assert values(above)[0] == ["swap", 0.0]
    assert sorted(value for _, value in values(above)[1:]) == sorted(lost)


@pytest.mark.parametrize("form", sorted({*FORMS.values()}))
def test_fits_of_enough_numbers_have_every_record_right(codes, form):
    shares = []
    for width in (2, 24):
        torch.manual_seed(0)
        world = codes.world
        scores = fit_codes(CodesOfTests(form, "").codes(world, width), world.truth, "infonce", 60)
        shares.append(np.mean([row["value"] for row in codes.values(scores)]))
    assert shares[0] < 0.9 < shares[1] == 1


@pytest.mark.parametrize(
    ("model", "options", "width"), [("clip", {}, 32), ("filip", {}, 32), ("oc-clip", {"dim": 24}, 24)]
)
def test_widths_are_those_of_the_vectors_that_are_compared(model, options, width):
    assert width_of(build_scorer(model, TowerConfig("nano", "", 32), TextSpace(("a", "red", "cat")), options)) == width


def test_parts_are_the_steps_between_planted_levels():
    shares = {"100": 10, "F": 9, "W": 7, "E": 4, "M": 3}
    about = {"model": "clip", "task": "swap", "subset": "unseen_pairs", "width": 8.0}
    points = pd.DataFrame(
        about
        | {"level": level, "seed": seed, "scene": f"{pair}-{k}", "caption": "", "animals": pair, "value": float(k < n)}
        for level, n in shares.items()
        for seed in range(3)
        for pair in range(6)
        for k in range(10)
    )
    (row,) = gap_rows(points)
    assert {name: row[name].value for name in PARTS} == pytest.approx(
        dict(zip(PARTS, (0.1, 0.2, 0.3, 0.1), strict=True))
    )
    assert row["M"].value + sum(row[name].value for name in PARTS) == pytest.approx(1)


def test_both_trainings_are_alike_but_for_their_pairs(tmp_path):
    arms = list(replace(PRESETS["gap"], seeds=2).plan(Records((), tmp_path)))
    assert [arm.labels["training"] for arm in arms] == ["some pairs", "all pairs"] * 2
    for some, every in zip(arms[::2], arms[1::2], strict=True):
        assert replace(some.cell, data=every.cell.data) == every.cell
        assert asdict(some.cell.data.recipe) == asdict(every.cell.data.recipe)
    with pytest.raises(UserError, match="--models sparo"):
        replace(PRESETS["gap"], models=("sparo",)).check()
