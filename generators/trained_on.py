"""What a model's training had, and how much of a test it had.

A training had everything that its data has, whether or not a batch ever showed it. Five kinds of facts are counted:

- compositions: an animal in a texture, alone or beside others;
- pairs: two animals in one image, in any textures, or several of one animal;
- arrangements: two compositions in one image; for tests of relations, two animals in the order of a relation;
- texts: whole true captions;
- images: a scene, at whatever resolution. Of worlds with ingredients of a user's own only the same world's count.

A record is left out of a model's numbers if its training had the record's image, or what the name of its test says
that the split's own training lacks (`SplitRecipe.lacks`; a scene that the rule of a test of rules matches). A four-way
item is also left out if training had its counterfactual's image.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.render import image_identity
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.hold_out import HELD_OUT, matches_any, recorded_rules
from menagerie.generators.splits.facts import ARRANGEMENT, COMPOSITION, ORDER, PAIR, Fact, facts_of
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.split_file import Split, read_split

COUNTED = ("compositions", "pairs", "arrangements", "texts", "images")
HAD = "_had"  # ends the name of a column: how many of these the training had
COLUMNS = (*(name + end for name in COUNTED for end in (HAD, "")), "left_out", "training")


@dataclass(frozen=True)
class RecipeScenes:
    """The training scenes of a recipe, or some of them; also those that hide too much to be rendered."""

    recipe: SplitRecipe
    images: int = 0
    """Number of scenes, drawn by the recipe's seed; 0: all."""

    def read(self) -> "Scenes":
        scenes = self.recipe.subsets()["train"]
        chosen = chosen_images(self.recipe.seed, len(scenes), self.images)
        scenes = [scenes[i] for i in chosen]
        texts = Counter(self.recipe.texts("train", scene)[0].text for scene in scenes)
        return Scenes(world_key(self.recipe.world), tuple(scenes), texts)


@dataclass(frozen=True)
class FileScenes:
    """The training scenes in a split file."""

    file: Path
    content: str
    """The identity of the file's content when it was found; another file may lie there later."""

    def read(self) -> "Scenes":
        return read_scenes(read_split(self.file), "train")


@dataclass(frozen=True)
class Training:
    """All that is known of a model's training, its earlier stages included."""

    parts: tuple[RecipeScenes | FileScenes, ...] = ()
    photographs: tuple[Path, ...] = ()
    """Folders of the cells that were trained on photographs; what these show isn't known."""
    unknown: tuple[str, ...] = ()
    """Trainings of which nothing is known, in words."""

    @classmethod
    def nowhere(cls) -> "Training":
        """The training of a model that no study here trained."""
        return cls(unknown=("no study here trained it",))

    def __or__(self, other: "Training") -> "Training":
        joined = ((*mine, *its) for mine, its in zip(vars(self).values(), vars(other).values(), strict=True))
        return Training(*(tuple(dict.fromkeys(part)) for part in joined))

    @property
    def gaps(self) -> tuple[str, ...]:
        """What isn't known of the training's scenes, in words."""
        return (*self.unknown, *("what its photographs show",) * bool(self.photographs))


@dataclass(frozen=True)
class Scenes:
    """Scenes of one world, and the texts of their captions, each with its number."""

    world: str
    """What decides how scenes are drawn; empty if the world isn't here any more."""
    scenes: tuple[Scene, ...]
    texts: Counter[str]

    @cached_property
    def facts(self) -> Counter[Fact]:
        """The facts of all scenes, each with the number of scenes."""
        return count_facts(self.scenes)


@dataclass(frozen=True)
class Overlap:
    """How much of a test a training had."""

    counts: Mapping[str, tuple[int, int]]
    """For each of `COUNTED`, how many the training had and how many the test has; empty if nothing is known."""
    left_out: frozenset[int]
    """Numbers of the images, as the items of `SplitTests` number them, that no item may have: those of records that are
    left out, and counterfactuals that the training had."""
    records: int
    gaps: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        """The number of records that are left out."""
        return sum(number < self.records for number in self.left_out)

    @property
    def training(self) -> str:
        """Whether the training is "known", "partly known" or "unknown"."""
        return "unknown" if not self.counts else "partly known" if self.gaps else "known"

    def __str__(self) -> str:
        beside = f"unknown: {'; '.join(self.gaps)}" if self.gaps else ""
        counted = ", ".join(f"{had} of {n} {what}" for what, (had, n) in self.counts.items())
        left = f"{self.lost} of {self.records} records left out" if self.counts else ""
        return "; ".join(filter(None, (counted, left, beside)))


def count_facts(scenes: Sequence[Scene]) -> Counter[Fact]:
    """Count the scenes that show each composition, pair, arrangement and order."""
    keys, found = [tuple(obj[:3] for obj in scene.objects) for scene in scenes], Counter[Fact]()
    alike = dict(zip(keys, scenes, strict=True))
    for key, number in Counter(keys).items():
        found.update(dict.fromkeys(facts_of(alike[key]), number))
    return found


def measure_overlap(training: Training, split: Split, subset: str) -> Overlap:
    """Compare what a training had with a subset of a split."""
    records, test = split.subsets[subset], read_scenes(split, subset)
    if not training.parts:
        return Overlap({}, frozenset(), len(records), training.gaps)
    had = [read_part(part) for part in training.parts]
    facts, texts = (frozenset().union(*(getattr(part, name) for part in had)) for name in ("facts", "texts"))
    facts |= {fact for part in had for scene in part.scenes for fact in split.made_by.own_facts(scene)}
    images = {scene for part in had if part.world == test.world for scene in part.scenes}
    pair_kind = ORDER if split.kind.relational else ARRANGEMENT
    of_kind = {what: {fact for fact in test.facts if fact[0] == what} for what in (COMPOSITION, PAIR, pair_kind)}
    tested = [*of_kind.values(), {*test.texts}, {*test.scenes}]
    both = zip(COUNTED, tested, [facts] * 3 + [texts, images], strict=True)
    swap, unseen = split.kind.swap, unseen_scenes(split, subset, facts, [s for part in had for s in part.scenes])
    lost = {i for i, scene in enumerate(records.scenes) if scene in images or not unseen(scene)}
    counterfactuals = enumerate(zip(records.scenes, records.counterfactual.tolist(), strict=True), start=len(records))
    lost |= {i for i, (scene, row) in counterfactuals if row >= 0 and swap(scene) in images}
    counts = {name: (len(tested & known), len(tested)) for name, tested, known in both}
    gaps = () if test.world else ("which of the test's images, whose world isn't here any more",)
    return Overlap(counts, frozenset(lost), len(records), (*training.gaps, *gaps))


def unseen_scenes(
    split: Split, subset: str, facts: frozenset[Fact], scenes: Sequence[Scene]
) -> Callable[[Scene], bool]:
    """Whether, of a scene, a training with these facts and scenes lacks what `subset` says that training lacks."""
    if subset.startswith(HELD_OUT):
        rules = recorded_rules(split.recipe, split.vocabulary)
        known = [rule for rule in rules if any(map(rule.matches, scenes))]
        return lambda scene: not matches_any(known, scene)
    lacks = split.made_by.lacks(subset)
    return lambda scene: lacks is None or lacks(scene, facts)


def overlap_columns(had: Overlap) -> dict[str, Any]:
    """The columns of a table on one test; those of an unknown training are empty but for the last."""
    counts = {what + end: n for what, both in had.counts.items() for end, n in zip((HAD, ""), both, strict=True)}
    return counts | {"left_out": had.lost, "training": had.training}


def chosen_images(seed: int, total: int, images: int) -> list[int]:
    """The numbers of `images` of all scenes, drawn by seed; of all if `images` is 0."""
    if not 0 < images < total:
        return list(range(total))
    return sorted(generator(seed, "images").permutation(total)[:images].tolist())


@lru_cache(maxsize=8)  # a training of twenty thousand scenes takes some 20 MB
def read_part(part: RecipeScenes | FileScenes) -> Scenes:
    """Return what a part of a training shows."""
    return part.read()


def read_scenes(split: Split, subset: str) -> Scenes:
    """Return what a subset of a split shows."""
    records = split.subsets[subset]
    return Scenes(world_key(split.recipe["world"]), tuple(records.scenes), Counter(records.captions))


def world_key(name: str) -> str:
    """Return a hash of all that decides how a world draws a scene, but for the resolution: worlds of built-in
    ingredients draw alike. Empty for a world whose file isn't here."""
    try:
        world = load_world(name)
    except UserError:
        return ""
    return image_identity(replace(world, name="", animals=(), textures=(), backgrounds=(), sizes=()), 0)
