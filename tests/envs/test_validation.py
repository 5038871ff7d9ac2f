"""Every kind of wrong value is one error that names the field, the value and what is allowed."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import Range, Several, build_dataclass, validate


@dataclass(frozen=True)
class Part:
    """A part, whose whole numbers have no range of their own."""

    width: int = 4
    share: Annotated[float, Range(0.0, 1.0)] = 0.5


@dataclass(frozen=True)
class Options:
    """Of each kind of field one."""

    name: str
    steps: Annotated[int, Range(1, 100)] = 10
    rate: float | None = None
    kind: Literal["plain", "fancy"] = "plain"
    parts: Annotated[tuple[Literal["head", "tail"], ...], Several(1)] = ("head",)
    angles: Annotated[tuple[float, float, float], Range(-360, 360)] = (0.0, 0.0, 0.0)
    inner: Annotated[Part, Range(1, 64)] = field(default_factory=Part)


WRONG = {
    "too small": ({"steps": 0}, "steps", "steps must be at least 1, got 0"),
    "too large": ({"steps": 101}, "steps", "steps must be at most 100, got 101"),
    "one of several": ({"angles": [0, 0, 400]}, "angles", "angles must be at most 360, got 400"),
    "another type": ({"steps": "10"}, "steps", "steps can't be '10': Expected `int`, got `str`"),
    "true is no number": ({"steps": True}, "steps", "steps can't be True: Expected `int`, got `bool`"),
    "too few": ({"angles": [0, 0]}, "angles", "angles can't be [0, 0]: Expected `array` of length 3, got 2"),
    "no list": ({"parts": "head"}, "parts", "parts can't be 'head': Expected `array`, got `str`"),
    "infinite": ({"rate": float("inf")}, "rate", "rate must be a number, got inf"),
    "another choice": ({"kind": "fency"}, "kind", "unknown kind 'fency'; did you mean 'fancy'?"),
    "another choice of several": ({"parts": ["haed"]}, "parts", "unknown parts 'haed'; did you mean 'head'?"),
    "none": ({"parts": []}, "parts", "parts needs one or more values, got none"),
    "twice": ({"parts": ["head", "head"]}, "parts", "parts has head twice; give each value once"),
    "missing": ({"name": ...}, "name", "name is missing"),
    "unknown": ({"stepps": 1}, "field", "unknown field 'stepps'; did you mean 'steps'?"),
}


@pytest.mark.parametrize(("given", "what", "line"), WRONG.values(), ids=WRONG)
def test_wrong_value_is_refused_with_its_field(given, what, line):
    with pytest.raises(UserError) as raised:
        build_dataclass(
            Options, {key: value for key, value in ({"name": "a"} | given).items() if value is not ...}, "a.toml"
        )
    assert (raised.value.what, str(raised.value)) == (what, f"a.toml: {line}")


def test_values_get_the_types_of_their_fields():
    built = build_dataclass(Options, {"name": "a", "rate": 1, "parts": ["tail", "head"], "angles": [1, 2, 3]})
    assert built == Options("a", rate=1.0, parts=("tail", "head"), angles=(1.0, 2.0, 3.0))
    assert build_dataclass(Options, {"name": "a", "steps": "7", "rate": "0.5"}, from_text=True) == Options("a", 7, 0.5)


@pytest.mark.parametrize(
    ("options", "what"),
    [(Options("a", steps=0), "--steps"), (Options("a", inner=Part(65)), "--inner.width")],
)
def test_wrong_object_is_refused_with_its_option(options, what):
    with pytest.raises(UserError) as raised:
        validate(options)
    assert raised.value.what == what
