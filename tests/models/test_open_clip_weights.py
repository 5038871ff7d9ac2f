"""What belongs to open_clip's pretrained weights beside the weights: the activation, pixel statistics, framing."""

from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
from open_clip.transformer import QuickGELU

from menagerie import load_scorer
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.registry import scorer_class, spec_of, specs
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.preparation import Framing
from tests.helpers.scorers import small_open_clip

TAG = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.5, 0.5), "resize_mode": "squash", "interpolation": "bilinear"}
CLIPS = [name for name in specs() if issubclass(scorer_class(name), CLIPScorer) and not spec_of(name).stage]


@pytest.mark.parametrize("quick", [True, False])
def test_activation_statistics_and_framing_come_back_with_a_checkpoint(quick, tmp_path, monkeypatch):
    small = small_open_clip(tmp_path)
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, small, {"ours": TAG | {"quick_gelu": quick}})
    model = build_scorer("clip", TowerConfig(small, "ours", resolution=32, load=False), TextSpace())
    save_checkpoint(tmp_path, "clip", model)
    back = load_checkpoint(tmp_path)
    for scorer in (model, back):
        assert isinstance(scorer.model.visual.transformer.resblocks[0].mlp.gelu, QuickGELU) == quick
        assert scorer.pixel_scale.framing == Framing(32, squashed=True, interpolation="bilinear")
        assert scorer.pixel_scale.mean.flatten().tolist() == [0.5, 0.5, 0.5]
        assert scorer.pixel_scale.deviation.flatten().tolist() == [0.25, 0.5, 0.5]
    pixels = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    assert torch.equal(*(s.eval().encode_images(s.pixel_scale(pixels)) for s in (model, back)))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """Towers whose weights lie in a file, of temperature 0.01."""
    folder = tmp_path_factory.mktemp("weights")
    file, towers = folder / "weights.pt", small_open_clip(folder)
    torch.manual_seed(0)
    model = open_clip.create_model(towers, force_image_size=48)
    torch.save(model.state_dict() | {"logit_scale": torch.tensor(100.0).log()}, file)
    return TowerConfig(towers, str(file), resolution=48)


@pytest.mark.parametrize("name", [name for name in CLIPS if name not in ("siglip", "c2lip")])
def test_training_starts_at_the_temperature_of_pretrained_weights(name, warm, tmp_path):
    """It is learnt on from there, and comes back with a checkpoint; from scratch it starts where the option says."""
    model = build_scorer(name, warm, TextSpace(), dict(spec_of(name).smoke))
    assert model.logit_scale().item() == pytest.approx(100)
    assert model.log_scale.requires_grad
    save_checkpoint(tmp_path, name, model)
    assert load_checkpoint(tmp_path).logit_scale().item() == pytest.approx(100)
    fresh = build_scorer(name, replace(warm, pretrained=""), TextSpace(), dict(spec_of(name).smoke))
    assert fresh.logit_scale().item() == pytest.approx(spec_of(name).config().logit_scale)


def test_temperature_option_overrides_that_of_the_weights(warm):
    assert build_scorer("clip", warm, TextSpace(), {"logit_scale": 20.0}).logit_scale().item() == pytest.approx(20)


def test_siglip_starts_at_its_options_if_weights_have_no_bias(warm):
    """A temperature of two softmaxes beside a bias of -10 would call nearly every pair right."""
    model = build_scorer("siglip", warm, TextSpace(), dict(spec_of("siglip").smoke))
    config = spec_of("siglip").make_config(spec_of("siglip").smoke)
    assert model.logit_scale().item() == pytest.approx(config.logit_scale)
    assert model.bias.item() == pytest.approx(config.logit_bias)


def test_oc_clip_starts_at_its_own_temperature(warm):
    """Its similarity is no cosine of the weights' vectors."""
    model = build_scorer("oc-clip", warm, TextSpace(), dict(spec_of("oc-clip").smoke))
    assert model.logit_scale().item() == pytest.approx(1 / 0.07)


def test_scores_of_pretrained_models_are_cosines(warm):
    """And the first loss of a fine-tuning is that of the weights: their logits, scaled by their temperature."""
    loaded = load_scorer(f"{warm.architecture}/{warm.pretrained}")
    assert loaded.scorer.logit_scale().item() == pytest.approx(100)
    captions, picture = ["a red cat", "a white dog"], np.zeros((48, 48, 3), np.uint8)
    model = loaded.scorer.model
    with torch.no_grad():
        pixels = loaded.scorer.pixel_scale(torch.from_numpy(picture).permute(2, 0, 1)[None])
        logits, *_ = model.get_logits(pixels, open_clip.get_tokenizer(warm.architecture)(captions))
    torch.testing.assert_close(100 * loaded.score(picture, captions), logits, atol=1e-4, rtol=0)
