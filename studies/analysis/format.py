"""Values as people read them, and trials as a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.files import write_csv


def flat(fields: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested fields as dotted names and short texts."""
    texts: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            texts |= flat(value, f"{prefix}{name}.")
        else:
            texts[prefix + name] = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return texts


def write_trials(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """All trials, one row each."""
    write_csv(path, rows[0], ([row[name] for name in rows[0]] for row in rows))


def shown(cell: object) -> str:
    """A value as people read it."""
    if isinstance(cell, dict):
        return ", ".join(f"{name} {shown(value)}" for name, value in cell.items())
    return "–" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell)
