"""Every scene of a world is rendered and checked."""

from menagerie.envs.world import World
from menagerie.generators.storage.scene_checks import check_factorial

WORLD = World("few", ("cat", "elephant", "penguin"), ("red", "white"), ("city", "desert"))


def test_every_scene_of_a_world_passes_the_render_checks():
    stages = []
    count, problems = check_factorial(WORLD, 32, 0, 1, lambda stage, done, total: stages.append((stage, done == total)))
    assert count == len(list(WORLD.factorial())) == 3 * 2 * 2 + 2 * 2 * (3 * 2) * (2 * 2)
    assert problems == []
    assert ("scenes", True) in stages
