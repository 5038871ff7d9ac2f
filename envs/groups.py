"""Groups of animals: one name for several of them in hold-out rules ("animal=felines")."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from menagerie.envs.core.errors import UserError, choose

NAME = re.compile(r"[a-z]+( [a-z]+)*")
# Names with their animals, hashable like the world that they are a part of.
Groups = tuple[tuple[str, tuple[str, ...]], ...]


def checked_groups(
    groups: Mapping[str, Sequence[str]], animals: Sequence[str], error: Callable[[str], UserError] = UserError
) -> Groups:
    """The groups, whose animals must be among `animals`; `error` makes the exception for a mistake."""
    for name, members in groups.items():
        if not NAME.fullmatch(name):
            raise error(f"group {name!r}: a name is lower-case words, as in rules")
        if name in animals:
            raise error(f"group {name!r} is named like an animal of the world; rename the group")
        if not members:
            raise error(f"group {name!r} is empty; name its animals, or leave it out")
        try:
            for member in members:
                choose("animal", member, animals)
        except UserError as problem:
            raise error(f"group {name!r}: {problem}") from problem
        if len(set(members)) != len(members):
            raise error(f"group {name!r} names an animal twice: {', '.join(members)}")
    return tuple((name, tuple(members)) for name, members in groups.items())


def within(groups: Groups, animals: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The groups with only those of their members that are among `animals`, without the groups that have none."""
    known = set(animals)
    kept = {name: tuple(member for member in members if member in known) for name, members in groups}
    return {name: members for name, members in kept.items() if members and name not in known}
