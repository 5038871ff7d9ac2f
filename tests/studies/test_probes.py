"""The study of probes: what is read of which layer, and what its page shows."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from menagerie.envs.core.identity import digest
from menagerie.envs.worlds import load_world
from menagerie.studies.analysis.intervals import mean_over_seeds
from menagerie.studies.geometry import PRESETS as geometry_presets
from menagerie.studies.measures.bits import Bits, layer_frame, layer_lines, margins_of, stage_frame, stage_sentences
from menagerie.studies.measures.probes import bits
from menagerie.studies.probes import PRESETS


def test_means_over_seeds_have_students_interval():
    its = mean_over_seeds([0.5, 0.6, 0.7])
    assert its.value == pytest.approx(0.6)
    assert (its.low, its.high) == pytest.approx((0.6 - 4.3027 * 0.1 / 3**0.5, 0.6 + 4.3027 * 0.1 / 3**0.5), abs=1e-4)
    assert str(mean_over_seeds([0.25])) == "25.0"
    assert mean_over_seeds([0.99, 1.0, 1.0]).high == 1.0, "there is no more than a bit"


PLACES = {
    ("image", "stem", "mean"): 0.1, ("image", "embedding", "mean"): 0.8, ("image", "tokens", "all tokens"): 0.9,
    ("text", "embedding", "mean"): 0.3, ("image and text", "score", "score"): 0.35,
}  # fmt: skip


@pytest.fixture
def rows():
    """Bits of CLIP for two seeds, 0.02 more for the second, after half of the steps and at the end."""
    return pd.DataFrame(
        {"model": "clip", "seed": seed, "part": part, "layer": layer, "read": read, "step": step, "measure": "bits",
         "value": value * step / 20 + 0.02 * seed}
        for (part, layer, read), value in PLACES.items() for seed in (0, 1) for step in (10, 20)
    )  # fmt: skip


def test_figures_and_table_have_the_means_over_seeds(rows):
    last = rows[rows["step"] == 20]
    layers = layer_frame(last[last["part"] != "image and text"])
    assert layers[["of", "layer"]].to_numpy().tolist() == [
        ["images", "stem"], ["images", "embedding"], ["texts", "embedding"],
    ]  # fmt: skip
    assert layers["value"].tolist() == pytest.approx([0.11, 0.81, 0.31])
    steps = stage_frame(rows).set_index(["stage", "step"])["value"]
    assert steps["all patches"].to_dict() == pytest.approx({10: 0.46, 20: 0.91})
    assert steps["image embedding"].to_dict() == pytest.approx({10: 0.41, 20: 0.81})
    assert len(layer_lines(last)) == len(PLACES)
    said = list(stage_sentences(last.assign(step=None), {"clip": "CLIP"}))
    assert said[0].endswith("A linear probe finds less in the text's embedding.")


@pytest.mark.parametrize(("preset", "scenes"), [("smoke", 144), ("laptop", 672), ("pug", 3168)])
def test_presets_probe_all_pairs_of_their_animals_and_textures_in_two_views(preset, scenes):
    study = PRESETS[preset]
    assert len(study.probe_set.plan(load_world(study.probe_set.world))["left_first"]) == scenes


def test_files_of_measures_are_named_by_images_and_version_wherever_they_are_stored(tmp_path):
    probed, geometry = PRESETS["smoke"].bits, geometry_presets["smoke"]
    assert probed.file() == Bits(probed.recipe, tmp_path, probed.resolution).file()
    assert probed.file() != Bits(probed.recipe, probed.store, 64).file()
    for measure in (probed, geometry.geometry, geometry.conditions):
        assert digest(measure.settings | {"version": 1}) not in measure.file()


class Data(list):
    """Numbers of records, each with a true and a false caption."""

    def images(self, some):
        return torch.zeros(len(some), 3, 2, 2)

    def captions(self, some, draws):
        return [("true", None) for _ in some]

    def negatives(self, some, draws):
        return [("false", None) for _ in some]


@pytest.mark.parametrize(("sign", "known"), [(1.0, 1), (-1.0, 0), (0.0, 0)])
def test_scores_have_a_bit_only_if_true_captions_are_above_false_ones(sign, known):
    def same(given, graphs=None):
        return given

    scorer = SimpleNamespace(device="cpu", pixel_scale=same, encode_images=same, read=same, encode_texts=same)
    scorer.pair_similarity = lambda images, texts: torch.tensor([sign * (text == "true") for text in texts])
    data = Data(range(100))
    assert bits(margins_of(scorer, (data, data))).value == pytest.approx(known)
