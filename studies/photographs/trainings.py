"""Which models are trained on what, for each question. Free of torch and of files."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

Part = Literal["zero-shot", "fine-tuning", "worth", "factors"]
Factor = Literal["views", "textures", "augmentation", "backgrounds", "vocabulary"]
ZERO_SHOT, FINE_TUNING, WORTH, FACTORS_PART = PARTS = get_args(Part)
FACTORS: tuple[Factor, ...] = get_args(Factor)
BINDING, SPATIAL = "binding", "spatial"
SYNTHETIC, OWN, OTHERS = "synthetic", "own", "others"


class Training(NamedTuple):
    """One training run."""

    model: str
    seed: int
    kind: str = BINDING
    world: str = SYNTHETIC
    """What it is trained on: rendered animals; photographs of the tested animals; those of other animals."""
    count: int = 0
    """Photographs of each tested animal, or number of other animals."""
    images: int = 0
    """Distinct images, drawn from all; 0: all."""
    tuned: bool = False
    """Whether it starts from the synthetic run of its model and seed."""
    factor: str = ""
    """The factor that is changed in the synthetic world."""

    @property
    def start(self) -> "Training | None":
        """The run that it starts from."""
        return Training(self.model, self.seed, self.kind) if self.tuned else None

    @property
    def place(self) -> "Training":
        """The run with seed 0, which is the same for all seeds of a run."""
        return self._replace(seed=0)


class Material(NamedTuple):
    """The amount of photographs that there is to train on."""

    several: int
    """The most photographs of an animal beside the one that is held out; 0 where too few animals have several."""
    others: int
    """Other animals."""
    factors: tuple[str, ...]
    """The factors that can be changed."""


def trainings(config: Any, material: Material, part: str) -> list[Training]:
    """The training runs of one question, by model and seed."""
    makers = {ZERO_SHOT: zero_shot, FINE_TUNING: fine_tuning, WORTH: worth, FACTORS_PART: factors}
    return [
        training
        for seed in range(config.seeds)
        for model in config.models
        for training in makers[part](config, material, model, seed)
    ]


def all_trainings(config: Any, material: Material) -> list[Training]:
    """The training runs of all questions, each once."""
    return list(dict.fromkeys(training for part in config.parts for training in trainings(config, material, part)))


def zero_shot(config: Any, material: Material, model: str, seed: int) -> list[Training]:
    """One training run for each kind of split."""
    return [Training(model, seed, kind) for kind in (BINDING, SPATIAL)]


def fine_tuning(config: Any, material: Material, model: str, seed: int) -> list[Training]:
    """The synthetic run, which has seen no photograph, and runs on more and more photographs.

    From scratch photographs of other animals teach nothing about the tested ones' names.
    """
    of_tested = [
        Training(model, seed, world=OWN, count=count) for count in counts(config.photographs, material.several)
    ]
    others = [
        Training(model, seed, world=OTHERS, count=count, tuned=True)
        for count in counts(config.other_animals, material.others)
    ]
    if not of_tested and not others:
        return []
    return [Training(model, seed), *of_tested, *(run._replace(tuned=True) for run in of_tested), *others]


def worth(config: Any, material: Material, model: str, seed: int) -> list[Training]:
    """Runs on more and more images of all photographs but the held-out ones, with and without a start."""
    if not material.several:
        return []
    most = counts(config.photographs, material.several)[-1]
    return [Training(model, seed)] + [
        Training(model, seed, world=OWN, count=most, images=images, tuned=tuned)
        for images in config.images
        for tuned in (False, True)
    ]


def factors(config: Any, material: Material, model: str, seed: int) -> list[Training]:
    """The synthetic run as it is and with each factor changed."""
    if model not in config.with_factors:
        return []
    chosen = [name for name in config.factors if name in material.factors]
    return [Training(model, seed)] + [Training(model, seed, factor=name) for name in chosen]


def counts(wanted: Sequence[int], most: int) -> list[int]:
    """Cut the wanted numbers to what there is; equal ones are kept once, and none if there is nothing."""
    return list(dict.fromkeys(min(count, most) for count in wanted)) if most else []
