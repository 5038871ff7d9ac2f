"""Checks of texts: captions are true, mention as much as the recipe requests and are worded as it says; negatives are
false."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SIZES
from menagerie.generators.audit.findings import Finding, first, within
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.incomplete import Chances
from menagerie.generators.captions.phrases import attributes, counted, phrase, with_article
from menagerie.generators.captions.relations import edge_holds
from menagerie.generators.captions.templates import CONJUNCTIONS, template_of
from menagerie.generators.parsers.world_grammar import Reading, parse, read
from menagerie.generators.storage.split_file import Split

# Kinds whose negatives have other words than the caption.
OTHER_WORDS = {"counting"}


def true_nodes(scene: Scene) -> set[str]:
    """The noun phrases of a complete caption: things with size and texture, equal ones counted, and the background."""
    numbers = Counter((attributes(thing), thing.animal) for thing in scene.things)
    return {counted(*named, number) for named, number in numbers.items()} | {scene.background}


def states(graph: SceneGraph, scene: Scene) -> bool:
    """Whether every node and edge of `graph` is true of `scene` and all things are mentioned."""
    return set(graph.nodes) == true_nodes(scene) and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def words(text: str) -> Counter:
    """The bag of words of a caption; "a" and "an" are one word."""
    return Counter("a" if word == "an" else word for word in text.split())


def check_texts(split: Split) -> Iterator[Finding]:
    """Check that captions and graphs are true, and that negatives are false and have their caption's bag of words.

    Only training captions may be incomplete, and only if the recipe requests it; only training scenes may lack a
    negative. Negatives of counting splits have other words.
    """
    v = split.vocabulary
    for name, r in split.subsets.items():
        incomplete = name == "train" and requested_chances(split) != Chances()
        holds = states_in_part if incomplete else states
        rows = list(zip(r.scenes, r.captions, r.graphs, r.negatives, r.negative_graphs, strict=True))
        untrue = (s.key for s, c, g, _, _ in rows if not (holds(g, s) and parse(c, v) == g))
        yield Finding(f"every caption of {name} is true and states its graph", *first(untrue))
        negatives = [row for row in rows if row[3]]
        if split.recipe["kind"] not in OTHER_WORDS:
            bag = (s.key for s, c, _, n, _ in negatives if words(c) != words(n))
            yield Finding(f"every negative of {name} has its caption's bag of words", *first(bag))
        true = (s.key for s, _, _, n, g in negatives if holds(g, s) or parse(n, v) != g)
        yield Finding(f"every negative of {name} is false and states its graph", *first(true))
        if name != "train":
            lacking = (row[0].key for row in rows if not row[3])
            yield Finding(f"every scene of {name} has a negative", *first(lacking))


NO = "no "


def requested_chances(split: Split) -> Chances:
    """The probabilities that the split's recipe sets for its training captions."""
    return Chances(**{name: split.recipe[name] for name in Chances._fields if name in split.recipe})


def mentioned_phrases(graph: SceneGraph, scene: Scene) -> list[str]:
    """For each thing of a scene, the phrase by which a graph mentions it ("red cat" or "cat"), or "" if none does."""
    candidates = [(phrase(thing), phrase(thing._replace(texture=""))) for thing in scene.things]
    return [next((text for text in texts if text in graph.nodes), "") for texts in candidates]


def states_in_part(graph: SceneGraph, scene: Scene) -> bool:
    """Whether `graph` states only what is true of `scene`. It must mention the background and at least one thing, none
    twice. Its edges must hold, and what it negates must be absent."""
    mentioned = [text for text in mentioned_phrases(graph, scene) if text]
    affirmed = sorted(node for node in graph.nodes if not node.startswith(NO))
    true = affirmed == sorted([*mentioned, scene.background]) and denies_only_absent(graph, scene)
    return bool(mentioned) and true and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def denies_only_absent(graph: SceneGraph, scene: Scene) -> bool:
    """Whether nothing that a graph negates is in the scene."""
    denied = {node.removeprefix(NO) for node in graph.nodes if node.startswith(NO)}
    return not denied & set(map(phrase, scene.things))


def salient_of(scene: Scene) -> int:
    """Index of the salient one of two things: the bigger one or, if both are equally big, the first in slot order (of a
    left/right pair, the left one)."""
    left, right = (SIZES.get(thing.size, 1.0) for thing in scene.things)
    return int(right > left)


def check_shares(split: Split) -> Iterator[Finding]:
    """Check that training captions mention animals, textures and the salient thing alone, and negate absent things, as
    often as requested."""
    mentioned, attributes, salient, negated = chances = requested_chances(split)
    if chances == Chances():
        return
    train = split.subsets["train"]
    phrases_of = [
        (scene, mentioned_phrases(graph, scene)) for graph, scene in zip(train.graphs, train.scenes, strict=True)
    ]
    pairs = [(salient_of(scene), phrases) for scene, phrases in phrases_of if len(phrases) == 2]
    both = sum(all(phrases) for _, phrases in pairs)
    alone = sum(bool(phrases[big]) and not phrases[1 - big] for big, phrases in pairs)
    chance = (1 - salient) * mentioned**2
    yield within("training pairs whose caption mentions both", both, len(pairs), chance)
    # If neither thing is drawn, one is chosen at random, so without `salient` each is alone equally often.
    chance = salient + (1 - salient) * (1 - mentioned**2) / 2
    yield within("training pairs whose caption mentions the salient one only", alone, len(pairs), chance)
    mentions = sum(bool(text) for _, phrases in phrases_of for text in phrases)
    textured = sum(text in map(phrase, scene.things) for scene, phrases in phrases_of for text in phrases)
    yield within("mentions in train with their texture", textured, mentions, attributes)
    denying = sum(any(node.startswith(NO) for node in graph.nodes) for graph in train.graphs)
    yield within("captions in train with a negation", denying, len(train), negated)


def check_negatives(split: Split) -> Iterator[Finding]:
    """Check that a training scene has a negative if and only if its caption mentions both textures."""
    r = split.subsets["train"]
    strange = (
        scene.key
        for scene, graph, negative in zip(r.scenes, r.graphs, r.negatives, strict=True)
        if bool(negative) != mentions_both_textures(graph, scene)
    )
    yield Finding("train has a negative where, and only where, both textures are mentioned", *first(strange))


def mentions_both_textures(graph: SceneGraph, scene: Scene) -> bool:
    """Whether a scene has two things and a graph mentions both with their textures."""
    complete = set(map(phrase, scene.things))
    return len(complete) == 2 and complete <= set(graph.nodes)


# Whether a caption, its reading and its scene agree with the requested value of a recipe's field.
Follows = Callable[[str, Reading, Scene, object], bool]


def follows_order(text: str, reading: Reading, scene: Scene, requested: object) -> bool:
    """Whether things are mentioned in the order of their slots; always true if the requested order is random."""
    places = [reading.graph.nodes.index(phrase) for phrase in mentioned_phrases(reading.graph, scene) if phrase]
    return requested == "random" or places == sorted(places)


def phrasing_in(text: str, scene: Scene, phrasings: Iterable[str]) -> str | None:
    """The phrasing of a caption: of those that fit, the one with the most fixed words; None if none fits."""
    place = rf"(?:in|on|at) the {re.escape(scene.background)}"
    words = {"things": ".+", "place": place, "background": re.escape(scene.background)}
    fitting = (phrasing for phrasing in phrasings if re.fullmatch(phrasing.format(**words), text))
    return max(fitting, key=lambda phrasing: len(phrasing.split()), default=None)


FIELDS: dict[str, Follows] = {
    "conjunction": lambda text, reading, scene, requested: set(reading.joints) & {*CONJUNCTIONS} <= {requested},
    "article": lambda text, reading, scene, requested: reading.article in ("", requested),
    "mention_order": follows_order,
    "phrasings": lambda text, reading, scene, requested: phrasing_in(text, scene, requested) is not None,
}


def check_wording(split: Split) -> Iterator[Finding]:
    """Check that captions are worded as the recipe requests where it replaces a field of its template."""
    for field, follows in FIELDS.items():
        if not (requested := split.recipe.get(field)):
            continue
        for name, records in split.subsets.items():
            rows = zip(records.scenes, records.captions, strict=True)
            readings = ((scene, text, read(text, split.vocabulary)) for scene, text in rows)
            strange = (s.key for s, text, said in readings if said is None or not follows(text, said, s, requested))
            shown = requested if isinstance(requested, str) else " or ".join(requested)
            yield Finding(f"captions of {name} have the {field.replace('_', ' ')} {shown}", *first(strange))


def check_template(split: Split) -> Iterator[Finding]:
    """Check that captions follow the template where the recipe doesn't change it, and that captions and negatives use
    "a" and "an" correctly."""
    template = template_of(split.recipe)
    fields = [
        field for field in FIELDS if not split.recipe.get(field) and not (field == "conjunction" and template.relation)
    ]
    rows = [(s, text) for r in split.subsets.values() for s, text in zip(r.scenes, r.captions, strict=True)]
    readings = ((scene, text, read(text, split.vocabulary)) for scene, text in rows)
    strange = (
        f"{text!r} of {scene.key}"
        for scene, text, said in readings
        if said is None or not all(FIELDS[field](text, said, scene, getattr(template, field)) for field in fields)
    )
    yield Finding(f"captions are worded as in the template {split.recipe['template']}", *first(strange))
    v = split.vocabulary
    article = re.compile(rf"\ban? ({'|'.join(map(re.escape, (*v.sizes, *v.textures, *v.animals)))})\b")
    texts = (text for r in split.subsets.values() for text in (*r.captions, *r.negatives))
    wrong = (
        f"{match[0]!r} in {text!r}"
        for text in texts
        for match in article.finditer(text)
        if match[0] != with_article(match[1])
    )
    yield Finding("articles suit the words that they are of", *first(wrong))
