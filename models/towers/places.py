"""Finds the modules that give a tower's layers, its blocks and its last LayerNorm, in open_clip, timm and
transformers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int64
from open_clip.transformer import TextTransformer, VisionTransformer
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer as TimmTransformer
from torch import Tensor, nn

from menagerie.models.towers.hugging_face import HuggingFaceImages, HuggingFaceTexts
from menagerie.models.towers.towers import ImageTower, TextTower, ends_of

# From the arguments with which `Places.reads` is called.
Mask = Callable[[tuple, Mapping[str, Any]], Tensor | None]


@dataclass(frozen=True, eq=False)
class Places:
    """The modules of a tower that give its layers."""

    blocks: nn.ModuleList | nn.Sequential
    norm: nn.Module
    """The last LayerNorm."""
    batch_first: bool = True
    """Whether blocks give (n, t, d); else (t, n, d)."""
    pools_first: bool = False
    """Whether the tower applies `norm` only to the token that it pools."""
    reads: nn.Module | None = None
    """The module whose arguments tell which tokens are padding; None if no token is."""
    present: Mask = lambda given, named: None
    """Called with the arguments of `reads`; returns which tokens (n, t) enter the tower's vector, or None if all do."""


def image_places(tower: ImageTower) -> Places | None:
    """Find the modules that give an image tower's layers; None unless the tower is a plain ViT."""
    if isinstance(tower, HuggingFaceImages):
        vision = tower.model.vision_model
        return Places(vision.encoder.layers, vision.post_layernorm, pools_first=tower.model.config.model_type == "clip")
    visual = getattr(tower.model, "visual", None)
    if isinstance(visual, VisionTransformer):
        return Places(visual.transformer.resblocks, visual.ln_post, visual.transformer.batch_first)
    trunk = getattr(visual, "trunk", None)
    return Places(trunk.blocks, trunk.norm) if isinstance(trunk, TimmTransformer | Eva) else None


def text_places(tower: TextTower) -> Places | None:
    """Find the modules that give a text tower's layers. None unless the tower is open_clip's transformer or a Hugging
    Face model's."""
    if isinstance(tower, HuggingFaceTexts):
        text = tower.model.text_model
        return Places(text.encoder.layers, text.final_layer_norm, reads=text, present=attention_mask)
    model = tower.model
    text = getattr(model, "text", model)
    if getattr(text, "transformer", None) is None or not hasattr(text, "ln_final"):
        return None

    def present(given: tuple, named: Mapping[str, Any]) -> Tensor | None:
        return word_mask(tower, text, given[0])

    transformer = text.transformer
    return Places(
        transformer.resblocks, text.ln_final, transformer.batch_first, reads=text.token_embedding, present=present
    )


def attention_mask(given: tuple, named: Mapping[str, Any]) -> Bool[Tensor, "m context"] | None:
    """Return the mask with which a text model of transformers was called; None if it had none."""
    mask = named.get("attention_mask")
    return None if mask is None else mask.bool()


def word_mask(tower: TextTower, text: nn.Module, ids: Int64[Tensor, "m context"]) -> Bool[Tensor, "m t"] | None:
    """Mask of the tokens of open_clip's text tower that aren't padding; None if it reads padding as words (SigLIP)."""
    if isinstance(text, TextTransformer) and (text.use_pad_mask or text.cls_emb is not None):
        words = ids != text.pad_id
        return words if text.cls_emb is None else torch.cat([words, words.new_ones(len(words), 1)], dim=1)
    pool, end = getattr(text, "pool_type", getattr(text, "text_pool_type", "argmax")), tower.end_token
    if pool not in ("argmax", "eos") or text.attn_mask is None:
        return None
    if isinstance(text, TextTransformer) and pool == "eos":
        end = text.eos_id
    return torch.arange(ids.shape[1], device=ids.device) <= ends_of(ids, end)[:, None]


def patch_grid(tower: ImageTower) -> tuple[int, int] | None:
    """Rows and columns of an image tower's patches, which are its last tokens, row by row; None unless a plain ViT."""
    if isinstance(tower, HuggingFaceImages):
        config = tower.model.config.vision_config
        side = config.image_size // config.patch_size
        return side, side
    if image_places(tower) is None:
        return None
    visual = tower.model.visual
    rows, columns = visual.grid_size if isinstance(visual, VisionTransformer) else visual.trunk.patch_embed.grid_size
    return rows, columns
