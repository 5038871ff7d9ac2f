"""How familiar the captions of a test are to a training: what only the true ones and what only the false ones state,
and how often training stated it. A model that prefers what it has seen is right wherever only the former was.

A binding is an attribute of an object ("red cat") or a relation of two ("cat on mat"). Of captions of any benchmark a
parser reads them, a word for a word: plurals and synonyms are others, what is denied isn't stated. Of our own splits
bindings are facts of scenes and need no parser: an animal in its texture, pairs, arrangements and orders of two.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object
from menagerie.generators.captions.contents import phrases
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.captions.relations import canonical_edge
from menagerie.generators.sources.information import mentions_in, split_phrase
from menagerie.generators.splits.facts import ARRANGEMENT, COMPOSITION, ORDER, PAIR, SEEN, STATED, Fact
from menagerie.generators.storage.records import blocks
from menagerie.generators.trained_on import Training, count_facts, read_part

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Item
    from menagerie.generators.captions.templates import Caption
    from menagerie.generators.storage.records import Records, Rows
    from menagerie.generators.vocabulary import Vocabulary

Binding = tuple[str, ...]
KINDS_OF_BINDINGS = {2: "attribute", 3: "relation"}  # by length: (noun, attribute) or (subject, predicate, object)
NEITHER, EVERY, TRUE_ONLY, FALSE_ONLY = STRATA = ("neither", "both", "only true", "only false")
FREE = NEITHER, EVERY  # strata in which what was seen doesn't tell which caption is true
UNREAD = "unread"
"""The stratum of records whose captions differ in no binding that is read, or of which a text has no graph."""


def bindings_in(graph: SceneGraph) -> frozenset[Binding]:
    """Return the bindings that a graph states. "A right of b" states the same as "b left of a"."""
    said = SceneGraph(tuple(node for node in graph.nodes if not node.startswith("no ")))
    attributes = (mention for mention in mentions_in([said]) if mention[1] not in ("and", "or"))
    nouns = [next(split_phrase(node)) for node in graph.nodes]
    relations = ((nouns[edge.subject], edge.predicate, nouns[edge.object]) for edge in map(canonical_edge, graph.edges))
    return frozenset((*attributes, *relations))


class Familiar(NamedTuple):
    """What a training had."""

    bindings: Counter[Binding]
    """How many captions state each binding; of our own splits: how many scenes show each fact."""
    texts: Counter[str]
    """How many captions are each text; those of photographs without capitals and punctuation."""


def familiar_captions(texts: Iterable[str], graphs: Iterable[SceneGraph]) -> Familiar:
    """Return what captions state, and what they are."""
    return Familiar(Counter(one for graph in graphs for one in bindings_in(graph)), Counter(map(plain_text, texts)))


def familiar_records(records: "Records", rows: "Rows") -> Familiar:
    """Return what some rows of a split show and say."""
    facts, texts = Counter[Fact](), Counter[str]()
    for block in blocks(len(rows)):
        facts.update(count_facts(records.scenes_at(np.asarray(rows[block]))))
        texts.update(caption.text for caption in records.captions_at(np.asarray(rows[block])))
    return Familiar(facts, texts)


def familiar_training(training: Training) -> Familiar | None:
    """Return what a training showed and said; None unless all of it is known."""
    if training.gaps or not training.parts:
        return None
    parts = list(map(read_part, training.parts))
    return Familiar(*(sum((getattr(part, name) for part in parts), Counter()) for name in ("facts", "texts")))


def only_stated(item: "Item", stated: Callable[["Caption"], Collection[Hashable]]) -> tuple[frozenset, frozenset]:
    """Return what texts state that are true of an item's (first) image and no other text does, and the reverse."""
    own, sides = item.own(0), (set[Hashable](), set[Hashable]())
    for number, text in enumerate(item.texts):
        sides[number not in own].update(stated(text))
    return frozenset(sides[0] - sides[1]), frozenset(sides[1] - sides[0])


def count_seen(known: Mapping[Hashable, int], stated: Collection[Hashable]) -> int | None:
    """Return how often all of `stated` was seen together; None if nothing is stated."""
    return sum(known.get(one, 0) for one in stated) if stated else None


def stratum_of(true: int | None, false: int | None) -> str:
    """Return the stratum of a record by how often what only its true and only its false captions state was seen."""
    if true is None and false is None:
        return UNREAD
    return {(0, 0): NEITHER, (1, 1): EVERY, (1, 0): TRUE_ONLY, (0, 1): FALSE_ONLY}[bool(true), bool(false)]


class FamiliarRecord(NamedTuple):
    """How familiar the captions of a record are: of its true and of its false ones, each in two numbers."""

    record: str
    task: str
    bindings: tuple[frozenset[Binding], frozenset[Binding]]
    """What only these state; empty where the parser has no graph of a text."""
    seen: tuple[int | None, int | None]
    texts: tuple[int, int]
    """How often whole texts were seen."""
    unseen: int | None
    """How many of these bindings were never seen, on the side that has more; None if nothing is read."""

    @property
    def stratum(self) -> str:
        return stratum_of(*self.seen)


def record_familiarity(item: "Item", known: Familiar, graph: Callable[[str], SceneGraph | None]) -> FamiliarRecord:
    """Return how familiar an item's captions are; `graph` gives None for a text that couldn't be parsed."""
    graphs = {text: graph(text.text) for text in item.texts}
    nothing = (frozenset(), frozenset())
    sides = nothing if None in graphs.values() else only_stated(item, lambda text: bindings_in(graphs[text]))
    true, false = (count_seen(known.bindings, side) for side in sides)
    whole = only_stated(item, lambda text: [plain_text(text.text)])
    texts = tuple(count_seen(known.texts, side) or 0 for side in whole)
    unseen = max(sum(not known.bindings[one] for one in side) for side in sides) if any(sides) else None
    return FamiliarRecord(item.record, item.task, sides, (true, false), texts, unseen)


def facts_stated(graph: SceneGraph, known: Mapping[str, Object]) -> frozenset[Fact]:
    """Return the facts that a caption of ours states, `known` its phrases of objects."""
    objects = [known[node] for node in graph.nodes if node in known]
    textured = [obj[:2] for obj in objects if obj.texture]
    facts = {(COMPOSITION, *its) for its in textured}
    facts |= {(PAIR, *sorted(both)) for both in combinations([obj.animal for obj in objects], 2)}
    facts |= {(ARRANGEMENT, *sorted(both)) for both in combinations(textured, 2)}
    for edge in graph.edges:
        name, its = next((name, its.predicates) for name, its in RELATIONS.items() if edge.predicate in its.predicates)
        ends = (edge.subject, edge.object) if edge.predicate == its[0] else (edge.object, edge.subject)
        facts.add((ORDER, name, *(known[graph.nodes[end]].animal for end in ends)))
    return frozenset(facts)


def seen_columns(words: "Vocabulary", trained: Familiar) -> Callable[["Item"], dict[str, int | None]]:
    """Return a function that gives, for an item of a split with these names, the columns `SEEN`: how many training
    scenes show what only its true captions, and what only its false ones state, by kind of fact; None if these don't
    differ in any. Last, how many training captions are these texts."""
    known = dict(phrases(words))
    stated = cache(lambda graph: facts_stated(graph, known))

    def columns(item: "Item") -> dict[str, int | None]:
        sides = only_stated(item, lambda text: stated(text.graph))
        counts = [count_seen(trained.bindings, [f for f in side if f[0] == kind]) for kind in STATED for side in sides]
        whole = (count_seen(trained.texts, side) for side in only_stated(item, lambda text: [text.text]))
        return dict(zip(SEEN, (*counts, *whole), strict=True))

    return columns
