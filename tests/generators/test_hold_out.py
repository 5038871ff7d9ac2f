"""Hold-out rules on splits: nothing that one matches is anywhere but in `held_out`."""

import os
from dataclasses import replace

import h5py
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.rule import parse_rule
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import pair_in
from menagerie.generators.splits.spatial import SpatialRecipe
from tests.helpers.splits import failed, make_split

TINY = {"world": "tiny", "pairs": 0.5, "hard_negatives": 0.5, "views": 1, "test_views": 1, "test_scenes": 20}
KINDS = {"binding": BindingRecipe(**TINY), "spatial": SpatialRecipe(**TINY)}
WORLD = load_world("tiny")
EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "8"))  # random recipes; 500 before a release

ATOM = st.one_of(
    st.sampled_from([f"animal={name}" for name in WORLD.animals]),
    st.sampled_from([f"texture={name}" for name in WORLD.textures]),
    st.sampled_from([f"background={name}" for name in WORLD.backgrounds]),
    st.sampled_from(
        ["slot=under", "count=2", "texture[0]=texture[1]", "pair={elephant, rabbit}", "relation=left & first=penguin"]
    ),
)
RULE = st.lists(ATOM, min_size=1, max_size=3, unique=True).map(" & ".join)
FRACTION = st.integers(0, 10).map(lambda n: n / 10)
TEMPLATE = {"binding": "{}conjunction", "spatial": "{}relation"}
FIELDS = st.fixed_dictionaries(
    {
        "world": st.sampled_from(["tiny", "tiny-sizes"]),
        "hold_out": st.lists(RULE, max_size=2, unique=True).map(tuple),
        "pairs": FRACTION,
        "hard_negatives": FRACTION,
        "seed": st.integers(0, 99),
    }
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """One store for all random splits: most of their scenes are there already."""
    return tmp_path_factory.mktemp("random")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(["", "pug-", "free-", "statement-"]), st.booleans(), FIELDS)
def test_the_audit_proves_random_recipes(root, kind, phrasing, grounded, fields):
    places = {"singles_slots": ("center",)} if kind == "spatial" and grounded else {}
    recipe = replace(KINDS[kind], template=TEMPLATE[kind].format(phrasing), **places, **fields)
    try:
        recipe.subsets()
    except UserError:  # the rules take too much, or nothing: tested below
        assume(False)
    assert failed(make_split(root, recipe)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["texture=red & animal=elephant", "pair={penguin, rabbit}", "background=city", "texture[0]=white"]
)
def test_a_rule_is_held_out(kind, text):
    subsets = replace(KINDS[kind], hold_out=(text,), pairs=1.0).subsets()
    rule = parse_rule(text, WORLD)
    for name, scenes in subsets.items():
        assert all(rule.matches(scene) == (name == "held_out") for scene in scenes), name
    assert subsets["held_out"]
    assert {scene.view for scene in subsets["held_out"]} == {1}
    assert subsets["train"]


def test_a_pair_keeps_its_texture_unless_a_rule_takes_it():
    free = KINDS["binding"]
    held = replace(free, hold_out=("texture=red & animal=elephant",), pairs=1.0, hard_negatives=0.0)
    singles = [s for s in held.subsets()["train"] if len(s.things) == 1]
    assert ("elephant", "red") not in {s.things[0][:2] for s in singles}
    assert ("elephant", "white") in {s.things[0][:2] for s in singles}
    assert held.counts().train == replace(free, pairs=1.0).counts().train, "every pair has another assignment left"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (("animal=cat",), "unknown animal 'cat'"),
        (("count=3",), "matches none of the 24 scenes of one and"),
        (("count=2",), "leaves none of the 4 trainable pairs"),
        (("view=0",), "leave out view"),
        (("background=city", "background=city"), "twice"),
        (("texture=red", "texture=white"), "leaves none of the"),
    ],
)
def test_rules_that_cannot_be_had_are_refused(rules, message):
    with pytest.raises(UserError) as raised:
        replace(KINDS["binding"], hold_out=rules).subsets()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("recipe", "rules"),
    [
        (KINDS["binding"], ("pair={rabbit, elephant} & texture=red",)),
        (KINDS["spatial"], ("pair={rabbit, elephant}", "relation=above & pair={elephant, penguin}")),
        (replace(KINDS["spatial"], unseen_under="own"), ("relation=above & pair={rabbit, elephant}",)),
    ],
)
def test_a_rule_can_be_had_with_any_seed(recipe, rules):
    """Whichever pairs chance would keep for validation: tests show none of these."""
    for seed in range(8):
        subsets = replace(recipe, hold_out=rules, seed=seed).subsets()
        tested, kept = ({pair_in(scene) for scene in subsets[name]} for name in ("held_out", "validation"))
        assert tested, seed
        assert kept, seed
        assert not tested & kept, seed


def test_rules_that_take_everything_are_refused_together():
    with pytest.raises(UserError, match="'count=1 or count=2' takes all of the 24 scenes"):
        replace(KINDS["binding"], pairs=0.0, hold_out=("count=1", "count=2")).subsets()


def test_too_many_hard_negatives_are_refused_with_the_numbers():
    recipe = replace(KINDS["spatial"], pairs=1.0, hard_negatives=1.0, hold_out=("relation=left & first=elephant",))
    with pytest.raises(UserError, match=r"requests 4 of 4 training pairs, but hold_out leaves the swap of \d only"):
        recipe.subsets()


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_finds_a_scene_that_a_rule_should_hold_out(kind, tmp_path):
    path = make_split(tmp_path, replace(KINDS[kind], hold_out=("background=city",)))
    assert failed(path) == []
    with h5py.File(path, "r+") as file:
        factors = file["subsets/train/factors"][:]
        factors["background"][-1] = WORLD.backgrounds.index("city")
        file["subsets/train/factors"][:] = factors
    assert "no rule holds out any scene of train" in failed(path)
