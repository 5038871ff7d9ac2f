"""What reports explain of their words: the terms of docs/glossary.md that pages show, and models with their papers."""

from collections.abc import Sequence

from menagerie.envs.core.figures import short
from menagerie.models.registry import spec_of

# As docs/glossary.md has them (tests/studies/test_glossary.py); a page shows those that it uses.
TERMS: dict[str, str] = {
    "scene": "what an image shows: a background, things (an animal, its texture, its slot, perhaps its size), the "
    "number of a view",
    "view": "camera, light and jitter; tests and validation use numbers that training never uses",
    "world": "a vocabulary of scenes: animals, textures, backgrounds, perhaps sizes and groups of animals",
    "recipe": "the values that determine a split; or those of a training run: steps, batch, learning rates",
    "split": "named subsets of a store's scenes with captions, hard negatives and graphs: train, validation and tests",
    "record": "an image of a test with its true caption and, for each task, false ones",
    "animal pair": "two different animals, in either order; what differs between pairs is what intervals are over",
    "hard negative": "a caption of the same words that is false of the image",
    "partner": "the scene of which a hard negative is true; image, partner and both captions are a quad",
    "single-object scene": "a scene of one animal",
    "single-object phase": "the first steps of a run, which show single-object scenes alone",
    "singles share": "share of a batch that shows single-object scenes, after that phase",
    "singles views": "views of each single-object scene in training",
    "tower": "the network that reads images, or the one that reads texts",
    "seed": "the number behind all that is drawn at random: a run's split, its first weights, the order of its images",
    "cell": "one training run with its evaluation",
    "place": "a point of a grid: one value of each field that varies",
    "trial": "a point of a search",
    "Pareto front": "settings that no other beats with as few images",
}


def models_explained(models: Sequence[str]) -> dict[str, str]:
    """A line for each model, by its name in tables: what it does, and its paper."""
    return {short(model): explained_as(model) for model in models}


def explained_as(model: str) -> str:
    """What a model does, and its paper, as far as its spec says."""
    spec = spec_of(model)
    says = f"{spec.title}: {spec.about}" if spec.about else spec.title or "a class of the user's"
    return f"{says} ({spec.source})" if spec.source else says
