"""The names that a world file chooses: animals, textures, backgrounds and sizes, which captions can tell apart."""

from itertools import product
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import choose
from menagerie.envs.custom.cutouts import check_all_natural, natural_texture
from menagerie.envs.custom.source import Ingredient, Source
from menagerie.envs.slots import SIZES
from menagerie.envs.world import World

if TYPE_CHECKING:
    from menagerie.envs.drawing.cutout import Cutout


def chosen_textures(
    source: Source,
    table: dict[str, Any],
    base: World,
    own: dict[str, Ingredient],
    animals: tuple[str, ...],
    cutouts: dict[str, "Cutout"],
) -> tuple[str, ...]:
    """The names of the world's textures; where its cut-outs have their own colours, the one word for them."""
    if not any(cutout.natural for cutout in cutouts.values()):
        return chosen_names(source, table, "textures", base.textures, own)
    check_all_natural(source, animals, cutouts)
    return natural_texture(source, table, base)


def chosen_names(
    source: Source, table: dict[str, Any], plural: str, base: tuple[str, ...], own: dict[str, Ingredient]
) -> tuple[str, ...]:
    """The names that the world uses, in its order."""
    known = list(dict.fromkeys([*base, *own]))  # a cut-out may replace an animal of the world that it extends
    names = tuple(choose(f"{plural} in {source.path}", name, known) for name in table.get(plural, known))
    least = 1 if plural == "backgrounds" else 2
    if len(set(names)) != len(names) or len(names) < least:
        raise source.error(f"{plural} needs at least {least} different names, got {list(names)}")
    return names


def chosen_sizes(source: Source, table: dict[str, Any], base: tuple[str, ...]) -> tuple[str, ...]:
    """The sizes that the world has; none for an empty list."""
    sizes = tuple(choose(f"sizes in {source.path}", name, SIZES) for name in table.get("sizes", base))
    if len(set(sizes)) != len(sizes) or len(sizes) == 1:
        raise source.error(f"sizes needs two or more different ones of {', '.join(SIZES)}, or none; got {list(sizes)}")
    return sizes


def check_phrases(
    source: Source, animals: tuple[str, ...], textures: tuple[str, ...], sizes: tuple[str, ...] = ()
) -> None:
    """Raise unless each phrase "texture animal", with or without a size before it, is unambiguous."""
    for name in (*textures, *animals):
        if clashes := set(sizes) & set(name.split()):
            raise source.error(f"{name!r} has the word {min(clashes)!r}, which is a size of this world; rename it")
    seen: dict[str, tuple[str, str]] = {}
    for texture, animal in product(textures, animals):
        other = seen.setdefault(f"{texture} {animal}", (texture, animal))
        if other != (texture, animal):
            raise source.error(f"'{texture} {animal}' is {other} and {(texture, animal)}; rename one of them")
