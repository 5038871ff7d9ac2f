"""CLIP (Radford et al. 2021) from open_clip's own classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.scorer import Scorer, tower_parameters
from menagerie.models.scorers.clip.spec import CLIPConfig
from menagerie.models.towers.build import build_towers, unpooled_tokens
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts

# The tokens of the last block, CLS first, and the image tower -> one vector an image.
ImageReadOut = Callable[[Float[Tensor, "n tokens width"], nn.Module], Float[Tensor, "n d"]]


@dataclass(frozen=True)
class CaptionReader:
    """Captions to token ids; the graphs are not read."""

    tokenizer: Tokenizer
    context: int

    def __call__(
        self,
        captions: Sequence[str],
        graphs: Sequence[SceneGraph],
        generator: torch.Generator | None = None,
        own: int | None = None,
    ) -> Int64[Tensor, "m context"]:
        """Token ids of every caption."""
        return self.tokenizer(captions, self.context)

    def cut(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool]:
        """Whether each caption is longer than the context."""
        return cut_texts(self.tokenizer, captions, self.context)


class CLIPScorer(Scorer):
    """One vector per image, one per caption, compared by their cosine.

    `image_read_out` makes the image's vector of the tower's tokens; without one it is the tower's own.
    """

    config_class = CLIPConfig
    reads_tokens: ClassVar[bool] = False
    """Whether it needs more of the towers than their own vectors."""

    def __init__(
        self,
        towers: TowerConfig,
        texts: TextSpace,
        config: CLIPConfig | None = None,
        image_read_out: ImageReadOut | None = None,
    ) -> None:
        config = config or self.config_class()
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        if self.reads_tokens:
            built.require_tokens(type(self).__name__)
        elif image_read_out:
            built.require_patches(type(self).__name__)
        self.take_towers(built)
        if config.logit_scale == self.config_class().logit_scale:
            self.take_temperature()
        self.image_read_out = image_read_out
        self.reader = CaptionReader(built.tokenizer, built.context)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        if self.image_read_out is None:
            return F.normalize(self.model.encode_image(pixels), dim=-1)
        visual = self.model.visual
        return F.normalize(self.image_read_out(unpooled_tokens(visual, pixels), visual), dim=-1)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return F.normalize(self.model.encode_text(texts), dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        """Cosine."""
        return images @ texts.T

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """All of CLIP is its two towers."""
        return tower_parameters(self.model)
