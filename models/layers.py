"""A scorer's layers by name: `features` of images, `text_features` of texts, and the `slots` that texts take from
images."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.texts import Tensors, Texts
from menagerie.models.towers.features import TOKENS, Features, Layer, Passes, TextRows
from menagerie.models.towers.places import Places, image_places, patch_grid, text_places
from menagerie.models.towers.towers import Towers

EMBEDDING, SLOTS = "embedding", "slots"
Wanted = str | Sequence[str] | None
Parts = dict[str, Layer]
PUBLIC = {"features", "text_features", "slots", "layers", "text_layers", "grid"}


class NamedLayers(nn.Module):
    """The part of a scorer that gives its layers by name, in the order in which they are computed.

    Those of the towers are "stem" (the input of the first block, positions added), "block 1" to the last, and "tokens"
    (the last block's output; after the tower's last LayerNorm if that is applied to all tokens, and in Hugging Face's
    CLIP). Then come those that the scorer adds (`image_parts`, `text_parts`), and "embedding", its only vector, if any.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise for an attribute with the name of a public method or property, which it would hide."""
        if name in PUBLIC:
            raise UserError(f"self.{name} is a method of every scorer (models/layers.py); rename yours")
        super().__setattr__(name, value)

    def features(
        self,
        images: UInt8[Tensor, "n 3 h w"] | Float[Tensor, "n 3 h w"],
        layers: Wanted = None,
        gradients: bool = False,
    ) -> Features:
        """The layers (n, t, d) of images, by name; all of `self.layers` by default.

        Images are uint8, or floats as `pixel_scale` gives them. They are encoded all at once, in evaluation mode, and
        without gradients unless `gradients`. CLS comes before the patches, whose rows and columns `self.grid` gives.
        """
        with evaluation_mode(self, gradients):
            images = images.to(self.device)
            pixels = images if images.is_floating_point() else self.pixel_scale(images)
            places, wanted = self._places("image"), layer_names(layers)
            embedding, seen = encode_with_layers(places, wanted, lambda: self.encode_images(pixels), len(images))
            parts = self.image_parts(embedding, seen.get(TOKENS))
            return self._select("image", len(images), wanted, places, seen, parts, embedding)

    def text_features(self, texts: Texts, layers: Wanted = None, gradients: bool = False) -> Features:
        """The layers (n, t, d) of texts, by name; all of `self.text_layers` by default. `present` tells tokens from
        padding, which is 0.

        Where the tower reads the phrases of a graph one by one, a text has the tokens of all its phrases, one phrase
        after the other.
        """
        count = len(texts.captions)
        with evaluation_mode(self, gradients):
            read = self.read(texts.captions, texts.graphs)
            places, wanted = self._places("text"), layer_names(layers)
            rows = self.text_rows(read)
            embedding, seen = encode_with_layers(places, wanted, lambda: self.encode_texts(read), count, rows)
            parts = self.text_parts(embedding, seen.get(TOKENS))
            return self._select("text", count, wanted, places, seen, parts, embedding)

    def slots(
        self, images: UInt8[Tensor, "n 3 h w"] | Float[Tensor, "n 3 h w"], texts: Texts, gradients: bool = False
    ) -> Features:
        """The layer "slots" (n, q, d): the vector that each of the q phrases of text i takes from image i. `present`
        tells phrases from padding. Raises for a scorer whose texts take nothing from images."""
        if len(images) != len(texts.captions):
            raise UserError(f"{len(images)} images and {len(texts.captions)} texts; slots take as many of each")
        with evaluation_mode(self, gradients):
            images = images.to(self.device)
            pixels = images if images.is_floating_point() else self.pixel_scale(images)
            embedding, read = self.encode_images(pixels), self.read(texts.captions, texts.graphs)
            return Features({SLOTS: self.paired_slots(embedding, self.encode_texts(read))})

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of images; encodes a black image to know them."""
        side = self.towers_config.resolution
        return tuple(self.features(torch.zeros(1, 3, side, side, dtype=torch.uint8)))

    @property
    def text_layers(self) -> tuple[str, ...]:
        """The names of the layers of texts; encodes a text of one word to know them."""
        word = next(iter(self.texts.words), "a")
        return tuple(self.text_features(Texts([word], [SceneGraph((word,))])))

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the patches, which are the last rows x columns tokens, row by row; None if the image
        tower is no plain ViT."""
        towers = self._towers()
        return patch_grid(towers.image) if towers else None

    def image_parts(self, embedding: Tensors, tokens: Layer | None) -> Parts:
        """The layers of images that the scorer adds to its tower's; override it to add yours. It gets what
        `encode_images` gave, and the layer "tokens", which is None unless the tower is a plain ViT."""
        return {}

    def text_parts(self, embedding: Tensors, tokens: Layer | None) -> Parts:
        """The layers of texts that the scorer adds, like `image_parts`."""
        return {}

    def text_rows(self, texts: Tensors) -> TextRows | None:
        """Which rows of the text tower's output make up each text, from what `reader` gave. None means one row for each
        text; override it for other scorers."""
        return None

    def paired_slots(self, images: Tensors, texts: Tensors) -> Layer:
        """The slots that text i takes from image i, given their embeddings; override it if texts take parts of
        images."""
        raise UserError(f"in {type(self).__name__} texts take no slots of images; see its layers in `features`")

    def _towers(self) -> Towers | None:
        """The scorer's towers, or those of the scorer that it is built on; None without either."""
        towers, base = getattr(self, "towers", None), getattr(self, "base", None)
        return towers or (base._towers() if isinstance(base, NamedLayers) else None)

    def _places(self, side: str) -> Places | None:
        towers = self._towers()
        if towers is None:
            return None
        return image_places(towers.image) if side == "image" else text_places(towers.text)

    def _select(
        self,
        side: str,
        count: int,
        wanted: Sequence[str] | None,
        places: Places | None,
        seen: Parts,
        parts: Parts,
        embedding: Tensors,
    ) -> Features:
        """The wanted layers, or all; raises for the first wanted layer that doesn't exist."""
        if EMBEDDING in parts:
            raise UserError(f"{type(self).__name__} adds a layer {EMBEDDING!r}, a reserved name; rename it")
        found = seen | parts
        if (
            isinstance(embedding, Tensor)
            and embedding.is_floating_point()
            and embedding.ndim == 2
            and len(embedding) == count
        ):
            found |= {EMBEDDING: Layer(embedding[:, None])}
        known = [*places.names, *found] if places and seen else list(found)
        for name in wanted or ():
            self._check(side, name, list(dict.fromkeys(known)), places)
        return Features({name: found[name] for name in (found if wanted is None else wanted)})

    def _check(self, side: str, name: str, known: Sequence[str], places: Places | None) -> None:
        """Raise for a layer that doesn't exist, and say why."""
        if name in known:
            return
        if name == EMBEDDING:
            raise UserError(
                f"{type(self).__name__} has no {EMBEDDING!r}, a single vector for each {side}; its layers are "
                f"{', '.join(known) or 'none'}"
            )
        if places and name in places.names:
            raise UserError(
                f"{type(self).__name__}: {name!r} can't be told apart by {side}, since its {side} tower doesn't encode "
                f"one row for each {side}" + ("; override text_rows (models/layers.py)" if side == "text" else "")
            )
        choose(f"{side} layer of {type(self).__name__}", name, known)


def layer_names(layers: Wanted) -> list[str] | None:
    """Names of layers as a list; None stays None, for all."""
    return [layers] if isinstance(layers, str) else None if layers is None else list(layers)


def encode_with_layers(
    places: Places | None,
    wanted: Sequence[str] | None,
    encode: Callable[[], Tensors],
    count: int,
    rows: TextRows | None = None,
) -> tuple[Tensors, Parts]:
    """Encode `count` images or texts; return their embedding, and the tower's layers as recorded on the way."""
    if places is None:
        return encode(), {}
    passes = Passes(places, wanted)
    with passes.watching():
        embedding = encode()
    return embedding, passes.layers(count, rows)


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
