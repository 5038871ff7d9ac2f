"""Models on a probe set: checks of their vocabulary and image size, and a piece that probes one model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.models.checkpoint import config_in
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.frame.measure import write_measured
from menagerie.studies.measures.bits import Bits, chosen_layers
from menagerie.studies.scoring.models import Model, recorded_world
from menagerie.studies.scoring.piece import Piece

NAMED = 6  # words in a message
Setting = TypeVar("Setting", str, int)


@dataclass(frozen=True)
class ProbePiece(Piece):
    """A model on the probe set."""

    measure: Bits
    called: str
    """The model's name in tables, which trainings that differ only in their seed share."""
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

    def score(self, loaded: LoadedScorer, report: Callable[[int], None]) -> dict[str, Any]:
        """Probe the model; write the rows of the measure, and return the result."""
        import torch

        torch.manual_seed(self.seed)  # as after training
        rows = list(self.measure.read(loaded.scorer))
        write_measured(self.folder, self.measure, None, rows)
        report(self.steps)
        return {"seed": self.seed, "subsets": {}}


def probe_piece(tested: Model, called: Model, seed: int, measure: Bits, **how: Any) -> ProbePiece:
    """Return the piece that probes one model on the probe set of a measure. In tables it has the label of `called`, and
    `seed`."""
    name = digest({"model": tested.weights, "probed": measure.settings})
    return ProbePiece(tested, "probe set", name, scenes_in(measure.recipe), measure, called.label, seed, **how)


@cache
def scenes_in(recipe: ProbeRecipe) -> int:
    return len(recipe.plan(load_world(recipe.world))[recipe.tests[0]])


def agreed_setting(option: str, given: Setting, found: Mapping[str, Setting], default: Setting) -> Setting:
    """Return the given setting or, without one, that of the models' training (`found`, by their labels), or `default`.
    Raises if models were trained with different ones."""
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


def check_model_knows(model: Model, recipe: ProbeRecipe) -> None:
    """Raise for a model whose training world lacks an animal or a texture of the probe set, or whose vocabulary lacks a
    word of its captions."""
    way_out = "give its --world, or only animals and textures that it knows (--probe-animals, --probe-textures)"
    animals, textures = choose_names(recipe, load_world(recipe.world))
    if world := recorded_world(model):
        there = load_world(world)
        if strange := [name for name in (*animals, *textures) if name not in (*there.animals, *there.textures)]:
            raise UserError(f"{model.label} was trained in {world}, which has no {list_some(strange)}; {way_out}")
    known = set(config_in(model.source.folder).texts.words) if isinstance(model.source, Checkpoint) else set()
    if known and (missing := [word for word in probe_words(recipe) if word not in known]):
        raise UserError(f"{model.label} has no {list_some(missing)} in its vocabulary; {way_out}")


def list_some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more" * (len(names) > NAMED)


@cache
def probe_words(recipe: ProbeRecipe) -> tuple[str, ...]:
    """List the words of a probe set's captions."""
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
