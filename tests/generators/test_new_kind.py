"""A kind of split that a user adds is made, audited, tested, compared with trainings and offered by `menagerie make`.

It takes one file in generators/splits: the class below, 44 lines, its imports and its `KIND`. Nothing else changes.
"""

from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Annotated, ClassVar

import pytest

from menagerie.envs.core.identity import generator
from menagerie.envs.core.options import FIRST
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit, audit_records
from menagerie.generators.benchmarks.benchmark import FOUR_WAY
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.hard_negatives.tasks import tasks_named
from menagerie.generators.splits.facts import claim_has_none
from menagerie.generators.splits.recipe import OF_RULES, PairCounts, SplitRecipe
from menagerie.generators.splits.recipe_file import KINDS, read_recipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.split_file import read_split
from menagerie.generators.trained_on import RecipeScenes, Training, measure_overlap
from menagerie.studies.commands.worlds import Make
from tests.helpers.planting import changed, contents_of, with_contents
from tests.helpers.splits import make_split


@dataclass(frozen=True)
class BackgroundRecipe(SplitRecipe):
    """Each animal has a background on which train never shows it."""

    kind: ClassVar[str] = "background"
    unused: ClassVar[tuple[str, ...]] = OF_RULES
    tests: ClassVar[tuple[str, ...]] = ("seen_backgrounds", "unseen_backgrounds")
    title: ClassVar[str] = "Backgrounds"
    swap_words: ClassVar[str] = "the same words with the two textures swapped"
    tasks = tasks_named("replace animal")

    pairs: float = 1.0
    """Always 1."""
    apart_backgrounds: Annotated[int, FIRST] = 1
    """Number of backgrounds on which train doesn't show an animal."""

    def plan(self, world):
        """Two animals in two textures, on each background."""
        unseen, found = {}, {"train": [], "old": [], "new": []}
        for animal in world.animals:
            order = generator(self.seed, "backgrounds", animal).permutation(len(world.backgrounds))
            unseen[animal] = {world.backgrounds[i] for i in order[: self.apart_backgrounds]}
        for background, pair, textures in product(world.backgrounds, world.pairs, permutations(world.textures, 2)):
            known = [background not in unseen[animal] for animal in pair]
            objects = (Object(*its) for its in zip(pair, textures, ("left", "right"), strict=True))
            scene = Scene(background, tuple(objects))
            if any(known) == all(known):  # else train would show one of the two there, and not the other
                found["old" if all(known) else "new"] += [replace(scene, view=view) for view in self.test_range]
            if all(known):
                found["train"] += [replace(scene, view=view) for view in self.train_range]
        old = self.sample(world, found["old"], self.test_scenes, "seen")
        new = self.sample(world, found["new"], 2 * self.test_scenes, "unseen")
        train = self.keep(world, found["train"])
        return {"train": train, "validation": new[1::2], "seen_backgrounds": old, "unseen_backgrounds": new[::2]}

    def counts(self):
        number = len(load_world(self.world).pairs)
        return PairCounts(number, 0, number)

    def own_facts(self, scene):
        return [("background", obj.animal, scene.background) for obj in scene.objects]

    def lacks(self, subset):
        return None if subset == "seen_backgrounds" else claim_has_none(self.own_facts)


KIND = BackgroundRecipe


RECIPE = BackgroundRecipe(world="eight", views=1, test_views=1, test_scenes=20)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(KINDS, KIND.kind, KIND)


def failed(findings):
    return [finding.claim for finding in findings if not finding.holds or finding.skipped]


def test_the_split_of_a_new_kind_is_made_audited_and_tested(tmp_path):
    path = make_split(tmp_path, RECIPE)
    split = read_split(path)
    assert failed(audit(path)) == ["images and masks in the file are those of its scenes"], "it has none"
    leaked = changed(contents_of(split, "unseen_backgrounds"), 0, contents_of(split, "seen_backgrounds")[0])
    wrong = failed(audit_records(with_contents(split, "unseen_backgrounds", leaked)))
    assert "train lacks what the name of unseen_backgrounds says" in wrong
    tests = SplitTests(SplitDataset(path, "unseen_backgrounds"))
    assert {item.task for item in tests.items} == {"swap", "replace animal", FOUR_WAY} == {*tests.tasks}
    for seed, some in ((0, False), (1, True)):
        training = Training((RecipeScenes(replace(RECIPE, seed=seed)),))
        assert bool(measure_overlap(training, split, "unseen_backgrounds").lost) == some


def test_make_offers_a_new_kind_and_its_options(capsys):
    assert read_recipe("background") == BackgroundRecipe()
    with pytest.raises(SystemExit):
        Make.read(["background", "--help"], "menagerie make")
    assert "--apart-backgrounds" in capsys.readouterr().out
    assert Make.read(["background", "--apart-backgrounds", "2"], "menagerie make").recipe.apart_backgrounds == 2
