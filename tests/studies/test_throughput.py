"""The measurements run and report what they could not measure; what is counted is what formulas say."""

import math
import sys
from itertools import count

import pytest
import torch

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.models.checkpoint import build_scorer
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.training.encoding import batch_pixels
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.throughput import (
    Peers,
    multiplications,
    new_scorer,
    open_clip_step,
    open_clip_twin,
    scoring_peer,
    timed_step,
)
from tests.command import ROOT, run, succeed
from tests.models.conftest import spatial  # noqa: F401, a fixture
from tests.models.test_precision import RECIPE, built

SMALL = ["--architecture", "nano", "--world", "tiny", "--resolution", "32", "--batch", "4", "--rounds", "2"]


def throughput(folder, *arguments):
    """The lines that the command prints."""
    return succeed([sys.executable, str(ROOT / "studies" / "throughput.py"), *arguments], folder).stdout.splitlines()


def test_rendering_times_are_compared_with_other_renderers(tmp_path):
    options = ["--world", "tiny", "--resolution", "32", "--scenes", "1", "--rounds", "1"]
    result = run([sys.executable, str(ROOT / "studies" / "throughput.py"), "rendering", *options], tmp_path)
    assert result.returncode == 0, result.stderr
    rows = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    assert float(rows["menagerie"][-1]) == 1.0
    assert float(rows["menagerie, direct"][-1]) > 1
    for name, refused in {"pyrender": "pyrender can't", "tiny": "physics needs"}.items():
        assert (name in rows) != (refused in result.stdout), name


def tower(layers, width, tokens):
    """Multiply-adds of a transformer: four projections, an MLP of four widths, two products of attention."""
    return layers * (12 * width**2 * tokens + 2 * tokens**2 * width)


def test_parts_of_clip_are_counted_as_formulas_have_them():
    caption = Caption("a cat", SceneGraph(("a cat",)))
    scorer = build_scorer("clip", TowerConfig("ViT-B-32", resolution=64), TextSpace(("a", "cat"), 77), {})
    texts = scorer.read([caption.text] * 2, [caption.graph] * 2)
    images, texts, comparison = multiplications(scorer, torch.zeros(2, 3, 64, 64), texts)
    patches = 4 * 3 * 32 * 32 * 768
    assert images == 2 * (patches + tower(12, 768, 5) + 768 * 512)
    assert texts == 2 * (tower(12, 512, 77) + 512 * 512)
    assert comparison == 2 * 2 * 512


def test_steps_of_models_are_timed_by_stages(tmp_path):
    lines = throughput(tmp_path, "steps", "--models", "clip", "fdt", *SMALL, "--precision", "bf16")
    rows = {line.split()[0]: [float(cell) for cell in line.split()[1:]] for line in lines[3:]}
    assert list(rows) == ["clip", "fdt"]
    for *_, images, texts, comparison, update, whole, ratio in rows.values():
        assert 0 < images + texts + comparison + update < 2 * whole
        assert ratio > 0
    assert rows["clip"][-1] == 1


@pytest.mark.parametrize("model", ["clip", "oc-clip"])
def test_a_step_in_stages_is_the_step_of_training(model, spatial):  # noqa: F811
    (one, batch), (other, _) = built(model, spatial), built(model, spatial)
    timed_step(one, build_optimizer(one, RECIPE), batch, RECIPE, 1)
    train_step(other, build_optimizer(other, RECIPE), batch, RECIPE, 0, 1)
    for name, weight in one.named_parameters():
        torch.testing.assert_close(weight, other.get_parameter(name), atol=1e-5, rtol=1e-4)


def test_a_step_and_scoring_are_timed_beside_open_clip(tmp_path):
    rows = [line.rsplit(maxsplit=3) for line in throughput(tmp_path, "peers", *SMALL)[2:]]
    assert [name.split()[0] for name, *_ in rows] == ["train", "score"]
    assert all(float(number) > 0 for _, *numbers in rows for number in numbers)


def test_the_peer_of_a_step_has_its_loss_and_scores_as_ours_does(spatial):  # noqa: F811
    """Where each text of the batch is right of its image alone."""
    config = Peers(architecture="nano", resolution=32, batch=2)
    scorer = new_scorer("clip", config, spatial).train()
    peer, feed = open_clip_twin(scorer), Feed(spatial, scorer.reader, RECIPE, 0)
    batches = map(feed.__getitem__, count())
    batch = next(one for one in batches if one.targets.same.sum() == len(one.images) and not one.targets.masked.any())
    theirs = open_clip_step(peer, torch.optim.AdamW(peer.parameters()), batch_pixels(scorer, batch), batch.texts)
    torch.testing.assert_close(train_step(scorer, build_optimizer(scorer, RECIPE), batch, RECIPE, 0, 0), theirs)
    ours, theirs = scoring_peer(config, spatial)
    torch.testing.assert_close(ours(0), theirs(0), atol=1e-5, rtol=0)


def test_growth_is_measured_by_exponents(tmp_path):
    lines = throughput(tmp_path, "growth", "--scenes", "240", "300")
    rows = {line[:32].strip(): line[32:].split() for line in lines[2:]}
    assert list(rows) == ["plan", "make", "open it and compose its images", "train on it once", "audit"]
    for first, second, exponent in rows.values():
        assert float(exponent) == pytest.approx(math.log(float(second) / float(first)) / math.log(300 / 240), abs=0.1)
    assert not list(tmp_path.iterdir())
