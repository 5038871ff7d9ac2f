"""Compares our silhouettes and depth with those of external renderers: pyrender and pybullet's TinyRenderer.

pyrender uses OpenGL, through EGL by default. Both renderers share only the meshes, the poses and the camera parameters
with ours, so silhouettes and depth agree only if our rasteriser, camera and compositor are correct. Colours and
lighting differ.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from menagerie.envs.catalog import load_animal, load_background, load_texture
from menagerie.envs.checks.physics import simulation
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.drawing.camera import FIELD_OF_VIEW, Camera, average, supersampling, view_of
from menagerie.envs.drawing.placement import pose_in_slot
from menagerie.envs.drawing.raster import trace
from menagerie.envs.drawing.shading import albedo
from menagerie.envs.drawing.shadows import light_axes
from menagerie.envs.render.renderables import EntryKey, camera, mesh_in_slot
from menagerie.envs.scene import Object, Scene
from menagerie.envs.shapes.mesh import animal_mesh

NEAR, FAR = 3.0, 14.0  # metres: holds everything but the sky
GROUND = 12.0  # metres, half the side of the ground plate
LEAST_OVERLAP = 0.97  # intersection over union of an object's masks
DEPTH_ERROR = 0.01  # share of the depth
# Least share of the common mask whose depth may differ by at most DEPTH_ERROR. The other samples lie on inner edges,
# where two renderers that round differently show a near leg or a far one.
LEAST_WITHIN = 0.999


class ExternalRendering(NamedTuple):
    """An external renderer's mask and depth of one scene."""

    mask: UInt8[np.ndarray, "h w"]  # 0 for the background, i + 1 for object i
    depth: Float32[np.ndarray, "h w"]  # metres along the view axis; 0 where there is nothing


@lru_cache(maxsize=256)
def textured_mesh(animal: str, texture: str):
    """Return the animal's mesh in metres at the origin, with its texture as vertex colours."""
    import trimesh

    kind = load_animal(animal)
    mesh = animal_mesh(kind)
    linear = albedo(mesh.vertices, kind.tags(mesh.vertices, 0.4 * mesh.cell), kind, mesh, load_texture(texture))
    colors = (255 * np.clip(linear, 0, 1) ** (1 / 2.2)).astype(np.uint8)
    vertices = (mesh.vertices - mesh.origin) * mesh.scale
    return trimesh.Trimesh(vertices, mesh.faces, vertex_colors=colors, process=False)


def object_matrix(obj: Object, view: int) -> Float32[np.ndarray, "4 4"]:
    """Return the 4 x 4 matrix that moves an object from the origin to its place in the world; both are in metres."""
    pose, matrix = pose_in_slot(obj.animal, obj.slot, view, obj.size), np.eye(4, dtype=np.float32)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation * pose.scale, pose.position
    return matrix


def camera_matrix(camera: Camera) -> np.ndarray:
    """Return the camera's 4 x 4 pose in OpenGL's axes: x right, y up, z backward."""
    right, up, forward = camera.axes
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = np.stack([right, up, -forward], 1), camera.eye
    return matrix


class Pyrender:
    """Renders with pyrender; only `picture` draws the sun's shadows."""

    def __init__(self, size: int) -> None:
        import trimesh

        os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
        try:
            import pyrender

            self._renderer = pyrender.OffscreenRenderer(size, size)
        except Exception as error:  # no package, no EGL, no driver: each raises its own type
            raise UserError(
                f"pyrender can't draw here ({type(error).__name__}: {error}); it needs libegl1 or PYOPENGL_PLATFORM"
            ) from error
        self.size, self._pyrender = size, pyrender
        plate = trimesh.creation.box((2 * GROUND, 2 * GROUND, 0.02)).apply_translation((0, 0, -0.01))
        self._ground = pyrender.Mesh.from_trimesh(plate)  # takes shadows, its top at height 0
        self._mesh = lru_cache(maxsize=256)(lambda *name: pyrender.Mesh.from_trimesh(textured_mesh(*name)))

    def _scene(self, scene: Scene):
        pyrender, view = self._pyrender, view_of(scene.view)
        camera, light = Camera(self.size, view), load_background(scene.background).light
        world = pyrender.Scene(bg_color=(*light.sky, 1.0), ambient_light=light.sky)
        lens = pyrender.PerspectiveCamera(np.radians(FIELD_OF_VIEW), NEAR, FAR, aspectRatio=1.0)
        world.add(lens, pose=camera_matrix(camera))
        pose = np.eye(4)
        pose[:3, :3] = light_axes(view.sun).T * np.array([1, -1, -1])  # right, up, and towards the sun
        world.add(pyrender.DirectionalLight(light.sun, 3.0), pose=pose)
        meshes = ((self._mesh(obj.animal, obj.texture), object_matrix(obj, scene.view)) for obj in scene.objects)
        return world, [world.add(mesh, pose=place) for mesh, place in meshes]

    def render(self, scene: Scene) -> ExternalRendering:
        """Render mask and depth of a scene without its background."""
        world, nodes = self._scene(scene)
        colors = {node: (index, 0, 0) for index, node in enumerate(nodes, start=1)}
        marked, depth = self._renderer.render(world, self._pyrender.RenderFlags.SEG, colors)
        return ExternalRendering(marked[..., 0], depth)

    def picture(self, scene: Scene) -> UInt8[np.ndarray, "h w 3"]:
        """Render the image alone, on a ground that takes shadows, as `studies/throughput.py` times it."""
        world, _ = self._scene(scene)
        world.add(self._ground)
        return self._renderer.render(world, self._pyrender.RenderFlags.SHADOWS_DIRECTIONAL)[0]

    def close(self) -> None:
        """Release the OpenGL context."""
        self._renderer.delete()


class TinyRenderer:
    """Renders with pybullet's software renderer, each object in the mean colour of its texture."""

    def __init__(self, size: int) -> None:
        self.size, self._open = size, contextlib.ExitStack()
        self._folder = self._open.enter_context(scratch_folder())
        self._bullet = self._open.enter_context(simulation())
        self._shape = lru_cache(maxsize=512)(self._new_shape)

    def _new_shape(self, animal: str, texture: str, scale: float) -> int:
        path, mesh = self._folder / f"{animal.replace(' ', '_')}.obj", textured_mesh(animal, texture)
        if not path.exists():
            mesh.export(path, include_color=False)
        color = mesh.visual.vertex_colors[:, :3].mean(0) / 255
        bullet = self._bullet
        return bullet.createVisualShape(
            bullet.GEOM_MESH, fileName=str(path), meshScale=[scale] * 3, rgbaColor=[*color, 1]
        )

    def _add(self, obj: Object, view: int) -> int:
        from scipy.spatial.transform import Rotation

        pose = pose_in_slot(obj.animal, obj.slot, view, obj.size)
        turn = Rotation.from_matrix(pose.rotation).as_quat()  # x, y, z, w, as Bullet takes them
        shape = self._shape(obj.animal, obj.texture, pose.scale)
        return self._bullet.createMultiBody(0, -1, shape, basePosition=pose.position, baseOrientation=turn)

    def render(self, scene: Scene) -> ExternalRendering:
        """Render mask and depth of a scene without its background."""
        bullet, camera = self._bullet, Camera(self.size, view_of(scene.view))
        bodies = [self._add(obj, scene.view) for obj in scene.objects]
        look = np.linalg.inv(camera_matrix(camera)).T.reshape(-1)
        # It samples pixels at a corner, not in the middle: move the image plane by half a pixel.
        edge, half = NEAR * np.tan(np.radians(FIELD_OF_VIEW) / 2), 1 / self.size
        low, high = edge * (half - 1), edge * (half + 1)
        lens = bullet.computeProjectionMatrix(low, high, low, high, NEAR, FAR)
        _, _, _, buffer, owner = bullet.getCameraImage(
            self.size, self.size, list(map(float, look)), lens, renderer=bullet.ER_TINY_RENDERER
        )
        shape = (self.size, self.size)
        owner, buffer = np.reshape(owner, shape), np.reshape(buffer, shape)
        mask = np.zeros(shape, np.uint8)
        for index, body in enumerate(bodies, start=1):
            mask[owner == body] = index
            bullet.removeBody(body)
        depth = np.where(mask > 0, 2 * FAR * NEAR / (FAR + NEAR - (2 * buffer - 1) * (FAR - NEAR)), 0)
        return ExternalRendering(mask, depth.astype(np.float32))

    def close(self) -> None:
        """Disconnect from pybullet."""
        self._open.close()


# Each takes the number of pixels along an image's side; close it after use.
EXTERNAL_RENDERERS: dict[str, Callable[[int], Pyrender | TinyRenderer]] = {"pyrender": Pyrender, "tiny": TinyRenderer}


class Agreement(NamedTuple):
    """How well an external renderer agrees with ours on one scene."""

    key: str
    overlap: float  # least intersection over union of the objects' masks
    within: float  # share of the common mask's samples whose depth agrees
    depth: float  # mean error there, as a share of the depth


def own_depth(scene: Scene, resolution: int) -> Float32[np.ndarray, "h w"]:
    """Return the depth in metres of every sample of our rasteriser; 0 where there is nothing."""
    view = camera(resolution, view_of(scene.view))
    depth = np.zeros((view.size, view.size), np.float32)
    for samples in trace([mesh_in_slot(EntryKey.of(obj, scene.view)) for obj in scene.objects], view):
        depth[samples.rows, samples.columns] = samples.depth
    return depth


def agreement(scene: Scene, mask: UInt8[np.ndarray, "h w"], external: ExternalRendering) -> Agreement:
    """Compare our composed mask of a scene with an external rendering at the resolution of our samples."""
    side = supersampling(len(mask))
    shares = [average((external.mask == k).astype(np.float32), side) for k in range(len(scene.objects) + 1)]
    theirs = np.argmax(shares, 0)
    overlaps = [
        ((mask == k) & (theirs == k)).sum() / max(((mask == k) | (theirs == k)).sum(), 1)
        for k in range(1, len(scene.objects) + 1)
    ]
    ours = own_depth(scene, len(mask))
    common = (ours > 0) & (external.mask > 0)
    error = (np.abs(ours - external.depth) / np.maximum(ours, 1e-6))[common]
    return Agreement(scene.key, float(min(overlaps)), float((error <= DEPTH_ERROR).mean()), float(error.mean()))


def compare_with_external(name: str, scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> list[Agreement]:
    """Return the agreement of the external renderer called `name` on each scene."""
    resolution = masks.shape[1]
    with closing(EXTERNAL_RENDERERS[name](resolution * supersampling(resolution))) as renderer:
        return [agreement(scene, mask, renderer.render(scene)) for scene, mask in zip(scenes, masks, strict=True)]


def external_report(scenes: Sequence[Scene], masks: UInt8[np.ndarray, "n h w"]) -> Iterator[tuple[str, float, float]]:
    """Yield, for all external renderers, a name, a value and the least value that is allowed."""
    for name in EXTERNAL_RENDERERS:
        results = compare_with_external(name, scenes, masks)
        worst, deepest = min(results, key=lambda a: a.overlap), min(results, key=lambda a: a.within)
        yield f"{name}: mask overlap, worst", worst.overlap, LEAST_OVERLAP
        yield f"{name}: share with a depth error below {DEPTH_ERROR:.0%}, worst", deepest.within, LEAST_WITHIN
        print(f"worst scenes: {worst.key}, {deepest.key}; mean depth error {np.mean([a.depth for a in results]):.4%}")
