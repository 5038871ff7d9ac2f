"""Faults of splits, an entry each: what a bug or a careless hand does to a binding split (see `tests.faults.conftest`).

To add one, write a function from a split to the wrong one and name the claim that it makes fail.
"""

from dataclasses import replace

import numpy as np

from menagerie.envs.scene import Scene
from menagerie.generators.captions.hard_negatives.swaps import swap_textures
from menagerie.generators.captions.templates import build_caption, mention_order, phrasing_of
from menagerie.generators.storage.split_file import Records, Split
from tests.helpers.planting import SplitFault, joined, only, row_of, taken, with_subsets

TESTS = ("validation", "seen_pairs", "unseen_pairs", "different_bag", "train_pairs")


def animals(scene: Scene) -> frozenset[str]:
    return frozenset(thing.animal for thing in scene.things)


def a_pair(split: Split) -> frozenset[str]:
    """An animal pair of train."""
    return next(animals(scene) for scene in split.subsets["train"].scenes if len(scene.things) == 2)


def dropped(split: Split, name: str, lost) -> Split:
    return only(split, lambda scene: not lost(scene), [name])


def another_seed(split: Split) -> Split:
    return replace(split, recipe={**split.recipe, "seed": split.recipe["seed"] + 1})


def more_views(split: Split) -> Split:
    return replace(split, recipe={**split.recipe, "views": split.recipe["views"] + 1})


def fewer_test_views(split: Split) -> Split:
    return replace(split, recipe={**split.recipe, "test_views": split.recipe["test_views"] - 1})


def reworded(split: Split, **fields) -> Split:
    """All texts as another recipe makes them."""
    from menagerie.generators.audit.regeneration import recipe_of

    recipe, subsets = replace(recipe_of(split), **fields), {}
    for name, r in split.subsets.items():
        texts = [recipe.texts(name, scene) for scene in r.scenes]
        subsets[name] = replace(
            r,
            captions=[true.text for true, _ in texts],
            graphs=[true.graph for true, _ in texts],
            negatives=[false.text if false else "" for _, false in texts],
            negative_graphs=[its.graph if its else r.negative_graphs[i] for i, (_, its) in enumerate(texts)],
        )
    return with_subsets(split, **subsets)


def another_template(split: Split) -> Split:
    return reworded(split, template="pug-conjunction")


def texts_of_another_seed(split: Split) -> Split:
    return reworded(split, seed=split.recipe["seed"] + 1)


def wrong_article(split: Split) -> Split:
    train = split.subsets["train"]
    first, *others = train.captions
    return with_subsets(split, train=replace(train, captions=[first.replace("a ", "an ", 1), *others]))


def pair_without_a_background(split: Split) -> Split:
    pair, background = a_pair(split), split.vocabulary.backgrounds[0]
    return dropped(split, "train", lambda scene: animals(scene) == pair and scene.background == background)


def pair_in_one_scene(split: Split) -> Split:
    pair = a_pair(split)
    kept = next(scene for scene in split.subsets["train"].scenes if animals(scene) == pair)
    return dropped(split, "train", lambda scene: animals(scene) == pair and scene != kept)


def row_fifty_times(split: Split) -> Split:
    train = split.subsets["train"]
    return with_subsets(split, train=taken(train, [*range(len(train)), *[3] * 49]))


def single_in_one_view(split: Split) -> Split:
    single = next(scene for scene in split.subsets["train"].scenes if len(scene.things) == 1)
    others = [replace(single, view=view) for view in range(split.recipe["views"]) if view != single.view]
    return dropped(split, "train", others.__contains__)


def empty_subset(split: Split) -> Split:
    return with_subsets(split, seen_pairs=taken(split.subsets["seen_pairs"], []))


def shortened_subset(split: Split) -> Split:
    r = split.subsets["different_bag"]
    return with_subsets(split, different_bag=taken(r, range(len(r) // 2)))


def record_in_the_wrong_subset(split: Split) -> Split:
    own, other = split.subsets["validation"], split.subsets["unseen_pairs"]
    return with_subsets(split, validation=taken(own, range(1, len(own))), unseen_pairs=joined(other, taken(own, [0])))


def another_order(split: Split) -> Split:
    r = split.subsets["train"]
    return with_subsets(split, train=taken(r, [1, 0, *range(2, len(r))]))


def shown_as(records: Records, index: int, scene: Scene, split: Split, partner: bool) -> Records:
    """One record that shows another scene with the texts of the recipe."""
    from menagerie.generators.audit.regeneration import recipe_of

    (true, false), one = recipe_of(split).texts("any", scene), taken(records, [index])
    return replace(
        one,
        scenes=[scene],
        rows=np.array([row_of(split, scene)], np.int64),
        partners=np.array([row_of(split, swap_textures(scene)) if partner else -1], np.int64),
        captions=[true.text],
        graphs=[true.graph],
        negatives=[false.text],
        negative_graphs=[false.graph],
    )


def partner_in_train(split: Split) -> Split:
    tested, train = split.subsets["different_bag"], split.subsets["train"]
    there = set(tested.scenes)
    scene = next(its for its in map(swap_textures, tested.scenes) if its not in there)
    return with_subsets(split, train=joined(train, shown_as(tested, 0, scene, split, partner=False)))


def training_view_in_a_test(split: Split) -> Split:
    """The images are in the store: another split needed them."""
    r = split.subsets["unseen_pairs"]
    one = shown_as(r, 0, replace(r.scenes[0], view=0), split, partner=True)
    return with_subsets(split, unseen_pairs=joined(one, taken(r, range(1, len(r)))))


def no_partners(split: Split) -> Split:
    r = split.subsets["validation"]
    return with_subsets(split, validation=replace(r, partners=np.full(len(r), -1)))


def one_answer(split: Split) -> Split:
    """In tests the first animal in the alphabet has the first texture in the alphabet."""

    def so(scene: Scene) -> bool:
        one, other = sorted(scene.things)
        return one.texture < other.texture

    return only(split, so)


def red_on_the_left(split: Split) -> Split:
    return only(split, lambda scene: scene.things[1].texture != "red")


def fewer_of_one_background(split: Split) -> Split:
    """In the desert the answer is always the same one."""

    def so(scene: Scene) -> bool:
        one, other = sorted(scene.things)
        return one.texture < other.texture or scene.background != "desert"

    return only(split, so)


def left_mentioned_first(split: Split) -> Split:
    return reworded(split, mention_order="slots")


def negatives_in_an_order_of_their_own(split: Split) -> Split:
    """Negatives mention the left thing first, captions either."""
    seed, template, subsets = split.recipe["seed"], split.recipe["template"], {}
    for name in TESTS:
        r = split.subsets[name]
        swapped = list(map(swap_textures, r.scenes))
        texts = [build_caption(phrasing_of(s, seed, template), s, mention_order(s, seed, "slots")) for s in swapped]
        subsets[name] = replace(
            r, negatives=[text.text for text in texts], negative_graphs=[text.graph for text in texts]
        )
    return with_subsets(split, **subsets)


def negatives_with_a_word_of_their_own(split: Split) -> Split:
    """What no check of bags of words sees: it takes both articles for one word."""
    subsets = {
        name: replace(r, negatives=[text.replace("a ", "an ", 1) for text in r.negatives])
        for name, r in split.subsets.items()
        if name in TESTS
    }
    return with_subsets(split, **subsets)


WHOLE = "every pair of train is there in both orders"
FULL = "every test has all scenes"
OTHER_ANSWERS = "answers depend on no place, order of mention, texture, background or view"

SPLIT_FAULTS = [
    SplitFault(another_seed, "train is what the recipe makes"),
    SplitFault(more_views, WHOLE),
    SplitFault(fewer_test_views, "every view of unseen_pairs is one from 2 to 4"),
    SplitFault(another_template, "captions are worded as in the template"),
    SplitFault(texts_of_another_seed, "unseen_pairs is what the recipe makes"),
    SplitFault(wrong_article, "articles suit the words"),
    SplitFault(pair_without_a_background, WHOLE),
    SplitFault(pair_in_one_scene, WHOLE),
    SplitFault(row_fifty_times, "no scene is in train twice"),
    SplitFault(single_in_one_view, "every single-object scene is in train in all its views"),
    SplitFault(empty_subset, FULL),
    SplitFault(shortened_subset, FULL),
    SplitFault(record_in_the_wrong_subset, "unseen_pairs and validation share no animal pair"),
    SplitFault(another_order, "records stand in the order of their kind"),
    SplitFault(partner_in_train, "no partner of a scene of different_bag is in train"),
    SplitFault(training_view_in_a_test, "every view of unseen_pairs is one from 2 to 5"),
    SplitFault(no_partners, "scenes of tests have partners"),
    SplitFault(one_answer, OTHER_ANSWERS),
    SplitFault(red_on_the_left, OTHER_ANSWERS),
    SplitFault(fewer_of_one_background, OTHER_ANSWERS),
    SplitFault(left_mentioned_first, OTHER_ANSWERS),
    SplitFault(negatives_in_an_order_of_their_own, "has the order and the words of its caption"),
    SplitFault(negatives_with_a_word_of_their_own, "no text alone gives away whether it is true"),
]
