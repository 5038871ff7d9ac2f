"""Problems of rendered scenes are reported with the scene's key."""

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Object, Scene
from menagerie.generators.storage.scene_checks import RenderChecks, measure_masks


def scene(view=0):
    return Scene("city", (Object("cat", "red", "left"), Object("pig", "white", "right")), view)


def picture(left=(4, 6), right=(12, 6), size=4):
    """An image and a mask with two squares at (column, row)."""
    mask = np.zeros((20, 20), np.uint8)
    for instance, (x, y) in enumerate((left, right), start=1):
        mask[y : y + size, x : x + size] = instance
    image = np.repeat(mask[..., None], 3, 2) * 90
    return image, mask


def problems(image, mask, areas=(16, 16), of=None):
    return RenderChecks().problems([of or scene()], image[None], mask[None], [areas])


def test_a_good_scene_passes():
    assert problems(*picture()) == []


def test_a_hidden_object_is_named():
    (line,) = problems(*picture(), areas=(16, 40))
    assert line == "white pig: 40% of the pig is visible".replace("white pig", scene().key)
    image, mask = picture()
    assert "0% of the cat" in problems(image, np.where(mask == 1, 0, mask))[0]


def test_an_object_cut_by_the_frame_is_named():
    assert "the pig is cut by the frame" in problems(*picture(right=(16, 6)))[0]


def test_a_relation_that_the_masks_contradict_is_named():
    assert "contradict left/right" in problems(*picture(left=(12, 6), right=(4, 6)))[0]
    stacked = Scene("city", (Object("cat", "red", "above"), Object("pig", "white", "under")))
    assert problems(*picture(left=(8, 3), right=(8, 12)), of=stacked) == []
    assert "contradict above/under" in problems(*picture(left=(8, 12), right=(8, 3)), of=stacked)[0]


def test_two_scenes_with_one_picture_are_named():
    checks, (image, mask) = RenderChecks(), picture()
    assert checks.problems([scene(0)], image[None], mask[None], [(16, 16)]) == []
    (line,) = checks.problems([scene(1)], image[None], mask[None], [(16, 16)])
    assert line == f"{scene(1).key}: the same picture as {scene(0).key}"


def test_failing_scenes_stop_a_store():
    image, mask = picture(right=(16, 6))
    with pytest.raises(UserError, match="1 render checks failed; the first: red cat@left"):
        RenderChecks().require([scene()], image[None], mask[None], [(16, 16)])


def test_centres_are_means_of_pixels():
    _, mask = picture()
    covered, centers = measure_masks(mask[None], 3)
    assert covered.tolist() == [[16, 16, 0]]
    assert centers[0, :2].tolist() == [[7.5, 5.5], [7.5, 13.5]]
    assert np.isnan(centers[0, 2]).all()


def scene_in_layout(first, second):
    return Scene("city", (Object("cat", "red", first), Object("pig", "white", second)))


def test_in_layouts_that_hide_objects_any_share_may_show():
    behind, beside = scene_in_layout("front left", "near left"), scene_in_layout("front left", "front right")
    image, mask = picture(left=(4, 6), right=(6, 5))
    assert problems(image, mask, areas=(16, 200), of=behind) == []
    assert "8% of the pig is visible" in problems(image, mask, areas=(16, 200), of=beside)[0]
    none = np.where(mask == 2, 0, mask)
    checks = RenderChecks()
    for texture in ("white", "red"):  # with nothing of the pig in it
        scene = Scene("city", (Object("cat", "red", "front left"), Object("pig", texture, "near left")))
        assert checks.problems([scene], image[None], none[None], [(16, 16)]) == []


def test_relations_in_layouts_are_checked_by_what_shows():
    swapped = picture(left=(12, 6), right=(4, 6))
    assert "contradict left/right" in problems(*swapped, of=scene_in_layout("front left", "front right"))[0]
    assert "contradict left/right" in problems(*swapped, of=scene_in_layout("back left", "front right"))[0]
    assert problems(*swapped, areas=(16, 40), of=scene_in_layout("back left", "front right")) == [], (
        "a part says little"
    )
    assert problems(*swapped, of=scene_in_layout("front left", "back left")) == [], "in front, wherever the centres are"
    upper = scene_in_layout("high left", "front left")  # objects are sorted by place: the pig comes first
    assert problems(*picture(left=(6, 12), right=(6, 3)), of=upper) == []
    assert "contradict above/under" in problems(*picture(left=(6, 3), right=(6, 12)), of=upper)[0]
