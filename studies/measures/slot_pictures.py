"""Pictures of what SPARO's slots attend to (figure 4): patches of images and words of captions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.evaluation.attention_maps import enlarge
from menagerie.models.scorer import Scorer
from menagerie.models.towers.tokenizers import Tokenizer
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.runs.cell import CHECKPOINT, Cell

MOST = 200  # scenes by which slots are chosen
AGREE = 0.75  # least cosine between a slot's image and text, as in the paper; ignored if no slot has it
SMALLEST = 1e-6  # end of the scale of maps, if a slot attends to no patch


class SlotAttention(NamedTuple):
    """The attention of l slots for n scenes."""

    images: UInt8[np.ndarray, "n h w 3"]
    maps: Float[np.ndarray, "n l h w"]
    """Each patch's share of the attention divided by the mean share, at the image's resolution."""
    words: list[list[str]]
    shares: list[Float[np.ndarray, "l words"]]
    """The attention of each slot to each word of the caption; the rest goes to the end token."""
    cosines: Float[np.ndarray, "n l"]
    """The cosines of the image's slots with those of the caption."""


@torch.no_grad()
def attention_of(scorer: Scorer, data: SplitDataset, indices: Sequence[int]) -> SlotAttention:
    scorer.eval()
    images = data.images(indices)
    pixels = scorer.pixel_scale(images.to(scorer.device))
    captions = [data.records.captions[i] for i in indices]
    read = scorer.read(captions, [data.records.graphs[i] for i in indices])
    patches = scorer.image_attention(pixels)[..., 1:]
    maps = enlarge(patches / patches.mean(-1, keepdim=True).clamp_min(1e-12), pixels.shape[-1])
    tokens = scorer.text_attention(read).cpu().numpy()
    words = [words_and_shares(scorer.reader.tokenizer, *both) for both in zip(captions, tokens, strict=True)]
    slots = maps.shape[1]
    products = scorer.encode_images(pixels) * scorer.encode_texts(read)
    cosines = products.unflatten(1, (slots, -1)).sum(-1) * slots
    shown = images.permute(0, 2, 3, 1).numpy()
    return SlotAttention(shown, maps.cpu().numpy(), *map(list, zip(*words, strict=True)), cosines.cpu().numpy())


def words_and_shares(
    tokenizer: Tokenizer, caption: str, tokens: Float[np.ndarray, "l context"]
) -> tuple[list[str], Float[np.ndarray, "l words"]]:
    """Return the words of a caption, and each slot's attention to the tokens of each word."""
    words = caption.split()
    ends = [min(tokenizer.length(" ".join(words[:k])) - 1, tokens.shape[1]) for k in range(len(words) + 1)]
    shares = [tokens[:, start:end].sum(1) for start, end in pairwise(ends)]
    return words, np.stack(shares, 1)


def choose_slots(scenes: SlotAttention, most: int = 3) -> list[int]:
    """Return up to `most` slots with the sharpest attention to texts (the mean over scenes of the largest share of a
    word), the sharpest first, among those whose image and text agree; among all if none agrees."""
    sharpness = np.mean([words.max(1) for words in scenes.shares], 0)
    agree = scenes.cosines.mean(0) >= AGREE
    order = np.argsort(-sharpness, kind="stable").tolist()
    return [slot for slot in order if agree[slot] or not agree.any()][:most]


def spread_evenly(count: int, most: int) -> list[int]:
    """Choose up to `most` numbers below `count`, evenly spread."""
    return sorted({count * (2 * k + 1) // (2 * most) for k in range(min(most, count))} if count else set())


def slot_sheet(scenes: SlotAttention, slots: Sequence[int]) -> Figure:
    """Draw a column for each scene: its image, and below it, for each slot, the image under the slot's map and a bar
    for each word's share of the attention. All maps share a scale."""
    columns, most = len(scenes.images), float(scenes.maps[:, list(slots)].max())
    figure = Figure((2.3 * columns + 0.5, 2.1 + 3.4 * len(slots)), layout="constrained")
    heights = [1.0, *([1.0, 0.5] * len(slots))]
    axes = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    for column, image in enumerate(scenes.images):
        axes[0, column].imshow(image)
        axes[0, column].set_title(f"image {column + 1}", fontsize=8)
        for number, slot in enumerate(slots):
            above, below = axes[2 * number + 1, column], axes[2 * number + 2, column]
            above.imshow(image.mean(-1), cmap="gray", vmin=0, vmax=255)
            shown = above.imshow(scenes.maps[column, slot], cmap="inferno", alpha=0.7, vmin=0, vmax=max(most, SMALLEST))
            above.set_title(f"slot {slot}, cosine {scenes.cosines[column, slot]:.2f}", fontsize=8)
            shares = 100 * scenes.shares[column][slot]
            below.bar(range(len(shares)), shares)
            below.set_xticks(range(len(shares)), scenes.words[column], rotation=90, fontsize=7, parse_math=False)
            below.set_ylim(0, 100)
        for axis in axes[[0, *range(1, len(heights), 2)], column]:
            axis.axis("off")
    place = {"location": "top", "anchor": (0.0, 0.0), "shrink": 0.4, "aspect": 16, "fraction": 0.02, "pad": 0.01}
    bar = figure.colorbar(shown, ax=axes, **place)
    bar.set_label("share of a patch, 1: the mean over all patches", fontsize=8, loc="left")
    return figure


@dataclass(frozen=True)
class SlotPictures(OwnFigure):
    """Figure 4, for one finished run."""

    cell: Cell
    folder: Path
    """Folder of the run."""
    file: Path
    """The run's split file."""
    scenes: int = field(default=4, kw_only=True)

    def figure(self) -> Figure:
        """Draw the slots that are chosen on validation, on scenes of the first test that has any."""
        return slot_sheet(*load_slots(self.cell.model, self.folder, self.file, self.cell.tests, self.scenes))


@lru_cache(maxsize=2)  # what is finished doesn't change, and pages are written anew after every run
def load_slots(
    model: str, folder: Path, file: Path, tests: tuple[str, ...], scenes: int
) -> tuple[SlotAttention, list[int]]:
    """Return the attention of all slots in some scenes of a test, and the slots that are chosen on validation."""
    scorer, validation = load_checkpoint(folder / CHECKPOINT, model), SplitDataset(file, "validation")
    test = next(data for data in (SplitDataset(validation.split, name) for name in tests) if len(data))
    ranked = attention_of(scorer, validation, spread_evenly(len(validation), MOST))
    return attention_of(scorer, test, spread_evenly(len(test), scenes)), choose_slots(ranked)
