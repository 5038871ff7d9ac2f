"""A cut-out in a scene, as a flat upright billboard: its surface, its shadow, and the contact shadow at its feet."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from menagerie.envs.drawing.camera import Camera
from menagerie.envs.drawing.cutout import LUMINANCE, Cutout, CutoutPhoto
from menagerie.envs.drawing.placement import pose_in_slot
from menagerie.envs.drawing.raster import EMPTY, Samples
from menagerie.envs.drawing.shading import Skin
from menagerie.envs.drawing.shadows import CENTER, REACH, TEXELS, ShadowMap, crop_map, light_axes, light_space
from menagerie.envs.shapes.vectors import normalize

FAINTEST = 1 / 255  # alpha below which nothing is drawn
CONTACT = 0.8  # darkness of the contact shadow, a share of the sun
CONTACT_REACH, CONTACT_HEIGHT = 0.13, 0.16  # metres: how far it reaches, and below which height parts cast it
ON_GROUND = 0.03  # metres: what is lower counts as touching the ground
# Share of a photograph's contrast that is kept on a texture: all of it would hide the texture in dark parts.
CONTRAST, BRIGHTEST = 0.7, 2.2
LEAN = 0.35  # how far the lit side turns up, so that a sun behind the camera lights it as it lights a body
FOOT = 0.15  # share of the height over which the ground darkens what stands on it
PROFILE = 64  # positions along the board's width at which contact is computed


@dataclass(frozen=True, eq=False)
class Billboard:
    """A cut-out photograph in the world, on a flat upright rectangle."""

    photograph: CutoutPhoto
    foot: Float32[np.ndarray, "3"]  # the middle of its lower edge, metres
    across: Float32[np.ndarray, "3"]  # unit vector to its right, seen from the camera
    width: float  # metres
    height: float
    scale: float  # of the slot
    flipped: bool

    @property
    def normal(self) -> Float32[np.ndarray, "3"]:
        """Unit vector from the board to the camera's side."""
        return np.array([self.across[1], -self.across[0], 0], np.float32)

    @property
    def corners(self) -> Float32[np.ndarray, "4 3"]:
        """The four corners in world coordinates: lower left, lower right, upper left, upper right."""
        return np.stack([self.points(np.float32(x), np.float32(y)) for y in (0, 1) for x in (-0.5, 0.5)])

    def points(self, right: Float32[np.ndarray, "*n"], up: Float32[np.ndarray, "*n"]) -> Float32[np.ndarray, "*n 3"]:
        """Return world points at shares of the width (from the middle) and of the height (from the board's lower
        edge)."""
        rise = np.array([0, 0, self.height], np.float32)
        return self.foot + right[..., None] * self.across * np.float32(self.width) + up[..., None] * rise

    def lookup(
        self, right: Float32[np.ndarray, "*n"], up: Float32[np.ndarray, "*n"], spacing: float
    ) -> Float32[np.ndarray, "*n 4"]:
        """Return the photograph's colours times alpha, and alpha, at shares of its width (from the middle) and of its
        height (from its lower edge). Neighbouring points are `spacing` metres apart."""
        side = -right if self.flipped else right
        per_metre = self.photograph.size[0] / self.width
        return self.photograph.lookup(side + np.float32(0.5), up, spacing * per_metre)


def make_billboard(cutout: Cutout, name: str, slot: str, view: int, size: str = "") -> Billboard:
    """Return the board of a cut-out in a slot in a view."""
    pose = pose_in_slot(f"{name} cut-out", slot, view, size)  # no built-in animal has this name, so no tilt applies
    photograph = cutout.photograph_for(name, view)
    width, height = (side * pose.scale for side in cutout.metres(photograph))
    turn = np.radians(cutout.stand(pose).yaw)
    x, y, z = pose.position
    return Billboard(
        photograph,
        np.array([x, y, z + cutout.hover * pose.scale], np.float32),
        np.array([np.cos(turn), np.sin(turn), 0], np.float32),
        width,
        height,
        pose.scale,
        cutout.faces_left(pose),
    )


def trace_billboard(camera: Camera, board: Billboard, side: int) -> tuple[Samples, Float32[np.ndarray, "n 3"]]:
    """Project a board into a camera whose pixels have `side` x `side` samples. Returns each sample in a window of whole
    pixels around the board, and the photograph's linear colours there."""
    screen = camera.project(board.corners)
    low, high = screen[:, :2].min(0) / side, screen[:, :2].max(0) / side
    left, top = (int(edge) for edge in np.clip(np.floor(low), 0, camera.size // side - 1))
    right, bottom = (int(edge) for edge in np.clip(np.ceil(high), 1, camera.size // side))
    right_axis, up_axis, forward = camera.axes
    columns, rows = np.meshgrid(np.arange(left * side, right * side), np.arange(top * side, bottom * side))
    x, y = ((index + 0.5 - camera.size / 2) / camera.focal for index in (columns, rows))
    rays = (forward + x[..., None] * right_axis - y[..., None] * up_axis).astype(np.float32)  # 1 m along the view axis
    depth = ((board.foot - camera.eye) @ board.normal / (rays @ board.normal)).astype(np.float32)
    world = camera.eye + rays * depth[..., None]
    share, up = (
        (world - board.foot) @ board.across / np.float32(board.width),
        (world[..., 2] - board.foot[2]) / board.height,
    )
    found = board.lookup(share, up.astype(np.float32), float(depth.mean()) / camera.focal)
    alpha = np.where(found[..., 3] < FAINTEST, 0, found[..., 3]).astype(np.float32)
    colors = found[..., :3] / np.maximum(found[..., 3:], np.float32(FAINTEST))
    # Metres on the photographed object, before scaling and mirroring.
    body = np.stack([share * board.width * (-1 if board.flipped else 1), np.zeros_like(up), up * board.height], -1)
    body, world = (body / board.scale).astype(np.float32).reshape(-1, 3), world.reshape(-1, 3)
    near_ground = np.clip(body[:, 2] * board.scale / board.height / FOOT, 0, 1)  # the ground darkens the lower part
    samples = Samples(
        rows.reshape(-1),
        columns.reshape(-1),
        depth.reshape(-1),
        body,
        world,
        np.broadcast_to(normalize(board.normal + np.array([0, 0, LEAN], np.float32)), world.shape).astype(np.float32),
        normalize(camera.eye - world),
        (np.float32(0.7) + np.float32(0.3) * near_ground).astype(np.float32),
        alpha.reshape(-1),
    )
    return samples, colors.reshape(-1, 3)


def matte_skin(colors: Float32[np.ndarray, "n 3"]) -> Skin:
    """Return a surface of these linear colours, without highlights."""
    none = np.zeros(len(colors), np.float32)
    return Skin(colors.astype(np.float32), none, none)


def brightness(board: Billboard, colors: Float32[np.ndarray, "n 3"]) -> Float32[np.ndarray, " n"]:
    """Return the luminance of colours relative to the photograph's mean, with reduced contrast."""
    share = np.maximum(colors @ LUMINANCE, 0) / np.float32(board.photograph.luminance)
    return np.clip(share ** np.float32(CONTRAST), 0, BRIGHTEST).astype(np.float32)


def billboard_shadow(board: Billboard, sun: Float32[np.ndarray, "3"]) -> ShadowMap:
    """Return the board's shadow map."""
    corners = light_space(board.corners, sun)
    low = np.maximum(np.floor(corners[:, :2].min(0)), 0).astype(int)
    high = np.minimum(np.ceil(corners[:, :2].max(0)), TEXELS).astype(int)
    columns, rows = np.meshgrid(np.arange(low[0], high[0]) + 0.5, np.arange(low[1], high[1]) + 0.5)
    start, along, rise = corners[0], corners[1] - corners[0], corners[2] - corners[0]
    offset = np.stack([columns - start[0], rows - start[1]], -1)
    share, up = np.moveaxis(offset @ np.linalg.inv(np.stack([along[:2], rise[:2]])), -1, 0).astype(np.float32)
    alpha = board.lookup(share - np.float32(0.5), up, 2 * REACH / TEXELS)[..., 3]
    depth = start[2] + share * along[2] + up * rise[2]
    return crop_map(np.where(alpha >= 0.5, depth, EMPTY).astype(np.float32), int(low[1]), int(low[0]))


def contact(
    board: Billboard, light_points: Float32[np.ndarray, "*n 3"], sun: Float32[np.ndarray, "3"]
) -> Float32[np.ndarray, "*n"]:
    """Return the share of the sun that the contact shadow at the board's feet leaves on ground points (in light
    space)."""
    if board.foot[2] > 3 * CONTACT_HEIGHT:
        return np.ones(light_points.shape[:-1], np.float32)
    turned = np.concatenate([(light_points[..., :2] / TEXELS - 0.5) * 2 * REACH, light_points[..., 2:]], -1)
    away = turned @ light_axes(sun) + CENTER - board.foot * np.array([1, 1, 0], np.float32)
    right, toward = away @ board.across / np.float32(board.width), away @ board.normal
    near = (np.abs(away[..., 2]) < ON_GROUND) & (np.abs(toward) < 3 * CONTACT_REACH) & (np.abs(right) < 0.75)
    dark = np.interp(right[near], (np.arange(PROFILE) + 0.5) / PROFILE * 1.5 - 0.75, feet(board))
    shares = np.ones(near.shape, np.float32)
    shares[near] = 1 - CONTACT * dark * np.exp(-((toward[near] / CONTACT_REACH) ** 2))
    return shares


def feet(board: Billboard) -> Float32[np.ndarray, " places"]:
    """Return how near the board comes to the ground, 0..1 (1: on the ground) and smoothed, at `PROFILE` positions along
    its width and a quarter of the width beyond on both sides."""
    middle = (np.arange(PROFILE) + 0.5) / PROFILE * 1.5 - 0.75
    rows = np.linspace(0, CONTACT_HEIGHT, 12)
    right, above = np.meshgrid(middle.astype(np.float32), (rows / board.height).astype(np.float32))
    alpha = board.lookup(right, above, board.width * 1.5 / PROFILE)[..., 3]
    nearness = np.exp(-(rows + board.foot[2]) / (CONTACT_HEIGHT / 3))[:, None]
    reach = CONTACT_REACH / 2 / (board.width * 1.5) * PROFILE / 2  # places
    steps = np.arange(-int(3 * reach) - 1, int(3 * reach) + 2)
    kernel = np.exp(-((steps / reach) ** 2))
    spread = np.convolve((alpha * nearness).max(0), kernel / kernel.sum())
    return spread[len(steps) // 2 :][:PROFILE].astype(np.float32)
