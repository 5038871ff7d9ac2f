"""Scene graphs from dependency trees, by rules over the labels of spaCy's English models."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.parsers.graph_json import NotAGraph, make_graph, plain_phrase

VERSION = 1  # of these rules


class Word(NamedTuple):
    """One token of a caption."""

    text: str
    part: str
    """Part of speech: NOUN, VERB, ADP, …"""
    label: str
    """Label of the word's dependency on another word: nsubj, amod, prep, …"""
    head: int
    """Index of the word that this one depends on; a root has its own index."""


NOUNS = {"NOUN", "PROPN"}
VERBS = {"VERB", "AUX"}
# Labels of words before a noun that are part of its phrase, and of words before those.
MODIFIERS = {"amod", "compound", "nummod", "nmod", "neg", "quantmod", "advmod", "predet"}
JOINED = {"cc", "conj", "punct", "hyph"}
# Nouns that belong to a relation and are no objects, as in "on the left of X".
SIDES = {"left", "right", "top", "bottom", "front", "back", "side", "middle", "center", "centre", "edge", "rear"}
# "a group of X" is one object; "a photo of X" is X.
AMOUNTS = {"group", "bunch", "couple", "pair", "herd", "flock", "crowd", "piece", "slice", "stack", "pile", "row"}
PICTURES = {"photo", "picture", "image", "photograph", "closeup", "shot", "view"}
BE = {"is", "are", "was", "were", "be", "been", "being"}
SUBJECTS = {"nsubj", "nsubjpass"}
# Labels of verbs that share the subject of the verb they depend on, unless they have their own.
DEPENDENT = {"conj", "xcomp", "advcl", "ccomp", "pcomp"}


class Tree:
    """The dependency tree of a caption's words."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words

    @cached_property
    def children(self) -> list[list[int]]:
        """For each word, the indices of the words that depend on it."""
        below: list[list[int]] = [[] for _ in self.words]
        for place, word in enumerate(self.words):
            if word.head != place:
                below[word.head].append(place)
        return below

    def below(self, place: int, *labels: str) -> list[int]:
        """The indices of words that depend on a word by one of these labels."""
        return [child for child in self.children[place] if self.words[child].label in labels]

    def text(self, place: int) -> str:
        """The word in lower case."""
        return self.words[place].text.lower()

    def of(self, place: int) -> int | None:
        """Return the noun after the "of" that follows a noun; None if there is none."""
        ofs = (prep for prep in self.below(place, "prep") if self.text(prep) == "of")
        return next((noun for prep in ofs for noun in self.nouns(self.below(prep, "pobj"))), None)

    def nouns(self, places: Iterable[int]) -> list[int]:
        """The nouns among some words, each followed by the nouns that "and" joins to it."""
        found = []
        for place in places:
            if self.words[place].part in NOUNS:
                found += [place, *self.nouns(self.below(place, "conj"))]
        return found

    def is_object(self, place: int) -> bool:
        """Whether a word is a noun that names an object."""
        word = self.words[place]
        if word.part not in NOUNS or word.label in ("compound", "npadvmod", "nmod"):
            return False
        if self.text(place) in PICTURES and self.of(place) is not None:
            return False
        return not self.names_members(place) and not self.is_place(place)

    def is_place(self, place: int) -> bool:
        """Whether a noun is part of a relation, as "left" in "on the left of"."""
        return self.text(place) in SIDES and self.words[place].label == "pobj" and self.of(place) is not None

    def names_members(self, place: int) -> bool:
        """Whether a noun says what a group consists of, as "people" in "a group of people"."""
        prep = self.words[place].head
        amount = self.words[prep].head
        return self.words[place].label == "pobj" and self.text(prep) == "of" and self.text(amount) in AMOUNTS

    def phrase(self, place: int) -> str:
        """A noun with the words before it: "small brown cat", "group of two people"."""
        start = self.modifiers(place)
        words = [self.text(i) for i in sorted({*start, place})]
        behind = self.of(place) if self.text(place) in AMOUNTS else None
        return " ".join([*words, *([] if behind is None else ["of", self.phrase(behind)])])

    def modifiers(self, place: int) -> set[int]:
        """The indices of the words before a word that modify it, directly or through another modifier."""
        before = [child for child in self.below(place, *MODIFIERS) if child < place]
        before += [child for child in self.below(place, "det") if self.text(child) == "no"]
        before += [child for outer in before for child in self.below(outer, *JOINED) if child < place]
        return {inner for child in before for inner in {child, *self.modifiers(child)}}


def graph_of_tree(words: Sequence[Word]) -> SceneGraph:
    """Make the scene graph of a caption's tree. Raises `NotAGraph` if the caption names no object, or a node's phrase
    is empty.

    Nodes are nouns with the words before them, in order of mention. The predicate of an edge is a preposition between
    two nodes, a verb with a preposition ("sitting on"), a verb between its subject and object, or "of" for a
    possessive. Negated nodes ("no cat") have no edges. Pronouns don't become nodes, so statements about them are lost.
    """
    tree = Tree(words)
    objects = [place for place in range(len(words)) if tree.is_object(place)]
    numbers = {place: number for number, place in enumerate(objects)}
    for place in range(len(words)):
        if words[place].part in NOUNS and place not in numbers and (head := noun_meant(tree, place)) in numbers:
            numbers[place] = numbers[head]
    named = [(predicate, numbers.get(one), numbers.get(other)) for predicate, one, other in tree_relations(tree)]
    nodes = tuple(plain_phrase(tree.phrase(place)) for place in objects)
    denied = {None, *(number for number, node in enumerate(nodes) if node.startswith("no "))}
    edges = dict.fromkeys(Edge(*edge) for edge in named if not denied & {*edge[1:]} and edge[1] != edge[2])
    if not nodes or not all(nodes):
        raise NotAGraph("no nodes: it names no object")
    return make_graph(nodes, tuple(edges))


def noun_meant(tree: Tree, place: int) -> int | None:
    """The object that a noun stands for: X for "photo" in "photo of X", "group" for "people" in "group of people"."""
    if tree.text(place) in PICTURES:
        return tree.of(place)
    return tree.words[tree.words[place].head].head if tree.names_members(place) else None


def tree_relations(tree: Tree) -> Iterator[tuple[str, int, int]]:
    """Yield each relation as its predicate and the indices of its subject and its object."""
    for place, word in enumerate(tree.words):
        if word.label in ("prep", "agent") and not part_of_noun(tree, place):
            predicate, nouns = prepositional_objects(tree, place)
            for before, subject in starts(tree, word.head):
                yield from ((f"{before} {predicate}".strip(), subject, noun) for noun in nouns)
        elif word.label in ("dobj", "obj"):
            nouns = tree.nouns([place])
            for subject in subjects(tree, word.head):
                yield from ((verb(tree, word.head), subject, noun) for noun in nouns)
        elif word.label == "poss" and word.part in NOUNS:
            yield "of", word.head, place


def part_of_noun(tree: Tree, place: int) -> bool:
    """Whether a preposition is the "of" in "group of", "photo of" or "left of"."""
    head = tree.words[place].head
    return tree.text(place) == "of" and (tree.text(head) in AMOUNTS | PICTURES or tree.is_place(head))


def prepositional_objects(tree: Tree, place: int) -> tuple[str, list[int]]:
    """Return the words of a preposition and the nouns after it: "on the left of" and "dog", or "on" and "box"."""
    nouns = tree.nouns(tree.below(place, "pobj"))
    if nouns and tree.is_place(nouns[0]):
        prep = next(prep for prep in tree.below(nouns[0], "prep") if tree.text(prep) == "of")
        between = " ".join(tree.text(i) for i in range(place, prep + 1))
        return between, tree.nouns(tree.below(prep, "pobj"))
    return tree.text(place), nouns


def starts(tree: Tree, head: int) -> Iterator[tuple[str, int]]:
    """Yield, for each subject of a preposition's relation, the words of the predicate before the preposition
    ("sitting", or none), and the subject. `head` is the word that the preposition depends on."""
    part = tree.words[head].part
    if part in NOUNS:
        yield "", head
    elif part in VERBS:
        bare = tree.text(head) in BE or tree.below(head, "dobj", "obj")  # no verb: "is on", "riding a horse on"
        yield from (("" if bare else verb(tree, head), noun) for noun in subjects(tree, head))
    elif tree.words[head].head != head:  # a preposition after another word: "next to", "out of"
        for before, noun in starts(tree, tree.words[head].head):
            yield f"{before} {tree.text(head)}".strip(), noun


def verb(tree: Tree, place: int) -> str:
    """A verb with its particle: "picking up"."""
    return " ".join([tree.text(place), *(tree.text(part) for part in tree.below(place, "prt"))])


def subjects(tree: Tree, place: int) -> list[int]:
    """The subjects of a verb."""
    word = tree.words[place]
    named = tree.below(place, *SUBJECTS)
    if found := tree.nouns(named):
        return found
    if tree.below(place, "expl"):  # "there is a cat": the object is the subject
        return tree.nouns(tree.below(place, "attr"))
    if word.label in ("acl", "relcl"):  # the noun that is described: "a cat sitting", "a cat that sits"
        return tree.nouns([word.head])[:1]
    if not named and word.label in DEPENDENT and word.head != place:
        return subjects(tree, word.head) if tree.words[word.head].part in VERBS else tree.nouns([word.head])[:1]
    return []
