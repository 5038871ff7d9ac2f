"""CLIP's towers with another read-out of their tokens in place of CLS, end token and projections."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.models.readouts.tokens import image_tokens, text_tokens
from menagerie.models.scorers.clip.model import CLIPScorer
from menagerie.models.towers.config import TextSpace, TowerConfig


class ReadOutScorer(CLIPScorer):
    """One unit vector per image and per caption, each read out of its tower's tokens; compared by their cosine."""

    reads_tokens = True

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: Any = None) -> None:
        super().__init__(towers, texts, config)
        self.image_read_out, self.text_read_out = self.read_outs()
        self.model.visual.proj = self.model.text_projection = None  # nobody reads them

    @abstractmethod
    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """The modules that read images and texts out of `self.model`, by `self.config`."""

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        return self.image_read_out(image_tokens(self.model, pixels))

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(text_tokens(self.model, texts))
