"""Turquoise with black bands."""

from dataclasses import replace

from menagerie.envs.shapes.texture import banded
from menagerie.envs.textures.turquoise import TEXTURE as PLAIN

TEXTURE = replace(PLAIN, pattern=banded)
