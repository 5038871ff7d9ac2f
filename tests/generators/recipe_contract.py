"""What holds of every split, whatever its recipe: checked on its scenes and texts, nothing is rendered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property

from menagerie.envs.layouts import relations_of
from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.texts import bag_of_words, true_nodes
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import PREDICATES, claims
from menagerie.generators.parsers.world_grammar import parse
from menagerie.generators.rules.hold_out import matched, with_sets
from menagerie.generators.splits.binding import COMPOSITION_TESTS
from menagerie.generators.splits.recipe import SplitRecipe


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
    for check in (check_subsets, check_rules, check_swaps, HELD_OUT[its.recipe.kind], check_texts):
        check(its)


def check_subsets(its: Made) -> None:
    """The same scenes each time, none of them twice; tests have views of their own, and nothing that train shows."""
    recipe, train = its.recipe, set(its.train)
    assert recipe.subsets() == its.subsets
    assert set(its.subsets) == {"train", "validation", *recipe.all_tests}
    first, number = getattr(recipe, "first_view", recipe.views), getattr(recipe, "probe_views", recipe.test_views)
    for name, scenes in its.subsets.items():
        views = range(recipe.views) if name == "train" else range(first, first + number)
        assert {scene.view for scene in scenes} <= set(views), name
        assert len(scenes) == len(set(scenes)), name
        assert name == "train" or not train & {*scenes, *map(recipe.swap, scenes)}, name
        assert name == "train" or recipe.kind == "probe" or len(scenes) <= recipe.test_scenes + 1, name
    assert bool(train) == recipe.trains
    assert bool(its.subsets["validation"]) <= recipe.trains  # rules may leave none
    assert not set(its.subsets["validation"]).intersection(*its.tests.values())


def check_rules(its: Made) -> None:
    """What a rule matches is in the tests of rules, and nowhere else."""
    rules = its.recipe.rules(its.world)
    for name, scenes in its.subsets.items():
        assert {matched(rules, scene) for scene in scenes} <= {name in its.recipe.held_out_tests}, name


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
    assert alone(its.train) == alone([scene for scene in every if not matched(rules, scene)])


def check_counts(its: Made, train: int, swapped: int = 0, relations: int = 1) -> None:
    """As many pairs as the fractions of the recipe say are in train, and so many with their hard negatives."""
    counts = its.recipe.counts()
    assert (train, swapped) == (counts.train, counts.swapped)
    assert abs(train - its.recipe.pairs * counts.trainable) <= 0.5 * relations
    assert abs(swapped - its.recipe.hard_negatives * train) <= 0.5 * relations


def check_binding(its: Made) -> None:
    subsets, train, recipe = its.subsets, arrangements(its.train), its.recipe
    shown = frozenset(recipe.coverage_in(its.world).trained) if recipe.compositions < 1 else None
    check_singles(its, shown=shown)
    check_counts(its, len(pairs(its.train)), len(train) - len(pairs(its.train)))
    assert not pairs(its.train) & pairs(subsets["unseen_pairs"] + subsets["validation"])
    assert not pairs(subsets["unseen_pairs"]) & pairs(subsets["validation"])
    assert not train & arrangements(subsets["seen_pairs"] + subsets["different_bag"])
    assert arrangements(subsets["train_pairs"]) | arrangements(map(recipe.swap, subsets["seen_pairs"])) <= train
    check_hard_negatives(its)
    for name in (*its.tests, "validation") if shown else ():
        assert all(compositions(scene) <= shown for scene in its.train)
        unseen = {max(len(compositions(one) - shown) for one in (s, recipe.swap(s))) for s in subsets[name]}
        assert unseen <= {COMPOSITION_TESTS.get(name, 0)}


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
    recipe, subsets, numbers = its.recipe, its.subsets, Counter()
    check_singles(its, recipe.single_slots)
    for relation in recipe.relations:
        train, prefix = orders(its.train, relation), relation.replace("/", "_")
        numbers.update(pairs=len(set(map(frozenset, train))), orders=len(train))
        unseen = orders(subsets[f"{prefix}_unseen_order"], relation)
        assert not train & unseen
        assert {order[::-1] for order in unseen} <= train
        assert orders(subsets.get(f"{prefix}_seen_order", ()), relation) <= train
        both = [orders(subsets[name], relation) for name in (f"{prefix}_unseen_pairs", "validation")]
        unseen_pairs, validation = ({frozenset(order) for order in some} for some in both)
        assert not unseen_pairs & validation
        ever = pairs(its.train) if recipe.unseen_under == "all" else set(map(frozenset, train))
        assert not ever & (unseen_pairs | validation)
    check_counts(its, numbers["pairs"], numbers["orders"] - numbers["pairs"], len(recipe.relations))
    check_hard_negatives(its)


def check_dependence(its: Made) -> None:
    """Only `seen_textures` shows animals in textures that train shows on them; every pair is in both orders."""
    shown, subsets = {composition for scene in its.train for composition in compositions(scene)}, its.subsets
    unseen, seen, kept = (
        {c for s in subsets[n] for c in compositions(s)} for n in (*its.recipe.tests[::-1], "validation")
    )
    assert not shown & (unseen | kept)
    assert seen <= shown
    assert not pairs(subsets["validation"]) & pairs(
        [*its.train, *subsets["seen_textures"], *subsets["unseen_textures"]]
    )
    every = Counter(plain(s, "texture") for s in its.world.singles(range(its.recipe.views)))
    one_texture = Counter({scene: number // len(its.world.textures) for scene, number in every.items()})
    assert Counter(plain(s, "texture") for s in its.train if len(s.objects) == 1) == one_texture
    assert {order[::-1] for order in orders(its.train, "left/right")} == orders(its.train, "left/right")
    check_counts(its, len(pairs(its.train)))


def check_counting(its: Made) -> None:
    counted = {name: {s.objects[0].animal for s in many(scenes)} for name, scenes in its.subsets.items()}
    assert not counted["train"] & (counted["unseen_counts"] | counted["validation"])
    assert not counted["unseen_counts"] & counted["validation"]
    assert counted["seen_counts"] <= counted["train"]
    every = {(s.background, s.view, s.objects[0]._replace(slot="")) for s in its.world.singles(range(its.recipe.views))}
    assert {(b, view, obj._replace(slot="")) for b, view, obj in alone(its.train)} == every
    numbers = Counter(len(scene.objects) for scene in its.train)
    assert numbers[2] == numbers[3] == numbers[4]
    assert {len(scene.objects) for scene in its.tests["unseen_counts"]} <= {1, 2, 3, 4}
    assert all(len({(*t[:2], t.size) for t in s.objects}) == 1 for scenes in its.subsets.values() for s in scenes)
    check_counts(its, len(counted["train"]))


def check_multi_object(its: Made) -> None:
    """Numbers are even; the four compositions of a swap are all seen or all unseen, and the others are seen."""
    recipe, shown = its.recipe, {composition for scene in its.train for composition in compositions(scene)}
    numbers = Counter(len(scene.objects) for scene in its.train)
    assert numbers.total() == recipe.train_scenes
    assert set(numbers) == set(recipe.objects)
    assert max(numbers.values()) - min(numbers.values()) <= 1
    assert recipe.hold_out or len(shown) == recipe.coverage * len(its.world.animals) * len(its.world.textures)
    for name in (*recipe.tests, "validation"):
        for scene in its.subsets[name]:
            four = {one.objects[i][:2] for one in (scene, recipe.swap(scene)) for i in exchanged(scene)}
            assert not four & shown if name.startswith("unseen") else four <= shown
            assert compositions(scene) - four <= shown


def check_probe(its: Made) -> None:
    """With a scene there are its swap, its mirror and the mirror's swap; both tests show the same."""
    left, right = its.tests.values()
    assert left == right
    groups = dict(zip(left, its.recipe.exchanged_pairs(left), strict=True))
    assert all(groups[its.recipe.swap(scene)] == group for scene, group in groups.items())
    assert set(Counter((s.view, compositions(s), pairs([s]).pop()) for s in left).values()) == {2}


HELD_OUT = {
    "binding": check_binding,
    "spatial": check_spatial,
    "dependence": check_dependence,
    "counting": check_counting,
    "multi-object": check_multi_object,
    "probe": check_probe,
}


def all_claims(scene: Scene) -> frozenset[str]:
    """All that is true of a scene."""
    names, nodes = frozenset(obj.animal for obj in scene.objects), tuple(true_nodes(scene))
    edges = tuple(Edge(PREDICATES[name][0], one, other) for name, one, other in relations_of(scene))
    related = claims(SceneGraph(tuple(map(phrase, scene.objects)), edges), names) if edges else frozenset()
    return claims(SceneGraph(nodes), names) | related


def is_true(graph: SceneGraph, scene: Scene) -> bool:
    said = claims(graph, frozenset(obj.animal for obj in scene.objects))
    denied = {claim.removeprefix("no ") for claim in said if claim.startswith("no ")}
    true = all_claims(scene)
    return {claim for claim in said if not claim.startswith("no ")} <= true and not denied & true


def check_texts(its: Made) -> None:
    """Captions are true; hard negatives are false, true of the swap, in the same words and order. All are parsed."""
    other_words = its.recipe.kind == "counting"
    for name, scenes in its.subsets.items():
        for number, (scene, (true, false)) in enumerate(zip(scenes, its.texts[name], strict=True)):
            assert number % 9 or its.recipe.texts(name, scene) == (true, false)
            assert is_true(true.graph, scene)
            assert parse(true.text, its.world) == true.graph
            assert false or name == "train"
            if false:
                assert not is_true(false.graph, scene)
                assert is_true(false.graph, its.recipe.swap(scene))
                assert parse(false.text, its.world) == false.graph
                assert false.graph.edges == true.graph.edges
                assert other_words or places(false.graph, its.recipe.swap(scene)) == places(true.graph, scene)
                assert other_words or name.startswith("search") or bag_of_words(false.text) == bag_of_words(true.text)


def places(graph: SceneGraph, scene: Scene) -> list[set[str]]:
    """Where the objects stand that a caption mentions, in its order."""
    known = [(obj.slot, (phrase(obj), phrase(obj._replace(texture="")))) for obj in scene.objects]
    return [{slot for slot, names in known if node in names} for node in graph.nodes[:-1] if not node.startswith("no ")]
