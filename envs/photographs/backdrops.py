"""A background of several photographs: each camera and sun has one of them."""

from collections.abc import Sequence

from menagerie.envs.drawing.background import Backdrop, Background, Rays
from menagerie.envs.drawing.picture_file import OWN_LIGHT
from menagerie.envs.drawing.shading import Light
from menagerie.envs.drawing.view import VIEWS


def by_view(backgrounds: Sequence[Background]) -> Background:
    """The backgrounds in turn over all cameras and suns: equal views share one, as they share their drawing."""

    def draw(rays: Rays, light: Light) -> Backdrop:
        return backgrounds[VIEWS.index(rays.camera.view) % len(backgrounds)].draw(rays, light)

    return Background(OWN_LIGHT, draw)
