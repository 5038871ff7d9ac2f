"""What recipes draw is even where it ought to be, and goes with nothing else that a scene shows; nothing is rendered.

A case is a number of rows, each of which was drawn by itself, from splits of several seeds. Its outcomes are compared
with even ones or with the recipe's probability, and tables of each draw with whatever it must not depend on with
independence. All tests of this module have one bound (Bonferroni): sound draws would exceed it once in 1000 seeds. What
is drawn without replacement, or dealt, varies less than the tests suppose.
"""

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binomtest, chi2_contingency, chisquare

from menagerie.envs.slots import OUTWARD
from menagerie.envs.worlds import load_world
from menagerie.generators.captions import spec, templates
from menagerie.generators.splits import dependence, even_draws, probe_scenes, recipe, spatial
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from tests.generators.drawn_rows import ROLES, Row, Rows, assigned, counted, dealt, painted, pairs_in, probed

RATE = 1 / 1000
MOST = 120  # tests of a case
LEAST = 5  # expected rows in a cell of a table, on average


@dataclass(frozen=True)
class Case:
    """Rows, and what their draws should be."""

    rows: Rows
    even: Mapping[str, int]
    """The number of outcomes of each draw whose outcomes are equally likely."""
    shares: Mapping[str, float] | None = None
    """The probability of what is true or false."""
    drawn: tuple[str, ...] = ()
    """Draws, besides those with even outcomes or shares, that must be independent of each other and of `beside`."""
    beside: tuple[str, ...] = ()
    tied: tuple[set[str], ...] = ()
    """Columns of which any two may depend on each other."""


def values(rows: Sequence[Row], *columns: str) -> list[tuple[Hashable, ...]]:
    found = (tuple(row.get(column) for column in columns) for row in rows)
    return [some for some in found if None not in some]


def chances_of(case: Case) -> Iterator[tuple[str, float]]:
    """Yield each test of a case: what it tests, and the probability of counts as uneven as these."""
    rows, shares = case.rows(), case.shares or {}
    for what, number in case.even.items():
        counts = list(Counter(values(rows, what)).values())
        assert number >= len(counts) > 0
        yield what, chisquare(counts + [0] * (number - len(counts))).pvalue
    for what, share in shares.items():
        came = [value for (value,) in values(rows, what)]
        yield what, binomtest(sum(came), len(came), share).pvalue
    drawn = [*case.even, *shares, *case.drawn]
    for one, other in [*combinations(drawn, 2), *product(drawn, case.beside)]:
        counts = Counter(values(rows, one, other))
        names = [sorted({both[i] for both in counts}, key=str) for i in (0, 1)]
        table = np.array([[counts[both] for both in product([name], names[1])] for name in names[0]])
        if not any({one, other} <= tied for tied in case.tied) and min(table.shape) > 1 and table.mean() >= LEAST:
            yield f"{one} with {other}", chi2_contingency(table, correction=False).pvalue


# Cases

PUG = {"world": "pug", "views": 1, "test_views": 3}
BINDING = BindingRecipe(**PUG, pairs=0.3, hard_negatives=0.5, test_scenes=400, template="free-conjunction")
SPATIAL = SpatialRecipe(**PUG, pairs=0.1, hard_negatives=0.5, test_scenes=400, template="free-relation")
SIZED = replace(BINDING, world="pug-sizes", pairs=0.1)
PARTIAL = replace(BINDING, mentioned=0.7, attributes=0.6, negated=0.4, template="conjunction")
HELD = replace(SPATIAL, world="eight", hold_out=("texture=red & animal=crow",), test_scenes=600)
DEPENDENCE = DependenceRecipe(**PUG | {"views": 4}, test_scenes=400)
NUMBERS = CountingRecipe(**PUG, test_scenes=4000, pairs=1.0)
MULTI_OBJECT = MultiObjectRecipe(
    world="pug-textures", views=2, test_views=3, train_scenes=2400, test_scenes=600, test_objects=(3,)
)
SOME_TOLD = replace(MULTI_OBJECT, mentioned=0.6, attributes=0.7)
TOLD_OF_THREE = 0.6 + 0.4**3 / 3  # one is told where none was drawn
MENTIONS = ("mention", "mention by place")
PROBE = ProbeRecipe(world="pug-sizes", template="free-conjunction")

OF_PAIRS = {"background": 5, "view": 3, "place": 2, "mention": 2, "mention by place": 2, "phrasing": 6}
FACINGS = {"facing in place 1": 2, "facing in place 2": 2}
SIZES = {"size of first": 2, "size of second": 2}
NAMES = ("first", "second", "texture of first", "texture of second", "answer")
ANSWERS = {"answer", "texture of first", "texture of second"}
TOLD = ("told", "textures told")
DENIED = {"denied animal", "denied texture"}
# A scene's objects are dealt together, and its places, background and view say which two are exchanged.
DEALT = (
    {"background", "view", "background of object", "view of object", "number told", "exchanged", "place"},
    {"mentioned", "mentioned first", "number told", "exchanged"},
    {"mentioned", "textured", "background of object", "view of object"},
)
OF_OBJECTS = ("animal", "texture", "place", "background of object", "view of object")
CASES = {
    "binding": Case(
        pairs_in(BINDING, 3, "unseen_pairs"),
        OF_PAIRS | FACINGS | {"answer": 2, "pair": 3 * 19},
        beside=NAMES,
        tied=(ANSWERS, {"pair", *NAMES[:2]}),
    ),
    "binding, train": Case(pairs_in(BINDING, 2, "train"), dict.fromkeys(MENTIONS, 2) | FACINGS, beside=NAMES),
    "binding, other tests": Case(pairs_in(BINDING, 2, "validation", "different_bag"), OF_PAIRS, beside=NAMES),
    "binding, sizes": Case(pairs_in(SIZED, 2, "unseen_pairs"), SIZES | FACINGS, beside=(*NAMES, "background", "place")),
    "binding, partial": Case(
        pairs_in(PARTIAL, 2, "train"),
        {"mention": 2, "left out": 2, "denied animal": 20, "denied texture": 4},
        {"denied": 0.4},
        TOLD,
        (*NAMES, "background", "place"),
        ({*DENIED, *NAMES}, {"denied", *DENIED}, {*TOLD, "left out"}),
    ),
    "binding, pairs": Case(
        assigned(BINDING, 10),
        {"before": 2, "textures": 12} | ROLES,
        {"swapped": 0.5},
        beside=NAMES,
        tied=({"before", "textures", *NAMES[2:]},),
    ),
    "spatial": Case(
        pairs_in(SPATIAL, 1, "left_right_unseen_pairs", "above_under_unseen_pairs", "validation"),
        OF_PAIRS,
        beside=NAMES,
    ),
    "spatial, pairs": Case(
        assigned(SPATIAL, 5), {"before": 2} | ROLES, {"swapped": 0.5}, beside=("first", "second", "relation")
    ),
    "spatial, rules": Case(pairs_in(HELD, 1, "held_out"), OF_PAIRS | {"background": 3}, beside=NAMES),
    "dependence": Case(
        painted(DEPENDENCE), {}, drawn=load_world("pug").animals, beside=("background", "view", "place")
    ),
    "dependence, tests": Case(
        pairs_in(replace(DEPENDENCE, views=1), 1, "seen_textures", "unseen_textures", "validation"),
        {"background": 5, "view": 3, "place": 2, "mention": 2, "mention by place": 2},
        beside=("first", "second", "answer"),
    ),
    "counting": Case(
        counted(NUMBERS, 1),
        {"number": 4, "background": 5, "view": 3, "places of 1": 4, "places of 2": 6, "places of 3": 4}
        | {f"other number than {n}": 3 for n in range(1, 5)},
        beside=("animal", "texture"),
        tied=({"number", *(f"{what} {n}" for what in ("places of", "other number than") for n in range(1, 5))},),
    ),
    **{
        f"multi-object, {name}": Case(
            dealt(SOME_TOLD, 1, name, 3),
            {"background": 5, "view": views, "animal": 20, "texture": 12},
            shares,
            ("exchanged", "mentioned first", "number told"),
            OF_OBJECTS,
            (*DEALT, {"animal", "texture"}),
        )
        for name, views, shares in (("train", 2, {"mentioned": TOLD_OF_THREE, "textured": 0.7}), ("seen_3", 3, None))
    },
    "multi-object, sizes": Case(
        dealt(replace(MULTI_OBJECT, world="pug-sizes"), 1, "train", 3), {"size": 2}, beside=OF_OBJECTS
    ),
    "probe": Case(
        probed(PROBE),
        {"background": 5, "phrasing": 6} | SIZES | FACINGS,
        beside=(
            *("first", "second", "texture 1", "texture 2", "view", "background before", "phrasing before"),
            *(f"{name} before" for name in (*SIZES, *FACINGS)),
        ),
    ),
}


BOUND = RATE / (MOST * len(CASES))


@pytest.mark.parametrize("name", CASES)
def test_draws_are_even_and_independent(name):
    found = list(chances_of(CASES[name]))
    assert 0 < len(found) <= MOST
    assert [(what, p) for what, p in found if p < BOUND] == []


# Faults of the generator


def put(monkeypatch: pytest.MonkeyPatch, old: Callable, new: Callable) -> None:
    """Put a function into the place of another one, in whichever module it is."""
    for module in [module for name, module in sys.modules.items() if name.startswith("menagerie.")]:
        for name in [name for name, value in vars(module).items() if value is old]:
            monkeypatch.setattr(module, name, new)


def left_first(scene, seed, order="random"):
    return scene.objects


def red_outward(self, scene):
    if scene.relation != "left/right":
        return scene
    slots = [place + OUTWARD * (scene.objects[0].texture == "red") for place in ("left", "right")]
    return replace(scene, objects=tuple(t._replace(slot=s) for t, s in zip(scene.objects, slots, strict=True)))


def the_first(scenes, most, rng):
    return scenes[:most]


def phrasing_by_background(scene, seed, template):
    return int(scene.background == "city")


def denied_beside_one_answer(scene, its):
    """Case 22: a negation only where the order of textures has one label."""
    one, other = sorted(scene.objects)[0], sorted(scene.objects)[-1]
    return real_denied(scene, its) if one.texture < other.texture else ()


def order_of_the_world(pair, relation, seed):
    return pair


def painted_by_background(world, scenes, table, seed):
    order = sorted(range(len(scenes)), key=lambda i: scenes[i].background)
    queues = {a: iter(np.repeat(world.textures, row).tolist()) for a, row in zip(world.animals, table, strict=True)}
    made = {i: [t._replace(texture=next(queues[t.animal])) for t in scenes[i].objects] for i in order}
    return [replace(scene, objects=tuple(made[i])) for i, scene in enumerate(scenes)]


def view_of_the_background(self, *its):
    scene = real_scene(self, *its)
    return replace(scene, view=self.views.items[scene.background == "city"])


def same_in_all_views(world, seed, inward, view, *names):
    return real_draws(world, seed, inward, 0, *names)


real_denied, real_scene, real_draws = spec.draw_denied, even_draws.SceneSampler.sample, probe_scenes.draw_shared

# Of fewer seeds and animals: these faults are gross.
FEWER = CASES | {
    "binding": replace(
        CASES["binding"],
        rows=pairs_in(BINDING, 1, "unseen_pairs"),
        even=CASES["binding"].even | {"pair": 19},
    ),
    "binding, train": replace(CASES["binding, train"], rows=pairs_in(BINDING, 1, "train")),
    "binding, partial": replace(CASES["binding, partial"], rows=pairs_in(PARTIAL, 1, "train")),
    "probe": replace(CASES["probe"], rows=probed(replace(PROBE, animals=load_world("pug").animals[:10]))),
}
FAULTS = [
    ("binding", templates.mention_order, left_first, "mention by place"),
    ("binding", templates.phrasing_number, phrasing_by_background, "background with phrasing"),
    ("binding", recipe.sample_scenes, the_first, "pair"),
    ("binding, train", SplitRecipe.with_facings, red_outward, "facing in place 1 with texture of"),
    ("binding, partial", spec.draw_denied, denied_beside_one_answer, "denied with answer"),
    ("spatial, pairs", spatial.draw_order, order_of_the_world, "before"),
    ("dependence", dependence.with_textures, painted_by_background, "with background"),
    ("multi-object, train", even_draws.SceneSampler.sample, view_of_the_background, "view"),
    ("probe", probe_scenes.draw_shared, same_in_all_views, "background with background before"),
]


@pytest.mark.parametrize(("name", "old", "new", "what"), FAULTS, ids=lambda its: getattr(its, "__name__", None))
def test_a_fault_of_the_generator_is_found(monkeypatch, name, old, new, what):
    if isinstance(owner := sys.modules[old.__module__].__dict__.get(old.__qualname__.split(".")[0]), type):
        monkeypatch.setattr(owner, old.__name__, new)
    else:
        put(monkeypatch, old, new)
    found = [its for its, p in chances_of(FEWER[name]) if p < BOUND]
    assert any(what in its for its in found), found


def test_of_fewer_rows_nothing_is_found_without_a_fault():
    assert not [its for its, p in chances_of(FEWER["binding"]) if p < BOUND]
