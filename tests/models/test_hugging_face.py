"""CLIP and SigLIP of Hugging Face's transformers, tiny ones that these tests make, against transformers' own scores."""

import numpy as np
import pytest
import torch
from PIL import Image

from envs.common.errors import UserError
from models import load_scorer
from models.library.find import find_source
from models.library.hugging_face import framing_of
from models.towers.pixels import Framing

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
tokenizers = pytest.importorskip("tokenizers")

CAPTIONS = ["a red cat in the city", "a white dog"]
TOWER = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT = TOWER | {
    "vocab_size": 30,
    "max_position_embeddings": 12,
    "eos_token_id": 2,
    "bos_token_id": 2,
    "pad_token_id": 1,
}
VISION = TOWER | {"image_size": 32, "patch_size": 8}
KINDS = {
    "clip": (
        lambda: transformers.CLIPModel(
            transformers.CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=16)
        ),
        lambda: transformers.CLIPImageProcessor(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, image_mean=[0.4, 0.5, 0.6]
        ),
        Framing(32),
    ),
    "siglip": (
        lambda: transformers.SiglipModel(
            transformers.SiglipConfig(text_config=TEXT | {"projection_size": 32}, vision_config=VISION)
        ),
        lambda: transformers.SiglipImageProcessor(size={"height": 32, "width": 32}),
        Framing(32, squashed=True),
    ),
}


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    """A folder as `save_pretrained` makes it, with random weights."""
    make_folder(kind, tmp_path)
    return tmp_path


def make_folder(kind, folder):
    """Save a tiny model, its tokenizer and its image processor."""
    torch.manual_seed(0)
    model, pictures, _ = KINDS[kind]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = ["[UNK]", "[PAD]", "[EOS]"]
    words.train_from_iterator(CAPTIONS, tokenizers.trainers.WordLevelTrainer(special_tokens=special))
    words.post_processor = tokenizers.processors.TemplateProcessing(single="$A [EOS]", special_tokens=[("[EOS]", 2)])
    names = dict(zip(("unk_token", "pad_token", "eos_token"), special, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(folder)
    model().save_pretrained(folder)
    pictures().save_pretrained(folder)


def own_scores(folder, kind, picture):
    """Cosines by transformers alone."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    pictures = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = tokenizer(CAPTIONS, padding="max_length", max_length=12, truncation=True, return_tensors="pt")
    given = {"input_ids": texts["input_ids"]} | ({"attention_mask": texts["attention_mask"]} if kind == "clip" else {})
    with torch.no_grad():
        result = model(**given, **pictures(images=picture, return_tensors="pt"))
    return torch.nn.functional.normalize(result.image_embeds) @ torch.nn.functional.normalize(result.text_embeds).T


def test_scores_are_those_of_transformers(folder, kind):
    """Exactly on an image of the model's size; on a wide one as far as two resamplings agree."""
    loaded = load_scorer(folder)
    assert loaded.framing == KINDS[kind][2]
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    fitting, wide = Image.fromarray(pixels), Image.fromarray(pixels).resize((96, 64))
    torch.testing.assert_close(loaded.score(fitting, CAPTIONS), own_scores(folder, kind, fitting), atol=1e-5, rtol=0)
    torch.testing.assert_close(loaded.score(wide, CAPTIONS), own_scores(folder, kind, wide), atol=0.02, rtol=0)
    assert loaded.embed(captions=CAPTIONS).norm(dim=1).tolist() == pytest.approx([1, 1])
    kept = transformers.AutoModel.from_pretrained(folder).logit_scale.exp().item()
    assert loaded.scorer.logit_scale().item() == pytest.approx(kept)


@pytest.mark.parametrize(("resample", "expected"), [(0, "nearest"), (2, "bilinear"), (None, "bicubic")])
def test_pictures_are_resampled_as_they_say(resample, expected):
    pictures = {"size": {"height": 32, "width": 32}, "resample": resample}
    assert framing_of(pictures).interpolation == expected


def test_its_identity_is_that_of_its_files(folder):
    before = find_source(folder).identity()
    assert find_source(str(folder)).identity() == before
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + " ")
    assert find_source(folder).identity() != before


def test_other_kinds_and_broken_folders_are_named(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match="can't be loaded by transformers"):
        load_scorer(folder)
    transformers.BertConfig().save_pretrained(tmp_path / "bert")
    with pytest.raises(UserError, match="is a 'bert' of Hugging Face; this reads clip and siglip"):
        load_scorer(tmp_path / "bert")
