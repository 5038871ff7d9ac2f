"""Views vary the camera and the sun within bounds, the same for every scene."""

import numpy as np

from menagerie.envs.drawing.camera import CAMERAS, SUNS, TARGET, Camera, View, view_of


def test_views_use_every_camera_and_sun():
    views = [view_of(number) for number in range(300)]
    assert {view.camera for view in views} == set(CAMERAS)
    assert {view.light for view in views} == set(SUNS)
    assert view_of(0) == View()


def test_cameras_look_at_the_middle_and_suns_shine_from_the_left_behind_them():
    for number in range(40):
        camera = Camera(100, view_of(number))
        assert np.allclose(camera.project(TARGET[None])[0, :2], 50, atol=1e-3)
        assert 6.9 < np.linalg.norm(camera.eye - TARGET) < 8
        assert np.allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-5)
        x, y, z = camera.view.sun
        assert np.isclose(x * x + y * y + z * z, 1, atol=1e-5)
        assert max(x, y) < 0
        assert z > 0.5
