"""Probe sets: what they hold, and planted faults that the audit must find. One is rendered, of cut-out photographs."""

from collections import Counter
from dataclasses import replace
from functools import reduce
from itertools import permutations
from math import comb, log2

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import VIEWS
from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.audit import probe_draws, probes, texts
from menagerie.generators.audit.regeneration import recipe_of
from menagerie.generators.audit.run import CHECKS_OF, audit, check_records
from menagerie.generators.benchmarks.split_tests import cluster_of
from menagerie.generators.captions.hard_negatives.swaps import mirror_probed, swap_probed
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.storage.probes import probe_grid, quartets_of
from menagerie.generators.storage.split_file import describe, read_split, recorded, split_name, without
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.planting import joined, only, taken, with_subsets
from tests.helpers.splits import in_memory, make_split

SMALL = ProbeRecipe(world="eight", animals=("goldfish", "camel", "rabbit"))
SIZED = ProbeRecipe(world="pug-sizes", animals=("cat", "lion", "bear"), template="free-conjunction", facing="inward")
CROWD = ProbeRecipe(world="pug-textures", layout="overlap", things=4, quartets=30)
MANY = replace(SMALL, animals=())
MORE = ("cat", "lion", "bear", "crow", "pig", "orca")
SOUND = {"small": SMALL, "sized": SIZED, "crowd": CROWD, "two": replace(CROWD, things=2, layout="apart", probe_views=1)}


def failed(check, split):
    return [finding.claim for finding in check(split) if not finding.holds]


def test_every_pair_is_there_in_every_view():
    """Twelve animals in four textures: 3168 images, log2(66 * 6) bits."""
    recipe = ProbeRecipe(animals=load_world("pug").animals[:12])
    scenes = recipe.subsets()["left_first"]
    shown = Counter((s.view, *((t.animal, t.texture, place_of(t.slot)) for t in s.things)) for s in scenes)
    assert (len(scenes), set(shown.values())) == (3168, {1})
    assert Counter(scene.view for scene in scenes) == {20_000: 1584, 20_001: 1584}
    assert recipe.measured({"left_first": scenes})["entropies"] == {"bags": 396, "which": log2(396), "binding": 1.0}


def test_the_four_scenes_of_a_quartet_differ_in_what_they_should():
    for recipe in (SMALL, SIZED, CROWD):
        scenes = set(recipe.subsets()["left_first"])
        for scene in scenes:
            swap, mirror = swap_probed(scene), mirror_probed(scene)
            assert {swap, mirror, swap_probed(mirror)} <= scenes, "in one view, on one background"
            assert len({scene, swap, mirror, swap_probed(mirror)}) == 4
            assert swap_probed(swap) == mirror_probed(mirror) == scene
            assert swap_probed(mirror) == mirror_probed(swap)
            cells = [{thing[:2] for thing in one.things} for one in (scene, swap, mirror)]
            assert cells[0] == cells[2] != cells[1]
            assert len(cells[0] - cells[1]) == 2, "others keep their textures"


def test_no_training_shares_a_view():
    """Not even the one with the most views that a recipe can have."""
    probed = {scene.view for scene in SMALL.subsets()["left_first"]}
    for recipe in (BindingRecipe(world="tiny", views=3), CrowdRecipe(world="eight-textures", train_scenes=200)):
        trained = {scene.view for scenes in recipe.subsets().values() for scene in scenes}
        assert not trained & probed
    assert min(probed) >= 2 * VIEWS.high, "views, and test views after them"
    with pytest.raises(UserError, match="first_view must be at least 20000"):
        replace(SMALL, first_view=16)


def test_captions_mention_both_orders():
    split = in_memory(SMALL)
    left, right = split.subsets["left_first"], split.subsets["right_first"]
    assert left.scenes == right.scenes
    for scene, one, other in zip(left.scenes, left.graphs, right.graphs, strict=True):
        (a, b, ground), things = one.nodes, scene.things
        assert (a, b) == tuple(f"{thing.texture} {thing.animal}" for thing in things)
        assert other.nodes == (b, a, ground)
    for r in (left, right):
        caption = dict(zip(r.scenes, r.captions, strict=True))
        assert all(caption[swap_probed(s)] == false for s, false in zip(r.scenes, r.negatives, strict=True))


def test_groups_and_grid_keep_swaps_and_mirrors_together():
    split = in_memory(SMALL)
    r, grid = split.subsets["left_first"], probe_grid(split)
    assert grid.records.shape == (2, 6, 6)
    assert sorted(grid.records.ravel().tolist()) == list(range(len(r)))
    assert len(set(grid.group.tolist())) == 3
    v = split.vocabulary
    for (view, p, q), i in np.ndenumerate(grid.records):
        scene = r.scenes[i]
        assert [v.animals.index(thing.animal) for thing in scene.things] == grid.animals[p].tolist()
        assert [v.textures.index(thing.texture) for thing in scene.things] == grid.textures[q].tolist()
        assert r.scenes[grid.records[view, p, grid.swap[q]]] == swap_probed(scene)
        assert r.scenes[grid.records[view, grid.mirror[p], grid.swap[q]]] == mirror_probed(scene)
        assert r.groups[i] == grid.group[p] == grid.group[grid.mirror[p]]


def test_quartets_of_crowds_are_the_same_in_all_views():
    split = in_memory(CROWD)
    r, table = split.subsets["left_first"], quartets_of(split)
    assert table.shape == (2, 30, 4)
    for s in range(30):
        things = [[replace(r.scenes[i], view=0, background="").things for i in four] for four in table[:, s]]
        assert things[0] == things[1]
        assert len(set(r.groups[table[:, s]].ravel().tolist())) == 1
        assert len({cluster_of("probe", r.scenes[i]) for i in table[:, s].ravel()}) == 1
    with pytest.raises(UserError, match="no grid of all pairs"):
        probe_grid(split)
    with pytest.raises(UserError, match="menagerie make probe"):
        quartets_of(in_memory(BindingRecipe(world="tiny", views=1, test_views=1)))


def test_a_hidden_thing_takes_its_whole_quartet_along():
    planned = CROWD.subsets()
    left = CROWD.left_out(planned, {name: [0, 17] for name in CROWD.tests})
    kept = without(planned, left)
    assert {len(numbers) for numbers in left.values()} == {2 * 4 * 2}
    assert CROWD.measured(kept)["entropies"]["which"] == log2(28)
    row_of = {scene: row for row, scene in enumerate(CROWD.with_partners(planned))}
    described = {name: describe(name, scenes, row_of, CROWD) for name, scenes in kept.items()}
    recipe = recorded(CROWD) | {"left_out": left} | CROWD.measured(kept)
    split = replace(in_memory(CROWD), recipe=recipe, subsets=described)
    assert [finding for finding in check_records(split) if not finding.holds] == []


def test_what_is_hidden_more_often_is_no_fault():
    """Small things, and flat ones such as crocodiles, hide behind others."""
    recipe = replace(CROWD, world="pug-sizes", quartets=300)
    planned = recipe.subsets()["left_first"]
    hidden = [
        n
        for n, scene in enumerate(planned)
        for thing in scene.things
        if thing.slot.startswith("front") and (thing.animal == "crocodile" or (thing.size == "small" and n % 3 == 0))
    ]
    left = recipe.left_out({"left_first": planned}, {"left_first": hidden})["left_first"]
    few = taken(in_memory(recipe).subsets["left_first"], sorted({*range(len(planned))} - {*left}))
    split = with_subsets(in_memory(recipe), left_first=few, right_first=few)
    assert failed(probe_draws.check_probe_draws, split)
    assert failed(probe_draws.check_probe_draws, claimed(left_out={"left_first": left})(split)) == []


def changed(split, name, **columns):
    return with_subsets(split, **{name: replace(split.subsets[name], **columns)})


def scene_changed(split, change, number=0):
    """The split in which one scene is what `change` makes of it."""
    scenes = list(split.subsets["left_first"].scenes)
    scenes[number] = change(scenes[number])
    return changed(split, "left_first", scenes=scenes)


def captions_exchanged(split):
    r = split.subsets["left_first"]
    texts_of = {"captions": r.negatives, "graphs": r.negative_graphs}
    return changed(split, "left_first", **texts_of, negatives=r.captions, negative_graphs=r.graphs)


def another_background(scene):
    return replace(scene, background="city" if scene.background != "city" else "desert")


def in_training(scene):
    return replace(scene, view=3)


def one_group_torn(split):
    groups = split.subsets["left_first"].groups.copy()
    groups[7] = groups.max() - groups[7] + 1
    return changed(split, "left_first", groups=groups)


def one_background(split):
    """All scenes with a camel are in one place."""
    r = split.subsets["left_first"]
    camels = ["camel" in {thing.animal for thing in scene.things} for scene in r.scenes]
    scenes = [replace(s, background="desert") if camel else s for s, camel in zip(r.scenes, camels, strict=True)]
    return changed(split, "left_first", scenes=scenes)


def claimed(**fields):
    return lambda split: replace(split, recipe={**split.recipe, **fields})


def redrawn(change):
    """A split in which every scene of both tests is what `change` makes of it, with the texts that it then has."""

    def plant(split):
        recipe = recipe_of(split)
        scenes = [change(scene) for scene in split.subsets["left_first"].scenes]
        rows = {scene: 0 for scene in scenes}
        return with_subsets(split, **{name: describe(name, scenes, rows, recipe) for name in recipe.tests})

    return plant


def with_size(size_of):
    return redrawn(lambda s: replace(s, things=tuple(thing._replace(size=size_of(s, thing)) for thing in s.things)))


def one_size(scene, thing):
    return min(scene.things).size


def size_of_view(scene, thing):
    return ("small", "big")[scene.view % 2]


def camels_turn_right(scene):
    """The thing on the left faces inward beside a camel, outward beside a rabbit, else as before."""
    animals = {thing.animal for thing in scene.things} & {"camel", "rabbit"}
    slot = {frozenset({"camel"}): "left", frozenset({"rabbit"}): "left outward"}.get(frozenset(animals))
    left, right = scene.things
    return replace(scene, things=(left._replace(slot=slot or left.slot), right))


def views_alike(split):
    """The second view has what was drawn for the first."""
    drawn = {
        probes.bag(s): (s.background, {t.animal: t.size for t in s.things}, [t.slot for t in s.things])
        for s in split.subsets["left_first"].scenes
        if s.view == 20_000
    }

    def again(scene):
        background, sizes, slots = drawn[probes.bag(scene)]
        things = (t._replace(size=sizes[t.animal], slot=slot) for t, slot in zip(scene.things, slots, strict=True))
        return replace(scene, background=background, things=tuple(things))

    return redrawn(again)(split)


def one_phrasing(which):
    """Texts have the first phrasing where `which` is true of their scene."""

    def plant(split):
        recipe = recipe_of(split)
        plain = replace(recipe, template="conjunction")
        rows = dict.fromkeys(split.subsets["left_first"].scenes, 0)
        tests = {
            name: [describe(name, [s], rows, plain if which(s) else recipe) for s in split.subsets[name].scenes]
            for name in recipe.tests
        }
        told = {name: replace(reduce(joined, some), groups=split.subsets[name].groups) for name, some in tests.items()}
        return with_subsets(split, **told)

    return plant


def two_quartets(split):
    """Each combination also in other places."""
    choices = LAYOUTS[split.recipe["layout"]].choices(2)

    def moved(scene):
        slots = choices[(choices.index(tuple(t.slot for t in scene.things)) + 1) % len(choices)]
        return replace(scene, things=tuple(t._replace(slot=slot) for t, slot in zip(scene.things, slots, strict=True)))

    both = {name: joined(r, redrawn(moved)(split).subsets[name]) for name, r in probes.tested(split).items()}
    return with_subsets(split, **both)


def without_pair(split):
    return only(split, lambda s: {t.animal for t in s.things} != {"camel", "rabbit"}, ["left_first", "right_first"])


def half_left_out(split):
    return claimed(left_out={name: list(range(8 * 40)) for name in CROWD.tests}, quartets=70)(split)


ENTROPY = {"bags": 9, "which": 3.2, "binding": 1.0}
FAULTS = {
    "swapped captions exchanged": (SMALL, texts.check_texts, captions_exchanged),
    "another background": (SMALL, probes.check_probe_quartets, lambda s: scene_changed(s, another_background)),
    "another facing": (
        SMALL,
        probes.check_probe_quartets,
        lambda s: scene_changed(s, lambda one: replace(one, things=(turned(one.things[0]), one.things[1]))),
    ),
    "a view of training": (
        SMALL,
        probes.check_probe_views,
        lambda s: scene_changed(s, lambda one: replace(one, view=3)),
    ),
    "views of training": (SMALL, probes.check_probe_views, claimed(first_view=16)),
    "a pair is missing": (SMALL, probes.check_probe_complete, without_pair),
    "a scene is missing": (
        SMALL,
        probes.check_probe_complete,
        lambda s: with_subsets(s, right_first=taken(s.subsets["right_first"], range(1, 72))),
    ),
    "an arrangement is missing in a view": (
        CROWD,
        probes.check_probe_complete,
        lambda s: with_subsets(s, left_first=taken(s.subsets["left_first"], range(4, 240))),
    ),
    "another pair": (SMALL, probes.check_probe_complete, claimed(animals=["camel", "rabbit", "crow"])),
    "a group is torn": (SMALL, probes.check_probe_groups, one_group_torn),
    "two groups are one": (
        SMALL,
        probes.check_probe_groups,
        lambda s: changed(s, "left_first", groups=s.subsets["left_first"].groups * 0),
    ),
    "no groups": (SMALL, probes.check_probe_groups, lambda s: changed(s, "left_first", groups=None)),
    "another entropy": (SMALL, probes.check_probe_entropies, claimed(entropies=ENTROPY)),
    "less than a bit": (
        SMALL,
        probes.check_probe_entropies,
        lambda s: only(s, one_assignment),
    ),
    "another order": (
        SMALL,
        probes.check_probe_mentions,
        lambda s: with_subsets(s, left_first=s.subsets["right_first"]),
    ),
    "other scenes": (
        SMALL,
        probes.check_probe_mentions,
        lambda s: with_subsets(s, right_first=taken(s.subsets["right_first"], range(71, -1, -1))),
    ),
    "a text is always true": (
        SMALL,
        probes.check_probe_answers,
        lambda s: changed(s, "left_first", negatives=s.subsets["left_first"].captions[:1] * 72),
    ),
    "one place for an animal": (replace(SMALL, animals=()), probe_draws.check_probe_draws, one_background),
    "one size in a view": (SIZED, probe_draws.check_probe_draws, with_size(size_of_view)),
    "animals of one size": (replace(SIZED, animals=MORE), probe_draws.check_probe_draws, with_size(one_size)),
    "a facing tied to an animal": (MANY, probe_draws.check_probe_draws, redrawn(camels_turn_right)),
    "views that are drawn alike": (MANY, probe_draws.check_probe_draws, views_alike),
    "a phrasing tied to an animal": (
        replace(SIZED, animals=MORE),
        probe_draws.check_probe_draws,
        one_phrasing(lambda s: any(t.animal == "cat" for t in s.things)),
    ),
    "a phrasing of some scenes of a quartet": (
        SIZED,
        probe_draws.check_probe_phrasings,
        one_phrasing(lambda s: s.things[0].animal < s.things[1].animal),
    ),
    "two quartets of the same things": (SOUND["two"], probes.check_probe_crowd, two_quartets),
    "something to train on": (
        SMALL,
        probes.check_probe_trains_nothing,
        lambda s: with_subsets(s, train=s.subsets["left_first"]),
    ),
    "more quartets asked": (CROWD, probes.check_probe_crowd, claimed(quartets=31)),
    "too much is left out": (CROWD, probes.check_probe_crowd, half_left_out),
    "pairs are left out": (SMALL, probes.check_probe_crowd, claimed(left_out={"left_first": [0]})),
    "another layout": (CROWD, probes.check_probe_crowd, claimed(layout="apart")),
    "more things asked": (CROWD, probes.check_probe_crowd, claimed(things=3)),
}


def one_assignment(scene):
    one, other = sorted(scene.things)
    return one.texture < other.texture


def turned(thing):
    place = place_of(thing.slot)
    return thing._replace(slot=place if thing.slot != place else f"{place} outward")


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    recipe, check, plant = FAULTS[fault]
    split = in_memory(recipe)
    assert check in CHECKS_OF["probe"] or check is texts.check_texts
    assert failed(check, split) == []
    assert failed(check, plant(split))


def test_a_world_of_cut_outs(tmp_path):
    """Rendered, written, read and audited, every pixel."""
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
    assert split.subsets["left_first"].groups.tolist() == [0] * len(split.subsets["left_first"])
    assert [finding for finding in audit(path, "all", world_file=tmp_path / "mine.toml") if not finding.holds] == []
    assert path.name == split_name(recipe)
