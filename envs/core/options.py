"""Options of commands: the fields of a dataclass, nested ones included, as `tyro` names them, each in a group.

The markers in a field's type give the option's group, and whether `--help` shows it or only `--help-all`:

    world: Annotated[str, DATA, FIRST] = "pug"

A field without a group belongs to the group of the field that holds its dataclass, else to `OTHER`. A subclass that
gives a field another default needn't repeat the markers.
"""

import ast
import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints


class Group(Enum):
    """Groups of options, in the order in which help shows them."""

    WHAT = "what"
    DATA = "data"
    MODEL = "model"
    TRAINING = "training"
    PLACE = "where it runs"
    OTHER = "other"


WHAT, DATA, MODEL, TRAINING, PLACE, OTHER = Group
FIRST = "--help"  # marks an option that `--help` shows; the others are only in `--help-all`
VALUES = {bool: "", int: "N", float: "X", str: "TEXT", Path: "PATH"}  # how help writes the values of each type


class Option(NamedTuple):
    """An option of a command, or a positional argument."""

    usage: str
    """The option as a user writes it: "--steps N"."""
    text: str
    """A sentence that says what the option does."""
    default: str = ""
    """The default value as a user would write it; empty where there is none."""
    group: Group = WHAT
    first: bool = True
    required: bool = False
    inner: bool = False
    """Whether the option is of a dataclass inside the command's own, which `--help-all` only names."""


def list_options(
    kind: type, value: object = None, prefix: str = "", group: Group = OTHER, inner: bool = False
) -> Iterator[Option]:
    """Yield the options of a dataclass in the order of its fields, with defaults from the instance `value` if given."""
    import tyro

    for item in fields(kind):
        current = default_of(item) if value is None else getattr(value, item.name)
        markers = markers_of(kind, item.name)
        if tyro.conf.Suppress in markers:
            continue
        place = next((marker for marker in markers if isinstance(marker, Group)), group)
        name = flag_name(item.name, markers)
        if is_dataclass(current):
            yield from list_options(type(current), current, f"{prefix}{name}." if name else prefix, place, inner=True)
            continue
        usage, text = usage_of(kind, item.name, prefix, name, markers), documentation(kind).get(item.name, "")
        yield Option(usage, text, format_default(current), place, FIRST in markers, current is MISSING, inner)


def default_of(item: Field[Any]) -> object:
    """The default of a field; `MISSING` if it has none."""
    return item.default if item.default_factory is MISSING else item.default_factory()


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The types of a class's fields with their markers."""
    return get_type_hints(kind, include_extras=True)


@cache
def markers_of(kind: type, name: str) -> tuple[Any, ...]:
    """The markers of a field, including those in base classes."""
    owners = [base for base in kind.__mro__ if name in vars(base).get("__annotations__", ())]
    hints = [hints_of(owner)[name] for owner in owners]
    return tuple(marker for hint in hints if get_origin(hint) is Annotated for marker in get_args(hint)[1:])


def flag_name(name: str, markers: tuple[Any, ...]) -> str:
    """The name that `tyro.conf.arg` gives a field; without one, the field's own name."""
    import tyro

    kind = type(tyro.conf.arg())
    return next((marker.name for marker in markers if isinstance(marker, kind) and marker.name is not None), name)


def usage_of(kind: type, field: str, prefix: str, name: str, markers: tuple[Any, ...]) -> str:
    """Write an option as on a command line: "--steps N"."""
    import tyro

    flag, values = f"{prefix}{name}".replace("_", "-"), placeholder(hints_of(kind)[field])
    if tyro.conf.Positional in markers:
        return f"{name.upper()} ..." if values.endswith("...") else name.upper()
    if values:
        return f"--{flag} {values}"
    before, dot, last = flag.rpartition(".")
    return f"--{flag}, --{before}{dot}no-{last}"


def placeholder(hint: Any) -> str:
    """The placeholder or choices after an option in help; empty for a flag."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return placeholder(inner[0])
    if origin in (Union, UnionType):
        return "|".join(placeholder(one) for one in inner if one is not type(None))
    if origin is Literal:
        return f"{{{','.join(map(str, inner))}}}"
    if origin is tuple:
        return f"{placeholder(inner[0])} ..." if inner[1:] == (...,) else " ".join(map(placeholder, inner))
    return VALUES.get(hint, "VALUE")


def format_default(value: object) -> str:
    """Write a default as on a command line: "yes" for True, empty for None, for False and where there is no default."""
    if value is MISSING or value is None or isinstance(value, bool):
        return "yes" if value is True else ""
    if isinstance(value, tuple):
        return " ".join(shlex.quote(format_default(one)) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def docstring(of: type | Callable[..., object] | ModuleType) -> str:
    """Return a docstring without its indentation; empty if there is none."""
    return inspect.cleandoc(of.__doc__ or "")


@cache
def documentation(kind: type) -> dict[str, str]:
    """The text below each field of a class and of its bases, by the field's name."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
        except (OSError, TypeError):  # a built-in class, or one made while the program runs, has no source file
            continue
        for field, below in pairwise(body):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Constant):
                texts[field.target.id] = " ".join(str(text.value).split())
    return texts
