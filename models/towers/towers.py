"""Image and text towers as scorers use them: tokens, pooled vectors, projections.

Code that depends on the internals of open_clip's and timm's towers is mostly here, and in `build`, `fused` and
`features` beside this module.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import timm.models.vision_transformer as timm_vit
import torch
from jaxtyping import Bool, Float, Int64
from open_clip.timm_model import TimmModel
from open_clip.transformer import ResidualAttentionBlock, VisionTransformer
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.models.ranks import encode_shared
from menagerie.models.towers.attention import with_fewer_copies
from menagerie.models.towers.preparation import Framing, Statistics
from menagerie.models.towers.tokenizers import Tokenizer


class Tokens(NamedTuple):
    """The tokens of n images or texts."""

    states: Float[Tensor, "n t width"]
    """Output of the tower's last block, by default after its last LayerNorm. Images begin with CLS; texts have all
    tokens up to their end, then padding."""
    present: Bool[Tensor, "n t"] | None
    """Whether each token is part of its text, up to the end token, and not padding; None if all are."""
    pooled: Float[Tensor, "n width"]
    """The token that CLIP itself uses: CLS, or the end of the text."""


class Tower:
    """One of the two towers of a model. Only plain transformers give tokens: see `Towers.require_tokens`."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def project(self, states: Float[Tensor, "*b width"]) -> Float[Tensor, "*b d"]:
        """Project tokens into the space shared by images and texts, by the tower's `projection`."""
        return states @ self.projection


class ImageTower(Tower):
    """The image tower, `model.visual`."""

    def pool(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """The vector of each image as the tower itself pools and projects its tokens; not normalised."""
        return self.model.encode_image(pixels)

    def tokens(self, pixels: Float[Tensor, "n 3 h w"], normed: bool = True) -> Tokens:
        """Return the tokens of images: after the tower's last LayerNorm if `normed`, else before it."""
        layers = self.model.visual.forward_intermediates(
            pixels,
            indices=1,
            normalize_intermediates=False,
            intermediates_only=True,
            output_fmt="NLC",
            output_extra_tokens=True,
        )
        states = torch.cat([layers["image_intermediates_prefix"][0], layers["image_intermediates"][0]], dim=1)
        states = self.norm(states) if normed else states
        return Tokens(states, None, states[:, 0])

    def norm(self, states: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        """Apply the tower's last LayerNorm."""
        return self.model.visual.ln_post(states)

    def patches(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n patches width"]:
        """The encoded patches, before pooling and projection; only for plain ViTs of open_clip and timm."""
        visual = self.model.visual
        if is_timm_vit(visual):
            return visual.trunk.forward_features(pixels)[:, visual.trunk.num_prefix_tokens :]
        visual.output_tokens = True
        try:
            return visual(pixels)[1]
        finally:
            visual.output_tokens = False

    @property
    def projection(self) -> Float[Tensor, "width d"]:
        """The matrix used by `project`."""
        return self.model.visual.proj

    @property
    def width(self) -> int:
        """Width of a token."""
        return self.model.visual.class_embedding.numel()

    @property
    def n_tokens(self) -> int:
        """Number of tokens of an image, with CLS."""
        return self.model.visual.positional_embedding.shape[0]

    def parameters(self) -> list[nn.Parameter]:
        """All parameters of the tower."""
        return [parameter for name, parameter in self.model.named_parameters() if name.startswith("visual.")]

    def drop_last_block(self) -> None:
        """Remove the last block, unless it is the only one."""
        drop_last_block(self.model.visual.transformer)

    def drop_norm(self) -> None:
        """Remove the last LayerNorm, for a scorer that reads tokens before it."""
        self.model.visual.ln_post = nn.Identity()


class TextTower(Tower):
    """The text tower: all of the model except `model.visual`."""

    def pool(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """The vector of each text as the tower itself pools and projects its tokens; not normalised."""
        return encode_shared(self.model.encode_text, texts)

    def tokens(self, texts: Int64[Tensor, "m context"]) -> Tokens:
        """Return the tokens of texts. The tower's causal mask hides later tokens, padding included, from each token."""
        layers = self.model.forward_intermediates(
            text=texts, text_indices=1, normalize_intermediates=True, intermediates_only=True
        )
        states, ends = layers["text_intermediates"][0], ends_of(texts, self.end_token)
        places = torch.arange(texts.shape[1], device=texts.device)
        return Tokens(states, places <= ends[:, None], states[torch.arange(len(texts), device=texts.device), ends])

    @property
    def projection(self) -> Float[Tensor, "width d"]:
        """The matrix used by `project`."""
        return self.model.text_projection

    @property
    def width(self) -> int:
        """Width of a token."""
        return self.model.token_embedding.embedding_dim

    @property
    def end_token(self) -> int | None:
        """Id of the token that ends a text, if the architecture names one; None means the largest id."""
        return self.model.text_eos_id if getattr(self.model, "text_pool_type", "argmax") == "eos" else None

    def parameters(self) -> list[nn.Parameter]:
        """All parameters of the tower; also the model's bias of a sigmoid loss, if it has one."""
        named = self.model.named_parameters()
        return [parameter for name, parameter in named if not name.startswith("visual.") and name != "logit_scale"]

    @torch.no_grad()
    def drop_last_block(self, drawn: bool) -> None:
        """Remove the last block, unless it is the only one.

        A tower with freshly `drawn` random weights is rescaled as if built with one block fewer: open_clip draws the
        weights whose output is added to the stream with a deviation of width^-1/2 (2 blocks)^-1/2.
        """
        transformer = self.model.transformer
        before = len(transformer.resblocks)
        drop_last_block(transformer)
        for block in transformer.resblocks if drawn else ():
            for projection in (block.attn.out_proj, block.mlp.c_proj):
                projection.weight.mul_(math.sqrt(before / len(transformer.resblocks)))


@dataclass(frozen=True, eq=False)
class Towers:
    """A model's two towers, and how they read texts and pixels; their own temperature is frozen."""

    model: nn.Module
    """Both towers, with their weights; a scorer keeps it as `model`."""
    image: ImageTower
    text: TextTower
    tokenizer: Tokenizer | None
    """The tokenizer; None if the model has a reader of its own."""
    context: int
    """Number of tokens in a text; pretrained towers determine it."""
    pixels: Statistics
    framing: Framing
    architecture: str

    def __post_init__(self) -> None:
        self.model.logit_scale.requires_grad_(False)

    @property
    def temperature(self) -> Float[Tensor, ""]:
        """Logarithm of the model's own inverse temperature."""
        return self.model.logit_scale.reshape(())

    @property
    def bias(self) -> Float[Tensor, "..."] | None:
        """The model's own bias of a sigmoid loss, if it has one."""
        return getattr(self.model, "logit_bias", None)

    @property
    def starts(self) -> int:
        """The number of tokens before the first word of every text: 1 if texts have a start token, else 0."""
        return int(ends_of(self.tokenizer([""], self.context), self.text.end_token)[0])

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the "vision" tower and of the "text" tower."""
        return {"vision": self.image.parameters(), "text": self.text.parameters()}

    def drop_projections(self) -> None:
        """Remove both projections, for scorers that use neither."""
        self.model.visual.proj = self.model.text_projection = None

    def drop_text(self) -> None:
        """Remove the text tower, for scorers that read no captions."""
        for name, _ in [*self.model.named_children(), *self.model.named_parameters(recurse=False)]:
            if name not in ("visual", "logit_scale", "logit_bias"):
                setattr(self.model, name, None)

    def require_patches(self, scorer: str) -> None:
        """Raise unless the image tower is a plain ViT of open_clip, which gives all tokens."""
        visual = getattr(self.model, "visual", None)
        if not isinstance(visual, VisionTransformer) or not hasattr(self.model, "text_projection"):
            raise UserError(
                f"{scorer} needs patch tokens, which {self.architecture!r} does not give; choose a ViT such as ViT-B-16"
            )

    def require_tokens(self, scorer: str) -> None:
        """Raise unless both towers give all tokens and the text tower pools the end of the text; otherwise the end of a
        text is unknown."""
        self.require_patches(scorer)
        pool = getattr(self.model, "text_pool_type", "argmax")
        if pool not in ("argmax", "eos"):
            raise UserError(
                f"{scorer} needs to know where a text ends, which {self.architecture!r} doesn't say (it pools "
                f"{pool!r}); choose a ViT such as ViT-B-16"
            )

    def patch_sizes(self, scorer: str) -> tuple[int, int]:
        """Width and number of the patches of `ImageTower.patches`; raises unless the image tower is a plain ViT."""
        visual = getattr(self.model, "visual", None)
        if is_timm_vit(visual) and hasattr(self.model, "text_projection"):
            return visual.trunk.embed_dim, visual.trunk.patch_embed.num_patches
        self.require_patches(scorer)
        return self.image.width, self.image.n_tokens - 1


def is_timm_vit(visual: nn.Module | None) -> bool:
    """Whether an image tower is a plain ViT of timm."""
    return isinstance(visual, TimmModel) and isinstance(visual.trunk, timm_vit.VisionTransformer)


def drop_last_block(transformer: nn.Module) -> None:
    """Remove a transformer's last block, unless it is the only one."""
    if len(transformer.resblocks) > 1:
        transformer.resblocks = transformer.resblocks[:-1]


def ends_of(ids: Int64[Tensor, "m context"], end: int | None) -> Int64[Tensor, " m"]:
    """The position of the end token in each text: the first `id` or, for None, the largest id."""
    return ids.argmax(-1) if end is None else (ids == end).int().argmax(-1)


def self_attention(width: int, heads: int, layers: int, mlp_ratio: float) -> nn.Sequential:
    """Make blocks like those of the towers, each with self-attention and an MLP."""
    blocks = nn.Sequential(*(ResidualAttentionBlock(width, heads, mlp_ratio=mlp_ratio) for _ in range(layers)))
    with_fewer_copies(blocks)
    return blocks
