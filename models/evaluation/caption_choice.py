"""True caption against false caption: which does the scorer prefer?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float

from envs.common.errors import UserError
from generators.captions.hard_negatives import TASKS, Choice, TaskContext, choices, possible
from generators.captions.templates import Caption
from generators.storage.dataset import SplitDataset
from models.scorer import Scorer
from models.towers.pixels import normalise

# Images and texts are compared in blocks of this many; only the diagonal is used.
BLOCK = 32


@dataclass(frozen=True)
class BinaryScores:
    """Scores (n,) of each image with a true caption and with a false one."""

    true: Float[np.ndarray, " n"]
    negative: Float[np.ndarray, " n"]

    @property
    def points(self) -> Float[np.ndarray, " n"]:
        """1 where the true caption scores higher, one half for a tie."""
        return (self.true > self.negative) + 0.5 * (self.true == self.negative)

    @property
    def accuracy(self) -> float:
        """Mean of the points; NaN if there are no images."""
        return float(np.mean(self.points)) if self.n else np.nan

    @property
    def tie_rate(self) -> float:
        """Share of images whose two captions score the same; NaN if none."""
        return float(np.mean(self.true == self.negative)) if self.n else np.nan

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.true)


@dataclass(frozen=True)
class QuadScores:
    """Two images and two captions, each true of one image (Thrush et al. 2022, "Winoground").

    `own` are the scores of the images with both captions, `partner` those of their partners,
    of which the hard negative is true. Chance is 1/4 for text and image, 1/6 for the group.
    """

    own: BinaryScores
    partner: BinaryScores

    @property
    def text(self) -> Bool[np.ndarray, " n"]:
        """Each image prefers its caption (image to text)."""
        return (self.own.true > self.own.negative) & (self.partner.negative > self.partner.true)

    @property
    def image(self) -> Bool[np.ndarray, " n"]:
        """Each caption prefers its image (text to image)."""
        return (self.own.true > self.partner.true) & (self.partner.negative > self.own.negative)

    @property
    def group(self) -> Bool[np.ndarray, " n"]:
        """Both."""
        return self.text & self.image


@torch.no_grad()
def score_captions(
    scorer: Scorer, data: SplitDataset, captions: Sequence[Sequence[Caption]], partners: bool = False
) -> Float[np.ndarray, "n columns"]:
    """Score every image, or its partner, with each of its captions: one row of `captions` an image."""
    scorer.eval()
    columns = len(captions[0]) if captions else 0
    scores = [np.empty((0, columns), np.float32)]
    for start in range(0, len(data), BLOCK):
        block = range(start, min(start + BLOCK, len(data)))
        pixels = data.partner_images(block) if partners else data.images(block)
        images = scorer.encode_images(normalise(pixels.to(scorer.log_scale.device)))
        found = []
        for column in range(columns):
            texts, graphs = zip(*(captions[i][column] for i in block), strict=True)
            similarity = scorer.similarity(images, scorer.encode_texts(texts, graphs))
            found.append(similarity.diagonal().float().cpu().numpy())
        scores.append(np.stack(found, 1))
    if not all(np.isfinite(part).all() for part in scores):
        raise UserError(f"{type(scorer).__name__} gives scores that are not finite numbers; train it again")
    return np.concatenate(scores)


def swap_accuracy(scorer: Scorer, data: SplitDataset) -> float:
    """Share of images whose caption scores above its hard negative; leaves a scorer in training as it was."""
    training, r = scorer.training, data.records
    captions = zip(map(Caption, r.captions, r.graphs), map(Caption, r.negatives, r.negative_graphs), strict=True)
    scores = score_captions(scorer, data, list(captions))
    scorer.train(training)
    return BinaryScores(scores[:, 0], scores[:, 1]).accuracy


def subset_choices(data: SplitDataset) -> dict[str, list[Choice | None]]:
    """The choices of every task that the world of a split has words for; None for a scene that a task doesn't suit."""
    split, r = data.split, data.records
    if not all(r.negatives):
        raise UserError(f"some scenes of this subset of {split.path} have no hard negative to score")
    kind, template, seed = (split.recipe[name] for name in ("kind", "template", "seed"))
    told = tuple(split.recipe.get("relations", ())), split.recipe.get("negated", 0.0)
    setting = TaskContext(kind, template, seed, split.vocabulary, *told)
    found = {task: choices(task, r.scenes, setting) for task in TASKS if task != "swap" and possible(task, setting)}
    # The swap is what the file says, whoever made it.
    true, false = map(Caption, r.captions, r.graphs), map(Caption, r.negatives, r.negative_graphs)
    return {"swap": list(map(Choice, true, false))} | found


def score_tasks(
    scorer: Scorer, data: SplitDataset, asked: dict[str, list[Choice | None]]
) -> tuple[dict[str, BinaryScores], QuadScores]:
    """Scores of every task of `subset_choices` on every image that it suits, and of the quads of the swap."""
    # Where a task asks nothing, the swap is scored in its place, and not counted.
    rows = [[text for choice in row for text in choice or row[0]] for row in zip(*asked.values(), strict=True)]
    own = score_captions(scorer, data, rows).reshape(len(data), len(asked), 2)
    other = score_captions(scorer, data, [list(choice) for choice in asked["swap"]], partners=True)
    suited = {task: own[[choice is not None for choice in its], k] for k, (task, its) in enumerate(asked.items())}
    scores = {task: BinaryScores(found[:, 0], found[:, 1]) for task, found in suited.items()}
    partner = other.reshape(len(data), 2)
    return scores, QuadScores(scores["swap"], BinaryScores(partner[:, 0], partner[:, 1]))
