"""Probe sets: what they hold. One is rendered, of cut-out photographs."""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from math import comb, log2

from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit, audit_records
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.probe_scenes import mirror_probed, quartet, swap_probed
from menagerie.generators.storage.folder import drop_scenes
from menagerie.generators.storage.split_file import read_split, split_name
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.splits import in_memory, make_split, of_planned

SMALL = ProbeRecipe(world="eight", animals=("goldfish", "camel", "rabbit"))
SIZED = ProbeRecipe(world="pug-sizes", animals=("cat", "lion", "bear"), template="free-conjunction")
MULTI_OBJECT = ProbeRecipe(world="pug-textures", layout="overlap", objects=4, quartets=30)


def test_every_pair_is_there_in_every_view():
    """Twelve animals in four textures: 3168 images, log2(66 * 6) bits."""
    recipe = ProbeRecipe(animals=load_world("pug").animals[:12])
    scenes = recipe.subsets()["left_first"]
    shown = Counter((s.view, *((t.animal, t.texture, place_of(t.slot)) for t in s.objects)) for s in scenes)
    assert (len(scenes), set(shown.values())) == (3168, {1})
    assert Counter(scene.view for scene in scenes) == {20_000: 1584, 20_001: 1584}
    assert recipe.measure({"left_first": scenes})["entropies"] == {"bags": 396, "which": log2(396), "binding": 1.0}


def test_the_four_scenes_of_a_quartet_differ_in_what_they_should():
    for recipe in (SMALL, SIZED, MULTI_OBJECT):
        scenes = set(recipe.subsets()["left_first"])
        for scene in scenes:
            swap, mirror = swap_probed(scene), mirror_probed(scene)
            assert len(set(map(ProbeRecipe.cluster, quartet(scene)))) == 1
            assert {swap, mirror, swap_probed(mirror)} <= scenes, "in one view, on one background"
            assert len({scene, swap, mirror, swap_probed(mirror)}) == 4
            assert swap_probed(swap) == mirror_probed(mirror) == scene
            assert swap_probed(mirror) == mirror_probed(swap)
            compositions = [{obj[:2] for obj in one.objects} for one in (scene, swap, mirror)]
            assert compositions[0] == compositions[2] != compositions[1]
            assert len(compositions[0] - compositions[1]) == 2, "others keep their textures"


def test_quartets_in_layouts_are_the_same_in_all_views():
    found = {}
    for scene in in_memory(MULTI_OBJECT).subsets["left_first"].scenes:
        four = frozenset(replace(one, view=0, background="") for one in quartet(scene))
        found.setdefault(four, []).append(scene.view)
    assert len(found) == 30
    assert all(len(views) == 8 and len(set(views)) == 2 for views in found.values())


def test_a_hidden_object_takes_its_whole_quartet_along():
    planned = MULTI_OBJECT.subsets()
    left = MULTI_OBJECT.leave_out(planned, {name: [0, 17] for name in MULTI_OBJECT.tests})
    kept = drop_scenes(planned, left)
    assert {len(numbers) for numbers in left.values()} == {2 * 4 * 2}
    assert MULTI_OBJECT.measure(kept)["entropies"]["which"] == log2(28)
    made = of_planned(MULTI_OBJECT, kept)
    split = replace(made, recipe=made.recipe | {"left_out": left})
    assert [finding for finding in audit_records(split) if not finding.holds] == []


def test_a_world_of_cut_outs(tmp_path):
    """Rendered, written, read and audited."""
    draw(tmp_path / "beast.png")
    draw(tmp_path / "pale.png", color=(200, 200, 200))
    entries = '[animal.beast]\ncutouts = ["beast.png"]\n[animal.pale]\ncutouts = ["pale.png"]\n'
    world = world_of(tmp_path, entries, '["beast", "pale"]')
    recipe = ProbeRecipe(world=world)
    path = make_split(tmp_path / "store", recipe, resolution=32)
    split = read_split(path)
    textures = len(load_world(world).textures)
    assert len(split.subsets["left_first"]) == 2 * 2 * len(list(permutations(range(textures), 2)))
    assert split.recipe["entropies"]["which"] == log2(comb(textures, 2))
    assert split.subsets["left_first"].pairs.tolist() == [0] * len(split.subsets["left_first"])
    assert [finding for finding in audit(path, world_file=tmp_path / "mine.toml") if not finding.holds] == []
    assert path.name == split_name(recipe)
