"""Checkpoints, names and texts: what is foreign is refused with one clear line."""

import os
import stat
from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import file_digest, read_record, write_record
from menagerie.models.checkpoint import build_scorer, load_checkpoint, read_config, save_checkpoint
from menagerie.models.library.load import find_source
from menagerie.models.registry import check_scorer, scorer_class
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import SMALL_TOWERS, TextSpace, TowerConfig
from menagerie.models.towers.tokenizers import WordTokenizer, words_of
from tests.disks import with_largest_file
from tests.helpers.scorers import OPTIONS, TOWERS, WORDS, scorer


def rewrite_config(folder, **changes):
    """As it is written of the weights that lie there now."""
    config = read_record(folder / "config.json") | {"weights": file_digest(folder / "model.safetensors")}
    write_record(folder / "config.json", config | changes)


@pytest.mark.parametrize("change", ["missing", "left over", "reshaped"])
def test_odd_weights_are_named(tmp_path, change):
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


def test_checkpoints_of_two_cells_that_were_exchanged_are_noticed(tmp_path):
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
    opened = (load_checkpoint, read_config, lambda folder: find_source(str(folder), (), None).identity())
    for folder, read in product(folders, opened):
        with pytest.raises(UserError, match=f"{folder} has other weights than the result in {folder.parent} is of"):
            read(folder)
    folders[0].rename(tmp_path / "alone")
    load_checkpoint(tmp_path / "alone")
    config = read_record(folders[1] / "config.json")
    write_record(folders[1] / "config.json", {key: value for key, value in config.items() if key != "weights"})
    with pytest.raises(UserError, match="not a whole checkpoint"):  # without its digest it is none
        load_checkpoint(folders[1])


def test_all_files_are_as_the_umask_says(tmp_path):
    before = os.umask(0o026)
    try:
        save_checkpoint(tmp_path, "clip", scorer("clip"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}


def test_no_room_for_weights_is_one_line(tmp_path):
    what, said = with_largest_file(1000, lambda: save_checkpoint(tmp_path, "clip", scorer("clip")), tmp_path)
    assert (what, "model.safetensors can't be written (File too large)" in said) == ("error", True), said
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_never_decides_what_code_runs(tmp_path):
    save_checkpoint(tmp_path, "clip", scorer("clip"))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    rewrite_config(tmp_path, model=f"{tmp_path}/evil.py:X")
    with pytest.raises(UserError, match="its file is run only if you name it"):
        load_checkpoint(tmp_path)


def test_pretrained_weights_from_a_local_file_travel_in_a_checkpoint(tmp_path):
    """With their own context of 77 tokens, whatever ours is."""
    import open_clip

    file = tmp_path / "weights.pt"
    torch.save(open_clip.create_model("ViT-S-32-alt", force_image_size=64).state_dict(), file)
    towers = TowerConfig("ViT-S-32-alt", str(file), resolution=64)
    model = build_scorer("oc-clip", towers, TextSpace(), OPTIONS["oc-clip"])
    assert model.texts.context == 77
    save_checkpoint(tmp_path / "checkpoint", "oc-clip", model)
    file.unlink()
    back = load_checkpoint(tmp_path / "checkpoint", "oc-clip")
    assert torch.equal(back.model.positional_embedding, model.model.positional_embedding)


def test_a_class_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from menagerie.models.networks.clip import CLIPScorer\n\nclass Mine(CLIPScorer):\n    pass\n")
    assert scorer_class(f"{file}:Mine").__name__ == "Mine"
    with pytest.raises(UserError, match="has no class 'Yours' that extends"):
        scorer_class(f"{file}:Yours")
    with pytest.raises(UserError, match="did you mean 'oc-clip'"):
        check_scorer("occlip")


def test_words_become_ids_with_the_end_token_largest():
    tokenizer = WordTokenizer(words_of(["a red cat", "a dog"]))
    assert tokenizer(["a red cat", "dog"], 5).tolist() == [[1, 4, 2, 5, 0], [3, 5, 0, 0, 0]]
    with pytest.raises(UserError, match="'pig' of 'a pig' is not in this model's vocabulary"):
        tokenizer(["a pig"], 5)
    with pytest.raises(UserError, match="has 5 words, this model reads at most 4"):
        tokenizer(["a a a a a"], 5)


@pytest.mark.parametrize("name", SMALL_TOWERS)
def test_small_towers_build(name):
    towers = build_towers(TowerConfig(name, resolution=40), TextSpace(WORDS, 8))
    texts = towers.tokenizer(["red cat", "city"], 8)
    assert towers.image.pooled(torch.zeros(2, 3, 40, 40)).shape == towers.text.pooled(texts).shape


def test_any_open_clip_architecture_from_scratch():
    """Its own tokenizer, its own towers, our context and resolution."""
    towers = build_towers(TowerConfig("ViT-S-32-alt", resolution=64), TextSpace((), 12))
    tokens = towers.tokenizer(["an asphalt giant tortoise"], 12)
    assert tokens.shape == (1, 12)
    assert towers.text.pooled(tokens).shape == towers.image.pooled(torch.zeros(1, 3, 64, 64)).shape
