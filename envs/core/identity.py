"""Identities and seeds, computed from settings alone.

An identity holds the fields that differ from their defaults. Adding a field with a default thus changes no identity,
and old folders stay valid. Whoever changes the default of an existing field raises the version of its class in
`VERSIONS`; otherwise old results would be taken for new ones. A test compares all defaults with those recorded for each
version.
"""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from menagerie.envs.core.options import default_of

# Raise a class's number when the default of one of its fields changes, or when the same values give another result.
VERSIONS: dict[str, int] = {
    **{"OCCLIPConfig": 3, "FDTConfig": 2, "SPAROConfig": 2, "AttPoolConfig": 2, "CECLIPConfig": 2, "FSCCLIPConfig": 2},
    **{"CSCLIPConfig": 2, "LikelihoodConfig": 2, "ReadCLIPConfig": 2},
    **{"BindingRecipe": 3, "SpatialRecipe": 4, "DependenceRecipe": 2},
}


def json_value(value: object) -> Any:
    """`value` as JSON would give it back: paths become text, tuples become lists."""
    if type(value) in (str, int, float, bool):  # not of their subclasses
        return value
    return json.loads(json.dumps(value, default=str))


def changed_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, in nested dataclasses too; fields without a default
    are always included."""
    changed: dict[str, Any] = {}
    for item in fields(value):
        current = getattr(value, item.name)
        if is_dataclass(current):
            inner = changed_fields(current)
            if inner or type(current) is not type(default_of(item)):
                changed[item.name] = inner
        elif json_value(current) != json_value(default_of(item)):
            changed[item.name] = json_value(current)
    return changed


def identity_of(value: Any) -> dict[str, Any]:
    """The fields that differ from the defaults (`changed_fields`), and the version of the defaults if they have
    changed."""
    return changed_fields(value) | defaults_version(type(value))


def defaults_version(kind: type) -> dict[str, int]:
    """The version of the defaults of a class and its bases; empty if they are those of the first release."""
    raised = sum(VERSIONS.get(name, 1) - 1 for name in {base.__name__ for base in kind.__mro__})
    return {"defaults": 1 + raised} if raised else {}


def digest(settings: object) -> str:
    """Return a hash of settings, twelve hexadecimal digits; values that JSON can't hold count as their text."""
    return hashlib.sha256(json.dumps(json_value(settings), sort_keys=True).encode()).hexdigest()[:12]


def seed_of(seed: int, *parts: object) -> int:
    """A 63-bit seed that depends on `seed` and the text of `parts` only."""
    text = "\x1f".join(map(str, (seed, *parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """A random generator seeded with `seed_of(seed, *parts)`."""
    return np.random.default_rng(seed_of(seed, *parts))
