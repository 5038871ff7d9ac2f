"""A scorer for notebooks: takes plain images and captions, gives scores and embeddings."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.rules import parse
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.trained_on import Overlap, Training, measure_overlap
from menagerie.models.evaluation.scoring import encode_pixels
from menagerie.models.layers import grid_of, image_features, image_layer_names, slots, text_features, text_layer_names
from menagerie.models.library.pictures import frame_images, framing_for
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.features import Features, concatenate_features
from menagerie.models.towers.preparation import Framing

BLOCK = 32  # images or captions encoded at once
NO_GRAPH = SceneGraph(())


class LoadedScorer:
    """A scorer with everything needed to read plain images and captions. Made by `load_scorer`.

    Images are paths, PIL images, uint8 arrays (h, w, 3) or uint8 tensors (3, h, w), one or several, of any size. Scores
    and embeddings are float32 on the CPU, without gradients.
    """

    def __init__(self, name: str, scorer: Scorer, reads: Sequence[str] = ("captions",), world: str = "") -> None:
        self.name, self.scorer, self.world = name, scorer.eval(), world
        self.training: Callable[[], Training] = Training.nowhere
        """Returns what the scorer's training had."""
        self.needs_graphs = "graphs" in reads

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}: {type(self.scorer).__name__} of {self.framing.resolution} px)"

    @property
    def framing(self) -> Framing:
        """How pictures are cropped and scaled for the scorer."""
        return framing_for(self.scorer)

    def trained_on(self, test: SplitDataset) -> Overlap:
        """What the scorer's training had of a subset of a split: `counts` of compositions, pairs, arrangements, texts
        and images, each with how many the subset has. Of an unknown training there are none, and `training` says so."""
        return measure_overlap(self.training(), test.split, test.subset)

    def score(
        self, images: Any, captions: str | Sequence[str], graphs: Sequence[SceneGraph | None] | None = None
    ) -> Float[Tensor, "b m"]:
        """The score of each of b images with each of m captions: between -1 and 1, except for a scorer such as DCSM,
        whose scores are unbounded.

        A scorer that reads scene graphs takes `graphs`, one per caption, or parses the captions (`menagerie.parse`).
        """
        texts = list(map(self._text_embedding, self._blocks(captions, graphs)))
        with torch.no_grad():
            rows = ([self.scorer.similarity(image, text) for text in texts] for image in self._image_embeddings(images))
            return torch.cat([torch.cat([part.float().cpu() for part in row], dim=1) for row in rows])

    def score_pairs(
        self, images: Any, captions: Sequence[str], graphs: Sequence[SceneGraph | None] | None = None
    ) -> Float[Tensor, " n"]:
        """The score of image i with caption i."""
        pixels, blocks = self._pair_blocks(images, captions, graphs)
        with torch.no_grad():
            embeddings = map(partial(encode_pixels, self.scorer), pixels), map(self._text_embedding, blocks)
            pairs = zip(*embeddings, strict=True)
            return torch.cat([self.scorer.pair_similarity(*pair).float().cpu() for pair in pairs])

    def embed(
        self,
        images: Any = None,
        captions: str | Sequence[str] | None = None,
        graphs: Sequence[SceneGraph | None] | None = None,
    ) -> Float[Tensor, "n d"]:
        """A vector for each image, or for each caption; raises if the scorer has no vectors. CLIP's have length 1."""
        if (images is None) == (captions is None):
            raise UserError("embed takes either images=... or captions=...")
        if images is not None:
            return self._vectors("image", list(self._image_embeddings(images)))
        return self._vectors("caption", list(map(self._text_embedding, self._blocks(captions, graphs))))

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers that `features` gives, in order."""
        return image_layer_names(self.scorer)

    @property
    def text_layers(self) -> tuple[str, ...]:
        """The names of the layers that `text_features` gives, in order."""
        return text_layer_names(self.scorer)

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of an image's patches: the last rows x columns tokens of its layers, row by row."""
        return grid_of(self.scorer)

    def features(self, images: Any, layers: str | Sequence[str] | None = None) -> Features:
        """A tensor (n, t, d) for each layer of the images, by its name; raises for a name that isn't in `layers`."""
        blocks = frame_images(images, self.framing).split(BLOCK)
        return concatenate_features([image_features(self.scorer, block, layers) for block in blocks])

    def text_features(
        self,
        captions: str | Sequence[str],
        layers: str | Sequence[str] | None = None,
        graphs: Sequence[SceneGraph | None] | None = None,
    ) -> Features:
        """A tensor (m, t, d) for each layer of the captions, by its name; padding is 0, `present[name]` (m, t) tells
        it from tokens. Raises for a name that isn't in `text_layers`."""
        blocks = self._blocks(captions, graphs)
        return concatenate_features([text_features(self.scorer, block, layers) for block in blocks])

    def slots(
        self, images: Any, captions: Sequence[str], graphs: Sequence[SceneGraph | None] | None = None
    ) -> Features:
        """The layer "slots" (n, q, d): what each phrase of caption i takes from image i; raises for a scorer in which
        texts take nothing from images."""
        pixels, blocks = self._pair_blocks(images, captions, graphs)
        return concatenate_features([slots(self.scorer, *pair) for pair in zip(pixels, blocks, strict=True)])

    def _pair_blocks(
        self, images: Any, captions: Sequence[str], graphs: Sequence[SceneGraph | None] | None
    ) -> tuple[Sequence[Tensor], list[Texts]]:
        """Divide images and captions into blocks; raises if there aren't equally many."""
        pixels = frame_images(images, self.framing)
        blocks = self._blocks(captions, graphs, calls=4)
        if (n := sum(len(block.captions) for block in blocks)) != len(pixels):
            raise UserError(f"{len(pixels)} images and {n} captions; pairs take as many of each")
        return pixels.split(BLOCK), blocks

    def _vectors(self, what: str, embeddings: list[Tensors]) -> Float[Tensor, "n d"]:
        vectors = [vector for embedding in embeddings if (vector := self.scorer.vectors_of(embedding)) is not None]
        if len(vectors) < len(embeddings):
            pairs = "it reads a text together with an image"
            how = pairs if self.scorer.pairs_only else "it compares parts of images with parts of texts"
            raise UserError(f"{type(self.scorer).__name__} has no single vector for each {what}: {how}; use score")
        return torch.cat([vector.detach().float().cpu() for vector in vectors])

    def _image_embeddings(self, images: Any) -> Iterator[Tensors]:
        return (encode_pixels(self.scorer, pixels) for pixels in frame_images(images, self.framing).split(BLOCK))

    @torch.no_grad()
    def _text_embedding(self, block: Texts) -> Tensors:
        return self.scorer.encode_texts(self.scorer.read(block.captions, block.graphs))

    def _blocks(
        self, captions: str | Sequence[str], graphs: Sequence[SceneGraph | None] | None, calls: int = 3
    ) -> list[Texts]:
        """Check captions and graphs, and divide them into blocks. Warn of cut captions; `calls` is the stacklevel."""
        texts = caption_list(captions)
        wanted = self._graphs(texts, graphs)
        if count := sum(self.scorer.cut_texts(texts, wanted) or ()):
            warnings.warn(
                f"{count} of {len(texts)} captions are longer than the {self.scorer.texts.context} tokens that "
                f"{self.name} reads; what is behind these has no part in scores",
                stacklevel=calls,
            )
        return [Texts(texts[k : k + BLOCK], wanted[k : k + BLOCK]) for k in range(0, len(texts), BLOCK)]

    def _graphs(self, captions: list[str], graphs: Sequence[SceneGraph | None] | None) -> list[SceneGraph]:
        if graphs is None:
            return [parse(caption, self.world) if self.needs_graphs else NO_GRAPH for caption in captions]
        given = [graphs] if isinstance(graphs, SceneGraph) else list(graphs)
        if len(given) != len(captions):
            raise UserError(
                f"{len(given)} scene graphs for {len(captions)} captions; give one for each, or none at all"
            )
        if None in given:
            raise UserError(f"{captions[given.index(None)]!r} has no scene graph; `menagerie.parse(caption)` makes one")
        return given


def caption_list(captions: str | Sequence[str]) -> list[str]:
    """Captions as a list; raises if there are none, or if one has no word."""
    texts = [captions] if isinstance(captions, str) else list(captions)
    if not texts:
        raise UserError("no captions; give one or several")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise UserError(f"{text!r} is no caption; give texts of at least one word")
    return texts
