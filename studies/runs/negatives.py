"""What the loss of a cell compares with."""

from typing import TYPE_CHECKING

from menagerie.models.recipe import negatives_of
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import Cell

if TYPE_CHECKING:
    from menagerie.generators.captioned import Captioned


def loss_negatives(cell: Cell, train: "Captioned") -> list[str]:
    """Name the negatives of the loss besides other images and their captions: false captions, partner images, altered
    graphs.

    Partners that a model wants by itself count only if the training data have them, altered graphs only if captions
    state relations.
    """
    wanted = negatives_of(cell.recipe, cell.negatives)
    if wanted.images:
        wanted = wanted._replace(images=bool((train.partner_items(range(len(train))) >= 0).any()))
    spec = spec_of(cell.model)
    options = spec.configured(cell.options)
    altered = spec.local_loss and options.local_weight and states_relations(cell)
    return [*wanted.words, *([f"graphs {' and '.join(options.local_negatives)}"] if altered else [])]


def states_relations(cell: Cell) -> bool:
    """Whether the captions of a cell's data state relations, by the kind of split, or in photographs' captions."""
    from menagerie.generators.splits.recipe_file import KINDS

    if cell.data.kind in KINDS:
        return KINDS[cell.data.kind].relational
    return getattr(cell.data, "relational", False)
