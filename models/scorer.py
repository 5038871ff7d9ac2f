"""The protocol of all models: from images and texts to similarities."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.objectives import Targets, contrastive_loss
from menagerie.models.texts import Embedding, Tensors, TextReader, Texts, find_cut_texts, map_tensors
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.preparation import PixelScale
from menagerie.models.towers.towers import Towers

# CLIP limits its inverse temperature to 100 (Radford et al. 2021, section 2.5).
LARGEST_LOGIT_SCALE = 100.0


class Diverged(UserError):
    """Raised when the loss, the weights or the scores of a scorer aren't finite: its training failed."""


class Sharing(NamedTuple):
    """How several processes take a training step together (docs/training.md)."""

    texts: Literal["rows", "tower"] = "rows"
    """What each process encodes a share of. "rows": the rows of the reader's tensors; these and the tensors of the
    texts' embedding must have a row for each text. "tower": the rows that `TextTower.pool` encodes."""
    images: Literal["block", "gathered"] = "block"
    """Which images' embeddings the loss gets. "block": those of the process's own images, with `targets.block`; the
    loss must then return its share of the batch's loss. "gathered": those of the whole batch, as in one process."""


class Scorer(nn.Module, ABC):
    """Encodes images and texts separately, then compares them.

    A user's class sets `config_class` to a dataclass of its options, is built with `(towers, texts, config)`, and keeps
    the config in `self.config`. `capabilities` declares further abilities: "attention" (maps per phrase), "slots"
    (vectors made of parts with separate attention). See `menagerie.models.layers` for layers of its own.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    config_class: ClassVar[type]
    references: ClassVar[int] = 0
    """Number of training images that the scorer keeps (`keep_references`)."""
    sharing: Sharing | None = None
    """How several processes share the scorer's steps; None if they can't. A user's class must set it itself, because an
    inherited value may not fit its own loss or reader."""
    reader: TextReader
    """Turns texts into the scorer's input."""
    training_reader: TextReader | None = None
    """Turns texts of training batches into input, if that differs from `reader`."""
    model: nn.Module
    """Both towers, with all of their weights; set by `take_towers`."""
    towers: Towers
    """Interface to the towers' tokens and vectors; set by `take_towers`."""

    def __init__(self, towers: TowerConfig, texts: TextSpace, logit_scale: float = 1 / 0.07) -> None:
        super().__init__()
        self.towers_config = towers
        self.texts = texts
        self.log_scale = nn.Parameter(torch.tensor(logit_scale).log())

    def take_towers(self, towers: Towers) -> None:
        """Keep the towers: their weights as `self.model`, their context length, and their pixel statistics."""
        self.towers, self.model = towers, towers.model
        self.texts = TextSpace(self.texts.words, towers.context)
        self.pixel_scale = PixelScale(towers.pixels, towers.framing)

    @torch.no_grad()
    def take_temperature(self) -> None:
        """Start at the temperature of pretrained towers, if their weights are loaded. For scorers that keep the
        similarity for which the towers were trained."""
        if self.towers_config.pretrained and self.towers_config.load:
            self.log_scale.copy_(self.towers.temperature)

    def train(self, mode: bool = True) -> "Scorer":
        """Switch training mode on or off. A frozen `base`, on which the scorer is built, always stays in evaluation
        mode, so that neither dropout nor batch statistics change its embeddings."""
        super().train(mode)
        base = getattr(self, "base", None)
        if isinstance(base, Scorer) and not any(parameter.requires_grad for parameter in base.parameters()):
            base.eval()
        return self

    @abstractmethod
    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Tensors:
        """Encode normalised images; usually the embedding has one row per image."""

    @abstractmethod
    def encode_texts(self, texts: Tensors) -> Tensors:
        """Encode texts, given as the output of `reader`."""

    @abstractmethod
    def similarity(self, images: Tensors, texts: Tensors) -> Float[Tensor, "n m"]:
        """The score of each image with each text: between -1 and 1, unless the scorer's description says otherwise."""

    @property
    def match_level(self) -> float | None:
        """The score above which the scorer says that a text is true of an image; None if scores only compare."""
        return None

    @property
    def pairs_only(self) -> bool:
        """Whether every score needs a pass through a network that reads an image and a text together. The tensors in
        such a scorer's embeddings must have a row for each image or text."""
        return False

    def vectors_of(self, embedding: Tensors) -> Float[Tensor, "n d"] | None:
        """The vector of each image or text; None if there is none, or if `pairs_only`. Token ids aren't vectors."""
        vectors = isinstance(embedding, Tensor) and embedding.ndim == 2 and embedding.is_floating_point()
        return embedding if vectors and not self.pairs_only else None

    def keep_references(self, images: UInt8[Tensor, "r 3 h w"]) -> None:
        """Keep `references` training images that scores need; called before the first step of a training."""

    def pair_similarity(self, images: Tensors, texts: Tensors) -> Float[Tensor, " n"]:
        """The score of image i with text i. Override it if you can compute this faster than the scores of all pairs."""
        return self.similarity(images, texts).diagonal()

    def loss(self, images: Tensors, texts: Tensors, targets: Targets) -> Float[Tensor, ""]:
        """The loss of a batch; by default InfoNCE over all its images and texts."""
        return contrastive_loss(self.similarity(images, texts), self.logit_scale(), targets)

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the "vision" and the "text" tower, for which recipes may have other learning rates."""
        return self.towers.parameters()

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return self.log_scale.device

    def read(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> Tensors:
        """Turn texts into the input of `encode_texts`, on the scorer's device; each caption needs its graph."""
        if len(captions) != len(graphs):
            raise UserError(
                f"{len(graphs)} scene graphs for {len(captions)} captions; each needs one, which "
                "`menagerie.parse(caption)` makes"
            )
        return to_device(self.reader(Texts(captions, graphs)), self.device)

    def cut_texts(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> list[bool] | None:
        """For each text, whether the reader cuts it; None if the reader can't tell."""
        return find_cut_texts(self.reader, Texts(captions, graphs))

    def logit_scale(self) -> Float[Tensor, ""]:
        """The learned inverse temperature of the contrastive loss."""
        return self.log_scale.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Limit the inverse temperature to CLIP's bound; called after each step."""
        self.log_scale.clamp_(max=math.log(LARGEST_LOGIT_SCALE))


def to_device(embedding: Embedding, device: torch.device | str, non_blocking: bool = False) -> Embedding:
    """Move all tensors in an embedding to a device; other parts stay the same."""
    return map_tensors(embedding, lambda tensor: tensor.to(device, non_blocking=non_blocking))
