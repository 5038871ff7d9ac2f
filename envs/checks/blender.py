"""Scenes rendered from our meshes by Blender's Cycles, only to compare the speed."""

import json
import subprocess
from collections.abc import Sequence

import numpy as np

from menagerie.envs.checks.external_renderers import camera_matrix, painted, thing_matrix
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.drawing.camera import FIELD_OF_VIEW, Camera, view_of
from menagerie.envs.scene import Scene

# Run by Blender's own Python. Only rendering is timed, not loading.
SCRIPT = """
import bpy, json, mathutils, sys, time
job = json.load(open(sys.argv[-1]))
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.render.engine = "CYCLES"
scene.cycles.device, scene.cycles.samples = "CPU", job["samples"]
scene.cycles.use_denoising = False
scene.render.resolution_x = scene.render.resolution_y = job["size"]
scene.render.use_persistent_data = True
camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
camera.data.angle = job["angle"]
sun = bpy.data.objects.new("sun", bpy.data.lights.new("sun", "SUN"))
sun.data.energy = 3
ground = bpy.data.meshes.new("ground")
ground.from_pydata([(-12, -12, 0), (12, -12, 0), (12, 12, 0), (-12, 12, 0)], [], [(0, 1, 2, 3)])
for thing in (camera, sun, bpy.data.objects.new("ground", ground)):
    scene.collection.objects.link(thing)
scene.camera, scene.world = camera, bpy.data.worlds.new("sky")
meshes = {}
for name, (vertices, faces) in job["meshes"].items():
    meshes[name] = bpy.data.meshes.new(name)
    meshes[name].from_pydata(vertices, [], faces)
wall = cpu = 0.0
for frame in job["scenes"]:
    camera.matrix_world = mathutils.Matrix(frame["camera"])
    sun.rotation_mode = "QUATERNION"
    sun.rotation_quaternion = mathutils.Vector(frame["sun"]).to_track_quat("Z", "Y")
    put = []
    for name, matrix, color in frame["things"]:
        mesh = meshes[name].copy()
        material = bpy.data.materials.new("skin")
        material.use_nodes = True
        material.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = (*color, 1)
        mesh.materials.append(material)
        thing = bpy.data.objects.new(name, mesh)
        thing.matrix_world = mathutils.Matrix(matrix)
        scene.collection.objects.link(thing)
        put.append(thing)
    start, used = time.perf_counter(), time.process_time()
    bpy.ops.render.render()
    wall, cpu = wall + time.perf_counter() - start, cpu + time.process_time() - used
    for thing in put:
        bpy.data.objects.remove(thing)
print("TIMED", wall / len(job["scenes"]), cpu / len(job["scenes"]))
"""


def render_cycles(scenes: Sequence[Scene], size: int, samples: int) -> tuple[float, float]:
    """Render the scenes in one run of `blender`; returns wall-clock and CPU seconds per image."""
    meshes, frames = {}, []
    for scene in scenes:
        view = view_of(scene.view)
        things = []
        for thing in scene.things:
            mesh, matrix = painted(thing.animal, thing.texture), thing_matrix(thing, scene.view)
            meshes[thing.animal] = (mesh.vertices.tolist(), mesh.faces.tolist())
            color = (mesh.visual.vertex_colors[:, :3].mean(0) / 255) ** 2.2
            things.append((thing.animal, matrix.tolist(), color.tolist()))
        frames.append(
            {"camera": camera_matrix(Camera(size, view)).tolist(), "sun": view.sun.tolist(), "things": things}
        )
    job = {"size": size, "samples": samples, "angle": float(np.radians(FIELD_OF_VIEW)), "meshes": meshes}
    with scratch_folder() as folder:
        script, data = folder / "script.py", folder / "job.json"
        script.write_text(SCRIPT)
        data.write_text(json.dumps(job | {"scenes": frames}))
        command = ["blender", "-b", "--factory-startup", "--python-exit-code", "1", "--python", str(script), "--"]
        result = subprocess.run([*command, str(data)], capture_output=True, text=True, check=False)
    line = next((line for line in result.stdout.splitlines() if line.startswith("TIMED")), None)
    if line is None:
        raise UserError(f"blender could not render: {(result.stderr or result.stdout).strip().splitlines()[-1:]}")
    wall, cpu = map(float, line.split()[1:])
    return wall, cpu
