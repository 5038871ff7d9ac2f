"""The world: vocabulary, bodies, textures, backgrounds, placement, renderer.

Independent of captions and of split files.
"""

from pathlib import Path

from envs.common.compiled import place_compiled
from envs.scene import Scene, Thing
from envs.world import World
from envs.worlds import load_world

place_compiled(Path(__file__).parent)  # before anything imports numba
__all__ = ["Scene", "Thing", "World", "load_world"]
