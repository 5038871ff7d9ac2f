"""What holds of every split, whatever its recipe, beside what its audit checks; nothing is rendered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property

from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import true_nodes
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import claims
from menagerie.generators.parsers.world_grammar import parse_caption
from menagerie.generators.rules.hold_out import matches_any, with_sets
from menagerie.generators.splits.recipe import SplitRecipe
from tests.helpers.splits import of_planned


class Made:
    """The scenes and texts of a recipe."""

    def __init__(self, recipe: SplitRecipe) -> None:
        self.recipe, self.world = recipe, with_sets(load_world(recipe.world), recipe.sets)
        self.subsets = recipe.subsets()
        self.train = self.subsets["train"]
        self.tests = {name: self.subsets[name] for name in recipe.all_tests}

    @cached_property
    def texts(self):
        """By subset, each scene's caption and hard negative."""
        return {name: [self.recipe.texts(name, s) for s in scenes] for name, scenes in self.subsets.items()}

    @cached_property
    def split(self):
        """A split of these scenes without a file."""
        return of_planned(self.recipe, self.subsets)

    def captions(self, name: str = "train") -> list[str]:
        return [true.text for true, _ in self.texts[name]]


made = cache(Made)


def many(scenes: Sequence[Scene]) -> list[Scene]:
    return [scene for scene in scenes if len(scene.objects) > 1]


def compositions(scene: Scene) -> frozenset[tuple[str, str]]:
    return frozenset(obj[:2] for obj in scene.objects)


def arrangements(scenes: Sequence[Scene]) -> set[frozenset[tuple[str, str]]]:
    """Which objects in which textures scenes show together."""
    return {compositions(scene) for scene in many(scenes)}


def pairs(scenes: Sequence[Scene]) -> set[frozenset[str]]:
    """The animals that scenes show together."""
    return {frozenset(obj.animal for obj in scene.objects) for scene in many(scenes)}


def orders(scenes: Sequence[Scene], relation: str) -> set[tuple[str, ...]]:
    return {tuple(obj.animal for obj in scene.objects) for scene in scenes if scene.relation == relation}


def alone(scenes: Sequence[Scene]) -> set[tuple]:
    return {(s.background, s.view, s.objects[0]) for s in scenes if len(s.objects) == 1}


def check_all(its: Made) -> None:
    for check in (check_subsets, check_swaps, CHECKS[its.recipe.kind], check_texts):
        check(its)


def check_subsets(its: Made) -> None:
    """No scene is there twice, and a test has no more than the recipe says. The audit says that they are the same each
    time."""
    recipe = its.recipe
    assert set(its.subsets) == {"train", "validation", *recipe.all_tests}
    for name, scenes in its.subsets.items():
        assert len(scenes) == len(set(scenes)), name
        assert name == "train" or recipe.kind == "probe" or len(scenes) <= recipe.test_scenes + 1, name
    assert bool(its.train) == recipe.trains
    assert not set(its.subsets["validation"]).intersection(*its.tests.values())


def check_rules(its: Made) -> None:
    """What a rule matches is in the tests of rules, and nowhere else."""
    rules = its.recipe.rules(its.world)
    for name, scenes in its.subsets.items():
        assert {matches_any(rules, scene) for scene in scenes} <= {name in its.recipe.held_out_tests}, name


def check_swaps(its: Made) -> None:
    """A swap's swap is the scene, with which it shares sizes and facings in train too."""
    if its.recipe.kind == "counting":
        return
    for name, scenes in its.subsets.items():
        for scene in many(scenes):
            assert its.recipe.swap(its.recipe.swap(scene)) == scene
            assert name == "train" or its.recipe.swap(scene) != scene


def check_singles(its: Made, slots: Sequence[str] = ("center",), shown: frozenset | None = None) -> None:
    """Every object that the recipe allows is in train alone: in all sizes, on all backgrounds, in all views."""
    views, rules = range(getattr(its.recipe, "singles_views", 0) or its.recipe.views), its.recipe.rules(its.world)
    every = (s for s in its.world.singles(views, slots) if shown is None or s.objects[0][:2] in shown)
    assert alone(its.train) == alone([scene for scene in every if not matches_any(rules, scene)])


def check_counts(its: Made, train: int, swapped: int = 0, relations: int = 1) -> None:
    """As many pairs as the fractions of the recipe say are in train, and so many with their hard negatives."""
    counts = its.recipe.counts()
    assert (train, swapped) == (counts.train, counts.swapped)
    assert abs(train - its.recipe.pairs * counts.trainable) <= 0.5 * relations
    assert abs(swapped - its.recipe.hard_negatives * train) <= 0.5 * relations


def check_binding(its: Made) -> None:
    recipe, train = its.recipe, arrangements(its.train)
    shown = frozenset(recipe.coverage_in(its.world).trained) if recipe.compositions < 1 else None
    check_singles(its, shown=shown)
    check_counts(its, len(pairs(its.train)), len(train) - len(pairs(its.train)))
    check_hard_negatives(its)
    assert shown is None or all(compositions(scene) <= shown for scene in its.train)


def check_hard_negatives(its: Made) -> None:
    """If train shows what the swap of a scene shows, it shows the very swap: sizes and facings are the same."""
    train, bare = set(its.train), set(map(plain, its.train))
    swaps = [its.recipe.swap(scene) for scene in many(its.train)]
    assert its.recipe.hold_out or all((swap in train) == (plain(swap) in bare) for swap in swaps)


def plain(scene: Scene, *fields: str) -> Scene:
    """A scene without its sizes and facings, and without further fields of its objects."""
    nothing = dict.fromkeys(("size", *fields), "")
    return replace(scene, objects=tuple(t._replace(**{"slot": place_of(t.slot), **nothing}) for t in scene.objects))


def check_spatial(its: Made) -> None:
    every = [orders(its.train, relation) for relation in its.recipe.relations]
    number = sum(len(set(map(frozenset, its))) for its in every)
    check_singles(its, its.recipe.single_slots)
    check_counts(its, number, sum(map(len, every)) - number, len(every))
    check_hard_negatives(its)


def check_dependence(its: Made) -> None:
    """Single animals are as often in train as without dependence; every pair is in both orders."""
    every = Counter(plain(s, "texture") for s in its.world.singles(range(its.recipe.views)))
    one_texture = Counter({scene: number // len(its.world.textures) for scene, number in every.items()})
    assert Counter(plain(s, "texture") for s in its.train if len(s.objects) == 1) == one_texture
    assert {order[::-1] for order in orders(its.train, "left/right")} == orders(its.train, "left/right")
    check_counts(its, len(pairs(its.train)))


def check_counting(its: Made) -> None:
    every = {(s.background, s.view, s.objects[0]._replace(slot="")) for s in its.world.singles(range(its.recipe.views))}
    assert {(b, view, obj._replace(slot="")) for b, view, obj in alone(its.train)} == every
    numbers = Counter(len(scene.objects) for scene in its.train)
    assert numbers[2] == numbers[3] == numbers[4]
    check_counts(its, len({scene.objects[0].animal for scene in many(its.train)}))


def check_multi_object(its: Made) -> None:
    """Numbers of objects are even, and train shows all compositions of its coverage."""
    recipe, shown = its.recipe, {composition for scene in its.train for composition in compositions(scene)}
    numbers = Counter(len(scene.objects) for scene in its.train)
    assert numbers.total() == recipe.train_scenes
    assert set(numbers) == set(recipe.objects)
    assert max(numbers.values()) - min(numbers.values()) <= 1
    assert recipe.hold_out or len(shown) == recipe.coverage * len(its.world.animals) * len(its.world.textures)


CHECKS = {
    "binding": check_binding,
    "spatial": check_spatial,
    "dependence": check_dependence,
    "counting": check_counting,
    "multi-object": check_multi_object,
    "probe": lambda its: None,
}


def all_claims(scene: Scene) -> frozenset[str]:
    """All that is true of a scene."""
    names, nodes = frozenset(obj.animal for obj in scene.objects), tuple(true_nodes(scene))
    edges = tuple(Edge(RELATIONS[name].predicates[0], one, other) for name, one, other in scene.relations)
    related = claims(SceneGraph(tuple(map(phrase, scene.objects)), edges), names) if edges else frozenset()
    return claims(SceneGraph(nodes), names) | related


def is_true(graph: SceneGraph, scene: Scene) -> bool:
    said = claims(graph, frozenset(obj.animal for obj in scene.objects))
    denied = {claim.removeprefix("no ") for claim in said if claim.startswith("no ")}
    true = all_claims(scene)
    return {claim for claim in said if not claim.startswith("no ")} <= true and not denied & true


def check_texts(its: Made) -> None:
    """Texts are the same each time; a hard negative states its objects and relations in its caption's order."""
    for name, scenes in its.subsets.items():
        for number, (scene, (true, false)) in enumerate(zip(scenes, its.texts[name], strict=True)):
            assert number % 9 or its.recipe.texts(name, scene) == (true, false)
            assert is_true(true.graph, scene)
            assert parse_caption(true.text, its.world) == true.graph
            assert false or name == "train"
            if false:
                assert not is_true(false.graph, scene)
                assert is_true(false.graph, its.recipe.swap(scene))
                assert parse_caption(false.text, its.world) == false.graph
                assert false.graph.edges == true.graph.edges
                swap, other_words = its.recipe.swap(scene), its.recipe.kind == "counting"
                assert other_words or places(false.graph, swap) == places(true.graph, scene)


def places(graph: SceneGraph, scene: Scene) -> list[set[str]]:
    """Where the objects stand that a caption mentions, in its order."""
    known = [(obj.slot, (phrase(obj), phrase(obj._replace(texture="")))) for obj in scene.objects]
    return [{slot for slot, names in known if node in names} for node in graph.nodes[:-1] if not node.startswith("no ")]
