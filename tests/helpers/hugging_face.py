"""Tiny models of Hugging Face's transformers, with random weights; whatever imports this is skipped without it."""

import pytest
import torch

from menagerie.models.towers.pixels import Framing

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
