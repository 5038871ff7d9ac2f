"""Types in signatures are enforced, with shapes and without."""

import numpy as np
import pytest
from beartype.roar import BeartypeException
from jaxtyping import TypeCheckError


def test_wrong_shapes_are_refused():
    from menagerie.studies.analysis.intervals import accuracy_intervals

    assert "jaxtyping" in accuracy_intervals.__code__.co_filename
    with pytest.raises(TypeCheckError):
        accuracy_intervals(np.ones(3), np.ones((3, 2)), ["0"] * 3, "abc")


def test_functions_without_shapes_are_checked_by_beartype_alone():
    from menagerie.generators.captions.phrases import noun_phrase

    assert "jaxtyping" not in noun_phrase.__code__.co_filename
    with pytest.raises(BeartypeException):
        noun_phrase("red", 1, 1)


def test_wrong_types_of_fields_and_methods_are_refused():
    from menagerie.models.towers.config import TextSpace, TowerConfig

    for kind, value in ((TextSpace, 5), (TowerConfig, 5)):
        with pytest.raises(BeartypeException):
            kind(value)
