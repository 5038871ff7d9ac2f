"""False captions for training: false, in the world's words, and silent about what tests keep."""

from collections import Counter
from itertools import product

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import bag_of_words, edge_holds, states_all
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.templates import Caption, write_caption
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES, FalseCaptions
from menagerie.generators.vocabulary import Vocabulary
from tests.helpers.splits import of_planned

SMALL = {"views": 1, "test_views": 1, "test_scenes": 5}
RULE = "texture=red & animal=rabbit"
RECIPES = {
    "binding": BindingRecipe(world="eight", pairs=0.4, hard_negatives=0.5, **SMALL),
    "held out": BindingRecipe(world="tiny", pairs=1.0, hold_out=(RULE,), **SMALL),
    "a held-out group": BindingRecipe(
        world="tiny", pairs=1.0, hold_out=("pair={big, rabbit}",), sets=("big={elephant}",), **SMALL
    ),
    "sizes": BindingRecipe(world="tiny-sizes", pairs=0.75, **SMALL),
    "in part": BindingRecipe(world="tiny", pairs=1.0, mentioned=0.6, attributes=0.6, negated=0.4, **SMALL),
    "stated": BindingRecipe(world="tiny", pairs=0.75, template="statement-conjunction", **SMALL),
    # Pairs drawn for each relation by itself, so that they differ.
    "spatial": SpatialRecipe(world="tiny", pairs=0.5, unseen_under="own", template="free-relation", **SMALL),
    "spatial in part": SpatialRecipe(world="tiny", pairs=1.0, mentioned=0.6, attributes=0.6, **SMALL),
    "one relation": SpatialRecipe(world="tiny", pairs=0.5, relations=("above/under",), **SMALL),
    "dependence": DependenceRecipe(world="tiny", information=0.5, views=30, test_views=1, test_scenes=20),
    "counting": CountingRecipe(world="tiny", pairs=1.0, **SMALL),
}


class Train:
    """The training records of a recipe, without images."""

    def __init__(self, recipe):
        self.recipe, self.world = recipe, load_world(recipe.world)
        self.scenes = recipe.subsets()["train"]
        self.texts = {scene: recipe.texts("train", scene) for scene in self.scenes}
        self.vocabulary = Vocabulary.of(self.world)
        self.maker = FalseCaptions(of_planned(recipe, {"train": self.scenes}).subsets["train"])

    def drawn(self, kind, draws=range(4)):
        """(scene, caption, false caption) of some scenes, those with two objects foremost."""
        many = [scene for scene in self.scenes if len(scene.objects) > 1]
        chosen = [*many[:: max(1, len(many) // 60)], *self.scenes[:: max(1, len(self.scenes) // 30)]]
        for scene, draw in product(chosen, draws):
            true, recorded_false = self.texts[scene]
            if kind == "swap":
                allowed = recorded_false and self.maker.allows(self.recipe.swap(scene))
                yield scene, true, recorded_false if allowed else None
            else:
                yield scene, true, self.maker.draw(kind, self.recipe.content("train", scene), true.text, draw)


@pytest.fixture(scope="module")
def trains():
    return {name: Train(recipe) for name, recipe in RECIPES.items()}


def is_true(graph: SceneGraph, scene: Scene, counting: bool) -> bool:
    """Whether a graph is true of a scene, spelt out: each node is some object's, perhaps without attributes."""
    if counting:
        return states_all(graph, scene)
    *nodes, place = graph.nodes
    affirmed = [node for node in nodes if not node.startswith("no ")]
    shown = all(any(fits(node, obj) for obj in scene.objects) for node in affirmed)
    return shown and place == scene.background and all(edge_holds(edge, graph, scene) for edge in graph.edges)


def fits(node: str, obj: Object) -> bool:
    attributes = node.removesuffix(obj.animal).split() if node.endswith(obj.animal) else ["another"]
    return set(attributes) <= {obj.texture, obj.size}


@pytest.mark.parametrize(("name", "kind"), list(product(RECIPES, TEXT_NEGATIVES)))
def test_false_captions_are_false_and_in_the_worlds_words(trains, name, kind):
    train, counting = trains[name], name == "counting"
    longest = max(len(true.text.split()) for true, _ in train.texts.values())
    for scene, true, false in train.drawn(kind):
        assert is_true(true.graph, scene, counting)
        if false:
            assert not is_true(false.graph, scene, counting)
            assert parse_caption(false.text, train.vocabulary) == false.graph
            assert len(false.text.split()) <= longest
            assert false.graph.nodes[-1] == scene.background
            denied = [[n for n in its.graph.nodes if n.startswith("no ")] for its in (true, false)]
            assert denied[0] == denied[1]


@pytest.mark.parametrize("name", RECIPES)
def test_most_images_have_a_replaced_false_caption(trains, name):
    drawn = list(trains[name].drawn("replace"))
    assert sum(false is not None for _, _, false in drawn) > 0.8 * len(drawn)


@pytest.mark.parametrize("name", ["binding", "sizes", "spatial", "stated"])
def test_most_pairs_have_a_shuffled_false_caption(trains, name):
    drawn = [(scene, false) for scene, _, false in trains[name].drawn("shuffle")]
    assert all(false is None for scene, false in drawn if len(scene.objects) == 1)
    pairs = [false for scene, false in drawn if len(scene.objects) == 2]
    assert sum(false is not None for false in pairs) > 0.8 * len(pairs)


def test_a_replaced_false_caption_differs_in_one_part(trains):
    """An animal, a texture, a size or a predicate, each of them now and then."""
    for name, expected in {
        "binding": {"animals", "textures"},
        "sizes": {"animals", "textures", "sizes"},
        "spatial": {"animals", "textures", "predicates"},
    }.items():
        train, changed = trains[name], Counter()
        for _, true, false in train.drawn("replace"):
            if false:
                differing = parts_of(true, train) ^ parts_of(false, train)
                (part,) = {part for part, _ in differing}
                changed[part] += 1
        assert changed.keys() == expected, name
        assert min(changed.values()) > 0.05 * changed.total(), (name, changed)


def parts_of(text: Caption, train: Train) -> set[tuple[str, str]]:
    """What a caption names, by the slot of its mention."""
    found = {("predicates", edge.predicate) for edge in text.graph.edges}
    for number, node in enumerate(text.graph.nodes[:-1]):
        animal = next(a for a in sorted(train.world.animals, key=len, reverse=True) if node.endswith(a))
        found.add(("animals", f"{number} {animal}"))
        rest = node.removesuffix(animal).split()
        found |= {("textures", f"{number} {word}") for word in rest if word in train.world.textures}
        found |= {("sizes", f"{number} {word}") for word in rest if word in train.world.sizes}
    return found


@pytest.mark.parametrize("name", ["binding", "sizes", "spatial", "stated"])
def test_a_shuffled_false_caption_has_the_captions_words(trains, name):
    for _, true, false in trains[name].drawn("shuffle"):
        if false:
            assert bag_of_words(false.text) == bag_of_words(true.text)
            assert false.text != true.text


def test_relations_and_sizes_allow_more_shuffles_than_swaps(trains):
    for name in ("sizes", "spatial"):
        train = trains[name]
        swaps = {scene: false for scene, _, false in train.drawn("swap", [0])}
        shuffles = [(scene, false) for scene, _, false in train.drawn("shuffle") if false]
        others = sum(false.graph != swaps[scene].graph for scene, false in shuffles)
        assert 0.2 < others / len(shuffles) < 1


# What they may not give away


def animals_of(graph: SceneGraph, train: Train) -> frozenset[str]:
    nodes = [node for node in graph.nodes[:-1] if not node.startswith("no ")]
    return frozenset(a for a in train.world.animals for node in nodes if node.endswith(a))


@pytest.mark.parametrize("kind", TEXT_NEGATIVES)
def test_no_held_out_composition_is_named(trains, kind):
    train = trains["held out"]
    texts = [false.text for _, _, false in train.drawn(kind, range(10)) if false]
    assert texts
    assert not any("red rabbit" in text for text in texts)
    group = trains["a held-out group"]
    for _, _, false in group.drawn(kind, range(10)):
        assert not false or animals_of(false.graph, group) != {"elephant", "rabbit"}


def named(graph: SceneGraph, train: Train) -> set:
    """The combinations that a graph affirms: animals with textures, two animals in a relation, several of one."""
    nodes = [node for node in graph.nodes[:-1] if not node.startswith("no ")]
    objects = [train.maker.contents.known[node] for node in nodes]
    relation = next(
        (name for edge in graph.edges for name, its in RELATIONS.items() if edge.predicate in its.predicates), None
    )
    found = {obj[:2] for obj in objects if obj.texture}
    found |= {("several", obj.animal) for obj, node in zip(objects, nodes, strict=True) if node != phrase(obj)}
    return found | ({(relation, frozenset(obj.animal for obj in objects))} if len(objects) > 1 else set())


def combinations_of(scene: Scene, relational: bool) -> set:
    """The same of a scene."""
    found, animals = {obj[:2] for obj in scene.objects}, frozenset(obj.animal for obj in scene.objects)
    if len(scene.objects) > 1:
        found.add((scene.relation if relational else None, animals) if len(animals) > 1 else ("several", *animals))
    return found


@pytest.mark.parametrize(("name", "kind"), list(product(RECIPES, TEXT_NEGATIVES)))
def test_no_combination_is_named_that_training_never_shows(trains, name, kind):
    train = trains[name]
    shown = set().union(*(combinations_of(scene, train.recipe.relational) for scene in train.scenes))
    found = set().union(*(named(false.graph, train) for _, _, false in train.drawn(kind) if false))
    assert found <= shown
    assert found or kind != "replace"


def test_the_same_draw_gives_the_same_false_caption(trains):
    train = trains["binding"]
    scene = next(scene for scene in train.scenes if len(scene.objects) == 2)
    given = "replace", train.recipe.content("train", scene), train.texts[scene][0].text
    drawn = [train.maker.draw(*given, draw) for draw in range(20)]
    assert drawn == [Train(train.recipe).maker.draw(*given, draw) for draw in range(20)]
    assert len(set(drawn)) >= 4  # few: animals must be trained on together


def test_a_caption_in_other_words_is_refused(trains):
    train = trains["binding"]
    scene = train.scenes[-1]
    whole = train.recipe.content("train", scene)
    strange = Caption("a photograph of animals", train.texts[scene][0].graph)
    with pytest.raises(UserError, match="isn't worded as the recipe of its split says"):
        train.maker.contents.read(whole, strange)
    foreign = Caption("a lynx in the city", SceneGraph(("lynx", "city")))
    with pytest.raises(UserError, match="leave --text-negatives at swap"):
        train.maker.contents.read(whole, foreign)


def test_contents_are_what_captions_describe(trains):
    """Stated they are the captions, of every kind of split; those of parts of them are read from their words."""
    for train in trains.values():
        contents = train.maker.contents
        for scene, (true, _) in list(train.texts.items())[::7]:
            whole = train.recipe.content("train", scene)
            parts = contents.parts(whole, 3, 0)
            found = [whole, *(contents.read(whole, part) for part in parts)]
            assert [write_caption(content, contents.template) for content in found] == [true, *parts]
