"""The worlds of a study: which animals and which photographs are trained on and which are tested."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.identity import generator
from menagerie.envs.world import WORLDS
from menagerie.studies.photographs.collection import FEWEST, Photographs
from menagerie.studies.photographs.trainings import FACTORS, OTHERS, OWN, SYNTHETIC, Material, Training, all_trainings

PHOTOGRAPHS, NATURAL, HELD_OUT = "photographs", "natural", "held-out"  # worlds of tests
VARIED = ("textures", "backgrounds", "vocabulary")  # factors that are worlds of their own


def world_name(training: Training) -> str:
    """The world that a run is trained on."""
    if training.world == SYNTHETIC:
        return f"{SYNTHETIC}-{training.factor}" if training.factor in VARIED else SYNTHETIC
    return f"{training.world}-{training.count}-{training.seed}"


def worlds_tested(training: Training) -> tuple[str, ...]:
    """The worlds of photographs that a run is tested on, of binding."""
    held_out = f"{HELD_OUT}-{training.seed}"
    if training.world == OWN:
        return (held_out,)
    return (PHOTOGRAPHS, held_out)


def material_of(config: Any, photographs: Photographs) -> Material:
    """How much there is to train on."""
    possible = [name for name in FACTORS if name != "backgrounds" or config.backgrounds]
    wider = set(WORLDS[config.world].animals) > photographs.tested.keys()
    possible = [name for name in possible if name != "vocabulary" or wider]
    most = max(map(len, photographs.several.values()), default=1) - 1
    others = len(photographs.others)
    return Material(most, others if others >= FEWEST else 0, tuple(possible))


def worlds_of(config: Any, photographs: Photographs) -> Iterator[tuple[str, tuple[Mapping[str, Sequence[Path]], bool]]]:
    """The worlds of photographs: their files by animal, and whether these have their own colours."""
    material = material_of(config, photographs)
    yield PHOTOGRAPHS, (photographs.tested, False)
    yield NATURAL, (photographs.tested, True)
    for seed in range(config.seeds) if photographs.several else ():
        tested = {name: held_out(files, seed) for name, files in photographs.several.items()}
        yield f"{HELD_OUT}-{seed}", (tested, False)
    runs = (its._replace(model="", images=0, tuned=False) for its in all_trainings(config, material))
    for training in dict.fromkeys(runs):
        if training.world == OWN:
            files = {name: kept(its, training.seed, training.count) for name, its in photographs.several.items()}
        elif training.world == OTHERS:
            files = {name: photographs.others[name] for name in drawn(photographs, training.seed, training.count)}
        else:
            continue
        yield world_name(training), (files, False)


def held_out(files: Sequence[Path], seed: int) -> tuple[Path, ...]:
    """The one photograph of an animal that is tested with a seed."""
    return (files[seed % len(files)],)


def kept(files: Sequence[Path], seed: int, count: int) -> tuple[Path, ...]:
    """Up to `count` of its other photographs; more of them have the fewer ones among them."""
    place = seed % len(files)
    return tuple([*files[place + 1 :], *files[:place]][:count])


def drawn(photographs: Photographs, seed: int, count: int) -> list[str]:
    """Some of the other animals, drawn with a seed; more of them have the fewer ones among them."""
    names = sorted(photographs.others)
    return sorted(names[k] for k in generator(seed, "other animals").permutation(len(names))[:count])
