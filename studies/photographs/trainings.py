"""The training runs of each question, and the photographs that they train on. Free of torch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from menagerie.envs.core.identity import generator
from menagerie.envs.world import WORLDS

Part = Literal["zero-shot", "fine-tuning", "worth", "factors"]
Factor = Literal["views", "textures", "augmentation", "backgrounds", "vocabulary"]
ZERO_SHOT, FINE_TUNING, WORTH, FACTORS_PART = PARTS = get_args(Part)
FACTORS: tuple[Factor, ...] = get_args(Factor)
BINDING, SPATIAL = "binding", "spatial"
SYNTHETIC, OWN, OTHERS = "synthetic", "own", "others"
PHOTOGRAPHS, NATURAL, HELD_OUT = "photographs", "natural", "held-out"  # worlds of tests
VARIED = ("textures", "backgrounds", "vocabulary")  # factors that need a world of their own
FEWEST = 3  # animals: fewer make no pairs for training, validation and test


class TransferRun(NamedTuple):
    """A training run."""

    model: str
    seed: int
    kind: str = BINDING
    world: str = SYNTHETIC
    """What the run is trained on: rendered animals, or photographs of the tested or of other animals."""
    count: int = 0
    """Photographs of each tested animal, or number of other animals."""
    images: int = 0
    """Number of distinct images, drawn from all; 0: all."""
    tuned: bool = False
    """Whether the run starts from the weights of the synthetic run of its model and seed."""
    factor: str = ""
    """The factor that is changed in the synthetic world."""

    @property
    def start(self) -> "TransferRun | None":
        """The run whose weights this one starts from; None if it starts from scratch."""
        return TransferRun(self.model, self.seed, self.kind) if self.tuned else None

    @property
    def place(self) -> "TransferRun":
        """The same run with seed 0, which stands for the runs of all seeds."""
        return self._replace(seed=0)


class AnimalPhotographs(NamedTuple):
    """The files of photographs, by animal."""

    tested: dict[str, tuple[Path, ...]]
    """Animals that the synthetic world has as well."""
    others: dict[str, tuple[Path, ...]]
    """All other animals."""

    @property
    def several(self) -> dict[str, tuple[Path, ...]]:
        """Tested animals with more than one photograph; empty where too few have."""
        found = {name: files for name, files in self.tested.items() if len(files) > 1}
        return found if len(found) >= FEWEST else {}


class PhotographCounts(NamedTuple):
    """How many photographs can be trained on."""

    several: int
    """The most photographs of a tested animal besides the one that is held out; 0 if too few animals have several."""
    others: int
    """Number of other animals; 0 if there are too few."""
    factors: tuple[str, ...]
    """The factors that can be changed."""


def runs_of_question(config: Any, material: PhotographCounts, part: str) -> list[TransferRun]:
    """Return the training runs of one question, for all models and seeds."""
    makers = {
        ZERO_SHOT: zero_shot_runs,
        FINE_TUNING: fine_tuning_runs,
        WORTH: plan_worth_runs,
        FACTORS_PART: factor_runs,
    }
    every = (TransferRun(model, seed) for seed in range(config.seeds) for model in config.models)
    return [run for plain in every for run in makers[part](config, material, plain)]


def all_runs(config: Any, material: PhotographCounts) -> list[TransferRun]:
    """Return the training runs of all questions, each once."""
    return list(
        dict.fromkeys(training for part in config.parts for training in runs_of_question(config, material, part))
    )


def zero_shot_runs(config: Any, material: PhotographCounts, plain: TransferRun) -> list[TransferRun]:
    """Return the synthetic run of each kind of split."""
    return [plain, plain._replace(kind=SPATIAL)]


def fine_tuning_runs(config: Any, material: PhotographCounts, plain: TransferRun) -> list[TransferRun]:
    """Return the synthetic run, which has seen no photograph, and runs on more and more photographs.

    No run on photographs of other animals starts from scratch, because these don't teach the tested animals' names.
    """
    own, others = (
        limit_counts(config.photographs, material.several),
        limit_counts(config.other_animals, material.others),
    )
    if not own and not others:
        return []
    scratch, tuned = ([plain._replace(world=OWN, count=n, tuned=tuned) for n in own] for tuned in (False, True))
    return [plain, *scratch, *tuned, *(plain._replace(world=OTHERS, count=n, tuned=True) for n in others)]


def plan_worth_runs(config: Any, material: PhotographCounts, plain: TransferRun) -> list[TransferRun]:
    """Return the synthetic run, and runs on more and more images, from scratch and after synthetic training. Images
    show as many photographs of each animal as fine-tuning uses at most, without the held-out one."""
    if not material.several:
        return []
    most = plain._replace(world=OWN, count=limit_counts(config.photographs, material.several)[-1])
    return [plain, *(most._replace(images=n, tuned=tuned) for n in config.images for tuned in (False, True))]


def factor_runs(config: Any, material: PhotographCounts, plain: TransferRun) -> list[TransferRun]:
    """Return the synthetic run, and one for each changed factor; nothing for models that aren't in `with_factors`."""
    if plain.model not in config.with_factors:
        return []
    return [plain, *(plain._replace(factor=name) for name in config.factors if name in material.factors)]


def limit_counts(wanted: Sequence[int], most: int) -> list[int]:
    """Return the wanted numbers, at most `most` each, without repeats; empty if `most` is 0."""
    return list(dict.fromkeys(min(count, most) for count in wanted)) if most else []


def world_name(training: TransferRun) -> str:
    """Return the name of the world that a run is trained on."""
    if training.world == SYNTHETIC:
        return f"{SYNTHETIC}-{training.factor}" if training.factor in VARIED else SYNTHETIC
    return f"{training.world}-{training.count}-{training.seed}"


def worlds_tested(training: TransferRun) -> tuple[str, ...]:
    """Return the worlds of photographs that a run on a binding split is tested on."""
    held_out = f"{HELD_OUT}-{training.seed}"
    if training.world == OWN:
        return (held_out,)
    return (PHOTOGRAPHS, held_out)


def count_photographs(config: Any, photographs: AnimalPhotographs) -> PhotographCounts:
    """Count the photographs that can be trained on, and find the factors that can be changed."""
    possible = [name for name in FACTORS if name != "backgrounds" or config.backgrounds]
    wider = set(WORLDS[config.world].animals) > photographs.tested.keys()
    possible = [name for name in possible if name != "vocabulary" or wider]
    most = max(map(len, photographs.several.values()), default=1) - 1
    others = len(photographs.others)
    return PhotographCounts(most, others if others >= FEWEST else 0, tuple(possible))


def photograph_worlds(
    config: Any, photographs: AnimalPhotographs
) -> Iterator[tuple[str, tuple[Mapping[str, Sequence[Path]], bool]]]:
    """Yield each world of photographs: its name, files by animal, and whether animals keep their own colours."""
    material = count_photographs(config, photographs)
    yield PHOTOGRAPHS, (photographs.tested, False)
    yield NATURAL, (photographs.tested, True)
    for seed in range(config.seeds) if photographs.several else ():
        tested = {name: held_out_file(files, seed) for name, files in photographs.several.items()}
        yield f"{HELD_OUT}-{seed}", (tested, False)
    runs = (run._replace(model="", images=0, tuned=False) for run in all_runs(config, material))
    for training in dict.fromkeys(runs):
        if training.world == OWN:
            files = {
                name: training_files(pictures, training.seed, training.count)
                for name, pictures in photographs.several.items()
            }
        elif training.world == OTHERS:
            files = {
                name: photographs.others[name] for name in draw_animals(photographs, training.seed, training.count)
            }
        else:
            continue
        yield world_name(training), (files, False)


def held_out_file(files: Sequence[Path], seed: int) -> tuple[Path, ...]:
    """Return the one photograph of an animal that is tested with a seed."""
    return (files[seed % len(files)],)


def training_files(files: Sequence[Path], seed: int, count: int) -> tuple[Path, ...]:
    """Return `count` photographs of an animal, or fewer, without the held-out one; more contain fewer."""
    place = seed % len(files)
    return tuple([*files[place + 1 :], *files[:place]][:count])


def draw_animals(photographs: AnimalPhotographs, seed: int, count: int) -> list[str]:
    """Choose up to `count` of the other animals at random, by a seed. A larger choice contains the smaller ones."""
    names = sorted(photographs.others)
    return sorted(names[k] for k in generator(seed, "other animals").permutation(len(names))[:count])
