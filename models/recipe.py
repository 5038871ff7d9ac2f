"""Recipes: everything about a training run but the model and the data. Free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import RATE, SHARE, STEPS, Range, Several, validate
from menagerie.generators.storage.false_captions import FalseCaption

WARMUP = Range(0, STEPS.high)
Precision = Literal["float32", "tf32", "bf16"]
# Names of the kinds of false captions in reports.
FALSE_CAPTIONS = {
    "swap": "swapped captions",
    "replace": "captions with a part replaced",
    "shuffle": "shuffled captions",
}


@dataclass(frozen=True)
class Recipe:
    """A training recipe: AdamW with warm-up and decay; towers may have other learning rates than the rest."""

    steps: Annotated[int, FIRST, STEPS] = 1000
    """Optimiser steps; every model of a study takes as many."""
    batch: Annotated[int, Range(2, 1_000_000)] = 64
    """Images per step."""
    learning_rate: Annotated[float, RATE] = 2e-3
    """Peak learning rate, unless a tower has one of its own."""
    vision_learning_rate: Annotated[float | None, RATE] = None
    """Peak learning rate of the image tower; None takes `learning_rate`."""
    text_learning_rate: Annotated[float | None, RATE] = None
    """Peak learning rate of the text tower; None takes `learning_rate`."""
    warmup: Annotated[int, WARMUP] = 50
    """Steps of linear warm-up."""
    vision_warmup: Annotated[int | None, WARMUP] = None
    """Steps of linear warm-up of the image tower; None takes `warmup`."""
    text_warmup: Annotated[int | None, WARMUP] = None
    """Steps of linear warm-up of the text tower; None takes `warmup`."""
    decay: Annotated[float | None, Range(1e-9, 1.0)] = None
    """Share of the steps, at the end, over which the learning rate falls from its peak to zero as 1 - sqrt. It is
    constant before, so that runs of any length share their first steps. None: a cosine over all steps."""
    weight_decay: Annotated[float, RATE] = 0.05
    """Decoupled weight decay of matrices; vectors have none."""
    betas: Annotated[tuple[float, float], Range(0.0, 1 - 1e-9)] = (0.9, 0.98)
    """Decay rates of Adam's two moments."""
    singles_share: Annotated[float | None, SHARE] = None
    """Share of a batch that shows single-object scenes; None: every image is seen equally often."""
    single_object_phase: Annotated[float, SHARE] = 0.0
    """Share of the steps, at the start, that show single-object scenes only."""
    augment: bool = True
    """Zoom, shift and lighten training images at random (see `menagerie.models.training.feed`)."""
    mask_false_negatives: bool = True
    """Don't use as an image's negatives texts that are true of it too (see
    `menagerie.models.objectives.contrastive_loss`). Works only on data whose captions describe scenes completely."""
    text_negatives: Annotated[tuple[FalseCaption, ...], Several()] = ()
    """False captions of each image in the loss of every model: swap, replace, shuffle (docs/scorers.md). If empty, each
    model has its own, such as the swaps of negclip."""
    image_negatives: bool = False
    """Show training images together with their counterfactuals, which show the same objects swapped; the number of
    images per step stays the same. For data in which pairs have counterfactuals (--hard-negatives)."""
    precision: Precision = "float32"
    """Precision of training. bf16: encoders multiply in bfloat16 (docs/training.md); weights, comparisons and the loss
    stay float32. tf32: a GPU rounds the factors of all matrix products to 11 bits. Tests always score in float32."""
    accumulate: Annotated[int, Range(1, 100_000)] = 1
    """Number of parts in which a batch's images are encoded, one after another, so that only one part's activations are
    in memory. Each part is encoded twice; the loss is still over the whole batch."""
    compile: bool = False
    """Compile the loss of a step and its gradient with torch.compile, which takes minutes before the first steps.
    Weights differ from those of a run without, by rounding."""

    def __post_init__(self) -> None:
        validate(self)
        if self.accumulate > self.batch:
            raise UserError(f"--accumulate {self.accumulate}: a batch of {self.batch} has fewer images")

    @property
    def longest_warmup(self) -> int:
        """Number of steps until all learning rates have reached their peak."""
        return max(self.warmup, self.vision_warmup or 0, self.text_warmup or 0)

    @property
    def stable_steps(self) -> int | None:
        """Number of steps before the decay; None for a cosine, whose rates all depend on the total number of steps."""
        return None if self.decay is None else self.steps - round(self.decay * self.steps)


class Negatives(NamedTuple):
    """The negatives of a training batch besides other images and captions."""

    texts: tuple[str, ...] = ()
    """Kinds of false captions."""
    images: bool = False
    """Whether images are shown together with their counterfactuals."""

    @property
    def words(self) -> tuple[str, ...]:
        """The negatives in words, for reports."""
        return (*(FALSE_CAPTIONS[kind] for kind in self.texts), *(("counterfactual images",) if self.images else ()))


def negatives_of(recipe: Recipe, wanted: tuple[str, ...]) -> Negatives:
    """The false captions that a recipe requests, by default swaps if "captions" is in `wanted`
    (`ScorerSpec.negatives`), and counterfactual images if the recipe or `wanted` asks for them."""
    texts = recipe.text_negatives or (("swap",) if "captions" in wanted else ())
    return Negatives(texts, recipe.image_negatives or "images" in wanted)
