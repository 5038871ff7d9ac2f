"""One table of planted faults, by kind of split and option, each with the claim of the audit that it makes fail.

Crowds, probe sets and held-out objects have tables of their own (`test_crowd`, `test_probe`, `test_objects`).
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from menagerie.envs.scene import Scene
from menagerie.generators.audit.run import check_records
from menagerie.generators.captions.hard_negatives.swaps import hard_negative
from menagerie.generators.storage.split_file import Split
from tests.generators.test_recipes import PLAIN
from tests.helpers.planting import joined, only, taken, with_subsets
from tests.helpers.splits import in_memory

BINDING, SPATIAL, DEPENDENCE, COUNTING = (PLAIN[kind] for kind in ("binding", "spatial", "dependence", "counting"))
SIZED = replace(BINDING, world="tiny-sizes")
LESS = replace(BINDING, views=4, mentioned=0.6, attributes=0.7, salient=0.2)
SEEN = replace(SPATIAL, attributes=0.5, seen_order=True)
WORDED = replace(BINDING, article="the", conjunction="with", phrasings=("{place} {things} can be seen",))
RULED = replace(BINDING, pairs=1.0, hold_out=("background=city",))
GROUPED = replace(BINDING, hold_out=("animal=birds & texture=red",), groups=("birds={penguin}",))
Plant = Callable[[Split], Split]


def claimed(**fields) -> Plant:
    return lambda split: replace(split, recipe={**split.recipe, **fields})


def added(name: str, other: str, change: Callable[[Scene], Scene] = lambda scene: scene, **of) -> Plant:
    """A subset that also has a scene of another one, the first with what `of` says, as `change` makes it."""

    def plant(split: Split) -> Split:
        its = split.subsets[other]
        i = next(i for i, s in enumerate(its.scenes) if all(getattr(s, field) == value for field, value in of.items()))
        one = replace(taken(its, [i]), scenes=[change(its.scenes[i])])
        return with_subsets(split, **{name: joined(split.subsets[name], one)})

    return plant


def shown(name: str, change: Callable[[Scene], Scene], of: Callable[[Scene], bool] = lambda scene: True) -> Plant:
    """A subset of which the first scene that is `of` some kind is another; texts stay."""

    def plant(split: Split) -> Split:
        scenes = list(split.subsets[name].scenes)
        i = next(i for i, scene in enumerate(scenes) if of(scene))
        scenes[i] = change(scenes[i])
        return with_subsets(split, **{name: replace(split.subsets[name], scenes=scenes)})

    return plant


def told(name: str, column: str, change: Callable) -> Plant:
    """A subset of which the first text or graph that `change` changes is another."""

    def plant(split: Split) -> Split:
        its = list(getattr(split.subsets[name], column))
        i = next(i for i, one in enumerate(its) if change(one) != one)
        its[i] = change(its[i])
        return with_subsets(split, **{name: replace(split.subsets[name], **{column: its})})

    return plant


def both(one: Plant, other: Plant) -> Plant:
    return lambda split: other(one(split))


def lost(gone: Callable[[Scene], bool]) -> Plant:
    return lambda split: only(split, lambda scene: not gone(scene), ["train"])


def placed(*slots: str) -> Callable[[Scene], Scene]:
    return lambda s: replace(s, things=tuple(t._replace(slot=slot) for t, slot in zip(s.things, slots, strict=True)))


def first(**fields) -> Callable[[Scene], Scene]:
    """A scene whose first thing is another."""
    return lambda s: replace(s, things=(s.things[0]._replace(**fields), *s.things[1:]))


def sizes_exchanged(scene: Scene) -> Scene:
    one, other = scene.things
    return replace(scene, things=(one._replace(size=other.size), other._replace(size=one.size)))


def of_two_sizes(scene: Scene) -> bool:
    return len({thing.size for thing in scene.things}) == 2


def several(scene: Scene) -> bool:
    return len(scene.things) > 1


def graph_of(change: Callable[[str], str]) -> Callable:
    return lambda graph: graph._replace(nodes=tuple(map(change, graph.nodes)))


def turned_predicate(graph):
    return graph._replace(edges=tuple(edge._replace(predicate="beside") for edge in graph.edges))


def turned_text(text: str) -> str:
    return text.replace("left", "?").replace("right", "left").replace("?", "right")


def textures_exchanged(name: str) -> Plant:
    """Negatives are false, in the words of their captions and of the right relation."""

    def plant(split: Split) -> Split:
        r = split.subsets[name]
        texts = [
            text and hard_negative(s, 0, "relation", "binding") for s, text in zip(r.scenes, r.negatives, strict=True)
        ]
        new = {i: text for i, text in enumerate(texts) if text}
        negatives = [new[i].text if i in new else text for i, text in enumerate(r.negatives)]
        graphs = [new[i].graph if i in new else graph for i, graph in enumerate(r.negative_graphs)]
        return with_subsets(split, **{name: replace(r, negatives=negatives, negative_graphs=graphs)})

    return plant


def relation_twice(split: Split) -> Split:
    r = split.subsets["validation"]
    return with_subsets(
        split, validation=replace(r, graphs=[graph._replace(edges=graph.edges * 2) for graph in r.graphs])
    )


def elsewhere(split: Split) -> Split:
    return with_subsets(split, above_under_unseen_pairs=split.subsets["left_right_unseen_pairs"])


def caption_for_caption(split: Split) -> Split:
    r = split.subsets["unseen_counts"]
    return with_subsets(split, unseen_counts=replace(r, captions=[r.negatives[0], *r.captions[1:]]))


def a_negative_more(split: Split) -> Split:
    r = split.subsets["train"]
    some = next(filter(None, r.negatives))
    i = list(r.negatives).index("")
    return with_subsets(split, train=replace(r, negatives=[*r.negatives[:i], some, *r.negatives[i + 1 :]]))


def whole_recipe(split: Split) -> Split:
    return claimed(mentioned=1.0, attributes=1.0, salient=0.0)(split)


def red_or_not(text: str) -> str:
    return text.replace("an elephant", "a red elephant")


def denied_what_is_there(graph):
    return graph._replace(
        nodes=tuple(f"no {graph.nodes[0]}" if node.startswith("no ") else node for node in graph.nodes)
    )


BESIDE, STACKED = {"relation": "left/right"}, {"relation": "above/under"}
LEFT_UNSEEN, TRUE = "left_right_unseen_pairs", "every caption of {} is true"
ANY_RELATION = f"no animal pair of {LEFT_UNSEEN} is in train in any relation"
FAULTS = [
    (SPATIAL, added("train", "above_under_unseen_order"), "no order of above_under_unseen_order is in train"),
    (SPATIAL, added("train", LEFT_UNSEEN), ANY_RELATION),
    (SPATIAL, added("train", LEFT_UNSEEN, placed("above", "under")), ANY_RELATION),
    (SPATIAL, added(LEFT_UNSEEN, "validation", **BESIDE), f"{LEFT_UNSEEN} and validation share no animal pair in any"),
    (
        SPATIAL,
        added(LEFT_UNSEEN, "validation", placed("left", "right"), **STACKED),
        "and validation share no animal pair in any",
    ),
    (SPATIAL, told(LEFT_UNSEEN, "captions", turned_text), TRUE.format(LEFT_UNSEEN)),
    (SPATIAL, told("validation", "graphs", turned_predicate), TRUE.format("validation")),
    (SPATIAL, lost(lambda s: several(s) and s.things[0].texture == "red"), "in all textures and backgrounds"),
    (SPATIAL, claimed(singles_slots=["center", "left"]), "every single-object scene is in train"),
    (SPATIAL, claimed(singles_slots=["center"]), "every single-object scene of train has a slot of the recipe"),
    (SPATIAL, claimed(hard_negatives=0.0), "pairs in both orders"),
    (SPATIAL, elsewhere, "every pair of above_under_unseen_pairs is in a requested relation"),
    (
        replace(SPATIAL, relations=("left/right",)),
        elsewhere,
        "every pair of above_under_unseen_pairs is in a requested",
    ),
    *(
        (SPATIAL, textures_exchanged(name), f"every negative of a pair of {name} states its relation, turned")
        for name in ("train", "validation", "left_right_unseen_order")
    ),
    (SPATIAL, relation_twice, "every caption of a pair of validation states its relation"),
    (SEEN, claimed(attributes=0.9), "mentions in train with their texture"),
    (SEEN, claimed(seen_order=False), "the subsets are those of"),
    (
        replace(SPATIAL, hard_negatives=0.0, seen_order=True),
        added("left_right_seen_order", "left_right_unseen_order"),
        "every order of left_right_seen_order is in train",
    ),
    (
        replace(SPATIAL, pairs=1.0, seed=1, unseen_under="own"),
        claimed(unseen_under="all"),
        "is in train in any relation",
    ),
    (DEPENDENCE, added("train", "unseen_textures"), "no animal of unseen_textures is in train in that texture"),
    (DEPENDENCE, claimed(information=0.6), "information of texture and animal: as requested"),
    (
        DEPENDENCE,
        lost(lambda s: not several(s) and s.things[0].animal == "rabbit"),
        "every animal is in train alone on every background",
    ),
    (COUNTING, added("train", "unseen_counts"), "no animal of unseen_counts is in train in numbers"),
    (COUNTING, caption_for_caption, "every caption of unseen_counts states the number"),
    (
        COUNTING,
        shown("validation", first(animal="rabbit", texture="?"), several),
        "every scene of validation shows one to four of one thing",
    ),
    (COUNTING, claimed(pairs=0.2), "counted animals: the requested fraction"),
    (
        replace(COUNTING, world="tiny-sizes"),
        shown("seen_counts", first(size="?"), several),
        "every animal of seen_counts has one size",
    ),
    (
        SIZED,
        both(
            told("validation", "captions", lambda text: text.replace("small", "big")),
            told("validation", "graphs", graph_of(lambda node: node.replace("small", "big"))),
        ),
        TRUE.format("validation"),
    ),
    (SIZED, shown("unseen_pairs", sizes_exchanged, of_two_sizes), TRUE.format("unseen_pairs")),
    (SIZED, shown("train", first(size="")), "every animal of train has one size"),
    (
        SIZED,
        lost(lambda s: not several(s) and s.things[0][1:] == ("red", "center", "small")),
        "every single-object scene is in train",
    ),
    (LESS, claimed(mentioned=1.0), "mentions both: the requested share"),
    (LESS, claimed(attributes=0.2), "with their texture: the requested share"),
    (LESS, whole_recipe, TRUE.format("train")),
    (
        LESS,
        told("validation", "captions", lambda text: f"{text.partition(' and ')[0]} {' '.join(text.split()[-3:])}"),
        TRUE.format("validation"),
    ),
    (LESS, told("train", "captions", red_or_not), TRUE.format("train")),
    (
        LESS,
        told("train", "graphs", graph_of(lambda node: "penguin" if node == "elephant" else node)),
        TRUE.format("train"),
    ),
    (LESS, a_negative_more, "train has a negative where, and only where"),
    (replace(BINDING, negated=1.0), told("train", "graphs", denied_what_is_there), TRUE.format("train")),
    (BINDING, claimed(facing="inward"), "things beside each other face each other"),
    (replace(BINDING, facing="inward", pairs=1.0), claimed(facing="drawn"), "things on the left that face outward"),
    *(
        (WORDED, claimed(**{field: value}), f"captions of train have the {field.replace('_', ' ')}")
        for field, value in {
            "article": "a",
            "conjunction": "and",
            "phrasings": ["{things} {place}"],
            "mention_order": "slots",
        }.items()
    ),
    (RULED, added("train", "held_out"), "no rule holds out any scene of train"),
    (
        replace(SPATIAL, hold_out=RULED.hold_out, pairs=1.0, hard_negatives=0.0),
        added("train", "held_out"),
        "no rule holds out any scene of train",
    ),
    (GROUPED, claimed(groups=["birds={penguin, rabbit}"]), "no rule holds out any scene of train"),
]


@pytest.mark.parametrize(
    ("recipe", "plant", "claim"), FAULTS, ids=[f"{recipe.kind} {claim}" for recipe, _, claim in FAULTS]
)
def test_a_planted_fault_is_found(recipe, plant, claim):
    sound = in_memory(recipe)
    assert not any(claim in its.claim for its in check_records(sound) if not its.holds)
    assert any(claim in its.claim for its in check_records(plant(sound)) if not its.holds)
