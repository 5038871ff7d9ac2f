"""Free codes: worlds against sets, scores and losses against plain formulas, bounds that are known in closed form, an
independent solver, and the study's runs."""

import csv
import sys
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.tables import WAITING
from menagerie.studies.ceiling import PRESETS, Ceiling
from menagerie.studies.frame.records import Records
from menagerie.studies.measures import code_fit
from menagerie.studies.measures import free_codes as its
from menagerie.studies.measures import truth_matrix as world_of
from menagerie.studies.measures.code_widths import claim_rows, smallest_widths, widths_by_form
from menagerie.studies.runs.cell import AnyJob
from tests.command import ROOT, succeed

KINDS = ("whole", "objects", "relations", "negation", "all")


def is_true(text, image):
    """Whether a caption is true of an image, read object by object."""
    stands = {}
    for animal, texture, says in text:
        fits = [
            k
            for k, (a, t, _) in enumerate(image)
            if animal in (a, world_of.UNNAMED) and texture in (t, world_of.UNNAMED)
        ]
        if bool(fits) == (says == world_of.ABSENT):
            return False
        if says >= world_of.FIRST_PLACE and says - world_of.FIRST_PLACE not in fits:
            return False
        stands[says] = fits[0] if fits else None
    return world_of.LEFT not in stands or stands[world_of.LEFT] < stands[world_of.RIGHT]


@pytest.mark.parametrize(("objects", "kind"), list(product((2, 3), KINDS)))
def test_truth_is_what_the_captions_say(objects, kind):
    world = world_of.truth_matrix(objects, 4, 3, kind)
    assert len(world.images) == world_of.image_count(objects, 4, 3, kind) == len(set(world.images))
    assert len(world.captions) == len(set(world.captions))
    assert world.truth.tolist() == [[is_true(text, image) for image in world.images] for text in world.captions]
    assert (world.truth[: len(world.images)] == np.eye(len(world.images), dtype=bool)).all(), "whole captions first"


def test_sizes_are_those_of_the_issue():
    """Three objects of up to six animals and four of up to five have at most 5000 images in 4 textures."""
    sizes = {(n, a): world_of.image_count(n, a, 4, "relations") for n, a in ((3, 6), (3, 7), (4, 5), (4, 6))}
    assert sizes == {(3, 6): 2880, (3, 7): 5040, (4, 5): 2880, (4, 6): 8640}
    study = PRESETS["large"]
    assert (study.animals_for(3, "all"), study.animals_for(4, "all")) == (6, 5)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_scores_of_tokens_and_slots_are_the_plain_ones():
    world = world_of.truth_matrix(3, 3, 3, "all")
    torch.manual_seed(0)
    tokens = its.Tokens(world, 5, 2)
    text, image = (unit(codes.detach().numpy()) for codes in (tokens.texts, tokens.images))
    plain = [[np.mean([max(a @ b for b in y) for a in x]) for y in image] for x in text]
    np.testing.assert_allclose(tokens().detach(), plain, atol=1e-12)
    slots = its.Slots(world, 5)
    labels, images = (unit(codes.detach().numpy()) for codes in (slots.labels, slots.slots))
    parts = {}  # the study numbers labels as captions name them
    for caption in world.captions:
        nodes = [(a, t, says if says < world_of.LEFT else world_of.PRESENT) for a, t, says in caption]
        for part in (*nodes, *(m for m in caption if m[2] >= world_of.LEFT)):
            parts.setdefault(part, labels[len(parts)] if len(parts) < len(labels) else None)
    for row, caption in zip(slots().detach().numpy(), world.captions, strict=True):
        for score, shown in zip(row, images, strict=True):
            found = []
            for a, t, says in caption:
                node = parts[a, t, says if says < world_of.LEFT else world_of.PRESENT]
                found.append(max(shown @ node))
                if says >= world_of.LEFT:
                    found.append(shown[np.argmax(shown @ node)] @ parts[a, t, says])
            assert score == pytest.approx(np.mean(found), abs=1e-12)


@pytest.mark.parametrize("form", ["sum", "product", "apart", "pairs"])
def test_composed_codes_are_sums_over_what_is_mentioned(form):
    world = world_of.truth_matrix(2, 3, 2, "all")
    torch.manual_seed(0)
    codes = its.Composition(world, 4, form)
    vectors = [each.detach().numpy() for each in codes.vectors]
    half, sides = len(vectors) // 2, []
    for side, texts in enumerate((world.captions, world.images)):
        *tables, said = vectors[side * half : (side + 1) * half]
        rows = []
        for text in texts:
            objects = []
            for animal, texture, says in text:
                a, t = animal + 1, texture + 1
                if form == "sum":
                    one = tables[0][a * 3 + t]
                else:
                    one = tables[0][a] + tables[1][t] if form == "apart" else tables[0][a] * tables[1][t]
                objects.append(one * said[says])
            pairs = sum(x * y for x, y in combinations(objects, 2)) if form == "pairs" else 0
            rows.append(unit(sum(objects) + pairs))
        sides.append(np.array(rows))
    np.testing.assert_allclose(codes().detach(), sides[0] @ sides[1].T, atol=1e-12)


def test_losses_are_the_plain_ones():
    random = np.random.default_rng(0)
    logits, truth = random.normal(0, 30, (5, 7)), random.random((5, 7)) < 0.4
    truth[:, 0], truth[0] = [True, False, True, False, True], [True, False, True, False, True, False, True]
    sides = [(logits, truth), (logits.T, truth.T)]
    each = [[np.logaddexp(0, np.logaddexp.reduce(s[~t]) - s[t]) for s, t in zip(*side, strict=True)] for side in sides]
    infonce = sum(np.concatenate(side).mean() for side in each)
    worst = [
        [np.logaddexp(0, np.logaddexp.reduce(s[~t]) + np.logaddexp.reduce(-s[t])) for s, t in zip(*side, strict=True)]
        for side in sides
    ]
    plain = {"infonce": infonce, "margin": sum(map(np.mean, worst))}
    plain["sigmoid"] = np.logaddexp(0, np.where(truth, -logits, logits)).mean()
    for name, loss in its.LOSSES.items():
        assert float(loss(torch.tensor(truth))(torch.tensor(logits))) == pytest.approx(plain[name], rel=1e-9)


def matrix(truth):
    """A matrix that is no world's."""
    return world_of.TruthMatrix([((0, 0, 0),)] * truth.shape[1], [((0, 0, 0),)] * truth.shape[0], truth)


def least(truth, width, loss="margin", seeds=2, steps=200):
    """The least margins of fits of vectors."""
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        scores = its.fit_codes(its.Tokens(matrix(truth), width, 1), truth, loss, steps)
        found.append(min(its.margins(scores, truth).min(), its.margins(scores.T, truth.T).min()))
    return found


@pytest.mark.parametrize("loss", its.LOSSES)
def test_whole_captions_are_ordered_on_a_circle(loss):
    """n points on a circle have at best a margin of 1 - cos(2 pi / n); in n - 1 dimensions or more, n / (n - 1)."""
    n = 6
    found = max(least(np.eye(n, dtype=bool), 2, loss))
    assert 0.5 < found / (1 - np.cos(2 * np.pi / n)) < 1 + 1e-9
    assert max(least(np.eye(n, dtype=bool), n, loss)) < n / (n - 1) + 1e-9


def test_one_hot_vectors_of_compositions_have_known_margins():
    """With two objects: whole captions 1 - 1/2, those of one object 1 / sqrt 2, images 1 / sqrt 2 - 1/2."""
    world = world_of.truth_matrix(2, 3, 3, "objects")
    codes = its.Composition(world, 16, "sum")
    for vectors, value in zip(codes.vectors, 2 * (torch.eye(16), torch.ones(1, 16)), strict=True):
        vectors.data = value.double()
    scores, n = codes().detach().numpy(), len(world.images)
    by_caption = its.margins(scores, world.truth)
    np.testing.assert_allclose(by_caption[:n], 0.5)
    np.testing.assert_allclose(by_caption[n:], 0.5**0.5)
    np.testing.assert_allclose(its.margins(scores.T, world.truth.T), 0.5**0.5 - 0.5)


def test_a_matrix_of_sign_rank_four_needs_three_dimensions():
    """Captions of all sets of four images: half-spaces that shatter four points exist in three dimensions, not in two
    (Radon)."""
    sets = [list(each) for each in product((False, True), repeat=4) if 0 < sum(each) < 4]
    assert max(least(np.array(sets), 3)) > 0
    assert max(least(np.array(sets), 2)) <= 0


def hinge(x, truth, width, pairs):
    """The squares by which scores of true pairs lack a margin of 0.02 above those of false ones; and their gradient."""
    raw, (one, true, other, false) = x.reshape(sum(truth.shape), width), pairs
    codes, lengths = unit(raw), np.linalg.norm(raw, axis=1, keepdims=True)
    texts, images = codes[: len(truth)], codes[len(truth) :]
    lacks = np.maximum(0, 0.02 - (texts @ images.T)[one, true] + (texts @ images.T)[other, false])
    slope = np.zeros(truth.shape)
    np.add.at(slope, (one, true), -2 * lacks)
    np.add.at(slope, (other, false), 2 * lacks)
    gradient = np.concatenate([slope @ images, slope.T @ texts])
    return (lacks**2).sum(), ((gradient - (gradient * codes).sum(1, keepdims=True) * codes) / lengths).ravel()


def test_an_independent_solver_finds_the_same_smallest_width():
    """L-BFGS on a hinge, from random vectors."""
    truth = world_of.truth_matrix(2, 3, 3, "objects").truth
    (text, image), (other, false) = np.argwhere(truth).T, np.argwhere(~truth).T
    near = (text[:, None] == other) | (image[:, None] == false)
    k, j = np.nonzero(near)
    pairs, random = (text[k], image[k], other[j], false[j]), np.random.default_rng(0)
    for width, exists in ((3, False), (4, True)):
        starts = [random.normal(size=sum(truth.shape) * width) for _ in range(2)]
        solved = [
            minimize(hinge, start, (truth, width, pairs), "L-BFGS-B", jac=True, options={"maxiter": 500}).fun
            for start in starts
        ]
        assert (min(solved) < 0.02**2) == (max(least(truth, width)) > 0) == exists


def numbers_of(**given):
    values = {"width": 6, "objects": 2, "captions": "objects", "loss": "infonce", "seed": 0, "animals": 4}
    return code_fit.Fit(**values | {"textures": 3, "steps": 150} | given).fit()


def test_a_sum_of_animals_and_textures_apart_tells_no_scene_from_its_swap():
    apart, bound = (numbers_of(form=form) for form in ("apart", "product"))
    assert apart["fitted"]["swaps"]["accuracy"] == apart["unseen"]["swaps"]["accuracy"] == 0, "ties aren't right"
    assert bound["fitted"]["swaps"]["accuracy"] == 1
    assert bound["unseen"]["swaps"]["accuracy"] > 0.5
    placed = numbers_of(form="apart", captions="relations", animals=3, width=8)
    assert placed["fitted"]["swaps"]["accuracy"] == 1, "places say whose a texture is"


def test_what_is_left_out_is_not_fitted():
    fit = code_fit.Fit("sum", 6, 2, "objects", "infonce", 0, animals=4, textures=3)
    world = world_of.truth_matrix(2, 4, 3, "objects")
    hidden = [any(m[:2] in fit.left_out for m in image) for image in world.images]
    found = numbers_of(form="sum")
    assert 0 < sum(hidden) == found["unseen"]["images"]["n"]
    assert found["fitted"]["images"]["n"] == len(hidden) - sum(hidden)
    assert found["unseen"]["captions"]["accuracy"] < found["fitted"]["captions"]["accuracy"], "it has random vectors"
    assert "unseen" not in numbers_of(form="vector")


def test_same_seed_same_numbers():
    first, again, other = (numbers_of(form="tokens", tokens=2, seed=seed, steps=40) for seed in (0, 0, 1))
    assert first == again != other


def test_plan_stops_at_the_first_width_that_orders_everything(tmp_path, monkeypatch):
    study = replace(PRESETS["smoke"], captions=("whole",), forms=("vector",), seeds=1, widths=(2, 3, 4))
    run = lambda width: next(arm for arm in plan() if arm.labels["width"] == width).cell.job(tmp_path)  # noqa: E731

    def plan():
        return list(study.plan(Records((), tmp_path)))

    monkeypatch.setattr(code_fit.Fit, "fit", lambda fit: scored(fit.width == 3))
    for width, planned in ((2, [2, 3]), (3, [2, 3])):
        run(width).run(lambda *_: None, lambda: None)
        assert run(width).ended
        assert [arm.labels["width"] for arm in plan()] == planned


def fits_of(ends, loss="infonce"):
    """Fits of vectors to captions of some objects: by objects and seed, the share ordered at widths 2, 4, ..."""
    key = {"captions": "objects", "animals": 4, "loss": loss, "form": "vector", "tokens": 1, "margin": 1.0}
    return pd.DataFrame(
        key | {"objects": objects, "seed": seed, "width": 2 * k, "right": right, "swaps": right}
        for (objects, seed), shares in ends.items()
        for k, right in enumerate(shares, 1)
    )


def test_a_claim_is_judged_once_all_fits_of_a_loss_have_ended():
    def judged(*fits):
        (row, *_) = claim_rows(smallest_widths(pd.concat(fits), 4), 2, 2)
        return row[-1]

    found = {key: (50.0, 100.0) for key in product((2, 3), (0, 1))}
    failed, running = found | {(3, 1): (50.0, 60.0)}, found | {(3, 1): (50.0,)}
    missing = {key: its for key, its in found.items() if key[0] == 2}
    assert judged(fits_of(found)) == "contradicted"
    assert judged(fits_of(failed)) == "undecided"
    assert judged(fits_of(running)) == judged(fits_of(missing)) == "not tested"
    assert judged(fits_of(failed), fits_of(found, "margin")) == "contradicted", "one loss is proof enough"
    assert judged(fits_of(failed), fits_of(running, "margin")) == "not tested"
    waiting = smallest_widths(fits_of(running), 4).set_index("objects").loc[3]
    assert (waiting["seeds"], waiting["swaps from width"]) == ("1 of 1", "4")


def test_widths_have_a_row_for_each_world_and_a_column_for_each_form_and_loss():
    found = {key: (50.0, 100.0) for key in product((3, 2), (0, 1))}
    found[3, 1] = (100.0,)
    fits = pd.concat((fits_of(found), fits_of(found, "margin")))
    widths = widths_by_form(smallest_widths(fits, 4))
    assert list(widths) == ["captions", "objects", "animals", "vector, infonce", "vector, margin"]
    assert widths["objects"].tolist() == ["3", "2"], "worlds keep their order"
    assert widths["vector, margin"].tolist() == ["2 to 4", "4"]
    begun = pd.concat((fits_of(found), fits_of({(3, 0): (100.0,)}, "margin")))
    assert widths_by_form(smallest_widths(begun, 4))["vector, margin"].tolist() == ["2", WAITING]


def scored(right):
    one = {"accuracy": float(right), "margin": 1.0, "n": 2}
    return {"fitted": dict.fromkeys(("captions", "images", "swaps"), one)}


def test_worlds_that_do_not_exist_are_refused():
    with pytest.raises(UserError, match="--textures"):
        Ceiling(textures=3).check()
    with pytest.raises(UserError, match="--widths"):
        Ceiling(widths=(4, 2)).check()
    fit = code_fit.Fit("sum", 2, 2, "whole", "infonce", 0, animals=2, textures=2)
    with pytest.raises(UserError, match="--unseen"):
        fit.fit()
    assert isinstance(fit, AnyJob)


def test_a_run_goes_on_where_it_was(tmp_path):
    options = [
        sys.executable,
        str(ROOT / "studies/ceiling.py"),
        "--preset",
        "smoke",
        "--workers",
        "1",
        "--forms",
        "vector",
        "--out",
        ".",
    ]
    succeed([*options, "--seeds", "1"], tmp_path, page=False)
    before = (tmp_path / "results.csv").read_text()
    result = next((tmp_path / "cells").glob("*/result.json")).stat().st_mtime_ns
    said = succeed([*options, "--seeds", "2"], tmp_path, figures=False)
    assert next((tmp_path / "cells").glob("*/result.json")).stat().st_mtime_ns == result
    assert "finished before" in said.stdout
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert {row["seed"] for row in rows} == {"0", "1"}
    assert before.splitlines()[1] in (tmp_path / "results.csv").read_text()
    claims = list(csv.DictReader((tmp_path / "claims.csv").open()))
    assert {claim["decided"] for claim in claims} == {"contradicted", "not tested"}
    assert "smallest" in (tmp_path / "report.html").read_text()
