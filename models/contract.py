"""Checks what every scorer must do and a run wouldn't show, before anything is rendered or trained.

Tests run these checks for all registered scorers, and studies for the chosen ones, users' classes included. Each check
raises with the problem and the method; together they take a second or two.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.objectives import Targets
from menagerie.models.registry import spec_of
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts, leaves
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import text_space

# A pair's score may differ by this much when other pairs are scored with it: sums of floats depend on their order.
TOLERANCE = 1e-4
LEFT = "to the left of"
TEXTS = (
    ("a red cat and a white dog in the city", SceneGraph(("red cat", "white dog", "city"))),
    ("a red cat to the left of a dog in the city", SceneGraph(("red cat", "dog", "city"), (Edge(LEFT, 0, 1),))),
    ("a dog", SceneGraph(("dog",))),
    ("a white cat in the city", SceneGraph(("white cat", "city"))),
)
CAPTIONS, GRAPHS = (list(parts) for parts in zip(*TEXTS, strict=True))
ALL = range(len(TEXTS))
Result = TypeVar("Result")


class Subject(NamedTuple):
    """A scorer under test, the name of its model, and the images that the checks use."""

    model: str
    scorer: Scorer
    images: UInt8[Tensor, "n 3 h w"]

    def similarity(self, images: Sequence[int], texts: Sequence[int]) -> Float[Tensor, "n m"]:
        """Score each of some images with each of some texts; both are given by their indices."""
        with torch.no_grad():
            pixels = self.scorer.pixel_scale(self.images[list(images)])
            read = self.scorer.read([CAPTIONS[k] for k in texts], [GRAPHS[k] for k in texts])
            return self.scorer.similarity(self.scorer.encode_images(pixels), self.scorer.encode_texts(read))

    def loss(self, n: int = len(TEXTS), texts: Sequence[int] = ALL) -> Float[Tensor, ""]:
        """The loss of the first n images with some texts, of which the first n are theirs and others their false
        captions; always with the same random draws."""
        scorer, m = self.scorer, len(texts)
        false = torch.arange(m - n) if m > n else None
        targets = Targets(torch.eye(n, m, dtype=torch.bool), torch.zeros(n, m, dtype=torch.bool), n, false)
        given = Texts([CAPTIONS[k] for k in texts], [GRAPHS[k] for k in texts], n, targets)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            images = scorer.encode_images(scorer.pixel_scale(self.images[:n]))
            read = scorer.reader(given, torch.Generator().manual_seed(0))
            return scorer.loss(images, scorer.encode_texts(read), targets)

    def refuse(self, problem: str) -> None:
        """Raise an error that names the model."""
        raise UserError(f"model {self.model}: {problem}")


def check_contract(model: str, towers: TowerConfig, options: dict[str, Any], negatives: bool = False) -> None:
    """Raise unless the scorer called `model` passes all checks with these towers and options.

    With `negatives`, its loss must also use texts that belong to no image.
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


def contract_texts() -> list[str]:
    """All texts that the checks use: the captions, and the nodes and the predicate of their graphs."""
    return [*CAPTIONS, *(node for graph in GRAPHS for node in graph.nodes), LEFT]


def attempt(model: str, what: str, call: Callable[[], Result]) -> Result:
    """Run `call`; turn any exception of a library or a user's class into a one-line error that names the model."""
    try:
        return call()
    except UserError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise UserError(f"model {model} {what} as configured: {type(error).__name__}: {lines[0]}") from error


def check_scores(subject: Subject) -> None:
    """Check that similarity gives one finite number for each image and text, whatever else is in the batch."""
    together = subject.similarity(ALL, ALL)
    if together.shape != (len(TEXTS), len(TEXTS)):
        subject.refuse(f"similarity of 4 images and 4 texts has shape {tuple(together.shape)}, not (4, 4)")
    if not together.isfinite().all():
        subject.refuse("similarity gives scores that are not finite numbers (NaN or infinite)")
    for image, text in ((0, 0), (1, 2), (3, 1), (2, 3)):
        alone = subject.similarity([image], [text])[0, 0]
        if (alone - together[image, text]).abs() > TOLERANCE:
            subject.refuse(
                f"the score of a pair depends on what else is in the batch (alone {alone:.6f}, among others "
                f"{together[image, text]:.6f}); images and texts must not see one another"
            )


def check_pair_similarity(subject: Subject) -> None:
    """Check that `pair_similarity` is the diagonal of `similarity`; with `pairs_only`, that embeddings have rows."""
    scorer = subject.scorer
    with torch.no_grad():
        order = torch.tensor([2, 0, 3, 1])
        images = scorer.encode_images(scorer.pixel_scale(subject.images[order]))
        texts = scorer.encode_texts(scorer.read(CAPTIONS, GRAPHS))
        scores = scorer.pair_similarity(images, texts)
    expected = subject.similarity(ALL, ALL)[order, list(ALL)]
    if scores.shape != expected.shape or (scores - expected).abs().max() > TOLERANCE:
        subject.refuse("`pair_similarity` does not give what `similarity` gives for the same pairs")
    if scorer.pairs_only and any(len(part) != len(TEXTS) for part in leaves((images, texts))):
        subject.refuse("it reads pairs only, so the tensors of its embeddings need a row for each text and each image")


def check_gradients(subject: Subject) -> None:
    """Check that the loss in training is one finite number that depends on the parameters."""
    scorer = subject.scorer.train()
    loss = subject.loss()
    if loss.shape != () or not loss.isfinite():
        subject.refuse(f"its loss is {loss.detach().tolist()}, not one finite number")
    loss.backward()
    scorer.zero_grad(set_to_none=True)
    scorer.eval()


def check_scored(subject: Subject) -> None:
    """Check that no option in `ScorerSpec.scored` changes weights or the loss."""
    scorer, spec = subject.scorer, spec_of(subject.model)
    hints = get_type_hints(spec.config)
    for name in spec.scored:
        options = asdict(scorer.config) | {name: another(getattr(scorer.config, name), hints[name])}
        try:
            other = build_scorer(subject.model, scorer.towers_config, scorer.texts, options)
        except UserError:  # an option that doesn't go with the others
            continue
        try:
            other.load_state_dict(scorer.state_dict())
        except RuntimeError:
            subject.refuse(f"its option {name} changes weights, so it must not be in spec.scored")
        losses = [subject._replace(scorer=each.train()).loss() for each in (other, scorer)]
        scorer.eval()
        if not losses[0].equal(losses[1]):
            subject.refuse(f"its option {name} changes the loss, so it must not be in spec.scored")


def another(value: Any, hint: Any) -> Any:
    """Return another value for an option that is a truth value, a number or one of several words; else its own."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else 0.5)
    return next((word for word in get_args(hint) if isinstance(word, str) and word != value), value)


def check_checkpoint(subject: Subject) -> None:
    """Check that a saved and loaded scorer gives the same scores."""
    with scratch_folder() as folder:
        save_checkpoint(folder, subject.model, subject.scorer)
        back = load_checkpoint(folder, subject.model)
    if not torch.equal(subject._replace(scorer=back).similarity(ALL, ALL), subject.similarity(ALL, ALL)):
        subject.refuse("its scores change when it is saved and loaded: its checkpoint lacks weights or options")


def check_negative_texts(subject: Subject) -> None:
    """Check that the loss depends on texts after the images' own, which belong to no image."""
    with torch.no_grad():
        without, beside = subject.loss(2, [0, 1]), subject.loss(2)
    if not (without - beside).abs() > TOLERANCE:  # smaller differences could be rounding
        subject.refuse(
            f"its loss takes no negatives ({without:.4f} without, {beside:.4f} beside two of them): of the texts only "
            "the first targets.matched belong to images; train it without --text-negatives, or have its loss add them"
        )


CHECKS = (check_scores, check_pair_similarity, check_gradients, check_scored, check_checkpoint)
