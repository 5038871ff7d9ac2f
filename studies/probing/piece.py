"""Models on a probe set: what they must know of its images and words, and a piece that probes one model."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.models.checkpoint import config_in
from menagerie.models.contract import attempt
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.frame.measure import write_rows
from menagerie.studies.measures.bits import Bits, chosen_layers
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result
from menagerie.studies.scoring.models import Model, world_of
from menagerie.studies.scoring.piece import Piece

NAMED = 6  # words in a message
Setting = TypeVar("Setting", str, int)


@dataclass(frozen=True)
class ProbePiece(Piece):
    """A model on the probe set."""

    measure: Bits
    called: str
    """The model's name in tables. Trainings that differ in their seed alone share it."""
    number: int
    """Seed of the model's training."""
    tests: ClassVar[tuple[str, ...]] = ()

    @property
    def model(self) -> str:
        return self.called

    @property
    def seed(self) -> int:
        return self.number

    @property
    def name(self) -> str:
        return self.tested.label

    def score(self, prepared: LoadedScorer, report: Callable[[int], None]) -> None:
        """Probe the model, and write the rows of the measure and then the result."""
        import torch

        started = time.perf_counter()
        torch.manual_seed(self.seed)  # as after training
        rows = attempt(self.name, "fails", lambda: list(self.measure.read(prepared.scorer)))
        write_rows(self.folder, self.measure, None, rows)
        report(self.steps)
        result = {"id": self.id, "model": self.model, "seed": self.seed, "subsets": {}}
        seconds = round(time.perf_counter() - started, 1)
        write_result(self.folder, result | {"seconds": seconds, "provenance": provenance()})


def piece_of(tested: Model, called: Model, seed: int, measure: Bits, **how: Any) -> ProbePiece:
    """Return the piece that probes one model on the probe set of a measure. In tables it has the label of `called`, and
    `seed`."""
    name = digest({"model": tested.weights, "probed": measure.settings})
    return ProbePiece(tested, "probe set", name, scenes_in(measure.recipe), measure, called.label, seed, **how)


@cache
def scenes_in(recipe: ProbeRecipe) -> int:
    return len(recipe.plan(load_world(recipe.world))[recipe.tests[0]])


def agreed(option: str, given: Setting, found: Mapping[str, Setting], default: Setting) -> Setting:
    """Return the setting that is given; without it the one that models record, or `default` if none does. `found` has
    the recorded settings by the models' labels. Raises if models record different ones."""
    values = {value: label for label, value in found.items() if value}
    if given or not values:
        return given or default
    if len(values) > 1:
        (one, first), (two, second), *_ = values.items()
        raise UserError(f"{first} was trained with {one}, {second} with {two}: give the {option} of the probe set")
    return next(iter(values))


def side_of(model: Model) -> int:
    """Return the side of the images that a checkpoint of ours reads; 0 for other models."""
    return config_in(model.source.folder).towers.resolution if isinstance(model.source, Checkpoint) else 0


def check_known(model: Model, recipe: ProbeRecipe) -> None:
    """Raise for a model that was trained in a world without an animal or a texture of the probe set, and for one whose
    vocabulary lacks a word of its captions."""
    way_out = "name a --world that it knows, or by --probe-animals and --probe-textures what it knows of this one"
    animals, textures = choose_names(recipe, load_world(recipe.world))
    if world := world_of(model):
        there = load_world(world)
        if strange := [name for name in (*animals, *textures) if name not in (*there.animals, *there.textures)]:
            raise UserError(f"{model.label} was trained in {world}, which has no {listed(strange)}; {way_out}")
    known = set(config_in(model.source.folder).texts.words) if isinstance(model.source, Checkpoint) else set()
    if known and (missing := [word for word in words_of(recipe) if word not in known]):
        raise UserError(f"{model.label} has no {listed(missing)} in its vocabulary; {way_out}")


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)


@cache
def words_of(recipe: ProbeRecipe) -> tuple[str, ...]:
    """All words of the captions of a probe set."""
    scenes = recipe.plan(load_world(recipe.world))[recipe.tests[0]]
    texts = (recipe.texts(test, scene)[0].text for test in recipe.tests for scene in scenes)
    return tuple(dict.fromkeys(word for text in texts for word in text.split()))


def check_layers(models: Sequence[Model], layers: Sequence[str]) -> None:
    """Raise for a layer that no model has. Loads the models."""
    known: dict[str, None] = {}
    for model in models:
        image, text = chosen_layers(model.source.scorer().eval(), ())
        known |= dict.fromkeys((*image, *text))
    if strange := next((name for name in layers if name not in known), None):
        raise UserError(f"--layers {strange!r}: no such layer; there are: {', '.join(known)}")
