"""What a split shows together: counts of animals, textures, sizes, backgrounds, and the role of every animal pair."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Int64

from envs.scene import Scene
from envs.slots import RELATIONS
from generators.captions.templates import SWAPS, TEMPLATES
from generators.rules.hold_out import HELD_OUT
from generators.storage.split_file import Split
from generators.vocabulary import Vocabulary

Counts = Int64[np.ndarray, "rows columns"]

# What an animal pair is in a split; one that is several things is the first of them.
ROLES = ("train, swapped too", "train", "unseen_pairs", "validation", HELD_OUT, "another subset", "not in the file")


def told_relations(split: Split) -> list[str | None]:
    """The relations that captions tell, first slot first; only None, which stands for any, where they tell none."""
    scenes = [scene for records in split.subsets.values() for scene in records.scenes]
    found = {scene.relation for scene in scenes} if TEMPLATES[split.recipe["template"]].relation else set()
    return [relation for relation in RELATIONS.values() if relation in found] or [None]


def in_relation(scenes: Iterable[Scene], relation: str | None) -> list[Scene]:
    """The scenes of a relation; all of them for None."""
    return [scene for scene in scenes if relation in (None, scene.relation)]


def tally(found: Iterable[tuple[str, str]], rows: Sequence[str], columns: Sequence[str]) -> Counts:
    """How often each (row, column) was found."""
    table = np.zeros((len(rows), len(columns)), np.int64)
    for (row, column), count in Counter(found).items():
        table[rows.index(row), columns.index(column)] = count
    return table


def animal_counts(scenes: Sequence[Scene], vocabulary: Vocabulary, relation: str | None = None) -> Counts:
    """Scenes in which both animals are, (animals, animals).

    Symmetric; for a relation ordered, with the animal in its first slot as the row.
    """
    if relation is None:
        found = (both for s in scenes for both in set(permutations([thing.animal for thing in s.things], 2)))
    else:
        found = (tuple(thing.animal for thing in scene.things) for scene in in_relation(scenes, relation))
    return tally(found, vocabulary.animals, vocabulary.animals)


def texture_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Animals shown in each texture, (animals, textures)."""
    found = ((thing.animal, thing.texture) for scene in scenes for thing in scene.things)
    return tally(found, vocabulary.animals, vocabulary.textures)


def size_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Animals shown in each size, (animals, sizes)."""
    found = ((thing.animal, thing.size) for scene in scenes for thing in scene.things)
    return tally(found, vocabulary.animals, vocabulary.sizes)


def background_counts(scenes: Sequence[Scene], vocabulary: Vocabulary) -> Counts:
    """Animals shown on each background, (animals, backgrounds)."""
    found = ((thing.animal, scene.background) for scene in scenes for thing in scene.things)
    return tally(found, vocabulary.animals, vocabulary.backgrounds)


def pair_coverage(split: Split, relation: str | None = None) -> Counts:
    """The role of every pair of two different animals, as indices of `ROLES` (animals, animals), symmetric.

    With a relation: its role in the scenes of that relation.
    """
    animals = split.vocabulary.animals
    table = np.full((len(animals), len(animals)), len(ROLES) - 1, np.int64)
    for role, scenes in reversed(list(enumerate(role_scenes(split)))):  # the first role is painted last
        counts = animal_counts(in_relation(scenes, relation), split.vocabulary)
        table[counts > 0] = role
    return table


def role_scenes(split: Split) -> list[list[Scene]]:
    """The scenes that give a pair each of `ROLES` but the last."""
    of = {name: records.scenes for name, records in split.subsets.items()}
    unseen = [scene for name in of if name.endswith("unseen_pairs") for scene in of[name]]
    everything = [scene for scenes in of.values() for scene in scenes]
    return [swapped_too(split), of["train"], unseen, of["validation"], of.get(HELD_OUT, []), everything]


def swapped_too(split: Split) -> list[Scene]:
    """The scenes of two animals in train whose swap is another scene of train."""
    train, swap = split.subsets["train"].scenes, SWAPS[split.recipe["kind"]]
    known = set(train)
    return [scene for scene in train if len(scene.things) == 2 and scene != (other := swap(scene)) and other in known]
