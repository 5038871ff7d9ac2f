"""CLIP that is given the scene graph of a caption: the text's vector is the sum of those of its phrases.

A control: OC-CLIP reads graphs and CLIP captions, so a lead of OC-CLIP could be that of the graph. This one knows as
much of the text as OC-CLIP does (each node, and each edge with its two nodes, is a phrase of its own, which CLIP's text
tower encodes), and nothing else of OC-CLIP: the image is one vector, compared with one vector by its cosine.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from menagerie.models.scorers.clip.model import CLIPScorer
from menagerie.models.scorers.clip.spec import CLIPConfig
from menagerie.models.scorers.clip_phrases.reader import PhraseBatch, PhraseReader
from menagerie.models.towers.config import TextSpace, TowerConfig


class PhraseSumScorer(CLIPScorer):
    """One vector per image, and one per graph: the sum of its phrases' unit vectors, at length 1."""

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig | None = None) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhraseReader(self.reader.tokenizer, self.reader.context)

    def encode_texts(self, texts: PhraseBatch) -> Float[Tensor, "m d"]:
        """Unit vectors of the graphs; distinct phrases are encoded once each."""
        phrases = F.normalize(self.model.encode_text(texts.tokens), dim=-1)
        return F.normalize((phrases[texts.number] * texts.present[..., None]).sum(1), dim=-1)

    def paired(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Cosine of image i and graph i."""
        return (images * texts).sum(-1)
