"""Tiny models of Hugging Face's transformers with random weights. Tests that import this are skipped without it."""

import pytest
import torch

from menagerie.models.towers.preparation import Framing

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


SPECIAL = ["[UNK]", "[PAD]", "[EOS]"]
ANSWERS = ["Yes yes No no A B , . ? :"]


def words_of(texts, special):
    """A tokenizer of the words of texts and of special tokens."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.train_from_iterator(texts, tokenizers.trainers.WordLevelTrainer(special_tokens=special))
    return words


def tokenizer_of(words, **more):
    """The tokenizer as a class of transformers."""
    names = dict(zip(("unk_token", "pad_token", "eos_token"), SPECIAL, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, **names, **more)


def make_llava(folder, template=None):
    """Save a tiny image-text-to-text model with its processor; `template` writes its chats."""
    torch.manual_seed(0)
    special = [*SPECIAL, "<image>"]
    words = words_of([*CAPTIONS, *ANSWERS], special)
    pictures = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    cut = {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    tokenizer = tokenizer_of(words, bos_token="[EOS]")
    transformers.LlavaProcessor(pictures, tokenizer, chat_template=template, **cut).save_pretrained(folder)
    size = {"vocab_size": len(tokenizer), "max_position_embeddings": 256, "pad_token_id": 1}
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(**VISION),
        text_config=transformers.LlamaConfig(**TOWER, **size),
        image_token_index=special.index("<image>"),
        vision_feature_layer=-1,
    )
    transformers.LlavaForConditionalGeneration(config).save_pretrained(folder)


def make_folder(kind, folder):
    """Save a tiny model, its tokenizer and its image processor."""
    torch.manual_seed(0)
    model, pictures, _ = KINDS[kind]
    words = words_of(CAPTIONS, SPECIAL)
    words.post_processor = tokenizers.processors.TemplateProcessing(single="$A [EOS]", special_tokens=[("[EOS]", 2)])
    tokenizer_of(words).save_pretrained(folder)
    model().save_pretrained(folder)
    pictures().save_pretrained(folder)
