"""Probe sets: scenes on which the embeddings of models are measured (docs/splits.md, section 9). No model is trained
on them.

Scenes come in quartets (`probe_scenes`). So two numbers are exact, and are recorded: with n animals and t textures,
log2(C(n, 2) C(t, 2)) bits say which two animals and which two textures a scene shows, and 1 bit says which animal has
which texture. A record's pair is the unordered pair of animals whose textures the swap exchanges. Divide scenes by
pairs to fit a probe to some and test it on others: a scene and its swap have the same words, and if they came apart,
even a random embedding of each scene could be decoded (Koishigarina et al. 2025, arXiv 2502.03566).
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log2
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int64

from menagerie.envs.core.errors import UserError, choose, not_allowed
from menagerie.envs.core.options import FIRST
from menagerie.envs.core.validation import SHARE, VIEWS, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS
from menagerie.envs.world import World
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.templates import Content, phrasing_number
from menagerie.generators.splits.probe_scenes import (
    bag_of,
    mirror_probed,
    objects_from_left,
    probed_pair,
    quartet,
    scenes_in_layout,
    side_by_side,
)
from menagerie.generators.splits.recipe import ENTROPIES, PairCounts, SplitRecipe

FIRST_VIEW = 2 * int(VIEWS.high)  # above the views and test views that any recipe can have
OF_TRAINING = ("pairs", "hard_negatives", "views", "test_views", "test_scenes", "test_pairs", "validation")
LEFT_FIRST, RIGHT_FIRST = "left_first", "right_first"
BITS = 1e-9  # by which the sum of an entropy may be off


@dataclass(frozen=True)
class ProbeRecipe(SplitRecipe):
    """Everything that determines a probe set, apart from the resolution."""

    kind: ClassVar[str] = "probe"
    trains: ClassVar[bool] = False
    tests: ClassVar[tuple[str, ...]] = (LEFT_FIRST, RIGHT_FIRST)
    title: ClassVar[str] = "Probe set"
    swap_words: ClassVar[str] = "the same words with two textures swapped"
    unused: ClassVar[tuple[str, ...]] = (*OF_TRAINING, "hold_out", "mention_order")
    exchanged_objects = staticmethod(probed_pair)

    pairs: float = 0.0
    """Always 0: nothing is trained on a probe set, so that all fields of training keep their defaults."""
    test_pairs: float = 0.0
    """Always 0."""
    validation: float = 0.0
    """Always 0."""
    animals: Annotated[tuple[str, ...], FIRST, Several()] = ()
    """Animals of the scenes; empty: all. Without a layout, a set of fewer is part of a set of more."""
    textures: Annotated[tuple[str, ...], FIRST, Several()] = ()
    """Textures of the scenes; empty: all of the world."""
    probe_views: Annotated[int, FIRST, VIEWS] = 2
    """Views of each scene."""
    first_view: Annotated[int, Range(FIRST_VIEW, 1_000_000)] = FIRST_VIEW
    """Number of the first view, which no split for training can have."""
    layout: Annotated[Literal["", "apart", "rows", "overlap"], FIRST] = ""
    """Where objects stand: empty, left and right, in all scenes of two; else in a layout, a
    drawn sample."""
    objects: Annotated[int, FIRST, Range(2, MOST)] = 2
    """Number of objects in a layout."""
    quartets: Annotated[int, FIRST, Range(1, 100_000)] = 400
    """In a layout of multi-object scenes, number of drawn combinations of animals and textures; each gives four scenes
    a view."""
    least_visible: Annotated[float, SHARE] = 0.25
    """Least share of each object that others leave visible; else a quartet is left out, in all views."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.layout and self.objects != 2:
            raise not_allowed("objects", self.objects, "2 unless there is a layout; take layout apart")

    @property
    def train_range(self) -> range:
        return self.test_range

    @property
    def test_range(self) -> range:
        return range(self.first_view, self.first_view + self.probe_views)

    def plan(self, world: World) -> dict[str, list[Scene]]:
        animals, textures = choose_names(self, world)
        if self.layout:
            sample = self.layout, self.objects, self.quartets
            scenes = list(scenes_in_layout(world, animals, textures, self.test_range, self.seed, sample))
        else:
            scenes = list(side_by_side(world, animals, textures, self.test_range, self.seed))
        return {"train": [], "validation": [], **{name: list(scenes) for name in self.tests}}

    def content(self, subset: str, scene: Scene) -> Content:
        """What a scene's caption says, in the subset's order of mention and the quartet's phrasing."""
        several = len(self.wording.phrasings) > 1
        phrasing = phrasing_number(min(quartet(scene)) if several else scene, self.seed, self.wording)
        objects = tuple(objects_from_left(scene)[:: -1 if subset == RIGHT_FIRST else 1])
        return Content(scene, objects, phrasing=phrasing, negative=True)

    def exchanged_pairs(self, scenes: Sequence[Scene]) -> Int64[np.ndarray, " n"]:
        """Return, for each scene, the number of the pair of animals whose textures its swap exchanges."""
        names = ({scene.objects[i].animal for i in probed_pair(scene)} for scene in scenes)
        known = sorted({obj.animal for scene in scenes for obj in scene.objects})
        number = {pair: i for i, pair in enumerate(map(frozenset, combinations(known, 2)))}
        return np.array([number[frozenset(pair)] for pair in names], np.int64)

    def measure(self, subsets: Mapping[str, Sequence[Scene]]) -> dict[str, Any]:
        """Return the entropies in bits. They are exact, because each bag is equally frequent, and so are its two
        assignments of textures. Raises if no scene is left."""
        bags = len({bag_of(scene) for scene in subsets[self.tests[0]]})
        if not bags:
            raise UserError(f"least_visible {self.least_visible:g} leaves no scene of the probe set; lower it")
        return {ENTROPIES: {"bags": bags, "which": log2(bags), "binding": 1.0}}

    def leave_out(self, planned: Mapping[str, Sequence[Scene]], hidden: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return the numbers of the scenes to leave out: for each hidden scene its whole quartet, in all views. So only
        complete quartets stay."""
        left = {}
        for name, numbers in hidden.items():
            torn = {bag_of(planned[name][i]) for i in numbers}
            left[name] = [i for i, scene in enumerate(planned[name]) if bag_of(scene) in torn]
        return left

    def claims(self, subsets: Mapping[str, Any]) -> Iterator[tuple[str, Iterable[str]]]:
        """Nothing is trained on, quartets are whole, pairs keep them together, and texts alone tell nothing."""
        full = (f"{len(subsets[name])} scenes in {name}" for name in ("train", "validation") if len(subsets[name]))
        yield "a probe set has nothing in train and validation", full
        differ = (name for name in self.tests if subsets[name].scenes != subsets[LEFT_FIRST].scenes)
        yield "both tests have the same scenes in the same order", differ
        for name in self.tests:
            r, known = subsets[name], set(subsets[name].scenes)
            torn = (s.key for s in r.scenes if not {self.swap(s), mirror_probed(s)} <= known)
            yield f"every scene of {name} has its swap and its mirror on its background", torn
            pairs = [frozenset(scene.objects[i].animal for i in self.exchanged_objects(scene)) for scene in r.scenes]
            numbers = [] if r.pairs is None else r.pairs.tolist()
            both = set(zip(pairs, numbers, strict=False))
            whole = len(numbers) == len(pairs) and len(both) == len(set(pairs)) == len(set(numbers))
            wrong = [] if whole else [f"{len(set(numbers))} numbers of {len(set(pairs))} pairs"]
            yield f"pairs of {name} are pairs of animals, and keep quartets together", wrong
            rows = zip(r.scenes, r.graphs, strict=True)
            strange = (s.key for s, graph in rows if not follows(s, graph.nodes, name == LEFT_FIRST))
            yield f"captions of {name} mention objects in its order", strange
            views = [scene.view for scene in r.scenes]
            true, false = (Counter(zip(views, texts, strict=True)) for texts in (r.captions, r.negatives))
            odd = (f"view {view}, {text!r}" for (view, text), _ in sorted(true.items() ^ false.items()))
            yield f"every text of {name} is as often true as false", odd
            recorded, which = r.recipe[ENTROPIES], entropy_in_bits([bag_of(scene) for scene in r.scenes])
            both = entropy_in_bits([frozenset(obj[:2] for obj in scene.objects) for scene in r.scenes])
            same = abs(recorded["which"] - which) < BITS and abs(both - which - 1) < BITS and recorded["binding"] == 1
            yield f"entropies are those of {name}", [] if same else [f"{which:.4f} and {both - which:.4f} bits"]

    def counts(self) -> PairCounts:
        """Return zeros, because nothing is trained."""
        return PairCounts(0, 0, 0)


def follows(scene: Scene, nodes: Sequence[str], left_first: bool) -> bool:
    """Whether the objects of a graph go from left to right in the scene (`left_first`), or from right to left."""
    at = {phrase(obj): SLOTS[obj.slot].column for obj in scene.objects}
    columns = [at[node] for node in nodes if node in at]
    return len(columns) == len(scene.objects) and columns == sorted(columns, reverse=not left_first)


def entropy_in_bits(outcomes: Sequence[Hashable]) -> float:
    """The entropy of outcomes in bits."""
    shares = np.array(list(Counter(outcomes).values())) / len(outcomes)
    return float(-(shares * np.log2(shares)).sum())


def choose_names(recipe: ProbeRecipe, world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the animals and textures of a probe set, in the world's order. Raises if there are too few, or for an
    unknown one."""
    found = []
    for kind in ("animals", "textures"):
        given, known = getattr(recipe, kind), getattr(world, kind)
        for name in given:
            choose(kind[:-1], name, known)
        names = tuple(name for name in known if name in given or not given)
        if len(names) < recipe.objects:
            raise UserError(
                f"a probe set of {recipe.objects} different objects needs {recipe.objects} {kind}, but there are "
                f"{len(names)}: {', '.join(names)}; take more, or another world than {recipe.world!r}"
            )
        found.append(names)
    return found[0], found[1]


KIND = ProbeRecipe
