"""Least and greatest values of numbers that a user gives, in the types of a dataclass's fields.

    views: Annotated[int, DATA, VIEWS] = 16

Far above what anybody needs, they keep a slip of the pen from taking all memory or a day. Numbers without a range must
still be numbers: neither nan nor infinite.
"""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import markers_of, renamed


class Range(NamedTuple):
    """The least and the greatest value of a number, and of each of several.

    On a field that holds a dataclass: of the whole numbers in it.
    """

    low: float
    high: float


SIDE = Range(16, 1024)  # of an image, in pixels, as menagerie.envs.render.renderer draws them
VIEWS = Range(1, 10_000)
SCENES = Range(1, 1_000_000)  # of a subset
SEEDS = Range(1, 10_000)  # how many
FIRST_SEED = Range(0, 2**32 - 1)  # as numpy and Optuna take them
STEPS = Range(1, 10**9)
THREADS = PROCESSES = Range(1, 1024)
SOME_PROCESSES = Range(0, 1024)  # or as many as there are cores
RUNS = Range(1, 100_000)
RATE = Range(0.0, 1000.0)
PARTS = Range(-1, 65_536)  # widths, depths, numbers of heads


def option(name: str) -> str:
    """A field's name as on a command line."""
    return f"--{name.replace('_', '-')}"


def check_ranges(
    config: object, label: Callable[[str], str] = option, prefix: str = "", within: Range | None = None
) -> None:
    """Raise for the first number of a dataclass that is outside its range; `label` gives its name for the message."""
    for item in fields(config):
        value, markers = getattr(config, item.name), markers_of(type(config), item.name)
        own = next((marker for marker in markers if isinstance(marker, Range)), None)
        if is_dataclass(value):
            if not is_hidden(markers):
                name = renamed(item.name, markers)
                check_ranges(value, label, f"{prefix}{name}." if name else prefix, own or within)
            continue
        for number in value if isinstance(value, tuple) else (value,):
            inherited = within if type(number) is int else None
            check_number(label(prefix + item.name), number, own or inherited)


def is_hidden(markers: tuple[object, ...]) -> bool:
    """Whether a field is no option."""
    import tyro

    return tyro.conf.Suppress in markers


def check_number(name: str, value: object, within: Range | None) -> None:
    """Raise for a number that is none, or outside its range; anything else passes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if not math.isfinite(value):
        raise UserError(f"{name} must be a number, got {value}" + (f"; {shown(within)}" if within else ""))
    if within and value < within.low:
        raise UserError(f"{name} must be at least {written(within.low)}, got {written(value)}")
    if within and value > within.high:
        raise UserError(f"{name} must be at most {written(within.high)}, got {written(value)}")


def shown(within: Range) -> str:
    """A range for people."""
    return f"from {written(within.low)} to {written(within.high)}"


def written(value: float) -> str:
    """A number with all digits of a whole one."""
    return str(value) if isinstance(value, int) else f"{value:g}"
