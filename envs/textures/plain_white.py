"""White without a pattern, for worlds whose textures are a pattern and a colour."""

from menagerie.envs.textures.white import TEXTURE

__all__ = ["TEXTURE"]
