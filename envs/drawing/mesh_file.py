"""Animals read from a user's mesh files."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.shapes.mesh import Mesh, is_closed

MOST_FACES = 200_000
LARGEST = 1e6  # units along the longest side
ARCHIVES = {"zip", "gz", "bz2", "xz", "tar"}  # compressed files, which may be small and unpack to enormous ones


@dataclass(frozen=True, eq=False)
class MeshAnimal:
    """An animal given as a mesh. It is used like `menagerie.envs.shapes.animal.Animal`, but has no paint and no tagged
    parts."""

    vertices: Float32[np.ndarray, "v 3"]
    faces: Int32[np.ndarray, "f 3"]
    normals: Float32[np.ndarray, "v 3"]
    size: float
    hover: float = 0.0
    paint: None = None

    def tags(self, points: Float32[np.ndarray, "n 3"], margin: float) -> UInt8[np.ndarray, " n"]:
        """Tag every point as skin."""
        return np.zeros(len(points), np.uint8)

    def mesh(self) -> Mesh:
        """Make the mesh; once placed its lowest point is at height 0, plus the hover."""
        low, high = self.vertices.min(0), self.vertices.max(0)
        longest = float((high - low).max())
        scale = self.size / longest
        middle = (low + high) / 2
        origin = np.array([middle[0], middle[1], low[2] - self.hover / scale], np.float32)
        height = (self.vertices[:, 2] - low[2]) / (0.15 * longest)
        ambient = (0.7 + 0.3 * np.clip(height, 0, 1)).astype(np.float32)
        return Mesh(self.vertices, self.faces, self.normals, ambient, scale, origin, longest / 100)


def read_mesh(path: Path, size: float, hover: float, turn: tuple[float, float, float]) -> MeshAnimal:
    """Read the animal in a mesh file of any format that trimesh reads, and turn it by degrees about x, y and z.

    Raises unless the mesh is closed, because the renderer draws front faces only and a shadow needs a solid body.
    """
    import trimesh

    mesh = load_mesh(path)
    check_mesh(path, mesh)
    mesh.vertices -= mesh.bounds.mean(0)  # in double precision: single is too coarse far from the origin
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    solid = solid_of(mesh)
    if solid is None:
        raise UserError(
            f"{path} is open: {len(mesh.faces)} faces don't enclose a volume; close its holes in a mesh editor, "
            "or export its convex hull (trimesh: mesh.convex_hull)"
        )
    for angle, axis in zip(turn, np.eye(3), strict=True):
        solid.apply_transform(trimesh.transformations.rotation_matrix(np.radians(angle), axis))
    vertices, normals = (np.asarray(part, np.float32) for part in (solid.vertices, solid.vertex_normals))
    return MeshAnimal(vertices, np.asarray(solid.faces, np.int32), normals, size, hover)


def solid_of(mesh):
    """A trimesh wound outward; None if it is open. Bodies that touch along an edge each get that edge, with normals of
    their own; those that touch along faces can't, and must all be wound alike in the file."""
    import trimesh

    ways = [mesh]
    if not mesh.is_watertight:  # four faces may meet at an edge
        ways = [trimesh.util.concatenate(mesh.split(only_watertight=False, repair=False)), mesh]
    trimesh.repair.fix_normals(ways[0], multibody=True)
    solid = next((way for way in ways if is_closed(way.faces) and way.volume != 0), None)
    if solid is not None and solid.volume < 0:
        solid.invert()
    return solid


def load_mesh(path: Path):
    """Load the file as one trimesh, from memory, so that the file can't refer to others."""
    import trimesh

    kind = path.suffix.lower().lstrip(".")
    if kind in ARCHIVES:
        raise UserError(f"{path} is an archive; unpack it and name the mesh")
    try:
        return trimesh.load(
            io.BytesIO(path.read_bytes()), file_type=kind, force="mesh", skip_materials=True, process=False
        )
    except Exception as error:  # each format's reader raises its own type
        raise UserError(
            f"{path} can't be read as a mesh ({type(error).__name__}: {error}); "
            "a file that refers to others (.gltf) must be exported as one (.glb, .ply, .stl, .obj)"
        ) from error


def check_mesh(path: Path, mesh) -> None:
    """Raise if a mesh can't be drawn."""
    faces = getattr(mesh, "faces", ())
    if not len(faces):
        raise UserError(f"{path} holds no faces; an animal needs a surface")
    if len(faces) > MOST_FACES:
        raise UserError(f"{path} has {len(faces)} faces, more than {MOST_FACES}; simplify it in a mesh editor")
    if faces.min() < 0 or faces.max() >= len(mesh.vertices):
        raise UserError(f"{path} has faces that refer to vertices it doesn't have; export it anew")
    if not np.isfinite(mesh.vertices).all():
        raise UserError(f"{path} has vertices that are not finite numbers; export it anew")
    extents = np.ptp(mesh.vertices, axis=0)
    if np.abs(mesh.vertices).max() > LARGEST:
        raise UserError(f"{path} reaches {np.abs(mesh.vertices).max():.3g} units from its origin; move and scale it")
    if extents.min() <= 1e-6 * extents.max():
        raise UserError(f"{path} is flat; an animal needs a volume")
