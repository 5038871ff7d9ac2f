"""The one protocol of all models: images and texts -> similarities."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.recipe import Recipe
from menagerie.models.texts import Code, Tensors, TextReader, Texts, cut_by, mapped
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.pixels import PixelScale
from menagerie.models.towers.towers import Towers

# CLIP keeps its temperature above 0.01 (Radford et al. 2021, section 2.5).
LARGEST_LOGIT_SCALE = 100.0


class Diverged(UserError):
    """A scorer whose loss, weights or scores are no finite numbers: it was trained in vain."""


class Scorer(nn.Module, ABC):
    """Encodes images and texts apart, then compares them.

    A user's class has a dataclass of its options, `config_class`, is built with
    `(towers, texts, config)`, and keeps what it was built with in `self.config`. What more a scorer can
    do it declares in `capabilities`: "attention" (maps per phrase), "slots" (its vectors have parts that attend apart).
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    config_class: ClassVar[type]
    reader: TextReader
    """Turns texts into the scorer's input."""
    training_reader: TextReader | None = None
    """Turns the texts of training batches into input, where this differs from `reader`."""
    model: nn.Module
    """Both towers, with all of their weights; of a scorer that has taken any."""
    towers: Towers
    """What they give."""

    def __init__(self, towers: TowerConfig, texts: TextSpace, logit_scale: float = 1 / 0.07) -> None:
        super().__init__()
        self.towers_config = towers
        self.texts = texts
        self.log_scale = nn.Parameter(torch.tensor(logit_scale).log())

    def take_towers(self, towers: Towers) -> None:
        """Keep the towers, their weights as `self.model`, their context, and their pixel statistics."""
        self.towers, self.model = towers, towers.model
        self.texts = TextSpace(self.texts.words, towers.context)
        self.pixel_scale = PixelScale(towers.pixels, towers.framing)

    @torch.no_grad()
    def take_temperature(self) -> None:
        """Start at the temperature of pretrained towers: for scorers whose similarity is that of the weights."""
        if self.towers_config.pretrained and self.towers_config.load:
            self.log_scale.copy_(self.towers.temperature)

    def train(self, mode: bool = True) -> "Scorer":
        """Into training mode or out of it; a frozen scorer below (`base`) stays as it is used, so that neither
        dropout nor the statistics of batches change what it gives."""
        super().train(mode)
        base = getattr(self, "base", None)
        if isinstance(base, Scorer) and not any(parameter.requires_grad for parameter in base.parameters()):
            base.eval()
        return self

    @abstractmethod
    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Tensors:
        """The code of normalised images, one row an image."""

    @abstractmethod
    def encode_texts(self, texts: Tensors) -> Tensors:
        """The code of what the `reader` made of texts."""

    @abstractmethod
    def similarity(self, images: Tensors, texts: Tensors) -> Float[Tensor, "n m"]:
        """How well each image fits each text: within -1 and 1, unless a scorer's description says otherwise."""

    def paired(self, images: Tensors, texts: Tensors) -> Float[Tensor, " n"]:
        """How well image i fits text i. Override it where this can be computed faster than all pairs."""
        return self.similarity(images, texts).diagonal()

    def loss(self, images: Tensors, texts: Tensors, targets: Targets, recipe: Recipe) -> Float[Tensor, ""]:
        """The loss of a batch: InfoNCE over all its images and texts, unless a scorer has another loss."""
        return contrastive_loss(self.similarity(images, texts), self.logit_scale(), targets)

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the "vision" and the "text" tower; all others are trained from scratch."""
        return self.towers.parameters()

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return self.log_scale.device

    def read(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> Tensors:
        """Texts as `encode_texts` takes them, on the scorer's device; each caption needs its graph."""
        if len(captions) != len(graphs):
            raise UserError(
                f"{len(graphs)} scene graphs for {len(captions)} captions; each needs one, which "
                "`menagerie.parse(caption)` makes"
            )
        return moved(self.reader(Texts(captions, graphs)), self.device)

    def cut_texts(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool] | None:
        """Whether the reader cuts each text; None where it doesn't say so."""
        return cut_by(self.reader, Texts(captions, graphs))

    def logit_scale(self) -> Float[Tensor, ""]:
        """The learned inverse temperature of the contrastive loss."""
        return self.log_scale.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Keep the inverse temperature within CLIP's bound; called after each step."""
        self.log_scale.clamp_(max=math.log(LARGEST_LOGIT_SCALE))


def moved(code: Code, device: torch.device | str, non_blocking: bool = False) -> Code:
    """The same tensors on another device; what is no tensor stays as it is."""
    return mapped(code, lambda tensor: tensor.to(device, non_blocking=non_blocking))
