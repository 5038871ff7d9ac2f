"""The one way to check input: types, ranges and choices are declared with each field, and these functions check them.

    views: Annotated[int, DATA, Range(1, 10_000)] = 16
    layout: Literal["apart", "rows", "overlap"] = "apart"
    relations: Annotated[tuple[Relation, ...], Several(least=1)] = ("left/right",)

`validate` checks an object: options that `tyro` parsed, or a recipe made in Python. `build_dataclass` makes an object
from a file's table or a text, and checks it. A number without a range must still be finite. The ranges are far above
what anybody needs: they keep a typing mistake from taking all memory or a day.

Files have two origins. OURS were written by this program: records with a digest of themselves, and files whose digests
are in a record (`records`). Once the digest fits, we trust the content, and msgspec checks its shape once
(`reading.shaped`). THEIRS are all others: recipes and worlds in TOML, official files of benchmarks, photographs,
weights. They have a largest size and depth, and name no file outside their folder (`reading`); each value is checked
before it is used, and nothing in them is executed, except Python files that the user names.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from menagerie.envs.core.errors import UserError, choose, not_allowed
from menagerie.envs.core.options import flag_name, hints_of, markers_of

Config = TypeVar("Config")


class Range(NamedTuple):
    """The least and the greatest value of a number, or of each number in a tuple.

    On a field that holds a dataclass, it applies to the whole numbers in that dataclass that have no range.
    """

    low: float
    high: float


class Several(NamedTuple):
    """Marks a field that holds a tuple of different values; with `least` 1 it can't be empty."""

    least: Literal[0, 1] = 0


SIDE = Range(16, 1024)  # of an image, in pixels
VIEWS = Range(1, 10_000)
SCENES = Range(1, 10_000_000)  # of a subset
SEEDS = Range(1, 10_000)  # number of seeds
FIRST_SEED = Range(0, 2**32 - 1)  # within the limits of numpy and Optuna
STEPS = Range(1, 10**9)
THREADS = PROCESSES = Range(1, 1024)
SOME_PROCESSES = Range(0, 1024)  # 0: as many as there are cores
RUNS = Range(1, 100_000)
RATE = Range(0.0, 1000.0)
COUNT, POSITIVE = Range(0, 10**9), Range(1, 10**9)
SHARE = Range(0.0, 1.0)  # a fraction or a probability
PARTS = Range(-1, 65_536)  # widths, depths, numbers of heads


def option(name: str) -> str:
    """A field's name as an option on the command line."""
    return f"--{name.replace('_', '-')}"


def validate(config: Any, label: Callable[[str], str] = option, prefix: str = "", within: Range | None = None) -> None:
    """Raise a `UserError` for the first value in a dataclass, or in a nested one with options, that isn't allowed.

    `label` turns a field's name into the name in the message; `within` limits whole numbers whose fields have no range.
    """
    for field, flag, limits, known, several, hidden in field_rules(type(config)):
        value = getattr(config, field)
        if is_dataclass(value):
            if not hidden:
                validate(value, label, f"{prefix}{flag}." if flag else prefix, limits or within)
            continue
        what = label(prefix + (flag if label is option else field))
        values = value if isinstance(value, tuple) else (value,)
        for one in values:
            check_number(what, one, limits or (within if type(one) is int else None))
            if known and one is not None:
                choose(what, one, known)
        if several:
            check_several(what, values, several)


Rule = tuple[str, str, Range | None, tuple[Any, ...], Several | None, bool]


@cache
def field_rules(kind: type) -> tuple[Rule, ...]:
    """What the fields of a class allow, which is the same for all its objects: each field, its name on the command
    line, limits, choices (empty where there are none), and whether it isn't an option of the command line."""
    import tyro

    rules = []
    for item in fields(kind):
        markers = markers_of(kind, item.name)
        limits = next((marker for marker in markers if isinstance(marker, Range)), None)
        several = next((marker for marker in markers if isinstance(marker, Several)), None)
        known, name = choices_of(hints_of(kind)[item.name]), flag_name(item.name, markers)
        rules.append((item.name, name, limits, known, several, tyro.conf.Suppress in markers))
    return tuple(rules)


def build_dataclass(
    kind: type[Config], given: Mapping[str, Any], place: object = "", from_text: bool = False
) -> Config:
    """Make the dataclass `kind` from the fields in a file's table or a text; lists become tuples.

    Raises a `UserError`, which begins with `place`, for an unknown or missing field, and for a value that has another
    type or isn't allowed. With `from_text`, all values are given as text and converted.
    """
    names = [item.name for item in fields(kind)]
    try:
        values = {
            choose("field", name, names): convert(name, value, hints_of(kind)[name], from_text)
            for name, value in given.items()
        }
        for item in fields(kind):
            if item.name not in given and item.default is MISSING and item.default_factory is MISSING:
                raise UserError(f"{item.name} is missing", item.name)
        config = kind(**values)
        validate(config, str)
    except UserError as error:
        raise (error.at(place) if place else error) from error
    return config


def convert(name: str, value: Any, hint: Any, from_text: bool = False) -> Any:
    """Convert a value to a type: a list to a tuple, a whole number to a float; raises a `UserError` if it can't be."""
    import msgspec

    try:
        return msgspec.convert(value, hint, strict=not from_text, dec_hook=lambda kind, given: kind(given))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        known = choices_of(hint)
        for one in value if isinstance(value, list) else [value]:
            if known and isinstance(one, str):
                choose(name, one, known)
        raise UserError(f"{name} can't be {value!r}: {error}", name) from error


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The choices of a `Literal`, also inside a tuple or a union with None; empty for other types."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return inner
    if origin in (Annotated, tuple):
        return choices_of(inner[0])
    listed = [choices_of(one) for one in inner if one is not type(None)] if origin in (Union, UnionType) else []
    return sum(listed, ()) if all(listed) else ()


def check_number(what: str, value: object, limits: Range | None) -> None:
    """Raise if a number isn't finite or is outside its range; values that aren't numbers pass."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if not math.isfinite(value):
        within = f" from {limits.low:.10g} to {limits.high:.10g}" if limits else ""
        raise not_allowed(what, value, f"a number{within}")
    if limits and value < limits.low:
        raise not_allowed(what, value, f"at least {limits.low:.10g}")
    if limits and value > limits.high:
        raise not_allowed(what, value, f"at most {limits.high:.10g}")


def check_several(what: str, values: tuple[object, ...], several: Several) -> None:
    """Raise if there are too few values, or one occurs twice."""
    if len(values) < several.least:
        raise UserError(f"{what} needs one or more values, got none", what)
    if twice := [value for value in dict.fromkeys(values) if values.count(value) > 1]:
        raise UserError(f"{what} has {twice[0]} twice; give each value once", what)
