"""CLIP (Radford et al. 2021) on towers of open_clip or Hugging Face, and variants that pool tokens in other ways.

SigLIP (Zhai et al. 2023): CLIP's or SigLIP's towers, trained by a sigmoid for every pair in place of two softmaxes.

SigLIP's towers are open_clip's (`--architecture ViT-B-16-SigLIP`): they have a tokenizer that pads to 64 tokens, an
image tower without CLS, and a text tower without causal mask that pools its last position, padding or not. Code
that reads their tokens one by one must mask the padding itself.

Where we differ from open_clip:

- Temperature and bias start at the paper's 10 and -10. open_clip's SigLIP configurations set only the bias; the
  temperature stays at 1 / 0.07 unless its training script is run with `--siglip`.
- open_clip loads weights without a bias (CLIP's) with a bias of 0, at which a pair is positive with probability 1/2
  before training, and keeps their temperature; we start at the bias and temperature of the options.
- The inverse temperature may fall below 1.

A classifier of animals as a scorer: CLIP's image tower, supervised by classes in place of captions.

The image's vector is compared with a learned vector for each class, and the loss is the cross-entropy of a softmax over
all classes, scaled by CLIP's learned temperature: a linear classifier without bias, of unit vectors. An image whose
caption names several animals has them as targets in equal shares (Mahajan et al. 2018, Exploring the limits of weakly
supervised pretraining, section 2.3). So the classifier differs from CLIP in its supervision alone: the textures, places
and word order of captions never reach it.

The score of a text is the mean cosine over the classes that it names, and 0 for a text that names none.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.envs.world import ANIMALS
from menagerie.generators.captions.phrases import plural
from menagerie.models.objectives import Targets, cross_entropy, sigmoid_loss
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.clip import ClassifierConfig, CLIPConfig, SigLIPConfig
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer
from menagerie.models.towers.hugging_face import TextInput, load_hugging_face
from menagerie.models.towers.tokenizers import Tokenizer, cut_texts


@dataclass(frozen=True)
class CaptionReader:
    """Reads captions as token ids, and ignores graphs."""

    tokenizer: Tokenizer
    context: int

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> Int64[Tensor, "m context"]:
        """Token ids of every caption."""
        return self.tokenizer(texts.captions, self.context)

    def cut(self, texts: Texts) -> list[bool]:
        """Whether each caption is longer than the context."""
        return cut_texts(self.tokenizer, texts.captions, self.context)


class CLIPScorer(Scorer):
    """The scorer CLIP: one vector per image and one per caption, compared by their cosine."""

    config_class = CLIPConfig
    sharing = Sharing()
    needs: ClassVar[Literal["", "patches", "tokens"]] = ""
    """Tokens required from the towers besides vectors: of images ("patches"), or of texts too ("tokens")."""

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: CLIPConfig | None = None) -> None:
        config = config or self.config_class()
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        if self.needs == "patches":
            built.require_patches(type(self).__name__)
        elif self.needs == "tokens":
            built.require_tokens(type(self).__name__)
        self.take_towers(built)
        if config.logit_scale == self.config_class().logit_scale:
            self.take_temperature()
        self.reader = CaptionReader(built.tokenizer, built.context)

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images."""
        return F.normalize(self.towers.image.pool(pixels), dim=-1)

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return F.normalize(self.towers.text.pool(texts), dim=-1)

    def similarity(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
        return images @ texts.T


class EmbeddedScorer(CLIPScorer):
    """CLIP whose embeddings may be tuples, for use in the loss: their vectors are in `vectors`."""

    def vectors_of(self, embedding: Tensors) -> Float[Tensor, "n d"]:
        """The unit vectors that are compared."""
        return embedding if isinstance(embedding, Tensor) else embedding.vectors

    def similarity(self, images: Tensors, texts: Tensors) -> Float[Tensor, "n m"]:
        return self.vectors_of(images) @ self.vectors_of(texts).T

    def pair_similarity(self, images: Tensors, texts: Tensors) -> Float[Tensor, " n"]:
        return (self.vectors_of(images) * self.vectors_of(texts)).sum(-1)


@dataclass(frozen=True)
class HuggingFaceConfig:
    """Options of a scorer from Hugging Face; there are none."""


class HuggingFaceScorer(CLIPScorer):
    """CLIP or SigLIP of Hugging Face's transformers, from a folder or the hub."""

    config_class = HuggingFaceConfig

    def __init__(self, name: str) -> None:
        built, reader = load_hugging_face(name)
        Scorer.__init__(self, TowerConfig("", name, built.framing.resolution), TextSpace((), built.context))
        self.config, self.reader = HuggingFaceConfig(), reader
        self.take_towers(built)
        self.take_temperature()

    def encode_texts(self, texts: TextInput) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return F.normalize(self.towers.text.pool(texts), dim=-1)


class AverageScorer(CLIPScorer):
    """CLIP with global average pooling: an image's vector is the mean of all its tokens, not the CLS token; texts are
    as in CLIP.

    As in SPARO's tables (Vani et al. 2024) and its fork of open_clip, the mean is over CLS and patches, then come the
    tower's LayerNorm and projection. open_clip's `pool_type: avg` differs: LayerNorm first, and no CLS.
    """

    needs = "patches"

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images."""
        tower = self.towers.image
        mean = tower.tokens(pixels, normed=False).states.mean(dim=1)
        return F.normalize(tower.project(tower.norm(mean)), dim=-1)


class ReadOutScorer(CLIPScorer):
    """CLIP with learned read-outs in place of the towers' projections of CLS and end token. A read-out turns tokens
    into one unit vector per image or caption."""

    needs = "tokens"

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: Any = None) -> None:
        super().__init__(towers, texts, config)
        self.image_read_out, self.text_read_out = self.read_outs()
        self.towers.drop_projections()

    @abstractmethod
    def read_outs(self) -> tuple[nn.Module, nn.Module]:
        """Make the modules that turn image tokens and text tokens into vectors, by `self.config`."""

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images."""
        return self.image_read_out(self.towers.image.tokens(pixels))

    def encode_texts(self, texts: Int64[Tensor, "m context"]) -> Float[Tensor, "m d"]:
        """Unit vectors of the captions."""
        return self.text_read_out(self.towers.text.tokens(texts))


class SigLIPScorer(CLIPScorer):
    """The scorer SigLIP: the cosine of a vector per image and one per caption. Its loss judges each pair by itself."""

    config_class = SigLIPConfig
    sharing = Sharing()

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: SigLIPConfig) -> None:
        super().__init__(towers, texts, config)
        start, pretrained = 0.0, self.towers.bias
        if pretrained is not None:
            pretrained.requires_grad_(False)  # the scorer has a bias of its own
            if towers.pretrained and towers.load:
                start = pretrained.item()  # 0 for weights without a bias
        if not start:  # then the temperature was trained for another loss
            self.log_scale.data.fill_(math.log(config.logit_scale))
        self.bias = nn.Parameter(torch.tensor(start or config.logit_bias))

    def loss(self, images: Float[Tensor, "n d"], texts: Float[Tensor, "m d"], targets: Targets) -> Float[Tensor, ""]:
        """The sum over all pairs by the number of images; texts of no image are negatives of all, unless masked."""
        logits = self.logit_scale() * self.similarity(images, texts) + self.bias
        return sigmoid_loss(logits, targets.same, targets.masked, targets.images)


class ClassShares(NamedTuple):
    """The classes that m texts name. It is a tuple, because a tensor would be taken for vectors and averaged."""

    shares: Float[Tensor, "m classes"]
    """Equal shares that sum to 1; all 0 for a text that names no class."""


@dataclass(frozen=True)
class ClassReader:
    """Reads which classes a graph's nodes name, in the singular or the plural; nodes such as "no cat" don't count."""

    animals: tuple[str, ...]
    needed: bool = False
    """Whether each text of an image must name a class, as in training, where a text without one trains nothing."""

    def __call__(self, texts: Texts, generator: torch.Generator | None = None) -> ClassShares:
        """Return the classes of every text. If they are `needed`, raise `UserError` for an image's text without one."""
        named = [self.classes_in(graph.nodes) for graph in texts.graphs]
        for caption, numbers in zip(texts.captions[: texts.matched], named, strict=False):
            if self.needed and not numbers:
                raise UserError(
                    f"the classifier can't train on {caption!r}, which names none of its classes "
                    f"({', '.join(self.animals[:4])}, …); name those of your data in --classifier.animals"
                )
        shares = torch.zeros(len(named), len(self.animals))
        for row, numbers in zip(shares, named, strict=True):
            row[list(numbers)] = 1 / max(1, len(numbers))
        return ClassShares(shares)

    def classes_in(self, nodes: Sequence[str]) -> set[int]:
        """Return the numbers of the classes with which the nodes end, as "two red cats" ends with "cat": for each node
        the longest name that fits."""
        found = set()
        for node in nodes:
            fits = [name for name in self.animals if f" {node}".endswith((f" {name}", f" {plural(name)}"))]
            if fits and not node.startswith("no "):
                found.add(self.animals.index(max(fits, key=len)))
        return found


class ClassifierScorer(Scorer):
    """The classifier: a unit vector for an image, compared with one for each class."""

    config_class = ClassifierConfig
    sharing = Sharing("tower")  # it has no text tower: each process reads all texts

    def __init__(self, towers: TowerConfig, texts: TextSpace, config: ClassifierConfig) -> None:
        super().__init__(towers, texts, config.logit_scale)
        self.config = config
        built = build_towers(towers, texts)
        self.take_towers(built)
        built.drop_text()
        animals = config.animals or ANIMALS
        self.reader, self.training_reader = ClassReader(animals), ClassReader(animals, needed=True)
        side = built.framing.resolution
        with torch.no_grad():
            width = built.image.pool(torch.zeros(1, 3, side, side)).shape[1]
        self.classes = nn.Parameter(torch.randn(len(animals), width))

    def encode_images(self, pixels: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n d"]:
        """Unit vectors of the images, as CLIP's."""
        return F.normalize(self.towers.image.pool(pixels), dim=-1)

    def encode_texts(self, texts: ClassShares) -> ClassShares:
        """Return the classes unchanged."""
        return texts

    def cosines(self, images: Float[Tensor, "n d"]) -> Float[Tensor, "n classes"]:
        """The cosine of every image with every class."""
        return images @ F.normalize(self.classes, dim=-1).T

    def similarity(self, images: Float[Tensor, "n d"], texts: ClassShares) -> Float[Tensor, "n m"]:
        """The mean cosine of every image over the classes that each text names; 0 for a text that names none."""
        return self.cosines(images) @ texts.shares.T

    def loss(self, images: Float[Tensor, "n d"], texts: ClassShares, targets: Targets) -> Float[Tensor, ""]:
        """The mean cross-entropy over images. Other images, and texts that belong to no image, aren't negatives."""
        logits = self.logit_scale() * self.cosines(images)
        return cross_entropy(logits, texts.shares[targets.rows]) * targets.portion

    def image_parts(self, embedding: Float[Tensor, "n d"], tokens: Layer | None) -> dict[str, Layer]:
        """The cosine with every class (n, 1, classes)."""
        return {"classes": Layer(self.cosines(embedding)[:, None])}

    def text_parts(self, embedding: ClassShares, tokens: Layer | None) -> dict[str, Layer]:
        """The share of every class (m, 1, classes)."""
        return {"classes": Layer(embedding.shares[:, None])}

    def backbones(self) -> dict[str, list[nn.Parameter]]:
        """The parameters of the image tower; there is no text tower."""
        return {"vision": self.towers.image.parameters(), "text": []}
