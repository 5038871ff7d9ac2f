"""Red with black bands."""

from dataclasses import replace

from menagerie.envs.shapes.texture import banded
from menagerie.envs.textures.red import TEXTURE as PLAIN

TEXTURE = replace(PLAIN, pattern=banded)
