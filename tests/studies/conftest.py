"""All stores that tests of studies fill in their own process have one atlas."""

from collections.abc import Iterator

import pytest

from tests.command import one_atlas


@pytest.fixture(scope="package", autouse=True)
def atlas() -> Iterator[None]:
    with one_atlas():
        yield
