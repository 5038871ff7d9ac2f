"""The one protocol of all models: images x texts -> a similarity matrix."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from generators.captions.graph import SceneGraph
from models.towers.config import TowerConfig

# CLIP keeps its temperature above 0.01 (Radford et al. 2021, section 2.5).
LARGEST_LOGIT_SCALE = 100.0


class Scorer(nn.Module, ABC):
    """Encodes images and texts apart, then compares all with all.

    What more a scorer can do it declares in `capabilities`, and a study asks for it by name:
    "perturbed_graphs" (the local relation loss), "attention" (maps per phrase). Its own options
    are a dataclass, `config_class`.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    config_class: ClassVar[type]

    def __init__(self, towers: TowerConfig, words: tuple[str, ...], logit_scale: float) -> None:
        super().__init__()
        self.towers_config = towers
        self.words = words
        self.log_scale = nn.Parameter(torch.tensor(logit_scale).log())

    @abstractmethod
    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Any:
        """The scorer's own code of normalised images."""

    @abstractmethod
    def encode_texts(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> Any:
        """The scorer's own code of texts, given both as captions and as scene graphs."""

    @abstractmethod
    def similarity(self, images: Any, texts: Any) -> Float[Tensor, "n m"]:
        """How well each image fits each text; within -1 and 1."""

    @abstractmethod
    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the "vision" and the "text" tower; all others are the scorer's own."""

    def logit_scale(self) -> Float[Tensor, ""]:
        """The learned inverse temperature of the contrastive loss."""
        return self.log_scale.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Keep the inverse temperature within CLIP's bound; called after each step."""
        self.log_scale.clamp_(max=math.log(LARGEST_LOGIT_SCALE))


def tower_parameters(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The parameters of an open_clip model by tower, but for its own temperature."""
    named = [(name, parameter) for name, parameter in model.named_parameters() if name != "logit_scale"]
    return {
        "vision": [parameter for name, parameter in named if name.startswith("visual.")],
        "text": [parameter for name, parameter in named if not name.startswith("visual.")],
    }


def drop_own_temperature(model: nn.Module) -> nn.Module:
    """Freeze open_clip's temperature: every scorer here has its own, in one place."""
    model.logit_scale.requires_grad_(False)
    return model
