"""Hold-out rules on splits: nothing that one matches is anywhere but in `held_out`."""

from dataclasses import replace

import pytest

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.pair_roles import pair_in
from menagerie.generators.splits.spatial import SpatialRecipe

TINY = {"world": "tiny", "pairs": 0.5, "hard_negatives": 0.5, "views": 1, "test_views": 1, "test_scenes": 20}
KINDS = {"binding": BindingRecipe(**TINY), "spatial": SpatialRecipe(**TINY)}


def test_a_pair_keeps_its_texture_unless_a_rule_takes_it():
    free = KINDS["binding"]
    held = replace(free, hold_out=("texture=red & animal=elephant",), pairs=1.0, hard_negatives=0.0)
    singles = [s for s in held.subsets()["train"] if len(s.objects) == 1]
    assert ("elephant", "red") not in {s.objects[0][:2] for s in singles}
    assert ("elephant", "white") in {s.objects[0][:2] for s in singles}
    assert held.counts().train == replace(free, pairs=1.0).counts().train, "every pair has another assignment left"


@pytest.mark.parametrize(
    ("recipe", "rules"),
    [
        (KINDS["binding"], ("pair={rabbit, elephant} & texture=red",)),
        (KINDS["spatial"], ("pair={rabbit, elephant}", "relation=above & pair={elephant, penguin}")),
        (replace(KINDS["spatial"], unseen_under="own"), ("relation=above & pair={rabbit, elephant}",)),
    ],
)
def test_a_rule_can_be_met_with_any_seed(recipe, rules):
    """Whichever pairs chance would keep for validation: tests show none of these."""
    for seed in range(8):
        subsets = replace(recipe, hold_out=rules, seed=seed).subsets()
        tested, kept = ({pair_in(scene) for scene in subsets[name]} for name in ("held_out", "validation"))
        assert tested, seed
        assert kept, seed
        assert not tested & kept, seed


def test_no_caption_of_train_states_a_relation_that_a_rule_holds_out_of_scenes_of_three():
    rules = {"hold_out": ("relation=left & first=camel",), "layout": "apart", "relations_stated": 2}
    numbers = {"objects": (1, 2, 3), "test_objects": (2, 3), "train_scenes": 240, "test_scenes": 40}
    recipe = MultiObjectRecipe(world="eight-textures", **numbers, **rules)
    subsets = recipe.subsets()
    assert {len(scene.objects) for scene in subsets["held_out"]} == {2, 3}
    stated = set()
    for scene in subsets["train"]:
        graph = recipe.texts("train", scene)[0].graph
        stated |= {(edge.predicate, *(graph.nodes[end].split()[-1] for end in edge[1:])) for edge in graph.edges}
    assert {predicate for predicate, *_ in stated} >= {"to the left of", "to the right of"}
    assert not {
        (first, second) for predicate, first, second in stated if (predicate, first) == ("to the left of", "camel")
    }
    assert not {first for predicate, first, second in stated if (predicate, second) == ("to the right of", "camel")}
