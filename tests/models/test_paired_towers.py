"""DINOv2's image tower beside the texts of an open_clip model: random weights, in files as the published ones are."""

from itertools import count

import open_clip
import pytest
import timm
import torch
from open_clip.transformer import QuickGELU

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.layers import grid_of, image_features
from menagerie.models.towers import paired
from menagerie.models.towers.build import build_towers, check_towers
from menagerie.models.towers.config import TextSpace, TowerConfig

NAME = "ViT-B-14-DINOv2"
SMALLER = "vit_small_patch14_dinov2"
SIDE = 28


@pytest.fixture(autouse=True)
def ramps(monkeypatch):
    """Each tensor starts as a ramp of its own, so that order counts: random numbers take long for so many weights."""
    numbers = count(1)

    def fill(tensor, *args, **options):
        return tensor.data.copy_(torch.linspace(0, 1 / next(numbers), tensor.numel()).view_as(tensor))

    for name in ("normal_", "kaiming_uniform_", "uniform_", "xavier_uniform_"):
        monkeypatch.setattr(torch.nn.init, name, fill)
    monkeypatch.setattr(timm.layers.weight_init, "_trunc_normal_", fill)


def with_vision(monkeypatch, name, **options):
    """Change the image tower of an architecture, and give its text tower a single block."""
    config = open_clip.get_model_config(name)
    config["text_cfg"]["layers"] = 1
    config["vision_cfg"] |= options
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, name, config)


def oc_clip():
    return build_scorer(
        "oc-clip",
        TowerConfig(NAME, resolution=SIDE),
        TextSpace(context=20),
        {"dim": 16, "relation_dim": 8, "layers": 0},
    )


def test_oc_clip_binds_the_patches_of_dinov2(monkeypatch):
    """At 28 pixels: 2 x 2 patches of width 768, pixel statistics of ImageNet, timm's own layers."""
    with_vision(monkeypatch, NAME)
    scorer = oc_clip()
    built = scorer.towers
    assert built.patch_sizes("oc-clip") == (768, 4)
    assert built.pixels.mean == (0.485, 0.456, 0.406)
    images = torch.randint(0, 256, (1, 3, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pixels, trunk, seen = scorer.pixel_scale(images), scorer.model.visual.trunk, image_features(scorer, images)
    assert len([name for name in seen if name.startswith("block")]) == len(trunk.blocks) == 12
    assert grid_of(scorer) == (2, 2)
    with torch.no_grad():
        given = trunk.eval().forward_intermediates(
            pixels, return_prefix_tokens=True, output_fmt="NLC", intermediates_only=True
        )
        torch.testing.assert_close(seen["tokens"], trunk.forward_features(pixels))
        torch.testing.assert_close(seen["tokens"][:, -4:], built.image.patches(pixels))
    for k, (patches, prefix) in enumerate(given, start=1):
        torch.testing.assert_close(seen[f"block {k}"], torch.cat([prefix, patches], dim=1))


def test_a_checkpoint_has_all_weights_of_both_towers(tmp_path, monkeypatch):
    """Of the smaller image tower: its files are a quarter as large."""
    with_vision(monkeypatch, NAME, timm_model_name=SMALLER)
    scorer = oc_clip()
    save_checkpoint(tmp_path, "oc-clip", scorer)
    again = load_checkpoint(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(scorer.parameters(), again.parameters(), strict=True))


def test_weights_of_both_towers_are_loaded_from_files(tmp_path, monkeypatch):
    """Of smaller image towers, which have the same tags."""
    with_vision(monkeypatch, NAME, timm_model_name=SMALLER)
    with_vision(monkeypatch, "ViT-B-16", layers=1)
    torch.manual_seed(1)
    texts = open_clip.create_model("ViT-B-16", force_image_size=32)
    torch.save(texts.state_dict(), tmp_path / "texts.pt")
    image = timm.create_model(SMALLER, img_size=SIDE, num_classes=0)
    torch.save(image.state_dict(), tmp_path / "image.pt")
    files = tmp_path / "texts.pt", tmp_path / "image.pt"
    with pytest.raises(UserError, match=r"aren't all prepared alike .*quick_gelu"):
        check_towers(TowerConfig(NAME, "{}+{}".format(*files), SIDE))
    both = TowerConfig(NAME, "{}@openai+{}".format(*files), SIDE)
    model = build_towers(both, TextSpace()).model
    assert isinstance(model.transformer.resblocks[0].mlp.gelu, QuickGELU)
    assert torch.equal(model.token_embedding.weight, texts.token_embedding.weight)
    assert torch.equal(model.text_projection, texts.text_projection)
    assert torch.equal(model.visual.trunk.blocks[11].mlp.fc1.weight, image.blocks[11].mlp.fc1.weight)


def test_unknown_weights_of_a_pair_are_refused():
    assert paired.weights_of("laion2b_s34b_b88k") == ("laion2b_s34b_b88k", "lvd142m")
    check_towers(TowerConfig(NAME, "laion2b_s34b_b88k", 224))
    check_towers(TowerConfig(NAME, "openai+lvd142m", 224))
    with pytest.raises(UserError, match=r"pretrained text weights \(of ViT-B-16\) 'opanai'; did you mean 'openai'"):
        check_towers(TowerConfig(NAME, "opanai", 224))
    with pytest.raises(UserError, match="pretrained image weights"):
        check_towers(TowerConfig(NAME, "openai+lvd143", 224))
