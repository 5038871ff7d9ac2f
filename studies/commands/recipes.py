"""List the built-in recipes."""

from dataclasses import dataclass

from menagerie.generators.splits.recipe_file import SHIPPED, about


@dataclass(frozen=True)
class Config:
    """`recipes` takes no options."""


def run(config: Config) -> int:
    """Print the name and description of every built-in recipe."""
    for name in SHIPPED:
        print(f"{name:<16}{about(name)}")
    return 0
