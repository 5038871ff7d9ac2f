"""A classifier of animals as a scorer: CLIP's image tower, supervised by classes in place of captions.

The image's vector is compared with a learned vector for each class, and the loss is the cross-entropy of a softmax over
all classes, scaled by CLIP's learned temperature: a linear classifier without bias, of unit vectors. An image whose
caption names several animals has them as targets in equal shares (Mahajan et al. 2018, Exploring the limits of weakly
supervised pretraining, section 2.3). So the classifier differs from CLIP in its supervision alone: the textures, places
and word order of captions never reach it.

The score of a text is the mean cosine over the classes that it names, and 0 for a text that names none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.envs.world import ANIMALS
from menagerie.generators.captions.phrases import plural
from menagerie.models.objectives import Targets, cross_entropy
from menagerie.models.scorer import Scorer, Sharing
from menagerie.models.scorers.clip import ClassifierConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Layer


class ClassShares(NamedTuple):
    """The classes that m texts name. It is a tuple, because a tensor would be taken for vectors and averaged."""

    shares: Float[Tensor, "m classes"]
    """Equal shares that sum to 1; all 0 for a text that names no class."""


@dataclass(frozen=True)
class ClassReader:
    """Reads which classes the nodes of a text's graph name, in the singular or the plural. Nodes such as "no cat" don't
    count."""

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
