"""Which records of a probe set belong together: arrays of record numbers, with which measures index codes."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int64

from menagerie.envs.core.errors import UserError
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.probe_scenes import quartet
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import Split


@dataclass(frozen=True)
class ProbeGrid:
    """The records of a probe set of two things side by side. For codes (n, d) of these records, codes[grid.records] has
    the shape (v, p, q, d)."""

    records: Int64[np.ndarray, "v p q"]
    """The number of a record by view, ordered pair of animals (left, right) and ordered pair of their textures."""
    animals: Int64[np.ndarray, "p 2"]
    """Indices in the split's vocabulary."""
    textures: Int64[np.ndarray, "q 2"]
    group: Int[np.ndarray, " p"]
    """The recorded group: the same for both orders of a pair of animals. Fit and test probes on different groups."""
    mirror: Int64[np.ndarray, " p"]
    """For each pair of animals, the index of the same pair in the other order."""
    swap: Int64[np.ndarray, " q"]
    """For each pair of textures, the index of the same pair in the other order."""


def probe_grid(split: Split, subset: str = ProbeRecipe.tests[0]) -> ProbeGrid:
    """The grid of a probe set; raises for another kind of split, or a crowd."""
    records = records_of(split, subset)
    if split.recipe["layout"]:
        raise UserError(f"{split.path} is a drawn sample of crowds, which has no grid of all pairs; take its quartets")
    assert records.groups is not None  # `records_of` has checked it
    # In each row the left thing comes first.
    kept = [records.columns[name][: len(records)].tolist() for name in ("view", "animal", "texture")]
    number = {(view, tuple(p), tuple(q)): i for i, (view, p, q) in enumerate(zip(*kept, strict=True))}
    views, animals, textures = (sorted(set(values)) for values in zip(*number, strict=True))
    table = np.array([[[number[view, p, q] for q in textures] for p in animals] for view in views], np.int64)
    return ProbeGrid(
        records=table,
        animals=np.array(animals, np.int64),
        textures=np.array(textures, np.int64),
        group=records.groups[table[0, :, 0]],
        mirror=np.array([animals.index(pair[::-1]) for pair in animals], np.int64),
        swap=np.array([textures.index(pair[::-1]) for pair in textures], np.int64),
    )


def quartets_of(split: Split, subset: str = ProbeRecipe.tests[0]) -> Int64[np.ndarray, "v s 4"]:
    """The numbers of the records of each quartet in each view: scene, swap, mirror, the mirror's swap. A quartet has
    one index s in all views."""
    records = records_of(split, subset)
    number, rows = {scene: i for i, scene in enumerate(records.scenes)}, {}
    done: set[int] = set()
    for i, scene in enumerate(records.scenes):
        if i not in done:
            four = [number[one] for one in quartet(scene)]
            rows.setdefault(scene.view, []).append(four)
            done.update(four)
    return np.array([rows[view] for view in sorted(rows)], np.int64)


def records_of(split: Split, subset: str) -> Records:
    """The records of a test of a probe set; raises for another kind of split."""
    records = split.subsets.get(subset)
    if split.recipe["kind"] != ProbeRecipe.kind or records is None or records.groups is None:
        raise UserError(f"{split.path} has no probe set {subset!r}; make one with 'menagerie make probe'")
    return records
