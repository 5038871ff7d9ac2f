"""The records of one subset of a split: columns of numbers, from which scenes, captions and graphs are made.

Nothing is made when a file is opened. A record has a scene, a content (what its caption says) and a counterfactual: the
row of the swapped scene, of which the hard negative is true, or -1. Swapped scenes that are no records themselves
follow the records as further rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int

from menagerie.envs.core.identity import generator
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.contents import swapped_content
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.relations import chain
from menagerie.generators.captions.templates import Caption, Content, template_of, write_caption
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.vocabulary import OBJECT, SCENE, Columns, Vocabulary, none_in

NO_OBJECT = 255  # in the column `mentioned`
NO_GRAPH = SceneGraph(())
CONTENT_COLUMNS = ("phrasing", "mentioned", "textured", "negative")
DENIED = ("animal", "texture", "size")
BLOCK = 1024  # rows that are read or written at once
SOME = 1 << 16  # of more records than `KEPT`, those whose texts stand for all
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

    def spread(self) -> Rows:
        """All records; of very many, some that are drawn and those with the longest names."""
        if self.count <= KEPT:
            return range(self.count)
        drawn = generator(0, "spread", self.count).choice(self.count, SOME, replace=False)
        lengths = [self._lengths(count) for count in (len, lambda name: len(name.split()))]  # in letters, and in words
        longest = np.unique(np.argpartition(lengths, -SOME // 16, 1)[:, -SOME // 16 :])
        return np.concatenate([np.sort(drawn), longest])

    def texts(self) -> Iterator[str]:
        """Yield the captions and hard negatives of records (of very many, of those in `spread`), their nodes and
        predicates."""
        rows = self.spread()
        for text, graph in (*self.true_of(rows), *filter(None, self.false_of(rows))):
            yield text
            yield from graph.nodes
            yield from (edge.predicate for edge in graph.edges)

    def _lengths(self, count: Callable[[str], int]) -> Int[np.ndarray, " n"]:
        """The length of each caption's phrasing and of all that it mentions and denies."""
        c, v = {name: column[: self.count] for name, column in self.columns.items()}, self.vocabulary

        def of(field: str, numbers: np.ndarray) -> np.ndarray:
            lengths = np.zeros(none_in(v.names(field)) + 1, np.int32)
            lengths[: len(v.names(field))] = list(map(count, v.names(field)))
            return lengths[numbers]

        said = c["mentioned"] != NO_OBJECT
        order = np.where(said, c["mentioned"], 0).astype(np.intp)
        textured = c["textured"][:, None] >> np.arange(order.shape[1]) & 1
        objects = sum(of(field, c[field]) for field in ("animal", "size") if field in c)
        named = np.take_along_axis(objects, order, 1)
        named = named + textured * np.take_along_axis(of("texture", c["texture"]), order, 1)
        phrasings = np.array(list(map(count, self.template.phrasings)), np.int32)
        total = phrasings[c["phrasing"]] + of("background", c["background"]) + (named * said).sum(1)
        if "denied" in c:
            total = total + sum(of(field, c["denied"][:, i]) for i, field in enumerate(DENIED) if v.names(field))
        return total


def blocks(n: int) -> Iterator[slice]:
    """Yield the rows 0 to n in blocks. All texts or pictures of a split may not fit in memory."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def single_objects(table: Columns, vocabulary: Vocabulary) -> list[Scene]:
    """Each different object of a table in its slot, view and background, as a scene of its own: all that a renderer has
    to know to draw the table's scenes."""
    there = table["animal"] != none_in(vocabulary.animals)
    size, number = table.get("size", np.zeros_like(table["slot"])), np.zeros(there.shape, np.int64)
    for part in (table["background"][:, None], table["view"][:, None], table["animal"], table["slot"], size):
        number = number * (int(part.max(initial=0)) + 1) + part
    first = np.unique(number[there], return_index=True)[1]
    row, place = (index[first] for index in np.nonzero(there))
    alone = {name: table[name][row] for name in ("background", "view")}
    return vocabulary.decode(alone | {name: table[name][row, place][:, None] for name in OBJECT if name in table})
