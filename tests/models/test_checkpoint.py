"""Checkpoints, names and texts: what is foreign is refused with one clear line."""

import os
import stat
from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import file_digest, read_record, write_record
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint, scorer_config
from menagerie.models.library.load import find_source
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import SMALL_TOWERS, TextSpace, TowerConfig
from menagerie.models.towers.tokenizers import WordTokenizer, distinct_words
from tests.disks import with_largest_file
from tests.helpers.scorers import OPTIONS, TOWERS, WORDS, scorer


def rewrite_config(folder, **changes):
    """As it is written of the weights that lie there now."""
    config = read_record(folder / "config.json") | {"weights": file_digest(folder / "model.safetensors")}
    write_record(folder / "config.json", config | changes)


@pytest.mark.parametrize("change", ["missing", "left over", "reshaped"])
def test_weights_that_do_not_fit_are_named(tmp_path, change):
    save_checkpoint(tmp_path, "clip", scorer("clip"))
    weights = load_file(tmp_path / "model.safetensors")
    if change == "missing":
        del weights["log_scale"]
    elif change == "left over":
        weights["stranger"] = torch.zeros(1)
    else:
        weights["log_scale"] = torch.zeros(2)
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"model.safetensors was changed since it was written"):
        load_checkpoint(tmp_path)
    rewrite_config(tmp_path)
    with pytest.raises(UserError, match=r"the first odd one is (log_scale|stranger)"):
        load_checkpoint(tmp_path)


def test_exchanged_checkpoints_of_two_cells_are_refused(tmp_path):
    """Each is whole; the result beside it says of which weights it is."""
    folders = [tmp_path / cell / "checkpoint" for cell in ("one", "two")]
    for seed, folder in enumerate(folders):
        torch.manual_seed(seed)
        model = build_scorer("clip", TOWERS, TextSpace(WORDS, 8))
        save_checkpoint(folder, "clip", model)
        files = {"checkpoint/model.safetensors": file_digest(folder / "model.safetensors")}
        write_record(folder.parent / "result.json", {"id": folder.parent.name, "files": files})
        load_checkpoint(folder)
    folders[0].rename(tmp_path / "kept")
    folders[1].rename(folders[0])
    (tmp_path / "kept").rename(folders[1])
    opened = (load_checkpoint, scorer_config, lambda folder: find_source(str(folder), (), None).identity())
    for folder, read in product(folders, opened):
        with pytest.raises(UserError, match=f"the weights in {folder} are not those of the result in {folder.parent}"):
            read(folder)
    folders[0].rename(tmp_path / "alone")
    load_checkpoint(tmp_path / "alone")
    config = read_record(folders[1] / "config.json")
    write_record(folders[1] / "config.json", {key: value for key, value in config.items() if key != "weights"})
    with pytest.raises(UserError, match="not a whole checkpoint"):  # without its digest it is none
        load_checkpoint(folders[1])


def test_checkpoint_files_obey_the_umask(tmp_path):
    before = os.umask(0o026)
    try:
        save_checkpoint(tmp_path, "clip", scorer("clip"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}


def test_full_disk_while_weights_are_saved_leaves_no_file(tmp_path):
    what, said = with_largest_file(1000, lambda: save_checkpoint(tmp_path, "clip", scorer("clip")), tmp_path)
    assert (what, "model.safetensors can't be written (File too large)" in said) == ("error", True), said
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_alone_runs_no_file_of_a_user(tmp_path):
    save_checkpoint(tmp_path, "clip", scorer("clip"))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    rewrite_config(tmp_path, model=f"{tmp_path}/evil.py:X")
    with pytest.raises(UserError, match="its file is run only if you name it"):
        load_checkpoint(tmp_path)


def test_checkpoint_contains_pretrained_weights_of_a_local_file(tmp_path, monkeypatch):
    """With their own context of 77 tokens, whatever ours is; its towers have a block each."""
    import open_clip

    config = open_clip.get_model_config("ViT-S-32-alt")
    for tower in ("text_cfg", "vision_cfg"):
        config[tower]["layers"] = 1
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-S-32-alt", config)
    file = tmp_path / "weights.pt"
    torch.save(open_clip.create_model("ViT-S-32-alt", force_image_size=64).state_dict(), file)
    towers = TowerConfig("ViT-S-32-alt", str(file), resolution=64)
    model = build_scorer("oc-clip", towers, TextSpace(), OPTIONS["oc-clip"])
    assert model.texts.context == 77
    save_checkpoint(tmp_path / "checkpoint", "oc-clip", model)
    file.unlink()
    back = load_checkpoint(tmp_path / "checkpoint", "oc-clip")
    assert torch.equal(back.model.positional_embedding, model.model.positional_embedding)


def test_words_become_ids_with_the_end_token_largest():
    tokenizer = WordTokenizer(distinct_words(["a red cat", "a dog"]))
    assert tokenizer(["a red cat", "dog"], 5).tolist() == [[1, 4, 2, 5, 0], [3, 5, 0, 0, 0]]
    with pytest.raises(UserError, match="'pig' of 'a pig' is not in this model's vocabulary"):
        tokenizer(["a pig"], 5)
    with pytest.raises(UserError, match="has 5 words, this model reads at most 4"):
        tokenizer(["a a a a a"], 5)


@pytest.mark.parametrize(("name", "side"), [*((name, 40) for name in SMALL_TOWERS), ("ViT-S-32-alt", 64)])
def test_image_and_text_vectors_of_every_architecture_have_one_width(name, side):
    towers = build_towers(TowerConfig(name, resolution=side), TextSpace(WORDS if name in SMALL_TOWERS else (), 8))
    texts = towers.tokenizer(["red cat", "city"], 8)
    assert texts.shape == (2, 8)
    assert towers.image.pool(torch.zeros(2, 3, side, side)).shape == towers.text.pool(texts).shape


def row_towers(name: str = "row"):
    torch.manual_seed(0)
    return build_towers(TowerConfig(name, resolution=40), TextSpace(WORDS, 8))


def test_row_tower_reads_one_column_of_the_image_per_token():
    visual = row_towers().model.visual
    pixels = torch.randn(1, 3, 40, 40)
    changed = pixels.clone()
    changed[..., 12:16] += 1
    before, after = visual.conv1(pixels), visual.conv1(changed)
    assert before.shape == (1, 64, 1, 10)
    assert (before != after).any(1).squeeze().nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize(("name", "told_apart"), [("row", True), ("row-sinusoidal", True), ("row-no-positions", False)])
def test_row_tower_without_positions_ignores_the_order_of_columns(name, told_apart):
    """Without them an image and its mirror image are the same to the tower."""
    pixels = torch.randn(1, 3, 40, 10).repeat_interleave(4, 3)
    towers = row_towers(name)
    first, mirrored = towers.image.pool(pixels), towers.image.pool(pixels.flip(3))
    assert torch.allclose(first, mirrored, atol=1e-5) != told_apart


@pytest.mark.parametrize(("name", "trained"), [("row", True), ("row-sinusoidal", False), ("row-no-positions", False)])
def test_fixed_positions_are_not_trained(name, trained):
    assert row_towers(name).model.visual.positional_embedding.requires_grad is trained
