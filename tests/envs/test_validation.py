"""Each way in which a value can be wrong is one error that says as data what, which value, and what is allowed."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import Range, Several, build, validate


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
    "too small": ({"steps": 0}, "steps", 0, "at least 1"),
    "too large": ({"steps": 101}, "steps", 101, "at most 100"),
    "one of several": ({"angles": [0, 0, 400]}, "angles", 400.0, "at most 360"),
    "another type": ({"steps": "10"}, "steps", "10", "a whole number"),
    "true is no number": ({"steps": True}, "steps", True, "a whole number"),
    "too few": ({"angles": [0, 0]}, "angles", [0, 0], "a list of 3 numbers"),
    "no list": ({"parts": "head"}, "parts", "head", "a list of 'head', 'tail'"),
    "infinite": ({"rate": float("inf")}, "rate", float("inf"), "a number"),
    "another choice": ({"kind": "fency"}, "kind", "fency", ("plain", "fancy")),
    "another choice of several": ({"parts": ["haed"]}, "parts", "haed", ("head", "tail")),
    "none": ({"parts": []}, "parts", (), "one or more"),
    "twice": ({"parts": ["head", "head"]}, "parts", ("head", "head"), "different ones"),
    "unknown": ({"stepps": 1}, "field", "stepps", ("name", "steps", "rate", "kind", "parts", "angles", "inner")),
}


@pytest.mark.parametrize(("given", "what", "value", "allowed"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_data(given, what, value, allowed):
    with pytest.raises(UserError) as raised:
        build(Options, {"name": "a"} | given, "a.toml")
    assert (raised.value.what, raised.value.value, raised.value.allowed) == (what, value, allowed)
    assert str(raised.value).startswith("a.toml: ")


def test_a_missing_field_is_named():
    with pytest.raises(UserError, match="name must be a text, but is missing"):
        build(Options, {})


def test_what_is_right_has_its_types():
    built = build(Options, {"name": "a", "rate": 1, "parts": ["tail", "head"], "angles": [1, 2, 3]})
    assert built == Options("a", rate=1.0, parts=("tail", "head"), angles=(1.0, 2.0, 3.0))
    assert build(Options, {"name": "a", "steps": "7", "rate": "0.5"}, from_text=True) == Options("a", 7, 0.5)


@pytest.mark.parametrize(
    ("options", "what"),
    [(Options("a", steps=0), "--steps"), (Options("a", inner=Part(65)), "--inner.width")],
)
def test_an_object_is_checked_by_the_names_of_its_options(options, what):
    with pytest.raises(UserError) as raised:
        validate(options)
    assert raised.value.what == what
