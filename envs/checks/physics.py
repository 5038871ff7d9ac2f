"""Settles animals on the ground and checks that slots keep them apart, with pybullet.

    menagerie physics            # checks the committed poses, and any two animals in the slots of each relation
    menagerie physics --write    # settles all animals anew and writes the poses

Renderers read only the table of poses (`envs/drawing/poses.json`), so that a machine without pybullet
builds the same atlas.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path

import numpy as np

from menagerie.envs import catalog
from menagerie.envs.catalog import load_animal
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.drawing.placement import UPRIGHT, RestPose, read_poses, write_poses
from menagerie.envs.relations import RELATIONS
from menagerie.envs.shapes.mesh import animal_mesh
from menagerie.envs.slots import SLOTS, Slot, facings

CELLS = 48  # of a body's mesh: convex parts need no more
DROP = 0.01  # metres above the ground
SECONDS, RATE = 2.0, 240
TOLERANCE = (2.0, 0.01)  # degrees and metres, between a stored pose and one settled again
SAFE = 15.0  # degrees; an animal that tips further has fallen over


@dataclass(frozen=True)
class Config:
    """Settle animals and look for contacts."""

    write: bool = False
    """Write the settled poses to envs/drawing/poses.json; otherwise compare with those in the file."""
    animals: tuple[str, ...] = ()
    """Names of animals; if empty, all of them."""


@contextlib.contextmanager
def simulation() -> Iterator[object]:
    """Yield pybullet, connected to a new simulation that has a ground plane."""
    try:
        with silence():
            import pybullet
            from pybullet_utils.bullet_client import BulletClient

            bullet = BulletClient(pybullet.DIRECT)  # disconnects when it is dropped
    except ImportError as error:
        raise UserError("physics needs pybullet, which has wheels up to Python 3.11: pip install pybullet") from error
    bullet.setGravity(0, 0, -9.81)
    bullet.setTimeStep(1 / RATE)
    plane = bullet.createCollisionShape(bullet.GEOM_PLANE)
    bullet.changeDynamics(bullet.createMultiBody(0, plane), -1, lateralFriction=1.0)
    yield bullet


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what C code prints inside this context."""
    kept = [os.dup(stream) for stream in (1, 2)]
    with open(os.devnull, "wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    try:
        yield
    finally:
        for stream, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, stream)
            os.close(descriptor)


def solid_animal(name: str):
    """Return the animal as a trimesh, in metres, standing at the origin."""
    import trimesh

    mesh = animal_mesh(load_animal(name), CELLS)
    return trimesh.Trimesh((mesh.vertices - mesh.origin) * mesh.scale, mesh.faces)


def convex_parts(bullet, name: str, folder: Path) -> Path:
    """Return the path of an OBJ file of the animal's convex parts (V-HACD), which is written if it is missing."""
    path = folder / f"{name.replace(' ', '_')}.obj"
    if not path.exists():
        whole = folder / "whole.obj"
        solid_animal(name).export(whole)
        with silence():
            bullet.vhacd(str(whole), str(path), str(folder / "log.txt"), resolution=50_000, maxNumVerticesPerCH=24)
    return path


def add(bullet, path: Path, scale: float = 1.0, mass: float = 0.0, center: Sequence[float] = (0, 0, 0)) -> int:
    """Add a body made of the convex parts in an OBJ file, and return its number; a body of mass 0 doesn't move."""
    shape = bullet.createCollisionShape(bullet.GEOM_MESH, fileName=str(path), meshScale=[scale] * 3)
    return bullet.createMultiBody(mass, shape, baseInertialFramePosition=center)


def settle(bullet, name: str, folder: Path) -> RestPose:
    """Drop an animal from just above the ground, upright, and let it come to rest.

    An animal that hovers doesn't touch the ground and stays as it was modelled.
    """
    if load_animal(name).hover > 0:
        return UPRIGHT
    mesh = solid_animal(name)
    center = mesh.center_mass
    body = add(bullet, convex_parts(bullet, name, folder), mass=1.0, center=center)
    bullet.changeDynamics(body, -1, lateralFriction=1.0, rollingFriction=0.02, spinningFriction=0.02)
    # Bullet's base position is the centre of mass.
    bullet.resetBasePositionAndOrientation(body, center + np.array([0, 0, DROP]), (0, 0, 0, 1))
    for _ in range(int(SECONDS * RATE)):
        bullet.stepSimulation()
    _, turn = bullet.getBasePositionAndOrientation(body)
    bullet.removeBody(body)
    roll, pitch, _ = (round(float(angle), 2) for angle in np.degrees(bullet.getEulerFromQuaternion(turn)))
    # Convex parts keep a margin to the ground; the height is that of the body itself.
    lowest = (mesh.vertices @ RestPose(roll, pitch).rotation.T)[:, 2].min()
    return RestPose(roll, pitch, round(-float(lowest), 4))


def closest(bullet, first: int, second: int, slots: tuple[Slot, Slot]) -> float:
    """Return the least distance in metres of two bodies in two slots, over the extremes of shifts and yaws."""
    x, y, _ = np.asarray(slots[1].position) - np.asarray(slots[0].position)
    least = 9.0
    extremes = ([yaw + part * slot.yaw_range for yaw in slot.yaws for part in (-1, 0, 1)] for slot in slots)
    for yaws in product(*extremes):
        for body, slot, yaw, sign in zip((first, second), slots, yaws, (1, -1), strict=True):
            shift = np.array([sign * np.sign(x), sign * np.sign(y), 0]) * (*slot.shift_range, 0)
            turn = bullet.getQuaternionFromEuler((0, 0, np.radians(yaw)))
            bullet.resetBasePositionAndOrientation(body, np.asarray(slot.position) + shift, turn)
        for contact in bullet.getClosestPoints(first, second, least):
            least = min(least, contact[8])
    return least


def contacts(bullet, names: Sequence[str], folder: Path) -> dict[str, float]:
    """Return the least distance in metres between two animals for each relation; the key names the relation and the two
    nearest animals."""
    least = {}
    yaws = {place: tuple(yaw for slot in facings(place) for yaw in SLOTS[slot].yaws) for place in SLOTS}
    for relation, its in RELATIONS.items():
        slots = tuple(replace(SLOTS[place], yaws=yaws[place]) for place in its.slots)
        bodies = {
            (name, k): add(bullet, convex_parts(bullet, name, folder), slot.widest)
            for name in names
            for k, slot in enumerate(slots)
        }
        distances = {
            f"{relation}: {first}, {second}": closest(bullet, bodies[first, 0], bodies[second, 1], slots)
            for first, second in permutations(names, 2)
        }
        nearest = min(distances, key=distances.__getitem__)
        least[nearest] = distances[nearest]
        for body in bodies.values():
            bullet.removeBody(body)
    return least


def pose_problems(stored: dict[str, RestPose], settled: dict[str, RestPose]) -> list[str]:
    """Describe, in a line each, the animals that have fallen over, and those whose stored pose is missing or isn't the
    settled one."""
    lines = []
    for name, pose in settled.items():
        angle = np.degrees(np.arccos(np.clip(pose.rotation[2, 2], -1, 1)))
        if angle > SAFE:
            lines.append(f"{name} falls over: it comes to rest tilted by {angle:.0f} degrees")
        if name not in stored:
            lines.append(f"{name} has no stored pose; run menagerie physics --write")
            continue
        turned = stored[name].rotation.T @ pose.rotation
        apart = np.degrees(np.arccos(np.clip((np.trace(turned) - 1) / 2, -1, 1)))
        if apart > TOLERANCE[0] or abs(stored[name].lift - pose.lift) > TOLERANCE[1]:
            lines.append(f"{name} settles elsewhere: {pose}, stored {stored[name]}; run menagerie physics --write")
    return lines


def run(config: Config) -> int:
    """Settle the animals, write or compare their poses, and look for contacts; returns 1 if something is wrong."""
    names = config.animals or catalog.names("animals")
    with scratch_folder() as folder, simulation() as bullet:
        settled = {}
        for name in names:
            settled[name] = settle(bullet, name, folder)
            print(f"{name:<16} {settled[name]}", flush=True)
        if config.write:
            write_poses(read_poses() | settled)
        problems = pose_problems(read_poses(), settled)
        for pair, distance in (contacts(bullet, names, folder) if len(names) > 1 else {}).items():
            print(f"nearest in {pair}: {distance:.3f} m")
            if distance <= 0:
                problems.append(f"contact in {pair}")
    print("\n".join(problems) or "every animal stands, none touches another")
    return int(bool(problems))
