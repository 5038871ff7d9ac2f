"""What belongs to open_clip's pretrained weights beside the weights: the activation, pixel statistics, framing."""

import open_clip
import pytest
import torch
from open_clip.transformer import QuickGELU

from models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from models.towers.config import TextSpace, TowerConfig
from models.towers.pixels import Framing

TAG = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.5, 0.5), "resize_mode": "squash", "interpolation": "bilinear"}
TOWERS = TowerConfig("ViT-S-32-alt", "ours", resolution=32, load=False)


@pytest.mark.parametrize("quick", [True, False])
def test_what_belongs_to_weights_comes_back_with_a_checkpoint(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(open_clip, "get_pretrained_cfg", lambda *names: TAG | {"quick_gelu": quick})
    model = build_scorer("clip", TOWERS, TextSpace())
    save_checkpoint(tmp_path, "clip", model)
    back = load_checkpoint(tmp_path)
    for scorer in (model, back):
        assert isinstance(scorer.model.visual.transformer.resblocks[0].mlp.gelu, QuickGELU) == quick
        assert scorer.pixel_scale.framing == Framing(32, squashed=True, interpolation="bilinear")
        assert scorer.pixel_scale.mean.flatten().tolist() == [0.5, 0.5, 0.5]
        assert scorer.pixel_scale.deviation.flatten().tolist() == [0.25, 0.5, 0.5]
    pixels = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    assert torch.equal(*(s.eval().encode_images(s.pixel_scale(pixels)) for s in (model, back)))


def test_openai_weights_have_their_own_activation():
    """open_clip has ViT-B-16 with another one, and only warns."""
    assert open_clip.get_pretrained_cfg("ViT-B-16", "openai")["quick_gelu"]
    assert not open_clip.get_model_config("ViT-B-16").get("quick_gelu", False)
