"""Late interaction between the phrases of a scene graph and the patches of an image (after FILIP, Yao et al. 2022).

A control: it has the graph that OC-CLIP reads and looks at patches as OC-CLIP does, but no queries compete: each phrase
takes the patch that fits it best, whatever the others take. Where it differs from FILIP:

- Phrases in place of tokens: each node, and each edge with its two nodes, is a text of its own for CLIP's text tower.
- One similarity, the mean over phrases of the best patch, in place of one for either direction: FILIP's other one, the
  mean over patches of the best token, asks that each patch be described.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from menagerie.models.readouts.tokens import image_tokens
from menagerie.models.scorers.clip.model import CLIPScorer
from menagerie.models.scorers.clip.spec import CLIPConfig
from menagerie.models.scorers.clip_phrases.reader import PhraseBatch, PhraseReader, mean_over_phrases
from menagerie.models.towers.config import TextSpace, TowerConfig


class TextCode(NamedTuple):
    """Unit vectors of the distinct phrases, and the graphs that have them."""

    vectors: Float[Tensor, "u d"]
    phrases: PhraseBatch


class PhraseInteractionScorer(CLIPScorer):
    """The mean over a graph's phrases of the cosine with the patch that fits each best."""

    reads_tokens = True

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig | None = None) -> None:
        super().__init__(towers, texts, config)
        self.reader = PhraseReader(self.reader.tokenizer, self.reader.context)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n p d"]:
        """Unit vectors of the patches, by the image tower's own LayerNorm and projection; CLS is no patch."""
        return F.normalize(image_tokens(self.model, pixels).states[:, 1:] @ self.model.visual.proj, dim=-1)

    def encode_texts(self, texts: PhraseBatch) -> TextCode:
        """Distinct phrases encoded once each."""
        return TextCode(F.normalize(self.model.encode_text(texts.tokens), dim=-1), texts)

    def similarity(self, images: Float[Tensor, "n p d"], texts: TextCode) -> Float[Tensor, "n m"]:
        """All pairs; each distinct phrase meets each image once."""
        best = torch.einsum("npd,ud->nup", images, texts.vectors).amax(-1)
        return mean_over_phrases(best[:, texts.phrases.number], texts.phrases.present)

    def paired(self, images: Float[Tensor, "n p d"], texts: TextCode) -> Float[Tensor, " n"]:
        """Image i and graph i."""
        own = texts.vectors[texts.phrases.number]
        return mean_over_phrases((own @ images.transpose(1, 2)).amax(-1), texts.phrases.present)
