"""Identities and seeds, computed from settings alone. The identity of an object of a dataclass consists of the fields
that differ from their defaults.

An identity holds the fields that differ from their defaults. Adding a field with a default thus changes no identity,
and old folders stay valid. Whoever changes the default of an existing field raises the version of its class in
`VERSIONS`; otherwise old results would be taken for new ones. A test compares all defaults with those recorded for each
version.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from typing import Any

import numpy as np

# Raise a class's number when the default of one of its fields changes, or when the same values give another result.
VERSIONS: dict[str, int] = {
    **{"OCCLIPConfig": 3, "FDTConfig": 2, "SPAROConfig": 2, "AttPoolConfig": 2, "CECLIPConfig": 2, "FSCCLIPConfig": 2},
    **{"CSCLIPConfig": 2, "LikelihoodConfig": 2, "ReadCLIPConfig": 2},
    **{"BindingRecipe": 3, "SpatialRecipe": 4, "DependenceRecipe": 2},
}


UNCHANGED = frozenset({str, int, float, bool, type(None)})  # by JSON; not their subclasses


def plain(value: object) -> Any:
    """`value` as JSON would give it back: paths become text, tuples become lists."""
    if type(value) in UNCHANGED:
        return value
    return json.loads(json.dumps(value, default=str))


def differing(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, in nested dataclasses too; fields without a default
    are always included."""
    changed: dict[str, Any] = {}
    for item in fields(value):
        current = getattr(value, item.name)
        if is_dataclass(current):
            inner = differing(current)
            if inner or type(current) is not type(default_of(item)):
                changed[item.name] = inner
        elif plain(current) != plain(default_of(item)):
            changed[item.name] = plain(current)
    return changed


def identity_of(value: Any) -> dict[str, Any]:
    """The fields that differ from the defaults (`differing`), and the version of the defaults if they have changed."""
    return differing(value) | defaults_version(type(value))


def defaults_version(kind: type) -> dict[str, int]:
    """The version of the defaults of a class and its bases; empty if they are those of the first release."""
    raised = sum(VERSIONS.get(name, 1) - 1 for name in {base.__name__ for base in kind.__mro__})
    return {"defaults": 1 + raised} if raised else {}


def default_of(item: Field[Any]) -> Any:
    """The default of a dataclass's field; the text "no default" if it has none."""
    if item.default is not MISSING:
        return item.default
    return item.default_factory() if item.default_factory is not MISSING else "no default"


def digest(settings: object) -> str:
    """Return a hash of settings, twelve hexadecimal digits; values that JSON can't hold count as their text."""
    return hashlib.sha256(json.dumps(plain(settings), sort_keys=True).encode()).hexdigest()[:12]


def completed(recorded: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of fields that were added after a configuration was recorded."""
    whole = {name: value for name, value in recorded.items() if name not in defaults}
    for name, default in defaults.items():
        value = recorded.get(name, default)
        nested = isinstance(default, Mapping) and isinstance(value, Mapping)
        whole[name] = completed(value, default) if nested else value
    return whole


def defaults_of(config: Any) -> dict[str, Any]:
    """The defaults of a configuration and of those nested in it, as JSON; a field without a default keeps its value."""
    defaults = {}
    for item in fields(config):
        default = default_of(item)
        current = getattr(config, item.name)
        if is_dataclass(current):
            defaults[item.name] = defaults_of(current)
        else:
            defaults[item.name] = plain(current if default == "no default" else default)
    return defaults


def differences(recorded: Mapping[str, Any], config: Any, ignored: frozenset[str] = frozenset()) -> str:
    """Describe how a recorded configuration differs from `config`; empty if it doesn't.

    `ignored` names fields, or parts of fields such as "scorers.sparo".
    """
    wanted = plain(asdict(config)) if is_dataclass(config) else plain(config)
    before = completed(recorded, defaults_of(config)) if is_dataclass(config) else dict(recorded)
    return ", ".join(
        difference
        for name in sorted(wanted.keys() | before.keys())
        for difference in differing_parts(name, before.get(name), wanted.get(name), ignored)
    )


def differing_parts(name: str, before: object, wanted: object, ignored: frozenset[str]) -> Iterator[str]:
    """Yield a description for each part in which a field's two values differ: "recipe.steps (60 there, 40 now)"."""
    if name in ignored:
        return
    if isinstance(before, Mapping) and isinstance(wanted, Mapping):
        for part in sorted(before.keys() | wanted.keys()):
            yield from differing_parts(f"{name}.{part}", before.get(part), wanted.get(part), ignored)
    elif before != wanted:
        yield f"{name} ({before} there, {wanted} now)"


def seed_of(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on `seed` and the text of `parts` only."""
    text = "\x1f".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """A random generator seeded with `seed_of(seed, *parts)`."""
    return np.random.default_rng(seed_of(seed, *parts))
