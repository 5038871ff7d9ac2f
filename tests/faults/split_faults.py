"""Faults of splits, a table for each kind of fault: what a bug or a careless hand does to records and recipes.

Every fault leaves a file with a right checksum, and the audit finds it without making the split again. To add one, add
an entry: a recipe, a function from its split to the wrong one, and the claim that it makes fail.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from menagerie.envs.scene import Scene
from menagerie.generators.audit.regeneration import recipe_of
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.split_file import NO_GRAPH, Records, Split, describe
from tests.helpers.planting import joined, taken, with_subsets

Plant = Callable[[Split], Split]
SMALL = {"world": "tiny", "views": 1, "test_views": 1, "test_scenes": 20}
BINDING = BindingRecipe(**SMALL, pairs=0.75, hard_negatives=0.5, negated=0.3)
OBJECTS = BindingRecipe(**SMALL | {"world": "eight"}, pairs=0.4, objects=0.75)
RULED = BindingRecipe(**SMALL, pairs=1.0, hold_out=("texture=red & animal=penguin",), negated=0.5)
SPATIAL = SpatialRecipe(**SMALL, pairs=0.5, hard_negatives=0.5)
ORDERS = replace(SPATIAL, hard_negatives=0.0)
RULED_ORDERS = SpatialRecipe(**SMALL, pairs=1.0, hold_out=("relation=above & first=rabbit",))
DEPENDENCE = DependenceRecipe(**SMALL | {"views": 12}, information=0.5)
COUNTING = CountingRecipe(**SMALL, pairs=1.0)
CROWD = CrowdRecipe(
    world="eight-textures", coverage=0.5, train_scenes=240, test_scenes=24, views=2, test_things=(2,), searches=(3,)
)
RULED_CROWD = replace(CROWD, coverage=1.0, hold_out=("texture=red & animal=rabbit",), searches=())
PROBE = ProbeRecipe(world="eight", animals=("goldfish", "camel", "rabbit"))


class Fault(NamedTuple):
    """A mistake in the split of a recipe, and the claim of the audit that it makes fail."""

    name: str
    recipe: SplitRecipe
    plant: Plant
    claim: str


class HeldOut(NamedTuple):
    """What the scenes of a test show and train must not, and the claim that says so."""

    recipe: SplitRecipe
    test: str
    claim: str


HELD_OUT = {
    "pair": (
        HeldOut(BINDING, "unseen_pairs", "no animal pair of unseen_pairs is in train"),
        HeldOut(BINDING, "validation", "no animal pair of validation is in train"),
        HeldOut(SPATIAL, "left_right_unseen_pairs", "no animal pair of left_right_unseen_pairs is in train in any"),
    ),
    "composition": (
        HeldOut(CROWD, "unseen_2", "train shows none of the exchanged cells"),
        HeldOut(DEPENDENCE, "unseen_textures", "no animal of unseen_textures is in train in that texture"),
        HeldOut(OBJECTS, "two_unseen_objects", "2 unseen objects in scenes of two_unseen_objects"),
        HeldOut(BINDING, "different_bag", "no textured pair of different_bag is in train"),
        HeldOut(ORDERS, "above_under_unseen_order", "no order of above_under_unseen_order is in train"),
        HeldOut(COUNTING, "unseen_counts", "no animal of unseen_counts is in train in numbers"),
    ),
    "rule": (
        HeldOut(RULED, "held_out", "no rule holds out any scene of train"),
        HeldOut(RULED_ORDERS, "held_out", "no rule holds out any scene of train"),
        HeldOut(RULED_CROWD, "held_out", "no rule holds out any scene of train"),
    ),
}
TRUE = "every caption of train is true and states its graph"
FALSE = "every negative of train is true of the swap"


def changed(records: Records, index: int, **columns: object) -> Records:
    """The records with other values in one of them."""
    lists = {name: [*getattr(records, name)] for name in columns}
    for name, value in columns.items():
        lists[name][index] = value
    return replace(records, **lists)


def animals(scene: Scene) -> set[str]:
    return {thing.animal for thing in scene.things}


def leaks() -> Iterator[Fault]:
    for what, tests in HELD_OUT.items():
        for its in tests:
            for place, claim in {"image": its.claim, "caption": TRUE, "graph": TRUE, "false caption": FALSE}.items():
                name = f"held-out {what} in {place}, {its.recipe.kind} {its.test}"
                yield Fault(name, its.recipe, leak(its.test, place), claim)


def leak(test: str, place: str) -> Plant:
    """Train has a scene of a test, in a view of its own and with its texts, or one of its texts at another scene."""

    def plant(split: Split) -> Split:
        train, tested = split.subsets["train"], split.subsets[test]
        k = max(range(len(tested)), key=lambda i: len(tested.scenes[i].things))
        text, graph = tested.captions[k], tested.graphs[k]
        if place == "image":
            scene = replace(tested.scenes[k], view=0)
            made = describe("train", [scene], {scene: 10**6}, recipe_of(split))
            return with_subsets(split, train=joined(train, made))
        columns = {"caption": {"captions": text}, "graph": {"graphs": graph}}
        own = next(
            i for i, s in enumerate(train.scenes) if train.negatives[i] and animals(s) != animals(tested.scenes[k])
        )
        change = columns.get(place, {"negatives": text, "negative_graphs": graph})
        return with_subsets(split, train=changed(train, own, **change))

    return plant


def of_another(name: str, *columns: str) -> Plant:
    """Each record of a subset has the texts of the next one."""

    def plant(split: Split) -> Split:
        r = split.subsets[name]
        turned = {column: [*getattr(r, column)[1:], getattr(r, column)[0]] for column in columns}
        return with_subsets(split, **{name: replace(r, **turned)})

    return plant


def told_true(name: str, *columns: str) -> Plant:
    """The false caption of a record, its graph, or both are the true ones."""

    def plant(split: Split) -> Split:
        r = split.subsets[name]
        true = {"negatives": r.captions, "negative_graphs": r.graphs}
        k = next(i for i, negative in enumerate(r.negatives) if negative)
        return with_subsets(split, **{name: changed(r, k, **{column: true[column][k] for column in columns})})

    return plant


def partners(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Plant:
    def plant(split: Split) -> Split:
        r = split.subsets[name]
        return with_subsets(split, **{name: replace(r, partners=change(r.partners))})

    return plant


def claimed(**fields: object) -> Plant:
    return lambda split: replace(split, recipe={**split.recipe, **fields})


def put(name: str, other: str) -> Plant:
    """A subset has the first record of another one in place of its own."""

    def plant(split: Split) -> Split:
        own, its = split.subsets[name], split.subsets[other]
        return with_subsets(split, **{name: joined(taken(own, range(1, len(own))), taken(its, [0]))})

    return plant


def denied_rule(split: Split) -> Split:
    """A training caption denies what a rule holds out."""
    r = split.subsets["train"]
    k, node = next((i, n) for i, g in enumerate(r.graphs) for n in g.nodes if n.startswith("no "))
    graph = r.graphs[k]._replace(nodes=tuple("no red penguin" if n == node else n for n in r.graphs[k].nodes))
    text = r.captions[k].replace(node, "no red penguin")
    return with_subsets(split, train=changed(r, k, captions=text, graphs=graph, negatives="", negative_graphs=NO_GRAPH))


def denied_shown(split: Split) -> Split:
    """A training caption denies what its scene shows."""
    r = split.subsets["train"]
    k, node = next((i, n) for i, g in enumerate(r.graphs) for n in g.nodes if n.startswith("no "))
    shown = f"no {r.graphs[k].nodes[0]}"
    graph = r.graphs[k]._replace(nodes=tuple(shown if n == node else n for n in r.graphs[k].nodes))
    return with_subsets(split, train=changed(r, k, captions=r.captions[k].replace(node, shown), graphs=graph))


def turned(split: Split) -> Split:
    """A graph relates two things the other way round."""
    r = split.subsets["validation"]
    (edge,) = r.graphs[0].edges
    other = edge._replace(subject=edge.object, object=edge.subject)
    return with_subsets(split, validation=changed(r, 0, graphs=r.graphs[0]._replace(edges=(other,))))


def one_group(split: Split) -> Split:
    r = split.subsets["left_first"]
    return with_subsets(split, left_first=replace(r, groups=r.groups * 0))


OTHER = "every caption of {} is true and states its graph"
NAMED = "the recipe is the one that the file is named by"
LIES = "every negative of {} is false and states its graph"
ROW, ALONE = "no scene has the row or the partner of another one", "scenes of tests have partners"
GROUPS = "groups of left_first are pairs of animals"

SPLIT_FAULTS = [
    *leaks(),
    Fault("held-out rule denied", RULED, denied_rule, "train denies nothing that a rule holds out"),
    *(
        Fault(
            f"{' and '.join(columns)} of another scene, {one.kind}", one, of_another(test, *columns), OTHER.format(test)
        )
        for one, test in (
            (BINDING, "unseen_pairs"),
            (SPATIAL, "validation"),
            (CROWD, "seen_2"),
            (COUNTING, "seen_counts"),
        )
        for columns in (("captions",), ("graphs",), ("captions", "graphs"))
    ),
    Fault("a thing denied that is shown", BINDING, denied_shown, TRUE),
    Fault("a relation turned", SPATIAL, turned, OTHER.format("validation")),
    *(
        Fault(f"true {' and '.join(columns)}, {one.kind}", one, told_true(test, *columns), LIES.format(test))
        for one, test in ((BINDING, "train"), (DEPENDENCE, "seen_textures"), (CROWD, "search_conjunction_3"))
        for columns in (("negatives",), ("negative_graphs",), ("negatives", "negative_graphs"))
    ),
    *(
        Fault(f"{what}, {one.kind}", one, partners(test, change), claim)
        for one, test in ((BINDING, "validation"), (SPATIAL, "left_right_unseen_pairs"), (PROBE, "left_first"))
        for what, change, claim in (
            ("another's counterfactual", lambda rows: np.roll(rows, 1), ROW),
            ("no counterfactual", lambda rows: np.where(np.arange(len(rows)) == 3, -1, rows), ALONE),
            ("its own image as counterfactual", lambda rows: rows[:1].repeat(len(rows)), ROW),
        )
    ),
    Fault("another seed", BINDING, claimed(seed=1), NAMED),
    Fault("another fraction", SPATIAL, claimed(pairs=0.4), NAMED),
    Fault("another template", COUNTING, claimed(template="statement-conjunction"), NAMED),
    Fault("fewer views", CROWD, claimed(views=1), "every view of train is one from 0 to 0"),
    Fault("a scene of another test", BINDING, put("train_pairs", "seen_pairs"), "every textured pair of train_pairs"),
    Fault("a test trained on", BINDING, put("train", "unseen_pairs"), "no scene of unseen_pairs is in train"),
    Fault("validation tested", SPATIAL, put("above_under_unseen_pairs", "validation"), "and validation share no"),
    Fault("an order of another test", ORDERS, put("validation", "above_under_unseen_order"), "no animal pair of valid"),
    Fault("more things than a test says", CROWD, put("seen_2", "search_feature_3"), "every scene of seen_2 has 2"),
    Fault("a probe trained on", PROBE, put("train", "left_first"), "a probe set has nothing in train"),
    Fault("a quartet torn", PROBE, put("left_first", "right_first"), "captions of left_first mention things"),
    Fault("a view of training", PROBE, claimed(first_view=16), "no training can use the views"),
    Fault("one group", PROBE, one_group, GROUPS),
    Fault("entropies", PROBE, claimed(entropies={"bags": 9, "which": 3.2, "binding": 1.0}), "entropies are those of"),
]
