"""Co-occurrences in a split: counts of animals, textures, sizes and backgrounds, and the role of every animal pair."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Int64

from menagerie.envs.scene import Scene
from menagerie.envs.slots import RELATIONS
from menagerie.generators.captions.templates import SWAPS
from menagerie.generators.captions.wording import TEMPLATES
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split
from menagerie.generators.vocabulary import Vocabulary

Counts = Int64[np.ndarray, "rows columns"]

# Roles of an animal pair in a split; a pair with several has the first of them.
ROLES = ("train, swapped too", "train", "unseen_pairs", "validation", HELD_OUT, "another subset", "not in the file")


def mentioned_relations(split: Split) -> list[str | None]:
    """The relations that captions state; [None], which stands for any relation, if they state none."""
    scenes = [scene for records in split.subsets.values() for scene in records.scenes]
    shown = {scene.relation for scene in scenes} if TEMPLATES[split.recipe["template"]].relation else set()
    return [relation for relation in RELATIONS.values() if relation in shown] or [None]


def in_relation(scenes: Iterable[Scene], relation: str | None) -> list[Scene]:
    """The scenes in a relation; all scenes for None."""
    return [scene for scene in scenes if relation in (None, scene.relation)]


def tally(entries: Iterable[tuple[str, str]], rows: Sequence[str], columns: Sequence[str]) -> Counts:
    """How often each (row, column) occurs in `entries`."""
    table = np.zeros((len(rows), len(columns)), np.int64)
    for (row, column), count in Counter(entries).items():
        table[rows.index(row), columns.index(column)] = count
    return table


def animal_counts(scenes: Sequence[Scene], vocabulary: Vocabulary, relation: str | None = None) -> Counts:
    """Number of scenes with both animals, (animals, animals).

    Symmetric; with a relation, rows are the animals in its first slot.
    """
    if relation is None:
        entries = (both for s in scenes for both in set(permutations([thing.animal for thing in s.things], 2)))
    else:
        entries = (tuple(thing.animal for thing in scene.things) for scene in in_relation(scenes, relation))
    return tally(entries, vocabulary.animals, vocabulary.animals)


def texture_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Number of things by animal and texture, (animals, textures)."""
    entries = ((thing.animal, thing.texture) for scene in scenes for thing in scene.things)
    return tally(entries, vocabulary.animals, vocabulary.textures)


def size_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Number of things by animal and size, (animals, sizes)."""
    entries = ((thing.animal, thing.size) for scene in scenes for thing in scene.things)
    return tally(entries, vocabulary.animals, vocabulary.sizes)


def background_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Number of things by animal and background, (animals, backgrounds)."""
    entries = ((thing.animal, scene.background) for scene in scenes for thing in scene.things)
    return tally(entries, vocabulary.animals, vocabulary.backgrounds)


def pair_coverage(split: Split, relation: str | None = None) -> Counts:
    """The role of every pair of two different animals, as indices of `ROLES` (animals, animals), symmetric.

    With a relation: its role in the scenes of that relation.
    """
    animals = split.vocabulary.animals
    table = np.full((len(animals), len(animals)), len(ROLES) - 1, np.int64)
    for role, scenes in reversed(list(enumerate(role_scenes(split)))):  # the first role is written last
        counts = animal_counts(in_relation(scenes, relation), split.vocabulary)
        table[counts > 0] = role
    return table


def role_scenes(split: Split) -> list[list[Scene]]:
    """For each of `ROLES` but the last, the scenes that give a pair this role."""
    of = {name: records.scenes for name, records in split.subsets.items()}
    unseen = [scene for name in of if name.endswith("unseen_pairs") for scene in of[name]]
    everything = [scene for scenes in of.values() for scene in scenes]
    return [swapped_too(split), of["train"], unseen, of["validation"], of.get(HELD_OUT, []), everything]


def swapped_too(split: Split) -> list[Scene]:
    """The scenes of two things in train whose swap is another scene of train."""
    train, swap = split.subsets["train"].scenes, SWAPS[split.recipe["kind"]]
    known = set(train)
    return [scene for scene in train if len(scene.things) == 2 and scene != (other := swap(scene)) and other in known]
