"""SigLIP: its sum, where it starts, and its own towers."""

import json

import open_clip
import pytest
import torch

from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.contract import check_contract
from menagerie.models.objectives import Targets
from menagerie.models.registry import spec_of
from menagerie.models.towers.config import TextSpace, TowerConfig
from tests.helpers.scorers import TEXTS, TOWERS, scorer

OURS = "tiny-sigmoid-of-tests"  # with "siglip" in its name open_clip would look for a tokenizer elsewhere


def eye(n, m=None):
    return Targets(torch.eye(n, m or n, dtype=torch.bool), None, n)


@pytest.mark.parametrize("batch", [2, 64])
def test_siglip_loss_starts_where_the_paper_says(batch):
    """At cosines of 0, whatever the temperature: 10.00005 + (B - 1) 4.5e-5."""
    model = build_scorer("siglip", TOWERS, TEXTS).double()
    assert model.logit_scale().item() == pytest.approx(10)
    embeddings = torch.eye(2 * batch, dtype=torch.float64)
    loss = model.loss(embeddings[:batch], embeddings[batch:], eye(batch)).item()
    assert loss == pytest.approx(10.00005 + (batch - 1) * 4.5e-5, rel=1e-5)


def test_bias_of_siglip_is_trained_outside_the_towers():
    model = scorer("siglip")
    model.loss(torch.eye(4), torch.eye(4), eye(4)).backward()
    assert model.bias.grad.abs() > 0
    assert model.bias.ndim == 0
    assert id(model.bias) not in {id(p) for part in model.towers.parameters().values() for p in part}


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    """A tiny SigLIP in open_clip's own format: an image tower of timm's, a text tower that pools its last position."""
    pytest.importorskip("timm")
    text = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
    config = {
        "embed_dim": 64,
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": {"image_size": 32, "timm_model_name": "test_vit", "timm_pool": "map", "timm_proj": "none"},
        "text_cfg": text | {"no_causal_mask": True, "proj_bias": True, "pool_type": "last"},
    }
    folder = tmp_path_factory.mktemp("models")
    (folder / f"{OURS}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return TowerConfig(OURS, resolution=32)


def test_siglips_own_towers_keep_the_contract(towers):
    check_contract("siglip", towers, {}, negatives=True)
    assert build_scorer("siglip", towers, TextSpace(), {"logit_bias": -4.0}).bias.item() == -4


@pytest.mark.parametrize(("weights", "expected", "scale"), [(-5.5, -5.5, 50.0), (None, -10.0, 10.0)])
def test_siglip_takes_temperature_and_bias_of_weights_that_have_both(towers, weights, expected, scale, tmp_path):
    """open_clip gives a bias of 0 to weights without one, and CLIP's temperature is that of another loss."""
    torch.manual_seed(0)
    state = open_clip.create_model(OURS).state_dict()
    del state["logit_bias"]
    state["logit_scale"] = torch.tensor(50.0).log()
    torch.save(state | ({} if weights is None else {"logit_bias": torch.tensor(weights)}), tmp_path / "weights.pt")
    pretrained = TowerConfig(OURS, str(tmp_path / "weights.pt"), resolution=32)
    model = build_scorer("siglip", pretrained, TextSpace(), dict(spec_of("siglip").small) if weights else {})
    assert model.bias.item() == pytest.approx(expected)
    assert model.logit_scale().item() == pytest.approx(scale)
    assert not model.model.logit_bias.requires_grad
    save_checkpoint(tmp_path / "saved", "siglip", model)
    assert load_checkpoint(tmp_path / "saved").bias.item() == pytest.approx(expected)
