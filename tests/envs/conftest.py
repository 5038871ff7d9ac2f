"""Fixtures of the tests of `envs`: small renderers, built once."""

import pytest

from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world

RESOLUTION = 48


@pytest.fixture(scope="session")
def world() -> World:
    return load_world("pug")


@pytest.fixture(scope="session")
def renderer(world, tmp_path_factory) -> Renderer:
    return Renderer(world, RESOLUTION, tmp_path_factory.mktemp("atlas"))


@pytest.fixture(scope="session")
def scenes() -> list[Scene]:
    """A pair on every background, and one single animal."""
    return [
        Scene("desert", (Object("elephant", "red", "left"), Object("rabbit", "white", "right"))),
        Scene("arena", (Object("crocodile", "grass", "left"), Object("elephant", "asphalt", "right"))),
        Scene("ocean floor", (Object("rabbit", "red", "left"), Object("crocodile", "asphalt", "right"))),
        Scene("city", (Object("elephant", "white", "left"), Object("rabbit", "grass", "right"))),
        Scene("circus", (Object("rabbit", "red", "center"),)),
    ]
