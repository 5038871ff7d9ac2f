"""Files of weights: read as open_clip's own of their architecture are, or refused in a line that says why."""

import argparse
import json
import os
import pickle
import re
import tomllib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import open_clip
import pytest
import torch
from packaging.requirements import Requirement
from packaging.version import Version
from safetensors.torch import save_file

from menagerie import load_scorer
from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import load_checkpoint, save_checkpoint
from menagerie.models.library.load import find_source
from menagerie.models.towers.build import check_pretrained_weights
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.preparation import preparation_of, towers_to_record
from menagerie.models.towers.weight_file import check_weight_file
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.cell import own_files
from tests.grid_cells import cells
from tests.helpers.scorers import SMALL_CLIP, small_open_clip

PREPARED = ("mean", "std", "interpolation", "resize_mode")
# All that open_clip 3.3 has weights of in more than one way.
DIFFERENT = {"ViT-B-16", "ViT-B-32", "ViT-L-14", "ViT-H-14", "ViT-H-14-quickgelu", "ViT-bigG-14"}
SQUASHED = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "interpolation": "bicubic", "resize_mode": "squash"}


@pytest.fixture
def file(tmp_path):
    """A file of one tensor."""
    torch.save({"a": torch.zeros(1)}, tmp_path / "weights.pt")
    return tmp_path / "weights.pt"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return small_open_clip(tmp_path_factory.mktemp("configs"))


def told(architecture, tag):
    """What open_clip's table says of a tag."""
    known = open_clip.get_pretrained_cfg(architecture, tag)
    quick = known.get("quick_gelu", False) or open_clip.get_model_config(architecture).get("quick_gelu", False)
    return (*(tuple(v) if isinstance(v := known[name], list) else v for name in PREPARED), quick)


def test_weight_files_are_prepared_like_the_tags_of_their_architecture(file):
    refused, agree = set(), 0
    for name in open_clip.list_models():
        tags = open_clip.list_pretrained_tags_by_model(name)
        if not tags:
            continue
        own = [preparation_of(TowerConfig(name, tag)) for tag in tags]
        assert own == [told(name, tag) for tag in tags]
        assert [preparation_of(TowerConfig(name, f"{file}@{tag}")) for tag in tags] == own
        if len(set(own)) == 1:
            assert preparation_of(TowerConfig(name, str(file))) == own[0], name
            agree += 1
            continue
        refused.add(name)
        with pytest.raises(UserError, match=f"the weights of {name} aren't all prepared alike.*FILE@TAG.*FILE@default"):
            check_pretrained_weights(TowerConfig(name, str(file)))
    assert refused == DIFFERENT
    assert agree > 90


@pytest.mark.parametrize("architecture", ["ViT-B-32", "ViT-B-16", "ViT-L-14"])
def test_weights_with_either_activation_need_a_tag_or_another_architecture(architecture, file):
    with pytest.raises(UserError, match=f"openai has .*quick_gelu True.* or name {architecture}-quickgelu"):
        find_source(f"{architecture}/{file}")
    assert preparation_of(TowerConfig(f"{architecture}-quickgelu", str(file))).quick_gelu
    assert not preparation_of(TowerConfig(architecture, f"{file}@default")).quick_gelu
    with pytest.raises(UserError, match="did you mean 'openai'"):
        check_pretrained_weights(TowerConfig(architecture, f"{file}@opnai"))
    with pytest.raises(UserError, match="unknown pretrained weights 'openai@default'"):
        check_pretrained_weights(TowerConfig(architecture, "openai@default"))


def test_open_clip_is_pinned_below_untried_versions():
    """Its tags decide how files are read: a version with others must be looked at first."""
    root = Path(__file__).parents[2]
    listed = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    (wanted,) = [Requirement(line) for line in listed if line.startswith("open_clip_torch")]
    (tried,) = re.findall(r"^open_clip_torch==(.+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    major, minor, patch = Version(tried).release
    later = (f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0")
    assert version("open_clip_torch") == tried
    assert tried in wanted.specifier
    assert not any(its in wanted.specifier for its in later)


def test_checkpoint_of_a_weight_file_is_prepared_like_the_file(small, tmp_path, monkeypatch):
    """A checkpoint says it itself; one of before, read by default, still is."""
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, small, {"b": SQUASHED, "a": SQUASHED})
    file = tmp_path / "weights.pt"
    torch.save(open_clip.create_model(small).state_dict(), file)
    loaded = load_scorer(f"{small}/{file}").scorer
    save_checkpoint(tmp_path / "now", "clip", loaded)
    default = load_scorer(f"{small}/{file}@default").scorer
    save_checkpoint(tmp_path / "before", "clip", default)
    assert f'"{file}"' in (tmp_path / "before/config.json").read_text()
    file.unlink()
    for scorer in (loaded, load_checkpoint(tmp_path / "now")):
        assert scorer.pixel_scale.framing == (48, True, "bicubic")
        assert scorer.pixel_scale.mean.unique().tolist() == [0.5]
    for scorer in (default, load_checkpoint(tmp_path / "before")):
        assert scorer.pixel_scale.framing == (48, False, "bicubic")
        assert scorer.pixel_scale.mean[0].item() == pytest.approx(0.48145466)


def test_weight_files_that_are_prepared_differently_have_other_identities(file):
    """Scores and training runs of files that were read by default keep theirs."""
    siglip, other = TowerConfig("ViT-B-16-SigLIP", str(file)), TowerConfig("ViT-S-32", str(file))
    assert towers_to_record(siglip).pretrained == f"{file}@webli"
    assert towers_to_record(replace(siglip, load=False)).pretrained == str(file)
    assert towers_to_record(other) == towers_to_record(replace(other, pretrained=f"{file}@default")) == other
    assert towers_to_record(TowerConfig("ViT-B-32", f"{file}@openai")).pretrained == f"{file}@openai"
    assert towers_to_record(TowerConfig("ViT-B-14-DINOv2", f"{file}@default+x.pt")).pretrained == f"{file}+x.pt"
    assert towers_to_record(TowerConfig("ViT-B-16", "openai")).pretrained == "openai"
    names = ("ViT-B-16-SigLIP/{}", "ViT-B-16-SigLIP/{}@default", "ViT-B-32/{}@openai", "ViT-B-32/{}@default")
    assert len({find_source(name.format(file)).identity() for name in names}) == 4
    grid = replace(PRESETS["smoke"], models=("clip",))
    given = [("ViT-S-32", ""), ("ViT-S-32", "@default"), ("ViT-B-32", "@openai"), ("ViT-B-32", "@default")]
    own = [cells(replace(grid, architecture=a, pretrained=f"{file}{tag}"), "store")[0].settings for a, tag in given]
    assert own[0] == own[1]
    assert [its["towers"]["pretrained"] for its in own[2:]] == [f"{file}@openai", str(file)]
    assert {its["files"] for its in own} == {own_files(str(file))}
    assert own_files(f"{file}@openai+{file}") == own_files(f"{file}+{file}") != own_files(str(file))


WEIGHTS = {"a": torch.zeros(1)}
WRONG = {
    "model": ({"model": WEIGHTS, "epoch": 3}, "hold no tensors by name, but model, epoch; save the weights alone"),
    "other objects": ({"state_dict": WEIGHTS, "args": argparse.Namespace(a=1)}, r"argparse\.Namespace.*'state_dict'"),
    "a function": ({"state_dict": WEIGHTS, "run": os.getcwd}, r"hold code .*\(posix\.getcwd\).* as safetensors"),
    "a tensor": (torch.zeros(1), "are a Tensor, not tensors by name"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_weight_files_without_tensors_at_the_top_are_refused(kind, tmp_path):
    content, reason = WRONG[kind]
    torch.save(content, tmp_path / "weights.pt")
    with pytest.raises(UserError, match=reason) as error:
        check_pretrained_weights(TowerConfig("ViT-B-32-quickgelu", str(tmp_path / "weights.pt")))
    text = str(error.value)
    assert text.startswith(f"the weights {tmp_path}/weights.pt ")
    assert "\n" not in text
    assert "False" not in text  # torch's advice is to set weights_only so


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_broken_weight_files_and_code_are_refused(tmp_path, file):
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "short.pt").write_bytes(file.read_bytes()[:-30])
    (tmp_path / "short.safetensors").write_bytes(file.read_bytes())
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "jit.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"run": os.getcwd}, protocol=2))
    reasons = r"TorchScript archive|no file of torch's|no whole safetensors|hold code .*posix\.getcwd"
    for name in ("text.pt", "short.pt", "short.safetensors", "jit.pt", "pickle.pt"):
        with pytest.raises(UserError, match=reasons) as error:
            check_weight_file(tmp_path / name)
        assert "False" not in str(error.value)


def test_weights_under_state_dict_are_read(small, tmp_path):
    """As open_clip's own training writes them."""
    torch.manual_seed(0)
    weights = {f"module.{name}": its for name, its in open_clip.create_model(small).state_dict().items()}
    torch.save({"epoch": 1, "state_dict": weights}, tmp_path / "weights.pt")
    scorer = load_scorer(f"{small}/{tmp_path}/weights.pt").scorer
    assert torch.equal(scorer.model.text_projection, weights["module.text_projection"])


PREFIXES = {
    "compiled": lambda name: f"_orig_mod.{name}",
    "compiled, then parallel": lambda name: f"module._orig_mod.{name}",
    "parallel, then compiled": lambda name: f"_orig_mod.module.{name}",
    "a compiled part": lambda name: name.replace("visual.", "visual._orig_mod."),
}


@pytest.mark.parametrize("kind", PREFIXES)
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_prefixes_of_compile_and_ddp_are_removed(kind, suffix, small, tmp_path):
    torch.manual_seed(0)
    weights = open_clip.create_model(small).state_dict()
    renamed = {PREFIXES[kind](name): its.contiguous().clone() for name, its in weights.items()}
    file = tmp_path / f"weights{suffix}"
    save_file(renamed, file) if suffix == ".safetensors" else torch.save({"state_dict": renamed}, file)
    loaded = load_scorer(f"{small}/{file}").scorer.model.state_dict()
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], its) for name, its in weights.items())


TOWERS = {
    "transformer": {"image_size": 48, "layers": 1, "width": 16, "head_width": 8, "patch_size": 16},
    "resnet": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8},
    "timm": {"image_size": 160, "timm_model_name": "test_vit", "timm_pool": "", "timm_proj": "linear"},
}


@pytest.mark.parametrize("tower", TOWERS)
def test_weights_keep_their_own_image_size(tower, tmp_path):
    """As open_clip's trainer makes them with --force-image-size."""
    config = SMALL_CLIP | {"vision_cfg": TOWERS[tower]}
    (tmp_path / f"sized-{tower}.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / f"sized-{tower}.json")
    names = {}
    for side in (32, TOWERS[tower]["image_size"]):
        weights = open_clip.create_model(f"sized-{tower}", force_image_size=side).state_dict()
        torch.save({"state_dict": weights}, tmp_path / f"{side}.pt")
        source = find_source(f"sized-{tower}/{tmp_path}/{side}.pt")
        scorer = source.scorer().eval()
        assert scorer.pixel_scale.framing.resolution == side
        assert all(torch.equal(its, weights[name]) for name, its in scorer.model.state_dict().items())
        assert scorer.encode_images(torch.zeros(1, 3, side, side)).shape == (1, 16)
        names[side] = source.identity()
    assert names[32] != names[side]
