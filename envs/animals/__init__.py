"""The animals that a world can name: one file each, loaded by name."""

from typing import TYPE_CHECKING

from menagerie.envs.catalog import load, names

if TYPE_CHECKING:
    from menagerie.envs.shapes.animal import Animal


def animal_names() -> tuple[str, ...]:
    """World names of all animals, sorted ("a_b.py" is "a b")."""
    return names("animals")


def load_animal(name: str) -> "Animal":
    """The animal called `name`; raises for an unknown name, and suggests the nearest."""
    return load("animals", "animal", name)
