"""Objects that a world file takes from a user's Python files: animals, and the functions of textures and backgrounds.

Such a file is executed when a world that names it is loaded. Only world files can name one. Split files and packed
splits hold names and pixels, and opening them loads no world.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import own_module
from menagerie.envs.core.validation import check_number, convert
from menagerie.envs.custom.source import HOVER, SIZE
from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.mesh import animal_mesh, is_closed

CONSTANT = "ANIMAL"


def python_function(path: Path, named: str, call: Callable[[Callable], np.ndarray], shape: tuple[int, ...]) -> Callable:
    """Return the function of a Python file that is `named` file.py:name, after `call` has called it once for colours of
    this shape, so that a mistake is reported before anything is rendered."""
    function = getattr(own_module(path), named.partition(":")[2], None)
    if not callable(function):
        raise UserError(f"{path} has no function for {named!r}; it is written file.py:name")
    try:
        colors = np.asarray(call(function))
    except (Exception, SystemExit) as error:
        raise UserError(f"the function in {path} fails ({type(error).__name__}: {error})") from error
    if colors.shape != shape:
        raise UserError(f"the function in {path} gives colours of shape {colors.shape}, it needs {shape}")
    if not np.isfinite(colors).all() or colors.min() < 0 or colors.max() > 1:
        raise UserError(f"the function in {path} gives colours outside 0..1: {colors.min():g} to {colors.max():g}")
    return function


def python_animal(path: Path) -> Animal:
    """Return the animal in a Python file of the same form as those in envs/animals; its body is built and checked."""
    import trimesh

    animal = getattr(own_module(path), CONSTANT, None)
    if not isinstance(animal, Animal):
        raise UserError(f"{path} has no animal: it must set {CONSTANT} = Animal(parts, size) (docs/worlds.md)")
    for field, limits in {"size": SIZE, "hover": HOVER}.items():
        what = f"the {field} of the animal in {path}"
        check_number(what, convert(what, getattr(animal, field), float), limits)
    try:
        mesh = animal_mesh(animal)
        animal.tags(mesh.vertices, 0.4 * mesh.cell)
        paint = np.asarray(animal.paint(mesh.vertices)) if animal.paint else np.ones(len(mesh.vertices))
    except (Exception, SystemExit) as error:
        raise UserError(f"the animal in {path} can't be built ({type(error).__name__}: {error})") from error
    if paint.shape != (len(mesh.vertices),) or not (np.isfinite(paint) & (paint >= 0) & (paint <= 1)).all():
        raise UserError(f"paint of the animal in {path} must give one number from 0 to 1 for each point")
    solid = trimesh.Trimesh(mesh.vertices, mesh.faces)
    if not np.isfinite(mesh.vertices).all() or not is_closed(solid.faces) or solid.volume <= 0:
        raise UserError(
            f"the body of the animal in {path} is open; give its parts greater radii, or its relief a smaller height"
        )
    return animal
