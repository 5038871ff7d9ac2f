"""Renders every scene of a world in memory and checks it and its spatial caption."""

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.render.renderer import Pictures, Renderer
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.captions.relations import PREDICATES
from menagerie.generators.captions.templates import caption
from menagerie.generators.storage.scene_checks import AXIS_OF_RELATION, RenderChecks, measure

CHUNK = 1024  # scenes

# Predicate -> where its subject lies relative to its object: axis of the image, and sign.
DIRECTIONS = {
    predicate: (AXIS_OF_RELATION[relation], direction)
    for relation, both in PREDICATES.items()
    for predicate, direction in zip(both, (-1, 1), strict=True)
}


def check_factorial(
    world: World, resolution: int, view: int, workers: int, report: Callable[[str, int, int], None]
) -> tuple[int, list[str]]:
    """The number of scenes, and one line for each problem of any of them."""
    scenes, checks, problems = list(world.factorial((view,))), RenderChecks(), []
    with scratch_folder() as cache:
        renderer = Renderer(world, resolution, cache, workers)
        renderer.prepare(scenes, lambda done, total: report("factors", done, total))
        remaining, done = iter(scenes), 0
        while chunk := list(islice(remaining, CHUNK)):
            pictures = renderer.render(chunk)
            problems += checks.problems(chunk, *pictures, renderer.areas(chunk))
            problems += false_captions(chunk, pictures)
            done += len(chunk)
            report("scenes", done, len(scenes))
    return len(scenes), problems


def false_captions(scenes: Sequence[Scene], pictures: Pictures) -> list[str]:
    """Spatial captions that the centres of the masks contradict."""
    centers = measure(pictures.masks, 2)[1]
    problems = []
    for scene, center in zip(scenes, centers, strict=True):
        if scene.relation not in PREDICATES:
            continue
        text, graph = caption(scene, 0, "relation")
        (edge,) = graph.edges
        phrases = [phrase(thing) for thing in scene.things]
        subject, other = (center[phrases.index(graph.nodes[end])] for end in (edge.subject, edge.object))
        axis, direction = DIRECTIONS[edge.predicate]
        if np.sign(subject[axis] - other[axis]) != direction:
            problems.append(f"{scene.key}: {text!r} contradicts the masks")
    return problems
