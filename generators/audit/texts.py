"""Checks of texts: captions and graphs are true of their scenes, hard negatives are false of them and true of the swap.

So no text tells what neither a scene nor its swap shows, and a training caption denies nothing that is held out. The
relations of objects are derived anew, from the positions of their places.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import product

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import SLOTS, place_of
from menagerie.generators.audit.findings import Finding, none
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import noun_phrase, phrase
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.rules.hold_out import matches_any, recorded_rules
from menagerie.generators.storage.split_file import Split

NO = "no "


def object_phrases(scene: Scene) -> list[tuple[str, str]]:
    """For each object of a scene, or all equal ones, its phrase with and without the texture: "two red cats", "two
    cats"."""
    numbers = Counter(obj._replace(slot="") for obj in scene.objects)
    return [
        (noun_phrase(f"{obj.size} {obj.texture}".strip(), obj.animal, n), noun_phrase(obj.size, obj.animal, n))
        for obj, n in numbers.items()
    ]


def true_nodes(scene: Scene) -> set[str]:
    """The noun phrases of a complete caption: objects with size and texture, equal ones counted, and the background."""
    return {complete for complete, _ in object_phrases(scene)} | {scene.background}


def mentioned_phrases(graph: SceneGraph, scene: Scene) -> list[str]:
    """For each object of a scene, the phrase by which a graph mentions it ("red cat" or "cat"), or "" if none does."""
    return [next((text for text in texts if text in graph.nodes), "") for texts in object_phrases(scene)]


def predicate_of(scene: Scene, one: int, other: int) -> str:
    """The predicate of two objects of a scene, by the positions of their places."""
    slots = [scene.objects[i].slot for i in (one, other)]
    positions = [SLOTS[slot].position for slot in slots]
    pairs = {frozenset(its.slots): its for its in RELATIONS.values()}
    its = pairs.get(frozenset(map(place_of, slots))) or next(its for its in RELATIONS.values() if its.ahead(*positions))
    return its.predicates[its.ahead(*positions) <= 0]


def edge_holds(edge: Edge, graph: SceneGraph, scene: Scene) -> bool:
    """Whether an edge holds between the two objects of a scene that its nodes mention."""
    phrases, nodes = mentioned_phrases(graph, scene), dict(enumerate(graph.nodes))
    ends = [phrases.index(nodes[end]) if nodes.get(end) in phrases else -1 for end in edge[1:]]
    return min(ends) >= 0 and ends[0] != ends[1] and predicate_of(scene, *ends) == edge.predicate


def states_in_part(graph: SceneGraph, scene: Scene) -> bool:
    """Whether `graph` states only what is true of `scene`. It must mention the background and at least one object, none
    twice. Its edges must hold, and what it denies must be absent."""
    phrases = mentioned_phrases(graph, scene)
    affirmed = sorted(node for node in graph.nodes if not node.startswith(NO))
    denied = {node.removeprefix(NO) for node in graph.nodes if node.startswith(NO)}
    true = affirmed == sorted([*filter(None, phrases), scene.background]) and any(phrases)
    absent = denied.isdisjoint(text for texts in object_phrases(scene) for text in texts)
    return true and absent and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def states_all(graph: SceneGraph, scene: Scene) -> bool:
    """Whether every node and edge of `graph` is true of `scene`, and all objects are mentioned with their textures."""
    return true_nodes(scene) <= set(graph.nodes) and states_in_part(graph, scene)


def bag_of_words(text: str) -> Counter:
    """The bag of words of a caption; "a" and "an" are one word."""
    return Counter("a" if word == "an" else word for word in text.split())


def check_captions(split: Split) -> Iterator[Finding]:
    """Check that captions and graphs are true, and that negatives are false, true of the swap and have their caption's
    bag of words. Only captions of train and of multi-object scenes may leave objects out; only training scenes may lack
    a negative."""
    v, kind = split.vocabulary, split.kind
    for name, r in split.subsets.items():
        true_of = states_all if kind.names_all and name != "train" else states_in_part
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (true_of(g, s) and parse_caption(c, v) == g))
        yield none(f"every caption of {name} is true and states its graph", untrue)
        negatives = [row for row in rows if row[3] or row[4].nodes]
        true = (s.key for s, _, _, n, g in negatives if states_in_part(g, s) or parse_caption(n, v) != g)
        yield none(f"every negative of {name} is false and states its graph", true)
        untrue = (s.key for s, *_, g in negatives if not true_of(g, kind.swap(s)))
        yield none(f"every negative of {name} is true of the swap", untrue)
        if kind.relational:
            silent = (s.key for s, _, g, _, _ in rows if len(g.edges) != len(g.nodes) - 2)  # the last is the place
            yield none(f"every caption of two objects of {name} states their relation", silent)
        if kind.same_words(name):
            other = (s.key for s, c, _, n, _ in negatives if bag_of_words(c) != bag_of_words(n))
            yield none(f"every negative of {name} has its caption's bag of words", other)
        if name != "train":
            yield none(f"every scene of {name} has a negative", (row[0].key for row in rows if not row[3]))


def check_denials(split: Split) -> Iterator[Finding]:
    """Check that no text of train denies an object that a hold-out rule matches: "and no red cat"."""
    v, rules, train = split.vocabulary, recorded_rules(split.recipe, split.vocabulary), split.subsets["train"]
    if not rules:
        return
    every = (Object(*names, "center", size) for *names, size in product(v.animals, v.textures, v.sizes or ("",)))
    object_of = {f"{NO}{phrase(obj)}": obj for obj in every}
    rows = zip((*train.scenes, *train.scenes), (*train.graphs, *train.negative_graphs), strict=True)
    denied = ((s, object_of[node]) for s, graph in rows for node in graph.nodes if node in object_of)
    strange = (f"{phrase(t)} in {s.key}" for s, t in denied if matches_any(rules, Scene(s.background, (t,))))
    yield none("train denies nothing that a rule holds out", strange)
