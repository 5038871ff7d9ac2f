"""Committed poses are those of the simulation; slots keep animals apart."""

import pytest

from menagerie.envs.catalog import names
from menagerie.envs.checks import physics
from menagerie.envs.drawing.placement import Settled, read_poses
from menagerie.envs.relations import RELATIONS
from menagerie.envs.slots import SLOTS, Slot

pytest.importorskip("pybullet", reason="pybullet has no wheel for this Python")


@pytest.fixture
def bullet():
    with physics.simulation() as bullet:
        yield bullet


def test_stored_poses_are_the_settled_ones(bullet, tmp_path):
    settled = {name: physics.settle(bullet, name, tmp_path) for name in names("animals")}
    assert physics.pose_problems(read_poses(), settled) == []


def test_no_two_animals_touch_in_any_pair_of_slots(bullet, tmp_path):
    distances = physics.contacts(bullet, names("animals"), tmp_path)
    assert len(distances) == len(RELATIONS)
    assert min(distances.values()) > 0.03


def test_top_heavy_body_is_reported_to_fall(bullet, tmp_path, monkeypatch):
    import trimesh

    foot, head = trimesh.creation.box((0.05, 0.05, 1.0)), trimesh.creation.box((0.8, 0.3, 0.3))
    leaning = trimesh.util.concatenate([foot.apply_translation((0, 0, 0.5)), head.apply_translation((0.4, 0, 1.0))])
    monkeypatch.setattr(physics, "solid", lambda name: leaning)
    settled = physics.settle(bullet, "cat", tmp_path)
    assert any("falls over" in line for line in physics.pose_problems({"cat": settled}, {"cat": settled}))


def test_pose_other_than_the_stored_one_is_reported():
    assert physics.pose_problems({"cat": Settled()}, {"cat": Settled(pitch=5.0)})
    assert physics.pose_problems({"cat": Settled()}, {"cat": Settled(lift=0.05)})
    assert "no stored pose" in physics.pose_problems({}, {"cat": Settled()})[0]


def test_contact_is_detected_where_slots_are_too_near(bullet, tmp_path, monkeypatch):
    monkeypatch.setitem(SLOTS, "right", Slot((-0.6, 0.0, 0.0), 0.9, (-153.0,)))
    assert min(physics.contacts(bullet, ("cat", "pig"), tmp_path).values()) <= 0
