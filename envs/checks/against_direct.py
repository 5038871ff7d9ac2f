"""Checks the compositor against the direct renderer on random scenes.

    menagerie check-renderer --scenes 100 --resolution 224 --seed 0
    menagerie check-renderer --layout overlap --resolution 64
    menagerie check-renderer --external --scenes 50

Renders every scene both ways and requires that they agree, that no animal touches the frame, and that 75 % of each
stays visible, unless the layout lets objects hide others. 100 scenes at 224 pixels take about half a minute on one
core. With `--layout`, scenes show two to six animals: what the others hide must be the same both ways, and stated
relations must hold. With `--external`, external renderers draw the same scenes instead, and their silhouettes and depth
must agree with ours. The animals that a world file defines are measured first, against the limits of docs/worlds.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import FIRST_SEED, SIDE, Range
from menagerie.envs.layouts import LAYOUTS
from menagerie.envs.relations import RELATIONS

if TYPE_CHECKING:
    import numpy as np

    from menagerie.envs.scene import Scene
    from menagerie.envs.world import World

WHOLE_MEAN = 55.0  # dB, peak signal to noise over whole images
TOUCHED_MEAN = 45.0  # dB, over the pixels that objects or their shadows touch
TOUCHED_WORST = 38.0
# In multi-object scenes objects are smaller, and more of their pixels are edges: at 64 pixels two small animals that
# float before the arena's rows of people have 38.0 dB.
TOUCHED_WORST_IN_LAYOUTS = 36.0
MASKS_AGREE = 0.98  # share of the touched pixels on which the two masks must agree
UNCOVERED = 0.75  # least share of an object that the others leave visible, in layouts where they don't hide it
# Most that the renderers' shares of an object that others hide may differ: of a small object's 40 pixels some are
# edges.
HIDDEN_APART, HIDDEN_APART_MEAN = 0.15, 0.03  # the mean is over the worst of each scene


@dataclass(frozen=True)
class Config:
    """Compare the compositor with the direct renderer; exit 1 if they disagree."""

    scenes: Annotated[int, Range(1, 100_000)] = 100
    """Number of random scenes, of one and of two animals or, with --layout, of two to six, over views 0 to 3."""
    layout: Literal["", "apart", "rows", "overlap"] = ""
    """Layout of scenes of two to six animals; empty: single animals and pairs."""
    resolution: Annotated[int, SIDE] = 224
    """Pixels along a scene's side."""
    seed: Annotated[int, FIRST_SEED] = 0
    """Seed with which the scenes are drawn."""
    world: str = "pug"
    """World to draw from: a name, or a TOML file, whose own animals are measured against the limits first."""
    external: bool = False
    """Compare with external renderers (pyrender, TinyRenderer) instead of the direct renderer."""


class SceneComparison(NamedTuple):
    """Measures of one scene."""

    key: str
    whole: float  # dB
    touched: float  # dB
    masks_differ: float  # share of the touched pixels
    cut: bool  # an animal touches the frame
    uncovered: tuple[float, ...]  # share of each object that the others leave visible
    hidden_apart: float  # greatest difference to the shares that are kept of composed scenes
    false_relations: int  # stated relations that the objects' centers contradict


def psnr(squared_error: "np.ndarray") -> float:
    """Return the peak signal-to-noise ratio of uint8 images in dB, at most 99, from their squared error."""
    import numpy as np

    return float(min(99.0, 10 * np.log10(255**2 / max(float(squared_error.mean()), 1e-9))))


def compare_with_direct(
    scene: "Scene", image: "np.ndarray", mask: "np.ndarray", areas: Sequence[int], world: "World"
) -> SceneComparison:
    """Compare a composed image and mask of `scene` with the direct renderer's. `areas` are the numbers of pixels that
    each object covers without the others."""
    import numpy as np

    from menagerie.envs.checks.direct import render_directly
    from menagerie.envs.render.occlusion import hidden_shares

    direct = render_directly(scene, len(image), world)
    hidden = hidden_shares([areas], mask[None])[0, : len(areas)]
    error = (image.astype(np.float64) - direct.image) ** 2
    border = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
    return SceneComparison(
        scene.key,
        psnr(error),
        psnr(error[direct.touched]),
        float((mask != direct.mask).sum() / direct.touched.sum()),
        bool(border.any()),
        direct.uncovered,
        float(np.abs(hidden - (1 - np.array(direct.uncovered))).max()),
        count_contradictions(scene, direct.centers),
    )


def count_contradictions(scene: "Scene", centers: Sequence[Sequence[float]]) -> int:
    """Count the stated relations whose first object isn't the left, upper or foremost one by its center."""
    axes = ((RELATIONS[name].axis, first, second) for name, first, second in scene.relations)
    return sum(centers[first][axis] >= centers[second][axis] for axis, first, second in axes)


def report_limits(world: str, layouts: bool) -> bool:
    """Print the limits of the animals that a world file defines, or with `layouts` those in layouts; returns whether
    all are kept.

    A built-in world has no such animals. The file is read even if it can't be loaded as a world, as when an animal
    misses a required limit.
    """
    import numpy as np

    from menagerie.envs.custom.limits import IN_LAYOUTS, IN_PAIRS
    from menagerie.envs.custom.world_file import own_animals
    from menagerie.envs.shapes.mesh import animal_mesh

    kept = True
    for name, animal in own_animals(Path(world)).items():
        mesh = animal_mesh(animal)
        length, width, height = np.ptp(mesh.vertices, axis=0) * mesh.scale  # x from nose to tail, y, z
        print(f"{name}: length {length:.2f} m, width {width:.2f} m, height {height:.2f} m")
        for limit in IN_LAYOUTS if layouts else IN_PAIRS:
            measured = limit.measure(name, animal)
            kept &= measured.kept
            value = f"{measured.value:8.2f} {limit.unit:<14} {limit.bound:<7} ({measured.place})"
            print(f"  {limit.name:<28} {value}{'' if measured.kept else '  MISSED'}")
            if not measured.kept:
                print(f"    {measured.advice}{', or keep it out of layouts' if layouts else ''}")
    return kept


def direct_report(results: Sequence[SceneComparison], layout: str) -> Iterator[tuple[str, float, float]]:
    """Yield a name, a value and the least value that is allowed."""
    import numpy as np

    hides = bool(layout) and LAYOUTS[layout].hides
    worst = TOUCHED_WORST_IN_LAYOUTS if layout else TOUCHED_WORST
    yield "whole image, mean dB", float(np.mean([r.whole for r in results])), WHOLE_MEAN
    yield "touched pixels, mean dB", float(np.mean([r.touched for r in results])), TOUCHED_MEAN
    yield "touched pixels, worst dB", min(r.touched for r in results), worst
    yield "masks agree, worst share of touched", 1 - max(r.masks_differ for r in results), MASKS_AGREE
    yield "scenes with no animal at the border, share", 1 - float(np.mean([r.cut for r in results])), 1.0
    yield "object uncovered, least share", min(min(r.uncovered) for r in results), 0.0 if hides else UNCOVERED
    if layout:
        hidden = [result.hidden_apart for result in results]
        yield "hidden shares agree, 1 - worst difference", 1 - max(hidden), 1 - HIDDEN_APART
        yield "hidden shares agree, 1 - mean difference", 1 - float(np.mean(hidden)), 1 - HIDDEN_APART_MEAN
        yield "scenes whose relations hold, share", float(np.mean([not r.false_relations for r in results])), 1.0
    print("worst scene:", min(results, key=lambda result: result.touched).key)
    for result in results:
        if result.cut:
            print("at the border:", result.key)


def run(config: Config) -> int:
    """Print the limits of the world's own animals and the comparison; returns 1 if a bound is missed."""
    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.worlds import load_world, random_in_layout, random_scenes

    failed = not report_limits(config.world, bool(config.layout))
    world = load_world(config.world)
    if config.layout:
        scenes = random_in_layout(world, config.layout, config.scenes, config.seed)
    else:
        scenes = random_scenes(world, config.scenes, config.seed)
    if config.external and world.cutouts:
        raise UserError(f"{config.world} has cut-outs, which external renderers don't draw; leave out --external")
    renderer = Renderer(world, config.resolution)
    images, masks = renderer.render(scenes)
    if config.external:
        from menagerie.envs.checks.external_renderers import external_report

        rows = external_report(scenes, masks)
    else:
        pictures = zip(scenes, images, masks, renderer.areas(scenes), strict=True)
        rows = direct_report([compare_with_direct(*picture, world) for picture in pictures], config.layout)
    for name, value, least in rows:
        failed |= value < least
        print(f"{name:<44} {value:8.4f}  >= {least:g}{'  MISSED' if value < least else ''}")
    return int(failed)
