"""The folder of one world's splits at one resolution: split files, and the atlas of which their images are composed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers, writing
from menagerie.envs.core.identity import generator, json_value
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.reading import Inaccessible
from menagerie.envs.core.validation import SIDE, check_number
from menagerie.envs.render import image_identity
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.generators.splits.recipe import SplitRecipe, recorded_fields
from menagerie.generators.storage.columns import make_columns
from menagerie.generators.storage.pictures import CHUNK, atlas_of, too_hidden
from menagerie.generators.storage.records import single_objects
from menagerie.generators.storage.scene_checks import RenderChecks
from menagerie.generators.storage.split_file import (
    LEFT_OUT,
    Split,
    check_recipe,
    read_split,
    recipe_version,
    split_name,
    write_split,
)
from menagerie.generators.vocabulary import Vocabulary

if TYPE_CHECKING:
    from menagerie.envs.render.renderer import Renderer
    from menagerie.envs.render.row import RowRenderer

    AnyRenderer = Renderer | RowRenderer

CHECKED = 2000  # scenes of a split that are rendered and checked when it is made
Planned = Mapping[str, list[Scene]]
Progress = Callable[[str, int, int], None]


class SplitFolder:
    """The splits of one world at one resolution, in a folder of their own below `root`."""

    def __init__(self, root: Path, world: World, resolution: int) -> None:
        check_number("resolution", resolution, SIDE)
        self.root, self.world, self.resolution = root, world, resolution
        self.identity = image_identity(world, resolution)
        self.folder = root / f"{world.name}-{resolution}px-{self.identity}"
        self.vocabulary = Vocabulary.of(world)

    def renderer(self, workers: int = 1) -> "AnyRenderer":
        """The renderer of the folder's scenes, whose atlas all splits below `root` share."""
        from menagerie.envs.render.row import renderer_of

        return renderer_of(self.world, self.resolution, atlas_of(self.folder, self.identity), workers)

    def describe_needed(self, scenes: Sequence[Scene]) -> str:
        """Say how many distinct scenes and atlas entries there are, and how many entries the atlas lacks, without
        rendering any."""
        from menagerie.envs.render.row import renderer_of

        entries = renderer_of(self.world, self.resolution).missing(scenes)
        building = self.renderer().missing(scenes)
        return f"{len(set(scenes))} scenes; {len(entries)} atlas entries, {len(building)} of them to build"

    def make(
        self,
        recipe: SplitRecipe,
        workers: int = 1,
        progress: Progress | None = None,
        name: str = "",
        plan: Callable[[], Planned] | None = None,
    ) -> Path:
        """Write the split of a recipe, and build what the atlas lacks for it; return its path. A file that is there is
        kept if it is undamaged and of this recipe.

        Calls `progress` with a stage, the number done and the total. `name` replaces the file's name, and `plan` what
        gives its scenes.
        """
        path = self.folder / (name or split_name(recipe))
        renderer = self.renderer(workers)
        if (split := self.open_kept(path, recipe)) is None:
            planned = (plan or recipe.subsets)()
            if self.world.row:  # raises for scenes that a row can't show, before anything is written
                renderer.prepare([scene for scenes in planned.values() for scene in scenes])
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".lock"):
                clear_leftovers(self.folder, alone=True)
                if (split := self.open_kept(path, recipe)) is None:
                    self.write(path, recipe, planned, renderer, progress)
                    return path
        objects = (single_objects(records.columns, split.vocabulary) for records in split.subsets.values())
        self.prepare([obj for its in objects for obj in its], renderer, progress)
        return path

    def open_kept(self, path: Path, recipe: SplitRecipe) -> Split | None:
        """The split in a file if it is undamaged and of this recipe; else None."""
        try:
            check_recipe(split := read_split(path), recipe, self.identity)
            return split
        except Inaccessible:
            raise
        except UserError:
            return None

    def write(
        self, path: Path, recipe: SplitRecipe, planned: Planned, renderer: "AnyRenderer", progress: Progress | None
    ) -> None:
        """Write a split file of planned subsets, without the scenes that hide too much. Scenes of it are rendered and
        checked."""
        scenes = recipe.with_counterfactuals(planned)
        self.prepare(scenes, renderer, progress)
        check_some(scenes, recipe.seed, renderer)
        left = recipe.leave_out(planned, too_hidden(renderer, planned, recipe.least_visible))
        kept = drop_scenes(planned, left)
        subsets = {name: make_columns(name, scenes, recipe, self.vocabulary) for name, scenes in kept.items()}
        whole = json_value(recorded_fields(recipe) | ({LEFT_OUT: left} if left else {}) | recipe.measure(kept))
        images = self.identity, self.resolution
        write_split(path, whole, self.vocabulary, images, recipe_version(recipe), subsets)

    def prepare(self, scenes: Sequence[Scene], renderer: "AnyRenderer", progress: Progress | None = None) -> None:
        """Build what the atlas lacks for some scenes."""
        report = progress or (lambda stage, done, total: None)
        renderer.prepare(scenes, lambda done, total: report("factors", done, total))


def check_some(scenes: Sequence[Scene], seed: int, renderer: "AnyRenderer") -> None:
    """Render some scenes, drawn by seed; raise if an object is hidden or cut off, or if two look alike."""
    drawn = generator(seed, "checked scenes").permutation(len(scenes))[:CHECKED]
    chosen, checks = [scenes[i] for i in sorted(drawn)], RenderChecks()
    for start in range(0, len(chosen), CHUNK):
        part = chosen[start : start + CHUNK]
        checks.require(part, *renderer.render(part), renderer.areas(part))


def drop_scenes(planned: Planned, left: Mapping[str, Sequence[int]]) -> dict[str, list[Scene]]:
    """The planned subsets without the scenes whose numbers are in `left`."""
    dropped = {name: set(numbers) for name, numbers in left.items()}
    return {
        name: [scene for i, scene in enumerate(scenes) if i not in dropped.get(name, ())]
        for name, scenes in planned.items()
    }
