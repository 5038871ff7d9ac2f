"""Renders the missing scenes of an image store in several tasks of a cluster.

A task writes its shards to the store's folder `parts`, named by a hash of scenes and codec. After all are written, they
are added to the index under the store's lock. So tasks never conflict with other writers, finished parts aren't
rendered again, and the store's files don't depend on the number of tasks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.image_store import SHARD_ROWS, ImageStore
from menagerie.generators.storage.scene_checks import RenderChecks
from menagerie.studies.cluster.jobs import Cluster
from menagerie.studies.cluster.tasks import Tasks, print_changes
from menagerie.studies.cluster.worker import Interruption

PARTS = "parts"


@dataclass(frozen=True)
class ShardPart:
    """A future shard: its scenes, and the file that a task writes."""

    file: Path
    scenes: tuple[Scene, ...]


@dataclass(frozen=True)
class RenderTask:
    """The shards that one task renders, and the store."""

    world: str
    resolution: int
    identity: str
    root: Path
    codec: str
    parts: tuple[ShardPart, ...]


def plan(store: ImageStore, scenes: Sequence[Scene], codec: str) -> list[ShardPart]:
    """List the shards that `ImageStore.add` would write for the missing scenes."""
    missing = store.missing([store.world.check(scene) for scene in scenes])
    batches = [tuple(missing[start : start + SHARD_ROWS]) for start in range(0, len(missing), SHARD_ROWS)]
    names = [hashlib.sha256("\n".join([codec, *(s.key for s in batch)]).encode()).hexdigest()[:16] for batch in batches]
    return [ShardPart(store.folder / PARTS / f"{name}.h5", batch) for name, batch in zip(names, batches, strict=True)]


def render_parts(task: RenderTask, interruption: Interruption) -> None:
    """Render the parts of a task that aren't written yet. Raise if the world or the renderer has changed."""
    store = ImageStore(task.root, load_world(task.world), task.resolution)
    if store.identity != task.identity:
        raise UserError("the world's files or the renderer changed since the task was submitted; submit it again")
    renderer, checks = store.renderer(workers=1), RenderChecks()
    for part in task.parts:
        if not part.file.exists():
            store.write_part(part.file, renderer, checks, list(part.scenes), task.codec)


def add_with_tasks(
    store: ImageStore,
    world: str,
    scenes: Sequence[Scene],
    cluster: Cluster,
    tasks: int,
    codec: str = "none",
) -> None:
    """Render the missing ones of `scenes`, all of the world called `world`, in up to `tasks` tasks; print the tasks'
    states.

    Raises if two scenes of one task look the same; scenes of different tasks aren't compared.
    """
    parts = plan(store, scenes, codec)
    waiting = [part for part in parts if not part.file.exists()]
    shares = [[waiting[i] for i in share] for share in np.array_split(np.arange(len(waiting)), tasks) if len(share)]
    arguments = {
        f"{share[0].file.stem}-{len(share)}": RenderTask(
            world, store.resolution, store.identity, store.root, codec, tuple(share)
        )
        for share in shares
    }
    if arguments:
        Tasks(
            cluster,
            store.folder / "cluster",
            render_parts,
            arguments,
            finished=lambda name: all(part.file.exists() for part in arguments[name].parts),
            label=lambda name: f"scenes from {arguments[name].parts[0].scenes[0].key}",
            at_once=tasks,
        ).run(lambda name: None, print_changes())
    store.adopt([(part.file, list(part.scenes)) for part in parts], codec)
    store.add(scenes, codec=codec)  # scenes of parts that another writer's shards kept from being added
