"""Whether captions can be parsed back in the words of their world."""

from functools import lru_cache
from itertools import product

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Scene, Thing
from menagerie.envs.slots import RELATIONS
from menagerie.envs.world import World
from menagerie.generators.captions.templates import build_caption, predicate_for
from menagerie.generators.captions.wording import Phrasing, Template
from menagerie.generators.parsers.world_grammar import parse


@lru_cache(maxsize=64)
def check_phrasings(template: Template, world: World) -> None:
    """Raise for a phrasing that has a word of the world: its captions would say more than their scenes."""
    size = world.sizes[0] if world.sizes else ""
    textures = (world.textures * 2)[:2]  # of things in their own colours there is one
    names = tuple(zip(world.animals[:2], textures, strict=True))
    for text, background, slots in product(template.phrasings, world.backgrounds, RELATIONS):
        things = [Thing(*name, slot, size) for name, slot in zip(names, slots, strict=True)]
        scene = Scene(background, tuple(things))
        made = build_caption(Phrasing(text, template), scene, things, predicate_for(scene, things, template))
        if parse(made.text, world) != made.graph:
            raise UserError(
                f"the phrasing {text!r} gives {made.text!r}, which can't be parsed back: use no name of the "
                f"world {world.name!r} besides the things and the place, and no 'is' or 'are' after the things"
            )
