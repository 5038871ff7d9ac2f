"""Checks what every scorer must do, before anything is rendered or trained.

Tests run these checks for all registered scorers, and studies for the chosen ones, users' classes included. Each check
raises with the problem and the method; together they take a second or two.
"""

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any, TypeVar

import torch

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.contract_losses import (
    CAPTIONS,
    GRAPHS,
    TEXTS,
    TOLERANCE,
    Subject,
    check_gradients,
    check_negative_texts,
    check_scored,
    contract_texts,
)
from menagerie.models.layers import image_features, text_features
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts, leaves
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.features import Features
from menagerie.models.towers.tokenizers import text_space

Result = TypeVar("Result")


def check_contract(model: str, towers: TowerConfig, options: dict[str, Any], negatives: bool = False) -> None:
    """Raise unless the scorer called `model` passes all checks with these towers and options.

    With `negatives`, its loss must also use texts that belong to no image as negatives.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        scorer = attempt(model, "can't be built", lambda: build_for_contract(model, towers, options))
        images = torch.randint(0, 256, (len(TEXTS), 3, towers.resolution, towers.resolution), dtype=torch.uint8)
        subject = Subject(model, scorer.eval(), images)
        for check in (*CHECKS, check_negative_texts) if negatives else CHECKS:
            attempt(model, f"fails at {check.__name__.removeprefix('check_')}", partial(check, subject))


def build_for_contract(model: str, towers: TowerConfig, options: dict[str, Any]) -> Scorer:
    """Build the scorer for the contract's texts."""
    return build_scorer(model, towers, text_space(towers, contract_texts()), options)


def attempt(model: str, what: str, call: Callable[[], Result]) -> Result:
    """Run `call`; turn any exception of a library or a user's class into a one-line error that names the model."""
    try:
        return call()
    except UserError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise UserError(f"model {model} {what} as configured: {type(error).__name__}: {lines[0]}") from error


def check_config(subject: Subject) -> None:
    """Check that the scorer keeps its config, and that a checkpoint can store it."""
    scorer = subject.scorer
    if not is_dataclass(getattr(scorer, "config", None)):
        subject.refuse("keep the options in self.config, the dataclass that `__init__` is given")
    if not isinstance(scorer.config, scorer.config_class):
        subject.refuse(f"self.config is a {type(scorer.config).__name__}, not its config_class")
    asdict(scorer.config)


def check_method_names(subject: Subject) -> None:
    """Check that the class doesn't override `read`, `cut_texts` and `logit_scale`, which other code calls."""
    for name in ("read", "cut_texts", "logit_scale"):
        if getattr(type(subject.scorer), name) is not getattr(Scorer, name):
            subject.refuse(f"self.{name} is a method of every scorer (models/scorer.py); rename yours")


def check_scores(subject: Subject) -> None:
    """Check that similarity gives one finite number for each image and text."""
    scores = subject.similarity([0, 1, 2], [0, 1, 2, 3])
    if scores.shape != (3, 4):
        subject.refuse(f"similarity of 3 images and 4 texts has shape {tuple(scores.shape)}, not (3, 4)")
    if not scores.isfinite().all():
        subject.refuse("similarity gives scores that are not finite numbers (NaN or infinite)")


def check_neighbours(subject: Subject) -> None:
    """Check that a pair's score depends neither on other images or texts in the batch, nor on padding."""
    together = subject.similarity([0, 1, 2, 3], [0, 1, 2, 3])
    for image, text in ((0, 0), (1, 2), (3, 1), (2, 3)):
        alone = subject.similarity([image], [text])[0, 0]
        apart = (alone - together[image, text]).abs().item()
        if apart > TOLERANCE:
            subject.refuse(
                f"the score of a pair depends on what else is in the batch (alone {alone:.6f}, among others "
                f"{together[image, text]:.6f}); images and texts must not see one another"
            )


def check_pair_similarity(subject: Subject) -> None:
    """Check that `pair_similarity` gives the diagonal of `similarity`, and with `pairs_only` that embeddings have a row
    for each image or text."""
    scorer, everything = subject.scorer, list(range(len(TEXTS)))
    with torch.no_grad():
        order = torch.tensor([2, 0, 3, 1])
        images = scorer.encode_images(scorer.pixel_scale(subject.images[order]))
        texts = scorer.encode_texts(scorer.read(CAPTIONS, GRAPHS))
        scores = scorer.pair_similarity(images, texts)
    expected = subject.similarity(everything, everything)[order, everything]
    if scores.shape != expected.shape or (scores - expected).abs().max() > TOLERANCE:
        subject.refuse("`pair_similarity` does not give what `similarity` gives for the same pairs")
    if scorer.pairs_only and any(len(part) != len(TEXTS) for part in leaves((images, texts))):
        subject.refuse("it reads pairs only, so the tensors of its embeddings need a row for each text and each image")


def check_features(subject: Subject) -> None:
    """Check the shape of each layer of images and texts, and that it doesn't depend on what else is in the batch."""
    scorer, one = subject.scorer, Texts(CAPTIONS[1:2], GRAPHS[1:2])
    for side, together, alone in (
        ("image", image_features(scorer, subject.images), image_features(scorer, subject.images[1:2])),
        ("text", text_features(scorer, Texts(CAPTIONS, GRAPHS)), text_features(scorer, one)),
    ):
        for name in together:
            check_layer(subject, f"{side} layer {name!r}", together, alone, name)


def check_layer(subject: Subject, what: str, together: Features, alone: Features, name: str) -> None:
    """Check the shape of a layer of all images or texts, and that the second one's tokens are the same as when it is
    encoded alone."""
    states, present = together[name], together.present[name]
    if (
        states.ndim != 3
        or len(states) != len(TEXTS)
        or present.shape != states.shape[:2]
        or not states.isfinite().all()
    ):
        subject.refuse(f"the {what} must have finite numbers of shape ({len(TEXTS)}, t, d), not {tuple(states.shape)}")
    ours, single = states[1][present[1]], alone[name][0][alone.present[name][0]]
    if ours.shape != single.shape or not torch.allclose(ours, single, rtol=TOLERANCE, atol=TOLERANCE):
        subject.refuse(f"the {what} depends on what else is in the batch")


def check_backbones(subject: Subject) -> None:
    """Check that the towers' parameters are among the scorer's, and that no parameter is in both towers."""
    there = {id(parameter) for parameter in subject.scorer.parameters()}
    parts = subject.scorer.backbones()
    listed = [id(parameter) for part in parts.values() for parameter in part]
    if set(parts) != {"vision", "text"} or len(set(listed)) != len(listed) or not set(listed) <= there:
        subject.refuse("backbones() must give the parameters of 'vision' and of 'text', each once")


def check_checkpoint(subject: Subject) -> None:
    """Check that a saved and loaded scorer gives the same scores, and that a checkpoint of another model is refused."""
    before = subject.similarity([0, 1], [0, 1])
    with scratch_folder() as folder:
        save_checkpoint(folder, subject.model, subject.scorer)
        back = load_checkpoint(folder, subject.model)
        try:
            load_checkpoint(folder, "another model")
        except UserError:
            pass
        else:
            subject.refuse("its checkpoint loads under the name of another model")
    if not torch.equal(subject._replace(scorer=back).similarity([0, 1], [0, 1]), before):
        subject.refuse("its scores change when it is saved and loaded: its checkpoint lacks weights or options")


CHECKS = (
    check_config,
    check_method_names,
    check_scores,
    check_neighbours,
    check_pair_similarity,
    check_features,
    check_gradients,
    check_scored,
    check_backbones,
    check_checkpoint,
)
