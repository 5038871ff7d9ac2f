"""One table of recipes that can't be had, by kind of split, each with what its error says."""

import re
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import build_dataclass
from menagerie.generators.splits.recipe_file import KINDS
from tests.generators.test_recipes import PLAIN

COMPOSITIONS = {"world": "pug", "pairs": 0.4, "views": 1, "hard_negatives": 0.0, "compositions": 0.75}
HARD = {"pairs": 1.0, "hard_negatives": 1.0}
PHRASING = "must have {objects}, and {place} or {background}, each once"
MANY_SCENES = {"world": "eight-textures", "views": 1, "train_scenes": 900_000}
REFUSED = [
    *(
        ("binding", {name: -0.1}, f"{name} must be at")
        for name in ("pairs", "hard_negatives", "test_pairs", "mentioned")
    ),
    *(("binding", {name: 1.1}, f"{name} must be at") for name in ("validation", "attributes", "salient")),
    *(("binding", {name: float("nan")}, f"{name} must be a number") for name in ("pairs", "attributes")),
    ("binding", {"test_pairs": 0.6, "validation": 0.5}, "leave none of the 6 pairs"),
    ("binding", {"world": "pug-plain"}, "world 'pug-plain' has a single texture"),
    ("binding", {"hold_out": ("animal=cat",)}, "unknown animal 'cat'"),
    ("binding", {"hold_out": ("count=3",)}, "matches no scene that could be tested; widen it"),
    ("binding", {"hold_out": ("count=2",)}, "leaves none of the 4 trainable pairs"),
    ("binding", {"hold_out": ("view=0",)}, "leave out view"),
    ("binding", {"hold_out": ("background=city", "background=city")}, "twice"),
    ("binding", {"hold_out": ("texture=red", "texture=white")}, "leaves none of the"),
    ("binding", {"hold_out": ("count=1", "count=2"), "pairs": 0.0}, "'count=1 or count=2' leaves nothing in train"),
    ("binding", COMPOSITIONS | {"hold_out": ("texture=red",)}, "compositions 0.75 and hold_out both say"),
    ("binding", COMPOSITIONS | {"negated": 0.5}, "compositions 0.75 and negated both say"),
    ("binding", COMPOSITIONS | {"compositions": 0.2}, "and none with"),
    ("binding", COMPOSITIONS | {"compositions": 0.25}, "compositions 0.25 leaves no scene of validation"),
    ("binding", COMPOSITIONS | {"hard_negatives": 1.0}, "compositions leaves the swap of"),
    ("binding", COMPOSITIONS | {"world": "tiny", "compositions": 0.67}, "leaves no scene of"),
    ("binding", {"article": "an"}, "unknown article 'an'; did you mean 'a'"),
    ("binding", {"conjunction": "wile"}, "unknown conjunction 'wile'; did you mean 'while'"),
    ("binding", {"mention_order": "slot"}, "unknown mention_order 'slot'; did you mean 'slots'"),
    ("binding", {"phrasings": ("{objects} in the city",)}, PHRASING),
    ("binding", {"phrasings": ("{objects} {objects} {place}",)}, PHRASING),
    ("binding", {"phrasings": ("{objects} {place!r}",)}, PHRASING),
    ("binding", {"phrasings": ("{objects} {place",)}, PHRASING),
    ("binding", {"phrasings": ("{place}: {objects}",)}, "lower-case words with single spaces"),
    ("binding", {"phrasings": ("{place} {objects} ",)}, "lower-case words with single spaces"),
    ("binding", {"phrasings": ("Look {objects} {place}",)}, "lower-case words"),
    ("binding", {"phrasings": ("the rabbit sees {objects} {place}",)}, "can't be parsed back"),
    ("binding", {"phrasings": ("in the city {objects} {place}",)}, "can't be parsed back"),
    ("binding", {"phrasings": ("{objects} are {place}",)}, "can't be parsed back"),
    ("spatial", {"singles_slots": ("centre",)}, "did you mean 'center'"),
    ("spatial", {"singles_slots": ("above", "above")}, "above twice"),
    ("spatial", {"relations": ()}, "relation"),
    ("spatial", {"relations": ("left/right", "left/right")}, "left/right twice"),
    ("spatial", {"relations": ("left/rigt",)}, "did you mean 'left/right'"),
    ("spatial", {"conjunction": "with"}, "joins objects by their relation; leave out conjunction"),
    ("spatial", HARD | {"hold_out": ("relation=left & first=elephant",)}, "4 of 4 training pairs, but hold_out leaves"),
    ("dependence", {"information": 0.1}, "information 0.1 can't be had in world 'tiny': from 0."),
    ("dependence", {"information": 0.99}, "from 0.339 (textures spread evenly) to 0.920 (one texture an animal)"),
    ("dependence", {"information": float("nan")}, "information must be a number from 0 to 1, got nan"),
    ("dependence", {"views": 1}, "some animal is in train only"),
    ("dependence", {"world": "pug-plain"}, "world 'pug-plain' has 1 texture"),
    *((kind, {"hard_negatives": 0.5}, "doesn't use h") for kind in ("dependence", "counting")),
    *((kind, {"hold_out": ("animal=cat",)}, "doesn't use h") for kind in ("dependence", "counting")),
    ("multi-object", {"coverage": 0.3}, "no multiple of 1/4; choose 0.25, 0.5, 0.75, 1"),
    ("multi-object", {"coverage": 0.5, "classes": 2, "exchanged": (6,)}, "room for 4 objects in pairs"),
    ("multi-object", {"pairs": 0.5}, "doesn't use pairs"),
    ("multi-object", {"hard_negatives": 0.6}, "lower it to 0.4"),
    ("multi-object", {"template": "statement-conjunction", "relations_stated": 1}, "can't state relations"),
    ("multi-object", {"world": "eight", "test_objects": (6,)}, "need 6 textures, but world 'eight' has 3"),
    ("multi-object", {"coverage": 0.2, "classes": 5}, "5 classes need 10 animals and textures each"),
    (
        "multi-object",
        {"train_scenes": 20},
        "of the 64 combinations of animal and texture that coverage 1 means; raise it",
    ),
    ("multi-object", MANY_SCENES, "world 'eight-textures' gives about"),
    ("multi-object", {"coverage": 0.5, "hard_negatives": 0.4}, "lower it to 0.1"),
    (
        "multi-object",
        {"hold_out": ("animal=rabbit & count=7",), "test_objects": (2,)},
        "matches no scene that could be tested",
    ),
    ("probe", {"pairs": 0.2}, "doesn't use pairs; leave it out"),
    ("probe", {"views": 8}, "doesn't use views"),
    ("probe", {"hard_negatives": 0.5}, "doesn't use hard_negatives"),
    ("probe", {"first_view": 16}, "first_view must be at least 20000"),
    ("probe", {"mention_order": "slots"}, "doesn't use mention_order"),
    ("probe", {"objects": 3}, "objects must be 2 unless there is a layout"),
    ("probe", {"animals": ("goldfsh", "camel")}, "unknown animal 'goldfsh'; did you mean 'goldfish'"),
    ("probe", {"animals": ("camel",)}, "needs 2 animals, but there are 1: camel"),
    ("probe", {"textures": ("red",)}, "needs 2 textures, but there are 1: red"),
    ("probe", {"layout": "apart", "objects": 3, "quartets": 2}, "more than the 1 combinations of 3"),
    ("probe", {"layout": "apart", "objects": 4}, "needs 4 animals, but there are 3"),
]


@pytest.mark.parametrize(("kind", "change", "words"), REFUSED, ids=[f"{kind} {words}" for kind, _, words in REFUSED])
def test_recipes_that_no_split_can_meet_are_refused(kind, change, words, monkeypatch):
    monkeypatch.setattr("menagerie.generators.splits.even_draws.TRIES", 200)
    with pytest.raises(UserError, match=re.escape(words)):
        replace(PLAIN[kind], **change).subsets()


@pytest.mark.parametrize(("kind", "field"), [("spatial", "unseen_under"), ("multi-object", "layout")])
def test_a_value_that_a_field_does_not_know_is_named(kind, field):
    with pytest.raises(UserError, match=f"unknown {field} 'both'"):
        build_dataclass(KINDS[kind], {field: "both"})


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_template_is_named(kind):
    with pytest.raises(UserError, match="unknown template 'photo'"):
        replace(PLAIN[kind], template="photo")
