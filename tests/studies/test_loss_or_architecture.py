"""The eight combinations of loss, fusion and tokens: scorers, runs, the decomposition, and what the page says."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
import torch

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.contract import build_for_contract, check_contract
from menagerie.models.objectives import Targets
from menagerie.studies.frame.claims import contrasts, sign_of_effect
from menagerie.studies.frame.costs import run_flops
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import all_arms
from menagerie.studies.loss_or_architecture import LEVELS, PRESETS
from tests.command import ROOT
from tests.helpers.scorers import TOWERS, images, scorer
from tests.studies.stored import stored_run

STUDY = replace(PRESETS["smoke"], seeds=3)
NONE = Records((), ROOT)


@pytest.mark.parametrize("kind", STUDY.subjects, ids=lambda kind: "-".join(kind[:3]))
def test_every_combination_keeps_the_contract(kind):
    check_contract(kind.model, TOWERS, kind.options(16, 1.0), negatives=kind.loss == "contrastive")


def test_pooled_late_interaction_is_clip():
    clip, pooled = scorer("clip"), scorer("filip", tokens="pooled", symmetric=False)
    pooled.load_state_dict(clip.state_dict())
    captions = ["a red cat", "a white dog and a red cat", "a grass pig", "a red crow"]
    seen, read = images(4), clip.read(captions, [SceneGraph(())] * 4)
    embeddings = [(model.encode_images(seen), model.encode_texts(read)) for model in (clip, pooled)]
    one, other = (model.similarity(*embedding) for model, embedding in zip((clip, pooled), embeddings, strict=True))
    assert torch.allclose(one, other, atol=1e-6)
    targets = Targets(torch.eye(4, dtype=torch.bool), None, 4)
    both = zip((clip, pooled), embeddings, strict=True)
    assert torch.allclose(*(model.loss(*embedding, targets) for model, embedding in both), atol=1e-6)


def test_combinations_share_towers_and_are_of_similar_size():
    cells = {arm.cell.trained_as.id: arm.cell for arm in STUDY.plan(NONE)}.values()
    assert len({(cell.towers, cell.recipe, cell.data) for cell in cells if cell.seed == 0}) == 1
    built = [build_for_contract(cell.model, cell.towers, cell.options) for cell in cells if cell.seed == 0]
    sizes = [sum(weight.numel() for weight in model.parameters()) for model in built]
    assert max(sizes) < 1.25 * min(sizes)


def test_contrastive_runs_have_equal_negatives_and_priors_train_nothing():
    arms = all_arms(replace(STUDY, seeds=1, negatives=(3, 15)))
    negatives = [arm.cell.options.get("negatives", 0) for arm in arms if arm.labels["loss"] == "contrastive"]
    assert negatives == [3] * 4 + [0] * 4, "15 are all of a batch of 16: the option is 0"
    trained = {arm.cell.trained_as.id for arm in arms if arm.labels["loss"] == "generative"}
    assert len(trained) == 4
    assert sum(arm.labels["alpha"] == 1 for arm in arms) == 4
    assert {arm.cell.trained_as.id for arm in arms if arm.labels["alpha"] == 1} == trained


def test_equal_operations_are_those_of_clip():
    study = replace(STUDY, seeds=1, equal_operations=(24,))
    arms = {tuple(arm.labels[name] for name in LEVELS): arm for arm in all_arms(study) if arm.labels["steps"] != 24}
    assert arms.keys() == {("contrastive", "late", "patches"), *product(["generative"], *list(LEVELS.values())[1:])}
    clip = run_flops(next(iter(study.plan(NONE))).cell)
    for arm in arms.values():
        assert run_flops(arm.cell) == pytest.approx(clip, rel=0.5 / 24 * 1.5)


def test_only_combinations_that_read_all_pairs_move_to_their_own_device():
    arms = replace(STUDY, fused_device="cuda").plan(NONE)
    moved = {(arm.labels["loss"], arm.labels["fusion"]) for arm in arms if arm.cell.device == "cuda"}
    assert moved == {("contrastive", "early")}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Runs in which patches bind, and more so where the loss is contrastive."""
    out = tmp_path_factory.mktemp("loss")
    arms = list(all_arms(STUDY))
    for arm in arms:
        patches, contrastive = arm.labels["tokens"] == "patches", arm.labels["loss"] == "contrastive"
        skill = 0.5 + 0.2 * patches + 0.2 * (patches and contrastive)
        labels = " ".join(map(str, arm.labels.values()))
        stored_run(out, arm.cell.model, arm.cell.seed, {}, skill, pairs=28, name=arm.id, drawn_by=labels)
    return Records(tuple(arms), out)


def test_effects_of_a_factor_alone_are_estimated_at_each_level_of_the_others(records):
    swaps = records.where(subset="unseen_pairs", task="swap", alpha=0.0)
    found = swaps.estimates(("split", "fusion", "tokens", "loss"), against={"loss": "contrastive"})
    assert {key[1:3]: sign_of_effect(its) for key, its in found.items()} == {
        places: -(places[1] == "patches") for places in product(LEVELS["fusion"], LEVELS["tokens"])
    }
    assert found["binding", "late", "patches", "generative"].value == pytest.approx(-0.2 * 0.95, abs=0.06)


def test_the_page_compares_runs_of_equally_many_images_and_with_priors(records):
    whole = STUDY.finished_budgets(records, courses := STUDY.courses(records))
    compared = STUDY.compared(records, courses, whole)
    places = Counter((arm.labels["compared"], arm.labels["loss"], arm.labels["alpha"]) for arm in compared.arms)
    assert places == {
        ("equal images", "contrastive", 0.0): 4 * 3, ("equal images", "generative", 0.0): 4 * 3,
        ("prior subtracted, alpha 1", "contrastive", 0.0): 4 * 3,
        ("prior subtracted, alpha 1", "generative", 1.0): 4 * 3,
    }  # fmt: skip
    swaps = compared.where(subset="unseen_pairs", task="swap")
    found = contrasts(swaps, STUDY.levels, ("split", "compared"), 3)
    signs = {effect: sign_of_effect(its) for effect, its in found["binding", "equal images"].items()}
    assert {effect: sign for effect, sign in signs.items() if sign} == {
        ("loss",): -1, ("tokens",): 1, ("loss", "tokens"): -1
    }  # fmt: skip


def test_runs_without_counterfactual_images_have_no_image_score(records):
    """Nor do they get the accuracy of swaps in their place."""
    scores = records.where(subset="unseen_pairs").four_way_items("image")
    assert len(scores.scores)
    assert not scores.estimates(("split", "task"))
