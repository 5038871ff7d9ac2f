"""What differs between a recorded configuration and the one that is wanted now."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from menagerie.envs.core.identity import json_value
from menagerie.envs.core.options import default_of


def with_defaults(recorded: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """Fill in the defaults of the fields, nested ones too, that were added since a configuration was recorded."""
    whole = dict(recorded)
    for item in fields(config):
        current, default = getattr(config, item.name), default_of(item)
        if is_dataclass(current) and isinstance(before := recorded.get(item.name, {}), Mapping):
            whole[item.name] = with_defaults(before, current)
        elif item.name not in recorded:
            whole[item.name] = json_value(current if default is MISSING else default)
    return whole


def describe_differences(
    recorded: Mapping[str, Any], config: Any, ignored: frozenset[str] = frozenset(), place: str = ""
) -> str:
    """Describe how a recorded configuration differs from `config`: "recipe.steps (60 there, 40 now)"; empty if it
    doesn't.

    `ignored` names fields, or parts of fields such as "scorers.sparo".
    """
    wanted = json_value(asdict(config)) if is_dataclass(config) else json_value(config)
    before = with_defaults(recorded, config) if is_dataclass(config) else recorded
    found = []
    for name in sorted(before.keys() | wanted.keys()):
        one, other, where = before.get(name), wanted.get(name), place + name
        if isinstance(one, Mapping) and isinstance(other, Mapping) and where not in ignored:
            found.append(describe_differences(one, other, ignored, f"{where}."))
        elif one != other and where not in ignored:
            found.append(f"{where} ({one} there, {other} now)")
    return ", ".join(filter(None, found))
