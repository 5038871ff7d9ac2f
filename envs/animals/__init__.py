"""The animals that a world can name, as `ANIMAL` of a file each: see menagerie.envs.catalog."""
