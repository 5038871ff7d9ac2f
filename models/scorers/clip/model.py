"""CLIP (Radford et al. 2021) from open_clip's own classes."""

from collections.abc import Sequence
from dataclasses import replace

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from generators.captions.graph import SceneGraph
from models.scorer import Scorer, drop_own_temperature, tower_parameters
from models.scorers.clip.spec import CLIPConfig
from models.towers.build import build_towers
from models.towers.config import TowerConfig


class CLIPScorer(Scorer):
    """One vector per image, one per caption, compared by their cosine."""

    config_class = CLIPConfig

    def __init__(self, towers: TowerConfig, words: tuple[str, ...], config: CLIPConfig | None = None) -> None:
        config = config or CLIPConfig()
        super().__init__(towers, words, config.logit_scale)
        model, self.tokenizer = build_towers(towers, words, config.context)
        self.model = drop_own_temperature(model)
        # Pretrained text towers bring their own context: what a checkpoint needs to know.
        self.config = replace(config, context=model.context_length)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors."""
        return F.normalize(self.model.encode_image(pixels), dim=-1)

    def encode_texts(self, captions: Sequence[str], graphs: Sequence[SceneGraph]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions; the graphs are not read."""
        tokens = self.tokenizer(captions, self.config.context).to(self.log_scale.device)
        return F.normalize(self.model.encode_text(tokens), dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        """Cosine."""
        return images @ texts.T

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """All of CLIP is its two towers."""
        return tower_parameters(self.model)
