"""CLIP and SigLIP of Hugging Face's transformers, tiny ones that these tests make, against transformers' own scores."""

import json
from string import ascii_letters as letters

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from menagerie import load_scorer
from menagerie.envs.core.errors import UserError
from menagerie.models.library.load import find_source
from menagerie.models.library.loaded import NO_GRAPH
from menagerie.models.texts import Texts
from menagerie.models.towers.hugging_face import HuggingFaceReader
from tests.helpers.hugging_face import CAPTIONS, KINDS, make_folder, tokenizers, transformers


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    """A folder as `save_pretrained` makes it, with random weights."""
    make_folder(kind, tmp_path)
    return tmp_path


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


def test_missing_weights_are_refused(tmp_path):
    """Transformers draws them by chance, with a table of them in the log."""
    make_folder("clip", tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    renamed = {f"_orig_mod.{name}": its for name, its in weights.items()}
    save_file(renamed, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"lacks \d+ .* no 'logit_scale' and '_orig_mod\.logit_scale' instead"):
        load_scorer(tmp_path)


def test_hugging_face_reader_reports_cut_texts(folder):
    texts = [" ".join(["red"] * words) for words in (11, 12, 40)]
    assert load_scorer(folder).scorer.cut_texts(texts, [NO_GRAPH] * 3) == [False, True, True]


@pytest.mark.parametrize("lower", [True, False])
def test_lower_case_is_applied_before_tokens_are_counted(lower):
    """Capitals may take more tokens."""
    pieces = {"[UNK]": 0, "[PAD]": 1, "cat": 2, "C": 3, "##A": 4, "##T": 5}
    words = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
    reader = HuggingFaceReader(tokenizer, context=2, lower=lower)
    assert reader.cut(Texts(["CAT", "cat cat", "cat cat cat"], [])) == [not lower, False, True]
    assert reader(Texts(["CAT"], [])).ids.tolist() == [[2, 1] if lower else [3, 4]]


# What a CLIP's image processor may say beside its defaults, and how well scores agree where pixels are large.
OBEYED = [
    {"do_normalize": False},
    {"rescale_factor": 1 / 127.5},
    {"do_rescale": False, "do_normalize": False},
    {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.9, 0.8, 0.7]},
    {"do_convert_rgb": None},
    {"do_center_crop": False, "size": {"height": 32, "width": 32}},
    {"size": 32, "crop_size": 32},
    {"resample": 2},
]
REFUSED = [
    {"do_resize": False},
    {"size": {"shortest_edge": 40}},
    {"do_center_crop": False},
    {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}},
    {"image_std": [0, 1, 1]},
    {"rescale_factor": float("nan")},
    {"resample": 9},
    {"image_processor_type": "ConvNextImageProcessor", "crop_pct": 0.9},
]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A folder of a CLIP, whose image processor tests change."""
    folder = tmp_path_factory.mktemp("clip")
    make_folder("clip", folder)
    return folder, (folder / "preprocessor_config.json").read_text()


def say(clip, settings):
    """Change what the image processor says."""
    folder, text = clip
    (folder / "preprocessor_config.json").write_text(json.dumps(json.loads(text) | settings))
    return folder


@pytest.mark.parametrize("settings", OBEYED, ids=str)
def test_settings_of_the_image_processor_are_obeyed(settings, clip):
    """Against transformers, on an image of the model's size and on a wide one."""
    loaded = load_scorer(folder := say(clip, settings))
    pixels = Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8))
    for picture, apart in ((pixels, 1e-5), (pixels.resize((96, 64)), 0.02)):
        torch.testing.assert_close(
            loaded.score(picture, CAPTIONS), own_scores(folder, "clip", picture), atol=apart, rtol=0
        )


@pytest.mark.parametrize("settings", REFUSED, ids=str)
def test_an_image_processor_that_prepares_pictures_otherwise_is_refused(settings, clip):
    with pytest.raises(UserError, match=f"{clip[0]}: its image processor"):
        load_scorer(say(clip, settings))


@pytest.mark.parametrize("tokenizer", ["GemmaTokenizer", "Siglip2Tokenizer", "SiglipLike"])
def test_texts_of_siglip2_become_lower_case(tokenizer, tmp_path):
    """It has SigLIP's kind and Gemma's words; the first SigLIP leaves it to its own tokenizer."""
    make_folder("siglip", tmp_path)
    if tokenizer != "SiglipLike":
        words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<bos>", "<unk>", *letters])}
        getattr(transformers, tokenizer)(vocab=words, merges=[]).save_pretrained(tmp_path)
    loaded, picture = load_scorer(tmp_path), Image.new("RGB", (32, 32), "red")
    high, low = loaded.score(picture, ["A Red Cat", "a red cat"])[0].tolist()
    assert (high == pytest.approx(low, abs=1e-6)) == (tokenizer != "SiglipLike")
    assert loaded.scorer.reader.lower == (tokenizer != "SiglipLike")


def test_identity_covers_files_in_subfolders_but_no_hidden_ones(folder):
    """Chat templates may lie in one; what git or the hub notes decides nothing."""
    before = find_source(folder).identity()
    for place, text in ((".cache/huggingface", "today"), ("additional_chat_templates", "one")):
        (folder / place).mkdir(parents=True)
        (folder / place / "default.jinja").write_text(text)
        after = find_source(folder).identity()
        assert (after == before) == place.startswith(".")
    (folder / "additional_chat_templates/default.jinja").write_text("two")
    assert find_source(folder).identity() not in (before, after)
