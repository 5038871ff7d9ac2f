"""Every task's true caption is true, its false one is false, and both differ as the task requires."""

from itertools import product

import pytest

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import bag_of_words, edge_holds, true_nodes
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS, TASKS, applies, choices
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.spec import CaptionSpec
from menagerie.generators.captions.templates import TEMPLATES
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.vocabulary import Vocabulary
from menagerie.models.towers.config import TextSpace

WORLD, SIZED = load_world("pug"), load_world("pug-sizes")
VOCABULARY = Vocabulary.of(WORLD)


def spec_of(recipe, words=VOCABULARY, **fields):
    return CaptionSpec(vars(recipe()) | {"kind": recipe.kind, **fields}, words)


BINDING, SPATIAL = spec_of(BindingRecipe), spec_of(SpatialRecipe)
ALL_CONTEXTS = [
    spec_of(recipe, Vocabulary.of(world), template=name, negated=0.5, mentioned=0.5)
    for world in (WORLD, SIZED)
    for recipe in (BindingRecipe, SpatialRecipe)
    for name, template in TEMPLATES.items()
    if template.relation == recipe.relational
]


def scenes_of(kind, world=WORLD):
    """Two animals in all textures and sizes; where a task swaps textures, in two different ones."""
    return [
        scene
        for background, first, second, view in product(
            WORLD.backgrounds, WORLD.textures, WORLD.textures, range(1 if world.sizes else 3)
        )
        for slots in ([its.slots for its in RELATIONS.values()] if kind == "spatial" else [("left", "right")])
        if kind == "spatial" or first != second
        for scene in world.in_sizes(
            Scene(background, (Object("cat", first, slots[0]), Object("giant tortoise", second, slots[1])), view)
        )
    ]


SCENES = scenes_of("binding")


def asked(task, context):
    """Whether tests of a split have a task."""
    return task in ("swap", *KINDS[context.recipe["kind"]].tasks) and applies(TASKS[task], context)


def shown(nodes, scene):
    """Whether all nodes are true of a scene, negations included; textures may be left out."""
    true = true_nodes(scene) | {phrase(obj._replace(texture="")) for obj in scene.objects}
    return all(node[3:] not in true if node.startswith("no ") else node in true for node in nodes)


@pytest.mark.parametrize(("task", "context"), [(t, c) for t in TASKS for c in ALL_CONTEXTS if asked(t, c)], ids=str)
def test_contract(task, context):
    world, tokens = (SIZED, 24) if context.words.sizes else (WORLD, TextSpace.context)
    scenes = scenes_of(context.recipe["kind"], world)
    tested = [pair for pair in zip(scenes, choices(task, scenes, context), strict=True) if pair[1]]
    assert len(tested) == (len(scenes) // 2 if task == "swap size" else len(scenes))
    for scene, (true, false) in tested:
        assert shown(true.graph.nodes, scene)
        assert all(edge_holds(edge, true.graph, scene) for edge in true.graph.edges)
        nodes_hold = shown(false.graph.nodes, scene)
        assert not (nodes_hold and all(edge_holds(edge, false.graph, scene) for edge in false.graph.edges))
        assert parse_caption(true.text, world) == true.graph
        assert parse_caption(false.text, world) == false.graph
        assert max(len(text.text.split()) for text in (true, false)) < tokens, "with the end token"
        assert len(false.graph.nodes) - len(true.graph.nodes) == (task in ("add animal", "add relation"))


def test_one_relation_has_none_to_replace_it_with():
    assert not applies(TASKS["replace relation"], spec_of(SpatialRecipe, relations=("left/right",)))


def test_every_task_applies_to_some_kind():
    assert {task for task in TASKS for context in ALL_CONTEXTS if asked(task, context)} == set(PAIR_TASKS)


def test_each_task_changes_its_part_of_a_caption():
    for scene in SCENES:
        textures = {obj.texture for obj in scene.objects}
        names = ("swap", "one animal", "replace texture", "replace animal")
        swap, one, texture, animal = (choices(name, [scene], BINDING)[0] for name in names)
        assert bag_of_words(swap[0].text) == bag_of_words(swap[1].text)
        assert len(one[0].graph.nodes) == 2, "one animal and the background"
        assert {node.split()[0] for node in (one[0].graph.nodes[0], one[1].graph.nodes[0])} == textures
        (new,) = bag_of_words(texture[1].text) - bag_of_words(texture[0].text)
        assert new in set(WORLD.textures) - textures
        gone = bag_of_words(animal[0].text) - bag_of_words(animal[1].text)
        assert set(gone) <= {"cat", "giant", "tortoise", "a"}
        assert texture[0] == animal[0] == swap[0]


def test_tasks_change_either_object():
    for task in ("one animal", "replace animal", "replace texture"):
        drawn = choices(task, SCENES, BINDING)
        changed = [set(true.graph.nodes) - set(false.graph.nodes) for true, false in drawn]
        cats = sum("cat" in node for nodes in changed for node in nodes)
        assert 0 < cats < len(SCENES)


def test_a_world_of_two_textures_has_none_to_replace_with():
    two = Vocabulary(("cat", "pig"), ("red", "white"), ("city",), VOCABULARY.slots)
    assert [task for task in TASKS if asked(task, spec_of(BindingRecipe, two))] == ["swap", "one animal"]


def test_replacing_a_relation_keeps_the_order_of_the_animals():
    for scene, (true, false) in zip(
        scenes_of("spatial"), choices("replace relation", scenes_of("spatial"), SPATIAL), strict=True
    ):
        assert true.graph.nodes == false.graph.nodes
        assert false.graph.edges[0].predicate not in RELATIONS[scene.relation].predicates


def test_sizes_are_exchanged_where_they_differ_and_replaced_everywhere():
    context = spec_of(BindingRecipe, Vocabulary.of(SIZED))
    scenes = scenes_of("binding", SIZED)
    for scene, swapped, other in zip(
        scenes, choices("swap size", scenes, context), choices("replace size", scenes, context), strict=True
    ):
        sizes = {obj.size for obj in scene.objects}
        assert bool(swapped) == (len(sizes) == 2)
        if swapped:
            assert bag_of_words(swapped[0].text) == bag_of_words(swapped[1].text)
            expected = {phrase(obj._replace(size=(sizes - {obj.size}).pop())) for obj in scene.objects}
            assert set(swapped[1].graph.nodes[:2]) == expected
        (new,) = (bag_of_words(other[1].text) - bag_of_words(other[0].text)).elements()
        (gone,) = (bag_of_words(other[0].text) - bag_of_words(other[1].text)).elements()
        assert {new, gone} == {"small", "big"}


def test_an_attribute_is_added_to_an_object_whose_own_is_omitted():
    for context, scenes in ((BINDING, SCENES), (SPATIAL, scenes_of("spatial"))):
        for scene, (true, false) in zip(scenes, choices("add attribute", scenes, context), strict=True):
            (bare,) = set(true.graph.nodes) & {obj.animal for obj in scene.objects}
            (changed,) = set(false.graph.nodes) - set(true.graph.nodes)
            texture = changed.removesuffix(bare).strip()
            assert texture in set(WORLD.textures) - {obj.texture for obj in scene.objects}
            assert true.graph.edges == false.graph.edges


def test_negation_needs_captions_with_negations():
    assert not applies(TASKS["negation"], BINDING)
    context = spec_of(BindingRecipe, negated=0.1)
    for task in ("negation", "pure negation"):
        for scene, (true, false) in zip(SCENES, choices(task, SCENES, context), strict=True):
            (denied,) = (node[3:] for node in false.graph.nodes if node.startswith("no "))
            assert denied in true_nodes(scene)
            assert true.graph.nodes[:-2] == false.graph.nodes[:-2]
