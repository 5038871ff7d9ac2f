"""Worlds with sizes: every kind of split has them, states them truly, and is otherwise as without them."""

import json
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import bag_of_words
from menagerie.generators.captions.spec import salient_object
from menagerie.generators.captions.templates import caption
from menagerie.generators.export.write import export_split
from menagerie.generators.inspection import describe_split
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.rules.parser import parse_rule
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.storage.split_file import read_split
from tests.helpers.splits import hard_negative, make_split

FEW = {"world": "tiny-sizes", "views": 2, "test_views": 1, "test_scenes": 20}
RECIPES = {
    "binding": BindingRecipe(pairs=0.75, hard_negatives=0.5, **FEW),
    "dependence": DependenceRecipe(information=0.5, **FEW | {"views": 12}),
}
WORLD = load_world("tiny-sizes")


def many(scenes):
    return [scene for scene in scenes if len(scene.objects) > 1]


def test_sizes_are_the_same_in_all_cells_and_at_any_information():
    cells = [replace(RECIPES["binding"], pairs=p, hard_negatives=h).subsets() for p in (0.25, 1.0) for h in (0.0, 1.0)]
    assert all(cell["unseen_pairs"] == cells[0]["unseen_pairs"] for cell in cells)
    assert set(cells[0]["train"]) <= set(cells[2]["train"])
    one, other = (replace(RECIPES["dependence"], information=value).subsets()["train"] for value in (0.5, 0.6))
    assert [[t.size for t in s.objects] for s in one] == [[t.size for t in s.objects] for s in other]
    assert one != other


def test_negatives_keep_the_sizes_with_their_animals():
    pair = Scene("city", (Object("rabbit", "red", "left", "small"), Object("penguin", "white", "right", "big")))
    for kind, nodes in (("binding", {"small white rabbit", "big red penguin"}), ("spatial", None)):
        template = "relation" if kind == "spatial" else "conjunction"
        true, false = (
            caption(pair, 0, template),
            hard_negative(pair, 0, template, "slot" if kind == "spatial" else "texture"),
        )
        assert bag_of_words(true.text) == bag_of_words(false.text)
        assert set(false.graph.nodes) == {"city"} | (nodes or {"small red rabbit", "big white penguin"})
        assert parse_caption(false.text, WORLD) == false.graph


@pytest.mark.parametrize("text", ["a red rabbit in the city", "a red big rabbit in the city", "a big cat in the city"])
def test_sizes_are_read_only_in_worlds_with_sizes(text):
    assert parse_caption(text, WORLD) is None


def test_the_bigger_one_is_salient():
    recipe = replace(RECIPES["binding"], salient=1.0)
    for scene in many(recipe.subsets()["train"]):
        left, right = scene.objects
        stands_out = right if (left.size, right.size) == ("small", "big") else left
        assert salient_object(scene) == stands_out
        (node, _) = recipe.texts("train", scene)[0].graph.nodes
        assert node == f"{stands_out.size} {stands_out.texture} {stands_out.animal}"


def test_a_rule_of_sizes_needs_a_world_with_sizes():
    with pytest.raises(UserError, match="character 1: this world has no sizes"):
        parse_rule("size=small", load_world("tiny"))
    with pytest.raises(UserError, match="unknown size 'smal'; did you mean 'small'"):
        parse_rule("animal=rabbit & size=smal", WORLD)
    with pytest.raises(UserError, match="size can't be compared with texture"):
        parse_rule("size=texture[1]", WORLD)


def test_inspection_and_exports_report_sizes(tmp_path):
    made = make_split(tmp_path, RECIPES["binding"])
    split = read_split(made)
    reported = describe_split(split)
    assert reported["world"] == "tiny-sizes: 4 animals, 3 textures, 2 backgrounds, 2 sizes"
    small = [obj.size == "small" for scene in split.subsets["train"].scenes for obj in scene.objects]
    assert reported["sizes in train"] == f"small {sum(small) / len(small):.1%}, big {1 - sum(small) / len(small):.1%}"
    export_split(made, "coco", tmp_path / "out", ["validation"])
    assert "The animals come in sizes: small, big." in (tmp_path / "out/README.md").read_text()
    first = json.loads((tmp_path / "out/validation.json").read_text())["annotations"][0]
    assert first["scene"]["objects"] == [t._asdict() for t in split.subsets["validation"].scenes[0].objects]
