"""Checks on rendered scenes: objects are visible, inside the frame and in their relation, and no two scenes look the
same.

`menagerie make` checks a sample of a split's scenes; `menagerie check-world` checks every scene of a world.
"""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int, UInt8

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.layouts import layout_of
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Scene
from menagerie.envs.world import World

LEAST_VISIBLE = 0.6  # least share of an object's silhouette that the others leave visible
# In layouts where objects hide others, nothing is refused: shares are kept, and splits leave out what shows too little.
# Of an object that shows less than this, the centre of what shows says little of its place.
LEAST_FOR_CENTRE = 0.5
CHUNK = 1024  # scenes


class RenderChecks:
    """Checks batches, and finds equal pictures of two scenes whose objects all show."""

    def __init__(self) -> None:
        self._scene_of: dict[bytes, str] = {}

    def problems(
        self,
        scenes: Sequence[Scene],
        images: UInt8[np.ndarray, "n h w 3"],
        masks: UInt8[np.ndarray, "n h w"],
        areas: Sequence[Sequence[int]],
    ) -> list[str]:
        """Describe each problem of each scene in a line.

        `areas` holds, for each object of each scene, the number of pixels that it covers without the others.
        """
        most = max((len(scene.objects) for scene in scenes), default=0)
        covered, centers = measure_masks(masks, most)
        border = np.concatenate([masks[:, 0], masks[:, -1], masks[:, :, 0], masks[:, :, -1]], 1)
        lines = []
        for n, scene in enumerate(scenes):
            visible = covered[n, : len(scene.objects)] / np.maximum(areas[n], 1)
            layout = layout_of(scene)
            hides = layout is not None and layout.hides
            for obj, share in zip(scene.objects, visible, strict=True):
                if not hides and share < LEAST_VISIBLE:
                    lines.append(f"{scene.key}: {share:.0%} of the {obj.animal} is visible")
            if border[n].any():
                lines.append(f"{scene.key}: the {scene.objects[int(border[n].max()) - 1].animal} is cut by the frame")
            for name, first, second in scene.relations:
                seen = not hides or min(visible[first], visible[second]) >= LEAST_FOR_CENTRE
                if seen and RELATIONS[name].axis < 2:  # which the image shows
                    ends = centers[n, [first, second], RELATIONS[name].axis]
                    if not ends[0] < ends[1]:
                        lines.append(f"{scene.key}: the masks' centres contradict {name}")
            if visible.all():  # else another scene may show the same, without the object that is hidden
                digest = hashlib.blake2b(images[n].tobytes(), digest_size=16).digest()
                if (other := self._scene_of.setdefault(digest, scene.key)) != scene.key:
                    lines.append(f"{scene.key}: the same picture as {other}")
        return lines

    def require(self, *batch) -> None:
        """Raise if a batch has `problems`; the message has the first one."""
        if lines := self.problems(*batch):
            raise UserError(
                f"{len(lines)} render checks failed; the first: {lines[0]}; change the world's slots, "
                "sizes or views, or leave the scene out"
            )


def measure_masks(
    masks: UInt8[np.ndarray, "n h w"], objects: int
) -> tuple[Int[np.ndarray, "n objects"], Float[np.ndarray, "n objects 2"]]:
    """Number of pixels and centre (row, column) of every instance; the centre is NaN if the instance has no pixels."""
    covered, centers = np.zeros((len(masks), objects), np.int64), np.full((len(masks), objects, 2), np.nan)
    for k in range(objects):
        mine = masks == k + 1
        covered[:, k] = mine.sum((1, 2))
        here, number = covered[:, k] > 0, np.maximum(covered[:, k], 1)
        for axis, along in enumerate((2, 1)):
            centers[here, k, axis] = (mine.sum(along) @ np.arange(masks.shape[axis + 1]) / number)[here]
    return covered, centers


def check_factorial(
    world: World, resolution: int, view: int, workers: int, report: Callable[[str, int, int], None]
) -> tuple[int, list[str]]:
    """Render every scene of one or two animals in a view; return their number, and a line for each problem."""
    from menagerie.envs.render.row import renderer_of

    scenes, checks, problems = list(world.factorial((view,))), RenderChecks(), []
    with scratch_folder() as cache:
        renderer = renderer_of(world, resolution, cache, workers)
        renderer.prepare(scenes, lambda done, total: report("factors", done, total))
        for start in range(0, len(scenes), CHUNK):
            chunk = scenes[start : start + CHUNK]
            problems += checks.problems(chunk, *renderer.render(chunk), renderer.areas(chunk))
            report("scenes", start + len(chunk), len(scenes))
    return len(scenes), problems
