"""A scorer under the checks of `menagerie.models.contract`, the texts that they use, and those about its loss."""

from dataclasses import asdict
from typing import Any, NamedTuple, get_args, get_type_hints

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.checkpoint import build_scorer
from menagerie.models.objectives import Targets
from menagerie.models.registry import spec_of
from menagerie.models.scorer import Scorer
from menagerie.models.texts import Texts, leaves, map_tensors

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


class Subject(NamedTuple):
    """A scorer under test, the name of its model, and the images that the checks use."""

    model: str
    scorer: Scorer
    images: Tensor

    def similarity(self, images: list[int], texts: list[int]) -> Tensor:
        """Score each of some images with each of some texts; both are given by their indices."""
        with torch.no_grad():
            pixels = self.scorer.pixel_scale(self.images[images])
            read = self.scorer.read([CAPTIONS[k] for k in texts], [GRAPHS[k] for k in texts])
            return self.scorer.similarity(self.scorer.encode_images(pixels), self.scorer.encode_texts(read))

    def refuse(self, problem: str) -> None:
        """Raise an error that names the model."""
        raise UserError(f"model {self.model}: {problem}")


def contract_texts() -> list[str]:
    """Return all texts that the checks use: the captions, and the nodes and the predicate of their graphs."""
    return [*CAPTIONS, *(node for graph in GRAPHS for node in graph.nodes), LEFT]


def check_gradients(subject: Subject) -> None:
    """Check that the loss depends on the parameters, and that its gradients are finite."""
    scorer = subject.scorer
    loss = training_loss(scorer, subject.images)
    if loss.shape != () or not loss.isfinite():
        subject.refuse(f"its loss is {loss.detach().tolist()}, not one finite number")
    loss.backward()
    gradients = [p.grad for p in scorer.parameters() if p.grad is not None]
    scorer.zero_grad(set_to_none=True)
    if not gradients or not all(gradient.isfinite().all() for gradient in gradients):
        subject.refuse("its loss gives no gradient, or one that is not finite")


def training_loss(scorer: Scorer, pixels: UInt8[Tensor, "n 3 h w"]) -> Float[Tensor, ""]:
    """Compute the loss of the contract's texts in training mode, with a fixed seed for all random draws."""
    n = len(TEXTS)
    targets = Targets(torch.eye(n, dtype=torch.bool), torch.zeros(n, n, dtype=torch.bool), n)
    scorer.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        images = scorer.encode_images(scorer.pixel_scale(pixels))
        read = scorer.reader(Texts(CAPTIONS, GRAPHS, targets=targets), torch.Generator().manual_seed(0))
        loss = scorer.loss(images, scorer.encode_texts(read), targets)
    scorer.eval()
    return loss


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
        if not training_loss(other, subject.images).equal(training_loss(scorer, subject.images)):
            subject.refuse(f"its option {name} changes the loss, so it must not be in spec.scored")


def another(value: Any, hint: Any) -> Any:
    """Return another value for an option that is a truth value, a number, or one of several words. Options of other
    kinds keep their value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else 0.5)
    return next((word for word in get_args(hint) if isinstance(word, str) and word != value), value)


def check_negative_texts(subject: Subject) -> None:
    """Check that the loss uses texts after the images' own as negatives."""
    scorer, pixels = subject.scorer, subject.scorer.pixel_scale(subject.images[:2])

    def loss(n_texts: int) -> Tensor:
        read = scorer.reader(Texts(CAPTIONS[:n_texts], GRAPHS[:n_texts], matched=2), torch.Generator().manual_seed(0))
        targets = Targets(torch.eye(2, n_texts, dtype=torch.bool), None, 2, torch.arange(2) if n_texts == 4 else None)
        return scorer.loss(scorer.encode_images(pixels), scorer.encode_texts(read), targets)

    with torch.no_grad():
        without, beside = loss(2), loss(4)
    rises = beside.isfinite() and beside > without + TOLERANCE  # smaller differences could be rounding
    if not (rises or (beside.isfinite() and scorer.pairs_only and lowers_negatives(subject))):
        subject.refuse(
            f"its loss takes no negatives ({without:.4f} without, {beside:.4f} beside two of them): of the texts only "
            "the first targets.matched belong to images; train it without --text-negatives, or have its loss add them"
        )


def lowers_negatives(subject: Subject, draws: int = 8) -> bool:
    """Whether a small step down the loss would lower the scores of texts that belong to no image, over several `draws`.

    The loss itself doesn't tell: if it is a mean over some pairs, it may be smaller with more of them.
    """
    scorer, n = subject.scorer, 2
    read = scorer.reader(Texts(CAPTIONS, GRAPHS, matched=n), torch.Generator().manual_seed(0))
    with torch.no_grad():
        images, embedding = scorer.encode_images(scorer.pixel_scale(subject.images[:n])), scorer.encode_texts(read)
    texts = map_tensors(embedding, lambda part: part.requires_grad_() if part.is_floating_point() else part)
    inputs = [part for part in leaves(texts) if part.requires_grad]
    targets, agreement = Targets(torch.eye(n, len(TEXTS), dtype=torch.bool), None, n), 0.0
    for _ in range(draws):
        loss, scores = scorer.loss(images, texts, targets), scorer.similarity(images, texts)[:, n:].sum()
        pushes, gains = (torch.autograd.grad(what, inputs, allow_unused=True) for what in (loss, scores))
        for push, gain in zip(pushes, gains, strict=True):
            agreement += 0.0 if push is None or gain is None else (push * gain)[n:].sum().item()
    return agreement > 0
