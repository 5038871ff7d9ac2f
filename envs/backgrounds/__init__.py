"""The backgrounds that a world can name, as `BACKGROUND` of a file each: see menagerie.envs.catalog."""
