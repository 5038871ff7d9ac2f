"""Turquoise without a pattern, for worlds whose textures are a pattern and a colour."""

from menagerie.envs.textures.turquoise import TEXTURE

__all__ = ["TEXTURE"]
