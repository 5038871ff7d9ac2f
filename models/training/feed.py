"""Prepares batches ahead of their steps. A batch is a pure function of (seed, step), whatever the number of processes.

Texts are drawn, tokenised and compared with one another here, and random variations of images are drawn; a step only
moves the batch to its device and computes. Images are neither mirrored nor rotated: left stays left. Borders left empty
by a zoom or a shift are filled by reflection, so that an object near the border may be seen twice."""

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import seed_of
from menagerie.envs.core.plugins import own_module
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.templates import Caption
from menagerie.models.objectives import Targets
from menagerie.models.ranks import Share
from menagerie.models.recipe import Negatives, Recipe, negatives_of
from menagerie.models.registry import own_file
from menagerie.models.texts import TextReader, Texts
from menagerie.models.training.sampling import SINGLES, BatchSampler, by_shares, with_singles
from menagerie.models.training.targets import Claims, phrases_in, targets_of, with_phrases


class Variation(NamedTuple):
    """The variation of each of n images; drawn where batches are prepared, applied on the training device."""

    affine: Float[Tensor, "n 2 3"]
    gain: Float[Tensor, "n 1 1 1"]


def draw_variation(n: int, generator: torch.Generator) -> Variation:
    """Draw a zoom by up to a fifth, a shift by up to an eighth of the side, and contrast by up to 15 %."""

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator) - 1

    zoom = 1.2 ** uniform(n, 1, 1)
    affine = torch.cat([zoom * torch.eye(2), 0.25 * uniform(n, 2, 1)], dim=2)
    return Variation(affine, 1 + 0.15 * uniform(n, 1, 1, 1))


def augment(pixels: Float[Tensor, "n 3 h w"], variation: Variation) -> Float[Tensor, "n 3 h w"]:
    """Apply the drawn zoom, shift and contrast to the images."""
    grid = F.affine_grid(variation.affine, list(pixels.shape), align_corners=False)
    return variation.gain * F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)


class Batch(NamedTuple):
    """The input of a step: n images and their texts. Text i belongs to image i, and so do texts i + n, i + 2n, ... if
    there are several captions; after these come false captions and phrases."""

    images: UInt8[Tensor, "n 3 h w"] | Int64[Tensor, " n"]  # their items' numbers, if a feed is `numbered`
    variation: Variation | None
    texts: Any  # output of the scorer's reader
    targets: Targets


class Feed(torch.utils.data.Dataset):
    """The batches of a training run, by step.

    `negatives` names the extra content of batches that a scorer wants, false captions or counterfactuals; the recipe
    can request these too, or other false captions instead (`menagerie.models.recipe.negatives_of`). False captions are
    added after the images' texts. Counterfactuals replace other images, so that every step has the same number of
    images.

    A reader with `captions = k` gets k captions of each image (`Captioned.several`); text i + jn belongs to image i.
    With `false_further = kind` it also gets false versions of each image's captions after the first, placed after the
    other false captions. With `phrases` the phrases of each image's first caption come last.

    With a `share`, batches have only this process's images, but all texts; `targets` are cut to these images too,
    unless `gathered`. While `numbered`, batches have numbers of items in place of images, which are on the device
    already.
    """

    def __init__(
        self,
        data: Captioned,
        reader: TextReader,
        recipe: Recipe,
        seed: int,
        negatives: tuple[str, ...] = (),
        share: Share | None = None,
        gathered: bool = False,
    ) -> None:
        self.data, self.reader, self.recipe, self.seed = data, reader, recipe, seed
        self.negatives = negatives_of(recipe, negatives)
        if not len(data):  # as in 'train' of a probe set
            raise UserError(f"{data.name} has no images to train on; choose another subset, or other data")
        check_requested_negatives(data, recipe, self.negatives)
        self.sampler = sampler_of(data, recipe, seed)
        self.known = Claims(data.names)
        self.share, self.gathered = share, gathered
        self.numbered = False

    def __len__(self) -> int:
        return self.recipe.steps

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_feed, (FileRun(own_file(type(self.reader))), self.__dict__)

    def __getitem__(self, step: int) -> Batch:
        return self.batch(self.sampler.indices(step), seed_of(self.seed, "step", step))

    def batch(self, indices: np.ndarray, seed: int) -> Batch:
        """The batch of these items; all its randomness comes from `seed`."""
        generator = torch.Generator().manual_seed(seed)
        if self.negatives.images:
            indices = with_counterfactuals(indices, self.data.counterfactual_items(indices))
        draws = [seed_of(seed, "caption", k) for k in range(len(indices))]
        texts = self.captions(indices, draws)
        n_images, matched = len(indices), len(texts)
        owners: list[int] = []
        for kind in self.negatives.texts:
            false = self.data.negatives(indices, draws, kind)
            owners += [image for image, text in enumerate(false) if text is not None]
            texts += [text for text in false if text is not None]
        further = self.falsify_further_captions(indices, draws, texts[n_images:matched])
        named = phrases_in(texts[:n_images]) if getattr(self.reader, "phrases", False) else []
        owners += [owner for owner, _ in (*further, *named)]
        texts += [text for _, text in (*further, *named)]
        variation = draw_variation(n_images, generator) if self.recipe.augment else None
        mask = self.recipe.mask_false_negatives and self.data.complete_captions
        targets = targets_of(texts, n_images, self.data.complete_captions, mask, self.known, matched)
        owner = torch.tensor(owners, dtype=torch.int64) if owners else None
        targets = with_phrases(targets._replace(owner=owner), [text for _, text in named])
        words, graphs = zip(*texts, strict=True)
        read = self.reader(Texts(words, graphs, matched, targets), generator)
        if self.share is None:
            return Batch(self.images(indices), variation, read, targets)
        own = self.share.of(n_images)
        mine = variation and Variation(*(part[own] for part in variation))
        return Batch(self.images(indices[own]), mine, read, targets if self.gathered else targets.of(own))

    def images(self, indices: np.ndarray) -> UInt8[Tensor, "n 3 h w"] | Int64[Tensor, " n"]:
        """The images of items, or the items' numbers."""
        return torch.from_numpy(np.asarray(indices, np.int64)) if self.numbered else self.data.images(indices)

    def captions(self, indices: np.ndarray, draws: list[int]) -> list[Caption]:
        """The captions of a batch: one of each item, then a second one of each, and so on, as the reader wants."""
        count = getattr(self.reader, "captions", 1)
        if count == 1:
            return list(self.data.captions(indices, draws))
        several = self.data.parts_of_captions if getattr(self.reader, "false_further", "") else self.data.several
        return [text for captions in several(indices, draws, count) for text in captions]

    def falsify_further_captions(
        self, indices: np.ndarray, draws: list[int], captions: list[Caption]
    ) -> list[tuple[int, Caption]]:
        """Make false versions of each image's captions after the first, each with its caption's index."""
        kind, n = getattr(self.reader, "false_further", ""), len(indices)
        found: list[tuple[int, Caption]] = []
        for first in range(0, len(captions) if kind else 0, n):
            drawn = [seed_of(draw, "false", first // n) for draw in draws]
            false = self.data.false_of(indices, drawn, captions[first : first + n], kind)
            found += [(n + first + k, text) for k, text in enumerate(false) if text is not None]
        return found


class FileRun:
    """Runs a user's file when it is unpickled, so that classes of objects pickled after it are known."""

    def __init__(self, file: str) -> None:
        self.file = file
        if file:
            own_module(file)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileRun, (self.file,)


def restore_feed(_: FileRun, state: dict[str, Any]) -> Feed:
    """Unpickle a feed."""
    feed = Feed.__new__(Feed)
    feed.__dict__.update(state)
    return feed


def check_requested_negatives(data: Captioned, recipe: Recipe, negatives: Negatives) -> None:
    """Raise if the data lack negatives that the recipe requests; only a model's wish for counterfactuals may fail."""
    for kind in negatives.texts:
        if kind not in data.text_negatives:
            known = ", ".join(data.text_negatives) or "none"
            raise UserError(
                f"{data.name} has no false captions of the kind {kind!r} (it has: {known}); choose other "
                "--text-negatives, a model without negatives, or data of our worlds"
            )
    if recipe.image_negatives and not (data.counterfactual_items(range(len(data))) >= 0).any():
        raise UserError(
            f"no image of {data.name} has a counterfactual, the same objects swapped, that is trained on too; raise "
            "--hard-negatives, or leave out --image-negatives"
        )


def with_counterfactuals(indices: np.ndarray, counterfactuals: np.ndarray) -> np.ndarray:
    """Return a batch of the same size in which items are together with their counterfactuals.

    `counterfactuals` has each item's counterfactual, or -1. Items with a counterfactual take turns: the counterfactual
    replaces the last item that has a counterfactual and isn't paired yet. A counterfactual already in the batch isn't
    added again, unless the batch has an item twice, which is possible where one pass over the data ends and the next
    begins."""
    batch, place_of = np.array(indices), {int(item): place for place, item in enumerate(indices)}
    spare = {place: None for place in range(len(batch)) if counterfactuals[place] >= 0}  # in order
    while len(spare) > 1:
        place = next(iter(spare))
        del spare[place]
        there = place_of.get(int(counterfactuals[place]))
        if there is None:
            there = next(reversed(spare))
            place_of.pop(int(batch[there]), None)
            batch[there] = counterfactuals[place]
        spare.pop(there, None)
    return batch


def sampler_of(data: Captioned, recipe: Recipe, seed: int) -> BatchSampler:
    """Make the sampler of batches: by the shares of a mixture, or by the share of single-object scenes."""
    if data.shares:
        return by_shares(data.strata, data.shares, recipe.batch, seed)
    is_single = data.strata.get(SINGLES, np.zeros(len(data), bool))
    share, steps = recipe.singles_share, single_steps(recipe)
    return with_singles(is_single, recipe.batch, share, seed, steps)


def single_steps(recipe: Recipe) -> int:
    """The number of steps in the phase that shows only single-object scenes."""
    return round(recipe.single_object_phase * recipe.steps)
