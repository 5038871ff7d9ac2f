"""The records of one subset of a split: columns of numbers, from which scenes, captions and graphs are made.

Nothing is made when a file is opened. A record has a scene, a content (what its caption says) and a counterfactual: the
row of the swapped scene, of which the hard negative is true, or -1. Swapped scenes that are no records themselves
follow the records as further rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.contents import swapped_content
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.relations import chain
from menagerie.generators.captions.templates import Caption, Content, template_of, write_caption
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.vocabulary import SCENE, Columns, Vocabulary, none_in

NO_OBJECT = 255  # in the column `mentioned`
NO_GRAPH = SceneGraph(())
CONTENT_COLUMNS = ("phrasing", "mentioned", "textured", "negative")
DENIED = ("animal", "texture", "size")
BLOCK = 1024  # rows that are read or written at once
KEPT = 1 << 17  # texts of more records are written anew whenever they are asked for
Rows = Sequence[int] | Int[np.ndarray, " n"]


class Records:
    """One subset of a split, as a sequence of records."""

    def __init__(self, recipe: Mapping[str, Any], vocabulary: Vocabulary, columns: Columns, count: int) -> None:
        """`columns` are those of `columns.make_columns`; the first `count` rows are records."""
        self.recipe, self.vocabulary, self.columns, self.count = recipe, vocabulary, columns, count
        self.template = template_of(recipe)

    def __len__(self) -> int:
        return self.count

    @property
    def counterfactual(self) -> Int[np.ndarray, " n"]:
        """For each record, the row of its swapped scene; -1 for none."""
        return self.columns["counterfactual"][: self.count]

    @property
    def pairs(self) -> Int[np.ndarray, " n"] | None:
        """In probe sets: what is split must be split by these."""
        return self.columns["pair"][: self.count] if "pair" in self.columns else None

    @property
    def number_of_objects(self) -> Int[np.ndarray, " n"]:
        """The number of objects in each record's scene."""
        return (self.columns["animal"][: self.count] != none_in(self.vocabulary.animals)).sum(1)

    def scenes_at(self, rows: Rows | slice) -> list[Scene]:
        """Make the scenes of some rows."""
        return self.vocabulary.decode({name: self.columns[name][rows] for name in self.columns if name in SCENE})

    def contents_at(self, rows: Rows | slice) -> list[Content]:
        """What the captions of some rows say."""
        known = zip(*(self.columns[name][rows].tolist() for name in CONTENT_COLUMNS), strict=True)
        scenes = self.scenes_at(rows)
        denied = self._denied_objects(rows) if "denied" in self.columns else [()] * len(scenes)
        found = []
        for scene, absent, (phrasing, mentioned, textured, negative) in zip(scenes, denied, known, strict=True):
            numbers = [number for number in mentioned if number != NO_OBJECT]
            objects = (scene.objects[number] for number in numbers)
            objects = tuple(t if textured >> k & 1 else t._replace(texture="") for k, t in enumerate(objects))
            predicates = chain([obj.slot for obj in objects], self.template.relations)
            found.append(Content(scene, objects, predicates, absent, phrasing, bool(negative)))
        return found

    def _denied_objects(self, rows: Rows | slice) -> list[tuple[Object, ...]]:
        v, found = self.vocabulary, []
        for animal, texture, size in self.columns["denied"][rows].tolist():
            there = animal != none_in(v.animals)
            sized = v.sizes[size] if v.sizes and there else ""
            found.append((Object(v.animals[animal], v.textures[texture], "center", sized),) if there else ())
        return found

    def captions_at(self, rows: Rows | slice) -> list[Caption]:
        """Write the captions of some rows, with their graphs."""
        return [write_caption(content, self.template) for content in self.contents_at(rows)]

    def negatives_at(self, rows: Rows | slice) -> list[Caption | None]:
        """Write the hard negatives of some rows; None for a record without one."""
        swap = KINDS[self.recipe["kind"]].swap
        return [
            write_caption(swapped_content(content, swap), self.template) if content.negative else None
            for content in self.contents_at(rows)
        ]

    def alike(self, *fields: str) -> list[Scene]:
        """Make one scene of each group of records that have the same `fields`, such as "animal" and "slot"."""
        table = np.concatenate([self.columns[name][: self.count] for name in fields], 1)
        return self.scenes_at(np.sort(np.unique(table, axis=0, return_index=True)[1]))

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scenes of all records."""
        return self.scenes_at(slice(self.count))

    @cached_property
    def true(self) -> list[Caption]:
        """The captions of all records, with their graphs."""
        return self.captions_at(slice(self.count))

    @cached_property
    def false(self) -> list[Caption | None]:
        """The hard negatives of all records."""
        return self.negatives_at(slice(self.count))

    @cached_property
    def captions(self) -> list[str]:
        """The texts of all captions."""
        return [caption.text for caption in self.true]

    @cached_property
    def graphs(self) -> list[SceneGraph]:
        """The graphs of all captions."""
        return [caption.graph for caption in self.true]

    @cached_property
    def negatives(self) -> list[str]:
        """The texts of all hard negatives; empty for a record without one."""
        return [caption.text if caption else "" for caption in self.false]

    @cached_property
    def negative_graphs(self) -> list[SceneGraph]:
        """The graphs of all hard negatives; without nodes for a record without one."""
        return [caption.graph if caption else NO_GRAPH for caption in self.false]

    def true_of(self, rows: Rows) -> list[Caption]:
        """The captions of some records, kept where there are few records."""
        return [self.true[i] for i in rows] if self.count <= KEPT else self.captions_at(np.asarray(rows))

    def false_of(self, rows: Rows) -> list[Caption | None]:
        """The hard negatives of some records, kept where there are few records."""
        return [self.false[i] for i in rows] if self.count <= KEPT else self.negatives_at(np.asarray(rows))

    def texts(self) -> Iterator[str]:
        """Yield all captions and hard negatives, their nodes and predicates."""
        for rows in blocks(self.count):
            numbers = range(rows.start, rows.stop)
            for text, graph in (*self.true_of(numbers), *filter(None, self.false_of(numbers))):
                yield text
                yield from graph.nodes
                yield from (edge.predicate for edge in graph.edges)


def blocks(n: int) -> Iterator[slice]:
    """Yield the rows 0 to n in blocks. All texts or pictures of a split may not fit in memory."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))
