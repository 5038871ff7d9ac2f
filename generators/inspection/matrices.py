"""Co-occurrences in a split: counts of animals, textures, sizes and backgrounds, roles of animal pairs, as matrices."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations

import matplotlib
import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.figures import colour_at, ink
from menagerie.envs.scene import Scene
from menagerie.envs.slots import RELATIONS
from menagerie.generators.captions.hard_negatives.swaps import SWAPS
from menagerie.generators.captions.templates import TEMPLATES
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split
from menagerie.generators.vocabulary import Vocabulary

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

Counts = Int64[np.ndarray, "rows columns"]

# Roles of an animal pair in a split; if a pair has several, the first of them counts.
ROLES = ("train, swapped too", "train", "unseen_pairs", "validation", HELD_OUT, "another subset", "not in the file")


def mentioned_relations(split: Split) -> list[str | None]:
    """The relations that captions state; [None] if they state none, which stands for any relation."""
    scenes = [scene for records in split.subsets.values() for scene in records.scenes]
    shown = {scene.relation for scene in scenes} if TEMPLATES[split.recipe["template"]].relation else set()
    return [relation for relation in RELATIONS.values() if relation in shown] or [None]


def in_relation(scenes: Iterable[Scene], relation: str | None) -> list[Scene]:
    """The scenes in a relation; all scenes if it is None."""
    return [scene for scene in scenes if relation in (None, scene.relation)]


def tally(entries: Iterable[tuple[str, str]], rows: Sequence[str], columns: Sequence[str]) -> Counts:
    """Count each (row, column) in `entries`."""
    table = np.zeros((len(rows), len(columns)), np.int64)
    for (row, column), count in Counter(entries).items():
        table[rows.index(row), columns.index(column)] = count
    return table


def animal_counts(scenes: Sequence[Scene], vocabulary: Vocabulary, relation: str | None = None) -> Counts:
    """For each pair of animals, the number of scenes with both, as a matrix (animals, animals).

    Without a relation it is symmetric. With one, only scenes in it count, and rows are the animals in its first slot.
    """
    if relation is None:
        entries = (both for s in scenes for both in set(permutations([thing.animal for thing in s.things], 2)))
    else:
        entries = (tuple(thing.animal for thing in scene.things) for scene in in_relation(scenes, relation))
    return tally(entries, vocabulary.animals, vocabulary.animals)


def attribute_counts(scenes: Sequence[Scene], vocabulary: Vocabulary, attribute: str) -> Counts:
    """For each animal and each texture or size (`attribute`: "texture" or "size"), the number of things, as a matrix
    (animals, textures) or (animals, sizes)."""
    entries = ((thing.animal, getattr(thing, attribute)) for scene in scenes for thing in scene.things)
    return tally(entries, vocabulary.animals, getattr(vocabulary, f"{attribute}s"))


def background_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """For each animal and background the number of things, as a matrix (animals, backgrounds)."""
    entries = ((thing.animal, scene.background) for scene in scenes for thing in scene.things)
    return tally(entries, vocabulary.animals, vocabulary.backgrounds)


def pair_coverage(split: Split, relation: str | None = None) -> Counts:
    """For each pair of different animals, the index of its role in `ROLES`, as a symmetric matrix (animals, animals).

    With a relation, only scenes in that relation count.
    """
    animals = split.vocabulary.animals
    table = np.full((len(animals), len(animals)), len(ROLES) - 1, np.int64)
    for role, scenes in reversed(list(enumerate(role_scenes(split)))):  # the first role is written last and wins
        counts = animal_counts(in_relation(scenes, relation), split.vocabulary)
        table[counts > 0] = role
    return table


def role_scenes(split: Split) -> list[list[Scene]]:
    """For each of `ROLES` except the last, the scenes that give their pairs of animals this role."""
    of = {name: records.scenes for name, records in split.subsets.items()}
    unseen = [scene for name in of if name.endswith("unseen_pairs") for scene in of[name]]
    everything = [scene for scenes in of.values() for scene in scenes]
    return [swapped_too(split), of["train"], unseen, of["validation"], of.get(HELD_OUT, []), everything]


def swapped_too(split: Split) -> list[Scene]:
    """The scenes of two things in train whose swap is in train, too."""
    train, swap = split.subsets["train"].scenes, SWAPS[split.recipe["kind"]]
    known = set(train)
    return [scene for scene in train if len(scene.things) == 2 and scene != (other := swap(scene)) and other in known]


CELL = 0.3  # inches; so that a matrix of 20 animals is as wide as the page

# A palette for colour-blind readers, and letters for printing in grey.
ROLE_COLOURS = ("#0072b2", "#56b4e9", "#e69f00", "#cc79a7", "#d55e00", "#009e73", "#eeeeee")
ROLE_LETTERS = ("S", "T", "U", "V", "H", "O", "")


def count_matrix(
    table: Counts, rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str], counted: str
) -> Figure:
    """Draw counts as colours and numbers; zero is grey. `axes` are the labels of rows and columns."""
    figure, axis = framed(rows, columns, axes)
    most = max(int(table.max(initial=0)), 1)
    scale = {"cmap": "viridis", "vmin": 0, "vmax": most}
    image = axis.imshow(np.ma.masked_equal(table, 0), **scale)
    for (row, column), count in np.ndenumerate(table):
        if count:
            write(axis, row, column, str(count), ink(colour_at(count, scale)))
    inch = 1 / figure.get_figwidth()
    place = figure.add_axes((1 + 0.15 * inch, 0, 0.15 * inch, 1))
    bar = figure.colorbar(image, cax=place, ticks=MaxNLocator(6, integer=True))
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"{counted}; grey: none", fontsize=8)
    return figure


def role_matrix(table: Int64[np.ndarray, "n n"], animals: Sequence[str]) -> Figure:
    """Draw each animal pair's role as colour and letter; the legend counts the pairs of each role."""
    figure, axis = framed(animals, animals, ("", ""))
    shown = np.ma.masked_where(np.eye(len(animals), dtype=bool), table)
    axis.imshow(shown, cmap=ListedColormap(ROLE_COLOURS), vmin=-0.5, vmax=len(ROLES) - 0.5)
    axis.set_facecolor("white")
    for (row, column), role in np.ndenumerate(table):
        if row != column:
            write(axis, row, column, ROLE_LETTERS[role], ink(ROLE_COLOURS[role]))
    counts = np.bincount(table[np.triu_indices(len(animals), 1)], minlength=len(ROLES))
    legend = zip(ROLE_COLOURS, ROLE_LETTERS, ROLES, counts, strict=True)
    keys = [
        Patch(facecolor=colour, edgecolor="0.6", label=f"{letter}  {role} ({count})".strip())
        for colour, letter, role, count in legend
        if count
    ]
    axis.legend(handles=keys, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    return figure


def framed(rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str]) -> tuple[Figure, Axes]:
    """An empty matrix that fills its figure, with names of rows and columns; cells have a fixed size."""
    figure = Figure((CELL * len(columns), CELL * len(rows)))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_facecolor("0.9")
    # Names may come from strangers: text between dollar signs is not read as a formula.
    axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8, parse_math=False)
    axis.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)
    axis.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axis.set_ylabel(axes[0], fontsize=9)
    axis.set_xlabel(axes[1], fontsize=9)
    axis.xaxis.set_label_position("top")
    return figure, axis


def write(axis: Axes, row: int, column: int, text: str, colour: str) -> None:
    """Write a short text in the middle of a cell."""
    axis.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
