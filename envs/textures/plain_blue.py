"""Blue without a pattern, for worlds whose textures are a pattern and a colour."""

from menagerie.envs.textures.blue import TEXTURE

__all__ = ["TEXTURE"]
