"""What an audit renders itself, once for all splits of a world."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from menagerie.envs.core.files import scratch_folder
from menagerie.envs.custom.cutouts import natural_names
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.world import World
from menagerie.generators.audit.colors import Reference, reference_colors
from menagerie.generators.audit.held import Held

MOST_WORKERS = 8


@dataclass
class Renderings:
    """The renderers of an audit, with the colours that things have by them."""

    folder: Path
    """Of their atlases: none is a store's, which may be what is wrong."""
    workers: int = 1
    """Processes that render."""
    _made: dict[tuple[World, int], tuple[Renderer, Reference | None]] = field(default_factory=dict)
    _places: dict[tuple[World, int], Renderer] = field(default_factory=dict)
    _held: dict[tuple[World, int], Held] = field(default_factory=dict)

    def of(self, world: World, resolution: int) -> tuple[Renderer, Reference | None]:
        """A world's renderer, and its reference colours unless its things have colours of their own."""
        if (world, resolution) not in self._made:
            renderer = Renderer(world, resolution, self.folder, self.workers)
            reference = None if natural_names(world.cutouts) else reference_colors(world, renderer)
            self._made[world, resolution] = renderer, reference
        return self._made[world, resolution]

    def held(self, world: World, resolution: int) -> Held:
        """The rows of a world's shards that held in splits before."""
        return self._held.setdefault((world, resolution), Held())

    def on(self, world: World, resolution: int, background: str) -> Renderer:
        """A renderer of scenes on one background: few images take a fifth of the time, as what things look like on the
        world's other backgrounds isn't drawn."""
        alone = replace(world, backgrounds=(background,))
        if (alone, resolution) not in self._places:
            self._places[alone, resolution] = Renderer(alone, resolution, self.folder, self.workers)
        return self._places[alone, resolution]


@contextlib.contextmanager
def open_renderings(workers: int = 1) -> Iterator[Renderings]:
    """Renderings in a folder that is deleted at the end."""
    with scratch_folder() as folder:
        yield Renderings(folder, workers)


def at_once() -> int:
    """Processes that can render at once here."""
    return min(os.cpu_count() or 1, MOST_WORKERS)
