"""The study of slots: selection, masks and pictures on known vectors, and a small run."""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from menagerie.models.registry import specs
from menagerie.models.towers.tokenizers import OpenCLIPTokenizer, WordTokenizer
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.slot_pictures import SlotAttention, choose_slots, words_and_shares
from menagerie.studies.measures.slots import (
    ALL,
    BEST,
    ITEM,
    LEAST_SCALE,
    RANDOM,
    WORST,
    EmbeddedItems,
    ItemKey,
    MaskRow,
    inverse_temperature,
    mask_loss,
    mask_of,
    mask_table,
    mask_verdicts,
    masked_values,
    masks_in,
    selected_rows,
    selection_points,
    selection_table,
    selection_verdicts,
    slot_accuracies,
    train_mask,
)
from menagerie.studies.sparo import PRESETS
from tests.command import ROOT, read_rows, run_here
from tests.studies.browser import plain
from tests.studies.stored import stored_run

SPARO = [sys.executable, str(ROOT / "studies" / "sparo.py"), "--preset", "smoke"]
SMALL = ["--steps", "6", "--parts", "selection", "masks", "sweeps", "pictures", "--slot-widths", "8"]


def items(products, task="swap", subset="validation", squares=None):
    """Items with given products (n, 2, parts), each of an animal pair of its own."""
    products = np.asarray(products, np.float32)
    records = [ItemKey(subset, task, f"scene {k}", "a caption", f"pair {k}") for k in range(len(products))]
    squares = np.ones((len(products), products.shape[-1]), np.float32) if squares is None else squares
    return EmbeddedItems(records, products, squares)


def joined(*parts):
    """Several items as one."""
    records = [record for part in parts for record in part.records]
    return EmbeddedItems(records, *(np.concatenate([part[k] for part in parts]) for k in (1, 2)))


def slots_that_are_right(right, n=40, seed=0):
    """Products in which slot s alone is right in a share `right[s]` of n items."""
    rng = np.random.default_rng(seed)
    true = np.array([[1.0 if k < share * n else -1.0 for share in right] for k in range(n)])
    true = np.stack([rng.permutation(column) for column in true.T], 1)
    return np.stack([true, np.zeros_like(true)], 1)


def measured(rows):
    """The rows of a measure of one run, as a table of records."""
    return pd.DataFrame([{"seed": 0, **row} for row in rows])


def test_slots_are_ranked_by_the_accuracy_of_each_alone():
    right = (1.0, 0.5, 0.25, 0.0)
    assert slot_accuracies(items(slots_that_are_right(right)), ["swap"]).tolist() == list(right)
    assert slot_accuracies(items(np.zeros((4, 2, 3))), ["swap"]).tolist() == [0.5] * 3, "ties"


def test_the_best_half_is_chosen_on_validation_alone():
    """Slots 0 and 1 recognise on validation, and slots 2 and 3 on the test."""
    good, bad = slots_that_are_right((1, 1, 0, 0)), slots_that_are_right((0, 0, 1, 1))
    validation = joined(items(good, "replace animal"), items(bad, "swap"))
    tests = joined(*(items(products, "swap", subset="unseen") for products in [good]))
    points = selection_points(measured(selected_rows(validation, tests, 8, seed=0)))
    mean = points.groupby(["ranked", "kept"])["value"].mean()
    assert mean["recognition", BEST] == 1
    assert mean["recognition", WORST] == 0
    assert mean["binding", BEST] == 0
    assert mean["", ALL] == 0.5  # ties
    assert 0 < mean["", RANDOM] < 1
    rows = selection_table(points).rows
    assert [row[0] for row in rows] == ["–", "–", "recognition", "recognition", "binding", "binding"]
    assert [its.outcome for its in selection_verdicts(points)] == ["confirmed"] * 3
    others = measured(selected_rows(validation, items(bad, "swap", subset="unseen"), 8, seed=0))
    assert {its.outcome for its in selection_verdicts(selection_points(others))} == {"contradicted"}


def test_a_mask_learns_which_parts_are_right():
    """One part is right by a narrow margin, one wrong by a wide one."""
    products = np.stack([np.tile([0.2, -0.5], (50, 1)), np.zeros((50, 2))], 1)
    its = items(products)
    assert its.values(np.ones((2, 1))).mean() == 0
    mask = train_mask(its, seed=0)
    assert mask.shape == (2,)
    assert ((mask >= 0) & (mask <= 1)).all()
    assert its.values(mask[:, None]).mean() == 1
    assert (train_mask(its, seed=0) == mask).all()
    its = items(np.stack([np.ones((9, 3)), np.zeros((9, 3))], 1))
    assert train_mask(its, seed=0).tolist() == [0.5] * 3, "nothing improves it"


def test_the_loss_of_masks_is_that_of_appendix_c_1():
    generator = torch.Generator().manual_seed(0)
    image, texts = (torch.randn(*shape, 4, generator=generator, dtype=torch.float64) for shape in ((3,), (3, 2)))
    texts = torch.nn.functional.normalize(texts, dim=-1)
    theta, alpha = torch.tensor([0.1, -0.2, 0.0, 0.3]).double(), torch.tensor(5.0).double()
    assert inverse_temperature(torch.tensor(0.0)) == LEAST_SCALE
    mask = 1 / (1 + torch.exp(-alpha.exp() * theta / 4))
    torch.testing.assert_close(mask_of(theta, alpha), mask)
    expected = 0.0
    for k in range(3):
        own = mask * image[k]
        true, false = (alpha.exp() * (own @ text) / own.norm() for text in texts[k])
        expected += float(torch.log1p(torch.exp(false - true))) / 3
    loss = mask_loss(theta, alpha, image[:, None] * texts, image**2)
    assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_masks_are_tested_on_other_tasks_and_left_out_without_equal_parts():
    """The first slot is right on swaps and wrong elsewhere: what the mask gains there it loses here."""
    binds = np.stack([np.tile([0.2, -0.5], (30, 1)), np.zeros((30, 2))], 1)
    validation = items(binds)
    tests = joined(items(binds, "swap", subset="unseen"), items(-binds, "replace animal", subset="unseen"))
    results = masks_of(validation, tests, 2)
    assert set(results) == {MaskRow("sparo", "slots", "swap"), MaskRow("sparo", "numbers", "swap")}
    row, _ = mask_table(results).rows
    assert row[:5] == ["SPARO", "slots", "swap", "0.0 → 100.0", "0.0 → 100.0"]
    assert row[5] == "100.0 → 0.0"
    assert row[6] == "-100.0 [no spread: no interval]"
    its = items(np.ones((5, 2, 6)))
    assert set(masks_of(its, its, 4)) == {MaskRow("sparo", "numbers", "swap")}


def masks_of(validation, tests, slots):
    """The masks for swaps, trained and tested on known items."""
    both = zip((validation, tests), masked_values(validation, tests, slots, ("swap",), seed=0), strict=True)
    return masks_in("sparo", measured(row for its, columns in both for row in its.rows(columns)), ["swap"])


def test_parts_are_contiguous():
    its = items(np.arange(8.0).reshape(1, 2, 4)).in_parts(2)
    assert its.products.tolist() == [[[1, 5], [9, 13]]]
    assert its.squares.tolist() == [[2, 2]]


def test_attention_to_a_word_is_that_to_its_tokens():
    words = WordTokenizer(("a", "cat", "red"))
    tokens = np.array([[0.1, 0.2, 0.3, 0.4, 0.0]])  # a red cat END
    assert words_and_shares(words, "a red cat", tokens)[1].tolist() == [[0.1, 0.2, 0.3]]
    tokens = np.array([[0.5, 0.1, 0.2, 0.1, 0.1, 0.0]])  # START a red cat END
    names, shares = words_and_shares(OpenCLIPTokenizer(), "a red cat", tokens)
    assert names == ["a", "red", "cat"]
    assert shares.tolist() == [[0.1, 0.2, 0.1]]


def test_chosen_slots_are_sharp_and_agree_with_their_image():
    """Slot 1 is blurred; 3 disagrees with its image."""
    shares = np.array([[0.9, 0.0, 0.1], [0.3, 0.35, 0.3], [0.8, 0.1, 0.1], [0.0, 0.0, 1.0]])
    cosines = np.array([[0.9, 0.9, 0.9, 0.1]] * 2)
    scenes = SlotAttention(
        np.zeros((2, 4, 4, 3), np.uint8), np.ones((2, 4, 4, 4)), [["a", "b", "c"]] * 2, [shares] * 2, cosines
    )
    assert choose_slots(scenes, 2) == [0, 2]
    assert choose_slots(scenes._replace(cosines=0 * cosines)) == [3, 0, 2]


def test_rows_of_the_ladder_and_of_sweeps_are_different_cells():
    study = replace(PRESETS["laptop"], seeds=1, models=("sparo",))
    ids = {arm.labels["row"]: arm.id for arm in study.arms}
    assert len({ids[row] for row in study.ladder}) == len(study.ladder) == 9
    assert ids["SPARO"] not in {ids[row] for row in study.ladder}
    assert ids["slots=32"] == ids["dim=16"] == ids["SPARO"]  # a sweep goes through SPARO as it is
    assert len(set(ids.values())) == 1 + 9 + 4 + 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sparo")
    result = run_here([*SPARO, *SMALL], folder, figures=False)
    assert result.returncode == 0, result.stderr
    (folder / "output.txt").write_text(result.stdout)
    return folder


def test_a_run_writes_its_tables_and_figures(folder):
    out = folder / "runs/sparo-smoke"
    assert "3 runs, 0 of them finished before" in (folder / "output.txt").read_text()  # SPARO is slots=8 and dim=8 too
    assert "3 of 3 runs are finished" in plain(out / "report.html")
    selection = read_rows(out / "selection.csv")
    assert [row["slots"] for row in selection][:2] == [ALL, RANDOM]
    masks = read_rows(out / "masks.csv")
    assert {row["a weight for each"] for row in masks} == {"slots", "numbers"}
    results = read_rows(out / "results.csv")
    assert {"slots=4", "slots=8", "dim=8", "CLIP with average pooling"} <= {row["row"] for row in results}
    for name in ("sweep-slots", "slots", "training"):
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_all_slots_together_score_as_the_model(folder):
    out = folder / "runs/sparo-smoke"
    (all_slots,) = (row for row in read_rows(out / "selection.csv") if row["slots"] == ALL)
    results = [json.loads(file.read_text()) for file in out.glob("cells/*/result.json")]
    (own,) = (r for r in results if r["model"] == "sparo" and r["settings"]["options"] == specs()["sparo"].smoke)
    for task in ("swap", "replace animal"):
        scores = [its[task] for name, its in own["subsets"].items() if name != "validation" and its[task]["n"]]
        mean = sum(s["accuracy"] * s["n"] for s in scores) / sum(s["n"] for s in scores)
        assert float(all_slots[task]) == pytest.approx(100 * mean, abs=1.0)


def changed(before, after, task, subset="unseen", n=12):
    """n records of a task with the same values before and after a mask."""
    records = [(0, subset, task, f"scene {k}", "a caption", f"pair {k}") for k in range(n)]
    return pd.DataFrame(records, columns=ITEM).assign(before=float(before), after=float(after))


def masked(before, gained, left):
    """Records of a mask trained on swaps: their values, and what is left on another task."""
    tests = changed(before, gained, "swap"), changed(1, left, "add animal")
    return pd.concat([changed(before, gained, "swap", "validation"), *tests])


@pytest.mark.parametrize(("slots", "outcome"), [(1.0, "confirmed"), (0.0, "contradicted"), (0.5, "undecided")])
def test_masks_are_compared_on_other_tasks_alone(slots, outcome):
    places = {("sparo", "slots"): slots, ("sparo", "numbers"): 0.5, ("clip-gap", "slots"): 0.5}
    results = {MaskRow(*place, "swap"): masked(0, 1, after) for place, after in places.items()}
    verdicts = list(mask_verdicts(results, "swap"))
    assert [verdict.outcome for verdict in verdicts] == [outcome, outcome]
    assert {verdict.tests for verdict in verdicts} == {"all tests: add animal"}
    assert verdicts[1].row == "SPARO − CLIP with average pooling, a weight for each slot"


def test_sweeps_are_judged_by_their_first_and_last_values(tmp_path):
    """More slots are better; wider ones first better, then worse."""
    skills = {"slots=4": 0.1, "slots=8": 0.1, "slots=16": 0.9, "dim=2": 0.1, "dim=4": 0.9, "dim=8": 0.1}
    widths = {"slot_counts": (4, 8, 16), "slot_widths": (2, 4, 8)}
    study = replace(PRESETS["smoke"], parts=("sweeps",), models=("sparo",), seeds=3, **widths)
    arms = [arm for arm in study.arms if arm.labels["row"] in skills]
    records = Records(tuple(arms), tmp_path)
    assert [its.outcome for its in study.sweep_verdicts(records)] == ["not tested"] * 3
    for arm in {arm.id: arm for arm in arms}.values():
        stored_run(tmp_path, "sparo", arm.cell.seed, dict(arm.labels), skills[arm.labels["row"]], name=arm.id)
    records = Records(tuple(arms), tmp_path)
    assert [its.outcome for its in study.sweep_verdicts(records)] == ["confirmed"] * 3
