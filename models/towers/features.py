"""Records the layers of a tower by name while a scorer encodes: after the stem, after each block, and the final tokens.

Hooks see what the scorer itself computes, in the same pass and in one way for all libraries. The alternatives are
open_clip's and timm's `forward_intermediates` and transformers' `hidden_states`. They need a second pass, each has a
format of its own, and the first two don't give the stem. The tests compare the hooks with them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from open_clip.transformer import TextTransformer, VisionTransformer
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer as TimmTransformer
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from menagerie.envs.core.errors import UserError
from menagerie.models.towers.hugging_face import HuggingFaceImages, HuggingFaceTexts
from menagerie.models.towers.towers import ImageTower, TextTower, ends_of

STEM, TOKENS = "stem", "tokens"
MASK = "attention_mask"  # with which text models of transformers are called


class Layer(NamedTuple):
    """The output of a layer for n images or texts."""

    states: Float[Tensor, "n t d"]
    present: Bool[Tensor, "n t"] | None = None
    """Whether each token is a real one, not padding; None if all are."""


class TextRows(NamedTuple):
    """Which rows of the text tower's output belong to each of m texts, for scorers whose tower encodes a text as
    several rows or shares rows among texts."""

    number: Int64[Tensor, "m k"]
    """Row numbers, counted through all passes of the tower in order."""
    present: Bool[Tensor, "m k"]


class Features(dict[str, Tensor]):
    """Float tensors (n, t, d) by the names of layers, in the order in which they are computed.

    `present[name]` (n, t) says which tokens are there. All others are padding, and 0.
    """

    def __init__(self, layers: Mapping[str, Layer]) -> None:
        for name, (states, _) in layers.items():
            if states.ndim != 3:
                raise UserError(f"the layer {name!r} has the shape {tuple(states.shape)}, not (n, t, d)")
        super().__init__({name: zero_padding(layer) for name, layer in layers.items()})
        self.present = {name: token_presence(layer) for name, layer in layers.items()}

    def layers(self) -> dict[str, Layer]:
        """Each layer with its mask."""
        return {name: Layer(states, self.present[name]) for name, states in self.items()}

    def mean(self, name: str) -> Float[Tensor, "n d"]:
        """The mean over the tokens that are there."""
        shares = self.present[name].to(self[name].dtype)
        return (self[name] * shares[..., None]).sum(1) / shares.sum(1, keepdim=True).clamp_min(1)


def zero_padding(layer: Layer) -> Float[Tensor, "n t d"]:
    """A layer's states, with 0 for padding."""
    return layer.states if layer.present is None else layer.states.masked_fill(~layer.present[..., None], 0)


def token_presence(layer: Layer) -> Bool[Tensor, "n t"]:
    """Return a layer's mask; all true if it has none."""
    if layer.present is not None:
        return layer.present
    return torch.ones(layer.states.shape[:2], dtype=torch.bool, device=layer.states.device)


def concatenate_features(parts: Sequence[Features]) -> Features:
    """Concatenate the features of several blocks of images or texts, padded to the longest; float32 on the CPU."""
    blocks = [part.layers() for part in parts]
    return Features({name: concatenate_layers([block[name] for block in blocks]) for name in blocks[0]})


def concatenate_layers(layers: Sequence[Layer]) -> Layer:
    """Concatenate one layer of several blocks of images or texts, padded to the longest; float32 on the CPU."""
    longest = max(layer.states.shape[1] for layer in layers)
    more = [longest - layer.states.shape[1] for layer in layers]
    states = [F.pad(layer.states.float().cpu(), (0, 0, 0, n)) for layer, n in zip(layers, more, strict=True)]
    present = [F.pad(token_presence(layer).cpu(), (0, n)) for layer, n in zip(layers, more, strict=True)]
    return Layer(torch.cat(states), torch.cat(present))


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
    """Find the modules of a text tower's layers; None for others than open_clip's transformer and Hugging Face's."""
    if isinstance(tower, HuggingFaceTexts):
        text = tower.model.text_model
        return Places(text.encoder.layers, text.final_layer_norm, reads=text, present=lambda _, named: named.get(MASK))
    text = getattr(tower.model, "text", tower.model)
    if getattr(text, "transformer", None) is None or not hasattr(text, "ln_final"):
        return None
    blocks, ordered, ids = text.transformer.resblocks, text.transformer.batch_first, text.token_embedding
    return Places(blocks, text.ln_final, ordered, False, ids, lambda given, _: word_mask(tower, text, given[0]))


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


class Passes:
    """Records what a tower's layers output in each of its passes; nothing without `places`."""

    def __init__(self, places: Places | None) -> None:
        self.places = places
        self.passes: list[dict[str, Tensor]] = []
        self.masks: list[Tensor | None] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record the tower's passes inside this context."""
        handles = self._hooks() if self.places else []
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hooks(self) -> list[RemovableHandle]:
        handles = [self.places.blocks[0].register_forward_pre_hook(self._start)]
        for k, block in enumerate(self.places.blocks, start=1):
            handles.append(block.register_forward_hook(lambda *given, k=k: self._block(k, given[-1])))
        handles.append(self.places.norm.register_forward_hook(lambda *given: self._norm(given[-1])))
        if self.places.reads is not None:
            handles.append(self.places.reads.register_forward_pre_hook(self._read, with_kwargs=True))
        return handles

    def layers(self, count: int, rows: TextRows | None = None) -> dict[str, Layer]:
        """Return the recorded layers of `count` images or texts, by name.

        The result is empty if rows can't be assigned to the images or texts: if there is no pass, if a pass has no
        tokens, if passes differ in the shape of a row, or if, without `rows`, the number of rows isn't `count`.
        """
        shapes = {each[TOKENS].shape[1:] if TOKENS in each else None for each in self.passes}
        if len(shapes) != 1 or None in shapes:
            return {}
        mask = None if any(mask is None for mask in self.masks) or not self.masks else torch.cat(self.masks)
        found = {name: Layer(torch.cat([each[name] for each in self.passes]), mask) for name in self.passes[0]}
        if rows is not None:
            return {name: compose_rows(layer, rows) for name, layer in found.items()}
        return found if len(found[TOKENS].states) == count else {}

    def _start(self, block: nn.Module, given: tuple) -> None:
        self.passes.append({STEM: self._batch_first(given[0])})

    def _block(self, number: int, given: Any) -> None:
        # Blocks of transformers 4 give tuples.
        states = self._batch_first(given[0] if isinstance(given, tuple) else given)
        self.passes[-1][f"block {number}"] = states
        if number == len(self.places.blocks):
            # Tokens have the same LayerNorm whether the tower applies it to all of them or to the pooled one alone.
            self.passes[-1][TOKENS] = self.places.norm(states) if self.places.pools_first else states

    def _norm(self, normed: Tensor) -> None:
        """Keep the output of the last LayerNorm as the tokens, if it was applied to all tokens, not to a pooled one."""
        last = self.passes[-1].get(TOKENS) if self.passes else None
        if last is not None and normed.shape == last.shape:
            self.passes[-1][TOKENS] = normed

    def _read(self, module: nn.Module, given: tuple, named: Mapping[str, Any]) -> None:
        mask = self.places.present(given, named)
        self.masks.append(None if mask is None else mask.bool())

    def _batch_first(self, states: Tensor) -> Float[Tensor, "n t d"]:
        return states if self.places.batch_first else states.transpose(0, 1)


def compose_rows(layer: Layer, rows: TextRows) -> Layer:
    """Concatenate the tokens of each text's rows: (m, k t, d)."""
    states = layer.states[rows.number].flatten(1, 2)
    return Layer(states, (token_presence(layer)[rows.number] & rows.present[..., None]).flatten(1, 2))
