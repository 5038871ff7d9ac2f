"""Types in signatures are enforced, with shapes and without."""

from dataclasses import dataclass

import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeException
from jaxtyping import Float, TypeCheckError

from tests.enforced_types import enforced


def enforce(decorated):
    return enforced(typechecker=beartype)(decorated)


@enforce
def product(a: Float[np.ndarray, "n k"], b: Float[np.ndarray, "k m"], wrong: bool = False) -> Float[np.ndarray, "n m"]:
    return (a @ b).T if wrong else a @ b


@enforce
def doubled(number: int, wrong: bool = False) -> "int":
    return str(number) if wrong else 2 * number


def test_wrong_shapes_are_refused():
    assert product(np.ones((2, 3)), np.ones((3, 4))).shape == (2, 4)
    with pytest.raises(TypeCheckError, match="the parameters of"):
        product(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(TypeCheckError, match="the return value"):
        product(np.ones((2, 3)), np.ones((3, 4)), True)


def test_functions_without_shapes_are_checked_by_beartype_alone():
    assert doubled(2) == 4
    assert "jaxtyping" in product.__code__.co_filename
    assert "jaxtyping" not in doubled.__code__.co_filename
    for arguments in (("2",), (2, True)):
        with pytest.raises(BeartypeException):
            doubled(*arguments)


def test_wrong_types_of_fields_and_methods_are_refused():
    @enforce
    @dataclass(frozen=True)
    class Pair:
        first: int
        second: "Pair | None" = None

        @enforce
        def sum(self, other: int) -> int:
            return self.first + other

    assert Pair(1, Pair(2)).sum(2) == 3
    with pytest.raises(BeartypeException):
        Pair("1")
    with pytest.raises(BeartypeException):
        Pair(1).sum("2")


def test_types_of_the_project_are_checked():
    from menagerie.generators.captions.phrases import noun_phrase
    from menagerie.studies.analysis.two_levels import accuracy_intervals

    with pytest.raises(BeartypeException):
        noun_phrase("red", 1, 1)
    with pytest.raises(TypeCheckError):
        accuracy_intervals(np.ones(3), np.ones((3, 2)), ["0"] * 3, "abc")
