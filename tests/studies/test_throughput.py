"""The measurements run and report what they could not measure; what is counted is what formulas say."""

import sys
from itertools import count

import pytest
import torch

from menagerie.envs.slots import LAYOUT_SLOTS
from menagerie.envs.worlds import load_world
from menagerie.models.training.batch_loss import batch_pixels
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.analysis.part_costs import TowerRow, build_row, distinct_captions, multiplications
from menagerie.studies.analysis.peers import Peers, open_clip_optimizer, open_clip_step, paired_clips, scoring_part
from menagerie.studies.analysis.scale import Scale, count_step, fit_costs, step_cost
from menagerie.studies.analysis.step_stages import timed_step
from tests.command import ROOT, run, succeed
from tests.models.conftest import spatial  # noqa: F401, a fixture
from tests.models.test_precision import RECIPE, built


def throughput(folder, *arguments):
    """The lines that the command prints."""
    return succeed([sys.executable, str(ROOT / "studies" / "throughput.py"), *arguments], folder).stdout.splitlines()


def test_rendering_is_compared(tmp_path):
    options = ["--world", "tiny", "--resolution", "32", "--scenes", "1", "--rounds", "1"]
    result = run([sys.executable, str(ROOT / "studies" / "throughput.py"), "rendering", *options], tmp_path)
    assert result.returncode == 0, result.stderr
    rows = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    assert float(rows["menagerie"][-1]) == 1.0
    assert float(rows["menagerie, direct"][-1]) > 1
    for name, refused in {"pyrender": "pyrender can't", "tiny": "physics needs"}.items():
        assert (name in rows) != (refused in result.stdout), name


def test_rendering_an_atlas_is_measured(tmp_path):
    _, total, *parts = throughput(tmp_path, "atlas", "--world", "tiny", "--resolution", "16", "--views", "1")
    words = total.split()
    assert int(words[0]) == len(load_world("tiny").animals) * len(LAYOUT_SLOTS)
    assert float(words[2]) >= 0
    assert [float(part.split()[-2]) >= 0 for part in parts] == [True] * 3


def tower(layers, width, tokens):
    """Multiply-adds of a transformer: four projections, an MLP of four widths, two products of attention."""
    return layers * (12 * width**2 * tokens + 2 * tokens**2 * width)


def test_parts_of_clip_are_counted_as_formulas_have_them():
    captions = distinct_captions(3, 2)
    images, texts, comparison = multiplications(build_row(TowerRow("clip", "ViT-B-32", 77), 64, captions), captions, 64)
    patches = 4 * 3 * 32 * 32 * 768
    assert images == 2 * (patches + tower(12, 768, 5) + 768 * 512)
    assert texts == 2 * (tower(12, 512, 77) + 512 * 512)
    assert comparison == 2 * 2 * 512


def test_parts_are_counted_and_timed(tmp_path):
    options = ["--rows", "clip=nano/20", "oc-clip=nano/20", "--resolution", "32", "--nodes", "2", "--batch", "4"]
    options += ["--timed", "2", "--repeats", "1"]
    lines = throughput(tmp_path, "parts", *options)
    rows = {line.split()[0]: line.split() for line in lines if " nano " in line}
    assert float(rows["clip"][-2]) == 1.0
    assert float(rows["oc-clip"][-2]) > 1  # its binding module compares with the texts of all workers
    assert float(rows["oc-clip"][-1]) > 0


def test_training_steps_are_timed(tmp_path):
    options = ["--models", "clip", "fdt", "--architecture", "nano", "--world", "tiny", "--resolution", "32"]
    options += ["--batch", "4", "--repeats", "2", "--sizes", "small", "--precision", "float32", "bf16"]
    lines = throughput(tmp_path, "training", *options)
    rows = {tuple(line.split()[:2]): [float(cell) for cell in line.split()[2:]] for line in lines[2:6]}
    assert set(rows) == {(model, precision) for model in ("clip", "fdt") for precision in ("float32", "bf16")}
    assert all(0 < forward < step for _, forward, step in rows.values())


@pytest.mark.parametrize("model", ["clip", "oc-clip"])
def test_a_step_in_stages_is_the_step_of_training(model, spatial):  # noqa: F811
    (one, batch), (other, _) = built(model, spatial), built(model, spatial)
    timed_step(one, build_optimizer(one, RECIPE), batch, RECIPE, 1)
    train_step(other, build_optimizer(other, RECIPE), batch, RECIPE, 0, 1)
    for name, weight in one.named_parameters():
        torch.testing.assert_close(weight, other.get_parameter(name), atol=1e-5, rtol=1e-4)


def test_parts_are_timed_beside_peers(tmp_path):
    options = ["--architecture", "nano", "--world", "tiny", "--resolution", "32", "--batch", "4", "--repeats", "2"]
    lines = throughput(tmp_path, "peers", *options)
    rows = [line.rsplit(maxsplit=5) for line in lines[3:]]
    assert [row[-1] for row in rows] == ["webdataset", "webdataset", "open_clip", "open_clip"]
    assert all(float(ours) > 0 and float(peer) > 0 and float(ratio) > 0 for _, ours, peer, ratio, *_ in rows)


def test_the_peer_of_a_step_has_its_loss_and_scores_as_ours_does(spatial):  # noqa: F811
    """Where each text of the batch is right of its image alone."""
    config = Peers(architecture="nano", resolution=32, batch=2)
    scorer, peer = paired_clips(config, spatial)
    feed = Feed(spatial, scorer.reader, RECIPE, 0)
    batches = map(feed.__getitem__, count())
    batch = next(one for one in batches if one.targets.same.sum() == len(one.images) and not one.targets.masked.any())
    theirs = open_clip_step(peer, open_clip_optimizer(peer, RECIPE), batch_pixels(scorer, batch), batch.texts)
    torch.testing.assert_close(train_step(scorer, build_optimizer(scorer, RECIPE), batch, RECIPE, 0, 0), theirs)
    part = scoring_part(config, spatial, 1.0)
    torch.testing.assert_close(part.ours(0), part.theirs(0), atol=1e-5, rtol=0)
    assert part.least > 0


def test_pairs_in_chunks_are_compared_with_all_at_once(tmp_path):
    options = ["--models", "oc-clip", "--images", "4", "--resolution", "16"]
    lines = throughput(tmp_path, "pairs", *options)
    whole, chunks = (line.split() for line in lines[2:])
    assert whole[:4] == ["oc-clip", "4", "at", "once"]
    assert chunks[:4] == ["oc-clip", "4", "in", "chunks"]
    assert all(float(number) < 1e-5 for number in chunks[-2:])


def test_growth_is_measured_by_exponents(tmp_path):
    parts = ["sampler", "splits", "batches"]
    options = ["--rows", "2000", "8000", "--scenes", "240", "300", "--batches", "4", "8", "--parts", *parts]
    lines = throughput(tmp_path, "growth", *options)
    lines = [line for line in lines[1:] if line and "exponent" not in line]
    rows = {line[:42].strip(): [float(cell) for cell in line[42:].split()] for line in lines}
    assert {"feistel, batch 64: each other, ms", "audit, s", "train on it once, s"} <= rows.keys()
    assert all(value > 0 for name in ("clip", "oc-clip") for value in rows[f"a step of {name}, ms"][:2])
    assert not list(tmp_path.iterdir())


def test_a_long_training_is_foreseen_from_short_ones(tmp_path):
    options = ["--fit", "nano/32/2", "nano/32/4", "--check", "nano/32/8", "--row", "clip=nano/16", "--repeats", "1"]
    options += ["--world", "tiny", "--resolution", "32", "--images", "1000", "--epochs", "2", "--batch", "8"]
    options += ["--devices", "1", "2"]
    lines = throughput(tmp_path, "scale", *options)
    assert "not fitted" in lines[4]
    assert "250 steps of 8" in lines[5]
    one, two = ([float(cell) for cell in line.split()] for line in lines[-2:])
    assert two[2] <= one[2]
    assert one[3] == 0


def test_a_line_is_fitted_to_operations_and_seconds():
    assert fit_costs([(n, 0.25 + n / 1e9) for n in (1e8, 3e9, 2e10)]) == pytest.approx((0.25, 1e9))
    assert fit_costs([(1e8, 1.0), (1e9, 11.0)])[0] == 0.0  # no constant below 0


def test_devices_share_images_and_compare_with_all_texts():
    config = Scale(row="clip=nano/16", batch=64, resolution=32)
    row = TowerRow("clip", "nano", 16)
    counted = count_step(row, 32)
    one, two = step_cost(config, counted, 1), step_cost(config, counted, 2)
    weights = sum(weight.numel() for weight in build_row(row, 32, distinct_captions(2, 32)).parameters())
    assert one.sent == 0
    assert two.operations == one.operations / 2
    assert two.sent == 4 * (2 * weights + 64 * 32) / 2
