"""The study of probes: what is read of which layer, and what its page says of it."""

import csv
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from menagerie.envs.core.identity import digest
from menagerie.envs.worlds import load_world
from menagerie.studies.geometry import PRESETS as geometry_presets
from menagerie.studies.measures.bits import Bits, score_rows
from menagerie.studies.pages.probes import BitLines, by_layer, by_step, mean_of, table
from menagerie.studies.probes import PRESETS
from tests.command import ROOT, run_here


def test_the_mean_of_seeds_has_an_interval_of_students_t():
    its = mean_of([0.5, 0.6, 0.7])
    assert its.value == pytest.approx(0.6)
    assert (its.low, its.high) == pytest.approx((0.6 - 4.3027 * 0.1 / 3**0.5, 0.6 + 4.3027 * 0.1 / 3**0.5), abs=1e-4)
    assert str(mean_of([0.25])) == "0.25"
    assert mean_of([0.99, 1.0, 1.0]).high == 1.0, "there is no more than a bit"


PLACES = {
    ("image", "stem", "mean"): 0.1, ("image", "embedding", "mean"): 0.8, ("image", "tokens", "all tokens"): 0.9,
    ("text", "embedding", "mean"): 0.3, ("image and text", "score", "score"): 0.35,
}  # fmt: skip


@pytest.fixture
def rows():
    """Bits of CLIP in two seeds, with 0.02 more in the second, after half of the steps and at the end."""
    return pd.DataFrame(
        {"model": "clip", "seed": seed, "part": part, "layer": layer, "read": read, "step": step, "measure": "bits",
         "value": value * step / 20 + 0.02 * seed}
        for (part, layer, read), value in PLACES.items() for seed in (0, 1) for step in (10, 20)
    )  # fmt: skip


def test_figures_and_the_table_hold_the_means_over_seeds(rows):
    last = rows[rows["step"] == 20]
    layers = BitLines("layers", by_layer(last), ("of", "layer"), {}).numbers()
    assert [(row["of"], row["layer"], round(row["value"], 3)) for row in layers] == [
        ("images", "stem", 0.11), ("images", "embedding", 0.81), ("texts", "embedding", 0.31),
    ]  # fmt: skip
    steps = BitLines("steps", by_step(rows), ("stage", "step"), {}).numbers()
    assert [(row["stage"], row["step"], round(row["value"], 3)) for row in steps][:4] == [
        ("all patches", 10, 0.46), ("all patches", 20, 0.91),
        ("image embedding", 10, 0.41), ("image embedding", 20, 0.81),
    ]  # fmt: skip
    assert len(table(last, {"clip": "CLIP"})) == len(PLACES)


@pytest.mark.parametrize(("preset", "scenes"), [("smoke", 144), ("laptop", 672), ("pug", 3168)])
def test_presets_probe_all_pairs_of_their_animals_and_textures_in_two_views(preset, scenes):
    study = PRESETS[preset]
    assert len(study.probe_set.plan(load_world(study.probe_set.world))["left_first"]) == scenes


def test_the_measure_is_of_what_is_shown_wherever_it_lies(tmp_path):
    bits = PRESETS["smoke"].bits
    assert bits.file() == Bits(bits.recipe, tmp_path, bits.resolution).file()
    assert bits.file() != Bits(bits.recipe, bits.store, 64).file()


def test_what_was_measured_by_other_rules_is_measured_anew():
    geometry = geometry_presets["smoke"]
    for measure in (PRESETS["smoke"].bits, geometry.geometry, geometry.conditions):
        assert digest(measure.settings | {"version": 1}) not in measure.file()


class Knowing:
    """Scores as one that knows what the captions say of an image would give them."""

    device = "cpu"

    def __init__(self, sign):
        self.sign = sign

    def pixel_scale(self, images):
        return images

    def encode_images(self, images):
        return images

    def read(self, captions, graphs):
        return captions

    def encode_texts(self, texts):
        return texts

    def paired(self, images, texts):
        return torch.tensor([self.sign * (text == "true") for text in texts])


class Data:
    """Records with a true and a false caption."""

    def __len__(self):
        return 100

    def images(self, some):
        return torch.zeros(len(some), 3, 2, 2)

    def captions(self, some, draws):
        return [("true", None) for _ in some]

    def negatives(self, some, draws):
        return [("false", None) for _ in some]


@pytest.mark.parametrize(("sign", "bits", "right"), [(1.0, 1, 1), (-1.0, 0, 0), (0.0, 0, 0.5)])
def test_scores_that_know_have_a_bit_and_others_none(sign, bits, right):
    found = {row["measure"]: row["value"] for row in score_rows(Knowing(sign), (Data(), Data()))}
    assert found == {"bits": pytest.approx(bits), "scene": right}


def test_each_layer_is_read_at_each_state(tmp_path):
    command = [sys.executable, str(ROOT / "studies/probes.py"), "--preset", "smoke", "--out", "out", "--workers", "1"]
    done = run_here(command, tmp_path, figures=False)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "bits.csv").open() as file:
        found = pd.DataFrame(csv.DictReader(file))
    assert set(found["step"]) == {"", "0.0", "30.0"}
    for model in ("clip", "oc-clip"):
        bits = found[(found["model"] == model) & (found["measure"] == "bits") & (found["step"] == "")]
        read = set(zip(bits["part"], bits["layer"], bits["read"], strict=True))
        assert {("image", "stem", "mean"), ("text", "tokens", "mean"), ("image", "tokens", "all tokens")} <= read
        assert (("image", "embedding", "mean") in read) == (model == "clip"), (
            "OC-CLIP scores pairs, and has no one vector"
        )
        assert bits["value"].astype(float).between(0, 1).all()
    words = found[(found["model"] == "clip") & (found["layer"] == "stem") & (found["part"] == "text")]
    held = words[words["measure"] == "bits"]["value"].astype(float)
    assert np.allclose(held, 0, atol=0.02), "the mean of the words is a bag of them"
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").glob("*/measures/*.jsonl")}
    assert len(before) == 2 * 3
    assert run_here(command, tmp_path, page=False).returncode == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}, "what is measured isn't measured again"
