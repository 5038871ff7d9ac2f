"""An animal of a world file that is one or several cut-out photographs: `cutouts = ["lion.png", "lion-2.png"]`."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from menagerie.envs.catalog import check_free, load, register
from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.reading import read_bytes
from menagerie.envs.custom.source import Ingredient, Source, check_upright
from menagerie.envs.groups import NAME
from menagerie.envs.world import World

if TYPE_CHECKING:
    from menagerie.envs.photographs.cutout import Cutout

FOLDER, KIND = "photographs", "cut-out"  # in the catalog
FIELDS: dict[str, Any] = {"cutouts": [], "size": 1.4, "hover": 0.0, "mirrored": True, "texture": ""}
OWN_COLORS = "own"
NATURAL = "natural"  # the texture's name where there are only own colours
MOST_PHOTOGRAPHS = 1000  # of one animal


def is_cutout(kind: str, entry: Mapping[str, Any]) -> bool:
    """Whether an entry of a world file defines a cut-out."""
    return kind == "animal" and "cutouts" in entry


def make_cutout(source: Source, name: str, entry: dict[str, Any]) -> Ingredient:
    """Check an entry's fields and read its photographs. It may have a built-in animal's name, which it replaces."""
    from menagerie.envs.photographs.cutout import Cutout
    from menagerie.envs.photographs.identity import sources
    from menagerie.envs.photographs.picture import read_photograph

    for key in entry:
        choose(f"field of cut-out {name!r} in {source.path}", key, FIELDS)
    values = FIELDS | entry
    files = source.files("animal", name, "cutouts", values["cutouts"], MOST_PHOTOGRAPHS)
    check_upright(files)
    if not isinstance(values["mirrored"], bool):
        raise source.error(f"mirrored of {name!r} must be true or false, got {values['mirrored']!r}")
    if values["texture"] not in ("", OWN_COLORS):
        raise source.error(f'texture of {name!r} can only be "{OWN_COLORS}", its natural colours')
    size, hover = (source.number(name, key, values[key]) for key in ("size", "hover"))
    contents = [read_bytes(path) for path in files]
    photographs = tuple(read_photograph(path, content) for path, content in zip(files, contents, strict=True))
    natural = values["texture"] == OWN_COLORS
    settings = (sources(), name, size, hover, values["mirrored"], natural)
    digest = hashlib.sha256(repr(settings).encode())
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    cutout = Cutout(photographs, float(size), float(hover), values["mirrored"], natural)
    return Ingredient(name, digest.hexdigest()[:16], cutout, is_cutout=True)


def register_cutout(ingredient: Ingredient) -> None:
    """Keep a cut-out in this process, under its digest: two worlds may have different ones of one name."""
    register(FOLDER, KIND, ingredient.digest, ingredient.digest, ingredient.value)


def load_cutout(digest: str) -> "Cutout":
    """The cut-out that a loaded world names."""
    return load(FOLDER, KIND, digest)


def all_cutouts(base: World, own: Mapping[str, Ingredient], animals: tuple[str, ...]) -> dict[str, "Cutout"]:
    """By name, the cut-outs among a world's animals: its own, and those of the world that it extends."""
    inherited = {name: load_cutout(digest) for name, digest in base.cutouts if name not in own}
    given = {name: ingredient.value for name, ingredient in own.items() if ingredient.is_cutout}
    return {name: cutout for name, cutout in (inherited | given).items() if name in animals}


def natural_names(cutouts: Iterable[tuple[str, str]]) -> list[str]:
    """Those of a loaded world's cut-outs, name and hash, that have their own colours."""
    return [name for name, digest in cutouts if load_cutout(digest).natural]


def natural_texture(source: Source, table: Mapping[str, Any], base: World) -> tuple[str, ...]:
    """The one word for things in their own colours, which captions use like a texture's name."""
    default = [base.textures[0]] if len(base.textures) == 1 else [NATURAL]
    words = table.get("textures", default)
    if len(words) != 1 or not NAME.fullmatch(words[0]):
        raise source.error(
            f'some cut-outs have texture = "{OWN_COLORS}", so that their pictures are the same in all textures; '
            f'give the world one word for it, textures = ["{NATURAL}"], or leave texture out; got {words}'
        )
    check_free("textures", "texture", words[0])
    return tuple(words)


def check_all_natural(source: Source, animals: tuple[str, ...], cutouts: Mapping[str, "Cutout"]) -> None:
    """Raise where some of a world's animals have their own colours and others don't."""
    for name in animals:
        if name not in cutouts or not cutouts[name].natural:
            raise source.error(
                f'{name!r} must be a cut-out with texture = "{OWN_COLORS}", as others of this world are, or be '
                "left out of its animals"
            )


def check_sharp(world: str, name: str, cutout: "Cutout", resolution: int) -> None:
    """Raise for a photograph that has too few pixels for a resolution."""
    needed = cutout.pixels_at(resolution)
    for photograph in cutout.photographs:
        if (longest := max(photograph.size)) < needed:
            raise UserError(
                f"{world}: a cut-out of {name!r} has {longest} pixels along its longest side, too few for "
                f"scenes of {resolution}; it needs {needed:.0f}: use a larger picture or a smaller size"
            )
