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
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.evaluation.attention_maps import enlarge
from menagerie.models.scorer import Scorer
from menagerie.models.towers.tokenizers import Tokenizer
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.report.figures import bar_above
from menagerie.studies.runs.cell import CHECKPOINT, Cell

SLOTS = range(3)  # that are drawn
DARK = 0.55  # share of attention from which on a word is written in white
LETTERS = 34  # in a line below a picture
WORDS = LinearSegmentedColormap.from_list("words", ["white", (0.0, 0.35, 0.7)])


class SlotAttention(NamedTuple):
    """The attention of all slots for n scenes."""

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
    """Compute the attention of the slots to some images and their captions."""
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


def spread_evenly(count: int, most: int) -> list[int]:
    """Choose up to `most` numbers below `count`, evenly spread."""
    return sorted({count * (2 * k + 1) // (2 * most) for k in range(min(most, count))} if count else set())


def slot_sheet(scenes: SlotAttention, slots: Sequence[int]) -> Figure:
    """Draw a column for each scene: its image, and below it, for each slot, the image under the slot's map and the
    caption's words. All maps share a scale, and so do all words."""
    columns, lines = len(scenes.images), max(len(break_lines(words)) for words in scenes.words)
    figure = Figure((2.3 * columns + 0.5, 2.1 + (2.1 + 0.24 * lines) * len(slots)), layout="constrained")
    heights = [1.0, *([1.0, 0.12 * lines] * len(slots))]
    axes = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
    most = max(float(scenes.maps[:, slots].max()), 1e-6)
    for column, (axis, image) in enumerate(zip(axes[0], scenes.images, strict=True)):
        axis.imshow(image)
        axis.axis("off")
        axis.set_title(f"image {column + 1}", fontsize=8)
    for number, slot in enumerate(slots):
        for column in range(columns):
            above, below = axes[2 * number + 1, column], axes[2 * number + 2, column]
            above.imshow(scenes.images[column].mean(-1), cmap="gray", vmin=0, vmax=255)
            shown = above.imshow(scenes.maps[column, slot], cmap="inferno", alpha=0.7, vmin=0, vmax=most)
            above.axis("off")
            draw_words(below, scenes.words[column], scenes.shares[column][slot], lines)
            above.set_title(f"slot {slot}: cosine {scenes.cosines[column, slot]:.2f}", fontsize=8)
    bar_above(figure, ScalarMappable(Normalize(0, 100), WORDS), axes, "share of a word (%)", width=1.8)
    bar_above(figure, shown, axes, "share of a patch, 1: the mean over all patches", width=1.8)
    return figure


def break_lines(words: Sequence[str], width: int = LETTERS) -> list[list[int]]:
    """Break words into lines of up to `width` letters, and return the indices of each line's words."""
    lines, length = [[]], 0
    for k, word in enumerate(words):
        if lines[-1] and length + len(word) > width:
            lines.append([])
            length = 0
        lines[-1].append(k)
        length += len(word) + 1
    return lines


def draw_words(axis: Axes, words: Sequence[str], shares: Float[np.ndarray, " words"], lines: int) -> None:
    """Draw a caption, each word as dark as its share of the attention."""
    axis.axis("off")
    for row, line in enumerate(break_lines(words)):
        place = 0.0
        for k in line:
            share = float(np.clip(shares[k], 0, 1))
            axis.text(
                *(place, 1 - (row + 0.5) / lines, words[k]),
                **{"transform": axis.transAxes, "fontsize": 7, "family": "monospace", "va": "center"},
                color="white" if share > DARK else "black",
                bbox={"facecolor": WORDS(share), "edgecolor": "none", "pad": 1.0},
                parse_math=False,
            )
            place += (len(words[k]) + 1) / (LETTERS + 1)


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
        """Draw the first slots, which are as good as any, on scenes of the first test that has any."""
        return slot_sheet(load_slots(self.cell.model, self.folder, self.file, self.cell.tests, self.scenes), SLOTS)


@lru_cache(maxsize=2)  # what is finished doesn't change, and pages are written anew after every run
def load_slots(model: str, folder: Path, file: Path, tests: tuple[str, ...], scenes: int) -> SlotAttention:
    """Return the attention of all slots in some scenes of a test."""
    scorer, split = load_checkpoint(folder / CHECKPOINT, model), read_split(file)
    test = next(data for data in (SplitDataset(split, name) for name in tests) if len(data))
    return attention_of(scorer, test, spread_evenly(len(test), scenes))
