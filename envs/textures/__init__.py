"""The textures that a world can name, as `TEXTURE` or `TEXTURE_NAME` of a file: see menagerie.envs.catalog."""
