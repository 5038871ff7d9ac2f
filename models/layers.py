"""A scorer's layers by name: `image_features`, `text_features`, and the `slots` that texts take from images.

Those of the towers are "stem" (the input of the first block, positions added), "block 1" to the last, and "tokens" (the
last block's output; after the tower's last LayerNorm if that is applied to all tokens, and in Hugging Face's CLIP).
Then come those that the scorer adds (`Layered`), and "embedding", its only vector, if any.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.features import (
    TOKENS,
    Features,
    Layer,
    Passes,
    Places,
    TextRows,
    image_places,
    patch_grid,
    text_places,
)
from menagerie.models.towers.towers import Towers

EMBEDDING, SLOTS = "embedding", "slots"
Wanted = str | Sequence[str] | None
Images = UInt8[Tensor, "n 3 h w"] | Float[Tensor, "n 3 h w"]


class Layered(Protocol):
    """What a scorer may define to add layers to its towers'; every method is optional."""

    def image_parts(self, embedding: Tensors, tokens: Layer | None) -> dict[str, Layer]:
        """The layers of images that the scorer adds. It gets what `encode_images` gave, and the layer "tokens", which
        is None unless the tower is a plain ViT."""

    def text_parts(self, embedding: Tensors, tokens: Layer | None) -> dict[str, Layer]:
        """The layers of texts that the scorer adds, like `image_parts`."""

    def text_rows(self, texts: Tensors) -> TextRows:
        """Which rows of the text tower's output make up each text, from what `reader` gave; by default one row each."""

    def paired_slots(self, images: Tensors, texts: Tensors) -> Layer:
        """The slots that text i takes from image i, given their embeddings."""


def image_features(scorer: Scorer, images: Images, layers: Wanted = None, gradients: bool = False) -> Features:
    """The layers (n, t, d) of images, by name; all by default.

    Images are uint8, or floats as `pixel_scale` gives them. They are encoded all at once, in evaluation mode, and
    without gradients unless `gradients`. CLS comes before the patches, whose rows and columns `grid_of` gives.
    """
    with evaluation_mode(scorer, gradients):
        pixels, towers = pixels_of(scorer, images), towers_of(scorer)
        places = image_places(towers.image) if towers else None
        return features_of(scorer, "image", len(images), lambda: scorer.encode_images(pixels), layers, places)


def text_features(scorer: Scorer, texts: Texts, layers: Wanted = None, gradients: bool = False) -> Features:
    """The layers (n, t, d) of texts, by name; all by default. `present` tells tokens from padding, which is 0.

    Where the tower reads the phrases of a graph one by one, a text has the tokens of all its phrases, one phrase after
    the other.
    """
    with evaluation_mode(scorer, gradients):
        read, towers = scorer.read(texts.captions, texts.graphs), towers_of(scorer)
        rows = scorer.text_rows(read) if hasattr(scorer, "text_rows") else None
        places, count = text_places(towers.text) if towers else None, len(texts.captions)
        return features_of(scorer, "text", count, lambda: scorer.encode_texts(read), layers, places, rows)


def features_of(
    scorer: Scorer,
    side: str,
    count: int,
    encode: Callable[[], Tensors],
    layers: Wanted,
    places: Places | None,
    rows: TextRows | None = None,
) -> Features:
    """Encode `count` images or texts, and return their layers; raises for the first wanted layer that doesn't exist."""
    passes = Passes(places)
    with passes.watching():
        embedding = encode()
    found = passes.layers(count, rows)
    if hasattr(scorer, f"{side}_parts"):
        found |= getattr(scorer, f"{side}_parts")(embedding, found.get(TOKENS))
    vectors = isinstance(embedding, Tensor) and embedding.is_floating_point() and embedding.ndim == 2
    if vectors and len(embedding) == count:
        found[EMBEDDING] = Layer(embedding[:, None])
    wanted = found if layers is None else [layers] if isinstance(layers, str) else layers
    return Features({choose(f"{side} layer of {type(scorer).__name__}", name, found): found[name] for name in wanted})


def slots(scorer: Scorer, images: Images, texts: Texts, gradients: bool = False) -> Features:
    """The layer "slots" (n, q, d): the vector that each of the q phrases of text i takes from image i. `present` tells
    phrases from padding. Raises for a scorer whose texts take nothing from images."""
    if len(images) != len(texts.captions):
        raise UserError(f"{len(images)} images and {len(texts.captions)} texts; slots take as many of each")
    if not hasattr(scorer, "paired_slots"):
        raise UserError(f"in {type(scorer).__name__} texts take no slots of images; see its layers in `features`")
    with evaluation_mode(scorer, gradients):
        embedding = scorer.encode_images(pixels_of(scorer, images))
        read = scorer.encode_texts(scorer.read(texts.captions, texts.graphs))
        return Features({SLOTS: scorer.paired_slots(embedding, read)})


def image_layer_names(scorer: Scorer) -> tuple[str, ...]:
    """The names of the layers of images; encodes a black image to know them."""
    side = scorer.towers_config.resolution
    return tuple(image_features(scorer, torch.zeros(1, 3, side, side, dtype=torch.uint8)))


def text_layer_names(scorer: Scorer) -> tuple[str, ...]:
    """The names of the layers of texts; encodes a text of one word to know them."""
    word = next(iter(scorer.texts.words), "a")
    return tuple(text_features(scorer, Texts([word], [SceneGraph((word,))])))


def grid_of(scorer: Scorer) -> tuple[int, int] | None:
    """Rows and columns of the patches, which are the last rows x columns tokens, row by row; None if the image tower is
    no plain ViT."""
    towers = towers_of(scorer)
    return patch_grid(towers.image) if towers else None


def towers_of(scorer: Scorer) -> Towers | None:
    """The scorer's towers, or those of the scorer that it is built on; None without either."""
    towers, base = getattr(scorer, "towers", None), getattr(scorer, "base", None)
    return towers or (towers_of(base) if isinstance(base, Scorer) else None)


def pixels_of(scorer: Scorer, images: Images) -> Float[Tensor, "n 3 h w"]:
    """Images as the scorer encodes them; floats are taken as they are."""
    images = images.to(scorer.device)
    return images if images.is_floating_point() else scorer.pixel_scale(images)


@contextmanager
def evaluation_mode(scorer: nn.Module, gradients: bool = False) -> Iterator[None]:
    """Switch every module to evaluation mode, with or without gradients, and back to the mode that it was in."""
    modes = {module: module.training for module in scorer.modules()}
    scorer.eval()
    try:
        with torch.set_grad_enabled(gradients):
            yield
    finally:
        for module, training in modes.items():
            module.training = training
