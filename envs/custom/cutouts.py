"""Animals of a world file that are one or several cut-out photographs: `cutouts = ["lion.png", "lion-2.png"]`."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from menagerie.envs.catalog import check_free, load, register
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_bytes
from menagerie.envs.core.validation import Several, build_dataclass
from menagerie.envs.custom.source import HOVER, SIZE, Ingredient, WorldFile
from menagerie.envs.world import NAME, World

if TYPE_CHECKING:
    from menagerie.envs.drawing.cutout import Cutout

FOLDER = "cutouts"  # in the catalog
OWN_COLORS = "own"
NATURAL = "natural"  # the name of the texture if objects have only their own colours
MOST_PHOTOGRAPHS = 1000  # of one animal


@dataclass(frozen=True)
class CutoutEntry:
    """The fields of a cut-out in a world file."""

    cutouts: Annotated[tuple[str, ...], Several(1)] = ()
    size: Annotated[float, SIZE] = 1.4
    hover: Annotated[float, HOVER] = 0.0
    mirrored: bool = True
    texture: Literal["", "own"] = ""


def make_cutout(source: WorldFile, name: str, entry: dict[str, Any]) -> Ingredient:
    """Check an entry's fields and read its photographs. The cut-out may have the name of a built-in animal, which it
    replaces.

    It is kept in this process under its digest, as two worlds may have different cut-outs of the same name.
    """
    from menagerie.envs.drawing.cutout import Cutout, read_photograph

    values = build_dataclass(CutoutEntry, entry, f"{source.path}: cut-out {name!r}")
    files = source.files("animal", name, values.cutouts, MOST_PHOTOGRAPHS)
    contents = [read_bytes(path) for path in files]
    photographs = tuple(read_photograph(path, content) for path, content in zip(files, contents, strict=True))
    natural = values.texture == OWN_COLORS
    size, hover = (entry.get(key, getattr(values, key)) for key in ("size", "hover"))  # as written: 1 isn't 1.0
    settings = (name, size, hover, values.mirrored, natural)
    hashed = hashlib.sha256(repr(settings).encode())
    for content in contents:
        hashed.update(hashlib.sha256(content).digest())
    digest, cutout = hashed.hexdigest()[:16], Cutout(photographs, values.size, values.hover, values.mirrored, natural)
    register(FOLDER, digest, digest, cutout)
    return Ingredient(name, digest, cutout, is_cutout=True)


def load_cutout(digest: str) -> "Cutout":
    """Return the cut-out with this digest, which a loaded world has registered."""
    return load(FOLDER, digest)


def cutouts_of(base: World, defined: Mapping[str, Ingredient], animals: Iterable[str]) -> dict[str, str]:
    """Return the digests of the cut-outs among a world's animals, by name: those that the world defines and those of
    the world that it extends."""
    digests = {name: digest for name, digest in base.cutouts if name not in defined}
    digests |= {name: ingredient.digest for name, ingredient in defined.items() if ingredient.is_cutout}
    return {name: digests[name] for name in animals if name in digests}


def natural_texture(source: WorldFile, given: tuple[str, ...] | None, base: World) -> tuple[str, ...]:
    """Return the one word that captions use in place of a texture's name for objects in their own colours, as a
    tuple."""
    words = given if given is not None else base.textures if len(base.textures) == 1 else (NATURAL,)
    if len(words) != 1 or not NAME.fullmatch(words[0]):
        raise source.error(
            f'some cut-outs have texture = "{OWN_COLORS}", so that their pictures are the same in all textures; '
            f'give the world one word for it, textures = ["{NATURAL}"], or leave texture out; got {list(words)}'
        )
    check_free("textures", words[0])
    return words


def check_sharp(what: object, cutout: "Cutout", resolution: int) -> None:
    """Raise if a photograph has too few pixels for a resolution; `what` names it in the message."""
    needed = cutout.pixels_at(resolution)
    for photograph in cutout.photographs:
        if (longest := max(photograph.size)) < needed:
            raise UserError(
                f"{what} has {longest} pixels along its longest side, too few for scenes of {resolution}; it needs "
                f"{needed:.0f}: use a larger picture or a smaller size"
            )
