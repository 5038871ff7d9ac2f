"""Groups of animals in a recipe: "felines={cat, lion}", and together with those of its world."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from menagerie.envs.core.errors import UserError
from menagerie.envs.world import World, checked_groups

FORM = "felines={cat, lion}"


def group_text(name: str, members: Sequence[str]) -> str:
    """The text of one group, as recipes hold it."""
    return f"{name}={{{', '.join(members)}}}"


def group_texts(table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The texts of the groups of a TOML table."""
    return tuple(group_text(name, members) for name, members in table.items())


def checked_table(table: Mapping[str, object]) -> dict[str, list[str]]:
    """The [groups] of a TOML file; values other than lists of names raise."""
    checked: dict[str, list[str]] = {}
    for name, members in table.items():
        if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
            raise UserError(f'group {name!r} must be a list of animals, such as ["cat", "lion"]; got {members!r}')
        checked[name] = members
    return checked


def read_groups(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Names and members of the groups in a recipe; one without = or a second one of a name raises."""
    groups: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, members = (part.strip() for part in text.partition("="))
        if not equals:
            raise UserError(f"group {text!r} must be a name and its animals, such as {FORM}")
        if name in groups:
            raise UserError(f"group {name!r} is there twice; rename one")
        inner = members.removeprefix("{").removesuffix("}")
        groups[name] = tuple(" ".join(member.split()) for member in inner.split(",") if member.strip())
    return groups


@lru_cache(maxsize=64)
def with_groups(world: World, texts: tuple[str, ...]) -> World:
    """`world` with the groups of a recipe besides its own; a mistake in one, or a second meaning of a name, raises."""
    groups, own = dict(world.groups), checked_groups(read_groups(texts), world.animals)
    for name, members in own:
        if set(groups.get(name, members)) != set(members):
            theirs, ours = (", ".join(its) for its in (groups[name], members))
            raise UserError(f"group {name!r} is {theirs} in the world {world.name!r} and {ours} here; rename one")
    return replace(world, groups=tuple((groups | dict(own)).items())) if own else world
