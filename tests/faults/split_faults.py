"""Faults of splits, a table for each kind of fault: what a bug or a careless hand does to records and recipes.

Every fault leaves a file with a right digest, and the audit finds it without making the split again. To add one, add an
entry: a recipe, a function from its split to the wrong one, and the claim that it makes fail.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.templates import Caption, Content
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.split_file import Split
from tests.helpers.planting import (
    Plant,
    changed,
    claimed,
    contents_of,
    with_columns,
    with_contents,
    with_subsets,
    with_texts,
)

SMALL = {"world": "tiny", "views": 1, "test_views": 1, "test_scenes": 20}
BINDING = BindingRecipe(**SMALL, pairs=0.75, hard_negatives=0.5, negated=0.3)
SIZED = replace(BINDING, world="tiny-sizes", negated=0.0)
COMPOSITIONS = BindingRecipe(**SMALL | {"world": "eight"}, pairs=0.4, compositions=0.75)
RULED = BindingRecipe(**SMALL, pairs=1.0, hold_out=("texture=red & animal=penguin",), negated=0.5)
IN_SETS = BindingRecipe(**SMALL, hold_out=("animal=birds & texture=red",), sets=("birds={penguin}",))
SPATIAL = SpatialRecipe(**SMALL, pairs=0.5, hard_negatives=0.5)
ORDERS = replace(SPATIAL, hard_negatives=0.0)
RULED_ORDERS = SpatialRecipe(**SMALL, pairs=1.0, hold_out=("relation=above & first=rabbit",))
DEPENDENCE = DependenceRecipe(**SMALL | {"views": 12}, information=0.5)
COUNTING = CountingRecipe(**SMALL, pairs=1.0)
MULTI_OBJECT = MultiObjectRecipe(
    world="eight-textures", coverage=0.5, train_scenes=240, test_scenes=24, views=2, test_objects=(2,), searches=(3,)
)
RULED_MULTI_OBJECT = replace(MULTI_OBJECT, coverage=1.0, hold_out=("texture=red & animal=rabbit",), searches=())
PROBE = ProbeRecipe(world="eight", animals=("goldfish", "camel", "rabbit"))


class Fault(NamedTuple):
    """A mistake in the split of a recipe, and the claim of the audit that it makes fail."""

    name: str
    recipe: SplitRecipe
    plant: Plant
    claim: str


# Tests whose scenes train must not have, by what their names say.
HELD_OUT = {
    "pair": ((BINDING, "unseen_pairs"), (BINDING, "validation"), (SPATIAL, "left_right_unseen_pairs")),
    "composition": (
        *((MULTI_OBJECT, "unseen_2"), (DEPENDENCE, "unseen_textures"), (COMPOSITIONS, "two_unseen_compositions")),
        *((BINDING, "different_bag"), (ORDERS, "above_under_unseen_order"), (COUNTING, "unseen_counts")),
    ),
    "rule": ((RULED, "held_out"), (RULED_ORDERS, "held_out"), (RULED_MULTI_OBJECT, "held_out")),
}
LACKS, HAS = "train lacks what the name of {} says", "train has what the name of {} says"
APART = "validation shares with {} nothing that it keeps for itself"
TRUE, LIES = "every caption of {} is true and states its graph", "every negative of {} is false and states its graph"
SWAPPED = "every negative of train is true of the swap"
OTHER, ALONE = "every counterfactual is the swapped scene", "scenes whose swap is there have counterfactuals"
PARTS = {"text": ("text",), "graph": ("graph",), "text and graph": ("text", "graph")}


def animals(scene: Scene) -> set[str]:
    return {obj.animal for obj in scene.objects}


def leaks() -> Iterator[Fault]:
    for what, (recipe, test) in ((what, its) for what, tests in HELD_OUT.items() for its in tests):
        image = "no rule holds out any scene of train" if what == "rule" else LACKS.format(test)
        for place, claim in {"image": image, "text": TRUE.format("train"), "negative": SWAPPED}.items():
            if place != "negative" or recipe is not DEPENDENCE:  # none of its negatives may stand in train
                name = f"held-out {what} in {place}, {recipe.kind} {test}"
                yield Fault(name, recipe, leak(test, place), claim)


def leak(test: str, place: str) -> Plant:
    """Train has a scene of a test, in a view of its own and with its texts, or its text at another scene."""

    def plant(split: Split) -> Split:
        train, tested = split.subsets["train"], split.subsets[test]
        k = max(range(len(tested)), key=lambda i: len(tested.scenes[i].objects))
        if place == "image":
            (content,) = tested.contents_at([k])
            shown = content._replace(scene=replace(content.scene, view=0))
            return with_contents(split, "train", [*contents_of(split, "train"), shown])
        own = next(
            i
            for i, s in enumerate(train.scenes)
            if (train.false[i] or place != "negative")
            and len(s.objects) > 1
            and animals(s) != animals(tested.scenes[k])
        )
        if place == "negative":
            return with_texts(split, "train", false=changed(train.false, own, tested.true[k]))
        return with_texts(
            split, "train", true=changed(train.true, own, take_parts(train.true[own], tested.true[k], ("text",)))
        )

    return plant


def take_parts(own: Caption, other: Caption, parts: tuple[str, ...]) -> Caption:
    """A caption with the text, the graph or both of another one."""
    return own._replace(**{part: getattr(other, part) for part in parts})


def next_texts(name: str, parts: tuple[str, ...]) -> Plant:
    """Each record of a subset has the text, the graph or both of the next one."""

    def plant(split: Split) -> Split:
        true = split.subsets[name].true
        return with_texts(
            split, name, true=[take_parts(*both, parts) for both in zip(true, [*true[1:], true[0]], strict=True)]
        )

    return plant


def true_texts(name: str, parts: tuple[str, ...]) -> Plant:
    """The false caption of a record, its graph, or both are the true ones."""

    def plant(split: Split) -> Split:
        r = split.subsets[name]
        k = next(i for i, negative in enumerate(r.false) if negative)
        return with_texts(split, name, false=changed(r.false, k, take_parts(r.false[k], r.true[k], parts)))

    return plant


def reword(name: str, change: Callable[[str], str]) -> Plant:
    """The first caption that `change` changes is another, and its graph states the same."""

    def plant(split: Split) -> Split:
        true = split.subsets[name].true
        k = next(i for i, caption in enumerate(true) if change(caption.text) != caption.text)
        graph = true[k].graph._replace(nodes=tuple(map(change, true[k].graph.nodes)))
        return with_texts(split, name, true=changed(true, k, Caption(change(true[k].text), graph)))

    return plant


def reverse_relation(split: Split) -> Split:
    """A graph relates two objects the other way round."""
    true = split.subsets["validation"].true
    (edge,) = true[0].graph.edges
    graph = true[0].graph._replace(edges=(edge._replace(subject=edge.object, object=edge.subject),))
    return with_texts(split, "validation", true=changed(true, 0, true[0]._replace(graph=graph)))


def unrelated(content: Content) -> Content:
    """The content of a scene whose two objects are in places that have no relation."""
    objects = zip(content.scene.objects, ("center", "left"), strict=True)
    scene = replace(content.scene, objects=tuple(obj._replace(slot=slot) for obj, slot in objects))
    return content._replace(scene=scene, objects=scene.objects, predicates=())


def alter(name: str, of: Callable[[Content], bool], change: Callable[[Content], Content]) -> Plant:
    """A subset of which the first content that is `of` some kind is another."""

    def altered(its: list[Content]) -> list[Content]:
        k = next(i for i, content in enumerate(its) if of(content))
        return changed(its, k, change(its[k]))

    return contents(name, altered)


def contents(name: str, change: Callable[[list[Content]], list[Content]]) -> Plant:
    """A subset of which the contents are others."""
    return lambda split: with_contents(split, name, change(contents_of(split, name)))


def denying(obj: Callable[[Content], Object]) -> Plant:
    """A training caption denies another object, and has no negative."""
    return alter("train", lambda its: bool(its.denied), lambda its: its._replace(denied=(obj(its),), negative=False))


def first_of(name: str, other: str) -> Plant:
    """A subset has the first record of another one in place of its own."""
    return lambda split: with_contents(split, name, changed(contents_of(split, name), 0, contents_of(split, other)[0]))


def records_of(name: str, other: str) -> Plant:
    """A subset has the records of another one."""
    return lambda split: with_subsets(split, **{name: split.subsets[other]})


def other_rows(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Plant:
    """Records have other rows as counterfactuals."""
    return lambda split: with_columns(
        split, name, counterfactual=change(split.subsets[name].counterfactual).astype("i4")
    )


def none_of_the_first(rows: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(rows)) == np.flatnonzero(rows >= 0)[0], -1, rows)


def another_of_the_first(rows: np.ndarray) -> np.ndarray:
    has = np.flatnonzero(rows >= 0)
    return np.where(np.arange(len(rows)) == has[0], rows[has[1]], rows)


def pair_numbers(change: Callable[[np.ndarray], np.ndarray]) -> Plant:
    return lambda split: with_columns(split, "left_first", pair=change(split.subsets["left_first"].pairs))


def always_true(split: Split) -> Split:
    r = split.subsets["left_first"]
    return with_texts(split, "left_first", false=r.true[:1] * len(r))


def one_assignment(scene: Scene) -> bool:
    one, other = sorted(scene.objects)
    return one.texture < other.texture


ENTROPY = {"bags": 9, "which": 3.2, "binding": 1.0}
SPLIT_FAULTS = [
    *leaks(),
    *(
        Fault(f"{what} of another scene, {one.kind}", one, next_texts(test, parts), TRUE.format(test))
        for one, test in ((SPATIAL, "validation"), (MULTI_OBJECT, "seen_2"), (COUNTING, "seen_counts"))
        for what, parts in PARTS.items()
    ),
    *(
        Fault(f"a true {what}, {one.kind}", one, true_texts(test, parts), LIES.format(test))
        for one, test in ((BINDING, "train"), (MULTI_OBJECT, "search_conjunction_3"))
        for what, parts in PARTS.items()
    ),
    *(
        Fault(f"{what}, {one.kind}", one, other_rows(test, change), claim)
        for one, test in ((COUNTING, "seen_counts"), (MULTI_OBJECT, "unseen_2"), (SPATIAL, "train"))
        for what, change, claim in (
            ("another's counterfactual", another_of_the_first, OTHER),
            ("no counterfactual", none_of_the_first, ALONE),
            ("itself as counterfactual", lambda rows: np.where(rows >= 0, np.arange(len(rows)), -1), OTHER),
        )
    ),
    Fault("fewer views", MULTI_OBJECT, claimed(views=1), "every view of train is one from 0 to 0"),
    Fault("other sets", IN_SETS, claimed(sets=["birds={penguin, rabbit}"]), "no rule holds out any scene of train"),
    Fault(
        "a held-out object denied", RULED, denying(lambda _: Object("penguin", "red", "center")), "train denies nothing"
    ),
    Fault("an object denied that is shown", BINDING, denying(lambda its: its.scene.objects[0]), TRUE.format("train")),
    Fault("a relation turned", SPATIAL, reverse_relation, TRUE.format("validation")),
    Fault(
        "a pair in no relation", SPATIAL, alter("validation", bool, unrelated), "every pair of validation is in a req"
    ),
    Fault("another size", SIZED, reword("validation", lambda t: t.replace("small", "big")), TRUE.format("validation")),
    Fault(
        "another number", COUNTING, reword("seen_counts", lambda t: t.replace("two", "three")), "seen_counts is true"
    ),
    Fault("a scene of another test", BINDING, first_of("train_pairs", "seen_pairs"), HAS.format("train_pairs")),
    Fault("a test trained on", BINDING, first_of("train", "unseen_pairs"), "no scene of unseen_pairs is in train"),
    Fault(
        "validation tested",
        SPATIAL,
        first_of("above_under_unseen_pairs", "validation"),
        APART.format("above_under_unseen_pairs"),
    ),
    Fault(
        "an order of another test",
        ORDERS,
        first_of("validation", "above_under_unseen_order"),
        LACKS.format("validation"),
    ),
    Fault(
        "more objects than a test says",
        MULTI_OBJECT,
        first_of("seen_2", "search_feature_3"),
        "objects of seen_2 are as many",
    ),
    Fault(
        "another relation", SPATIAL, records_of("above_under_unseen_pairs", "left_right_unseen_pairs"), "in a requested"
    ),
    Fault(
        "another test", COMPOSITIONS, records_of("different_bag", "one_unseen_composition"), HAS.format("different_bag")
    ),
    Fault(
        "pairs of validation",
        COMPOSITIONS,
        records_of("validation", "two_unseen_compositions"),
        APART.format("two_unseen_compositions"),
    ),
    Fault("a probe trained on", PROBE, first_of("train", "left_first"), "a probe set has nothing in train"),
    Fault("the other order", PROBE, first_of("left_first", "right_first"), "captions of left_first mention objects"),
    Fault("one pair", PROBE, pair_numbers(lambda its: its * 0), "pairs of left_first are pairs of animals"),
    Fault(
        "a pair torn",
        PROBE,
        pair_numbers(lambda its: np.where(np.arange(len(its)) == 7, 1 - its[7] // 2, its)),
        "pairs",
    ),
    Fault("entropies", PROBE, claimed(entropies=ENTROPY), "entropies are those of"),
    Fault(
        "less than a bit",
        PROBE,
        contents("left_first", lambda its: [one for one in its if one_assignment(one.scene)]),
        "entropies are those of",
    ),
    Fault(
        "a quartet torn",
        PROBE,
        contents("left_first", lambda its: its[1:]),
        "every scene of left_first has its swap and its mirror",
    ),
    Fault(
        "a view of train",
        PROBE,
        alter("left_first", bool, lambda its: its._replace(scene=replace(its.scene, view=3))),
        "every view of left_first",
    ),
    Fault(
        "other scenes",
        PROBE,
        contents("right_first", lambda its: its[::-1]),
        "both tests have the same scenes in the same order",
    ),
    Fault("a text that is always true", PROBE, always_true, "every text of left_first is as often true as false"),
]
