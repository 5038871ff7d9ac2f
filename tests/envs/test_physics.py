"""Committed poses are those of the simulation; slots keep animals apart."""

import pytest

from menagerie.envs.catalog import names
from menagerie.envs.checks import physics
from menagerie.envs.drawing.placement import RestPose, read_poses
from menagerie.envs.relations import RELATIONS
from menagerie.envs.slots import SLOTS, Slot

pytest.importorskip("pybullet", reason="pybullet has no wheel for this Python")


@pytest.fixture
def bullet():
    with physics.simulation() as bullet:
        yield bullet


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder of the convex parts of animals."""
    return tmp_path_factory.mktemp("parts")


def test_stored_poses_are_the_settled_ones(bullet, parts):
    settled = {name: physics.settle(bullet, name, parts) for name in names("animals")}
    assert physics.pose_problems(read_poses(), settled) == []


def test_no_two_animals_touch_in_any_pair_of_slots(bullet, parts):
    distances = physics.contacts(bullet, names("animals"), parts)
    assert len(distances) == len(RELATIONS)
    assert min(distances.values()) > 0.03


def test_top_heavy_body_is_reported_to_fall(bullet, tmp_path, monkeypatch):
    import trimesh

    foot, head = trimesh.creation.box((0.05, 0.05, 1.0)), trimesh.creation.box((0.8, 0.3, 0.3))
    leaning = trimesh.util.concatenate([foot.apply_translation((0, 0, 0.5)), head.apply_translation((0.4, 0, 1.0))])
    monkeypatch.setattr(physics, "solid_animal", lambda name: leaning)
    settled = physics.settle(bullet, "cat", tmp_path)
    assert any("falls over" in line for line in physics.pose_problems({"cat": settled}, {"cat": settled}))


def test_pose_other_than_the_stored_one_is_reported():
    assert physics.pose_problems({"cat": RestPose()}, {"cat": RestPose(pitch=5.0)})
    assert physics.pose_problems({"cat": RestPose()}, {"cat": RestPose(lift=0.05)})
    assert "no stored pose" in physics.pose_problems({}, {"cat": RestPose()})[0]


def test_contact_is_detected_where_slots_are_too_near(bullet, parts, monkeypatch):
    monkeypatch.setitem(SLOTS, "right", Slot((-0.6, 0.0, 0.0), 0.9, (-153.0,)))
    assert min(physics.contacts(bullet, ("cat", "pig"), parts).values()) <= 0
