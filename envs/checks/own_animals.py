"""Reports the limits of a world's own animals: each measure, its bound, and which side to change."""

from pathlib import Path

from menagerie.envs.custom.limits import advice, extents, measures, stand_of
from menagerie.envs.custom.world_file import own_animals
from menagerie.envs.shapes.mesh import animal_mesh


def report_limits(world: str) -> bool:
    """Print the limits of the animals that a world file defines; returns whether all are kept.

    A built-in world has none. The world need not load: it doesn't where an animal misses a required limit.
    """
    kept = True
    for name, animal in own_animals(Path(world)).items():
        mesh = animal_mesh(animal)
        print(f"{name}: length {{:.2f}} m, width {{:.2f}} m, height {{:.2f}} m".format(*extents(mesh)))
        for measure in measures(name, animal):
            kept &= measure.kept
            missed = "" if measure.kept else "  MISSED"
            value = f"{measure.value:8.2f} {measure.unit:<14} {measure.bound:<7} ({measure.place})"
            print(f"  {measure.name:<28} {value}{missed}")
            if not measure.kept:
                print(f"    {advice(measure, animal.size, mesh, stand_of(animal))}")
    return kept
