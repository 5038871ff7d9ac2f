"""The world: vocabulary, bodies, textures, backgrounds, placement, renderer.

Independent of captions and of split files.
"""

from pathlib import Path

from menagerie.envs.core.files import set_numba_cache

set_numba_cache(Path(__file__).parent)  # before anything imports numba
