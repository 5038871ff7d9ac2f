"""A view moves camera and sun, within bounds, the same for all that is seen in it."""

import numpy as np

from menagerie.envs.drawing.camera import CAMERAS, SUNS, TARGET, Camera, View, view_of


def test_views_use_every_camera_and_sun():
    views = [view_of(number) for number in range(300)]
    assert {view.camera for view in views} == set(CAMERAS)
    assert {view.light for view in views} == set(SUNS)
    assert view_of(0) == View()
    assert view_of(17) == view_of(17)


def test_every_camera_looks_at_the_same_point_from_about_as_far():
    for number in range(40):
        camera = Camera(100, view_of(number))
        assert np.allclose(camera.project(TARGET[None])[0, :2], 50, atol=1e-3)
        assert 6.9 < np.linalg.norm(camera.eye - TARGET) < 8
        assert np.allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-5)


def test_the_sun_is_up_behind_the_camera_and_to_the_left():
    for number in range(40):
        x, y, z = view_of(number).sun
        assert np.isclose(x * x + y * y + z * z, 1, atol=1e-5)
        assert x < 0
        assert y < 0
        assert z > 0.5
