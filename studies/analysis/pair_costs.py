"""Measures the scores of all images with all texts, forward and backward, for `studies/throughput.py pairs`.

Image embeddings are noise, and each text has words of its own, so that no phrase occurs twice: the most costly case.
Training scores all pairs at once up to a bound of memory, and in chunks beyond it (menagerie.models.chunks). Up to
`at_once` images, both ways are measured.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from menagerie.envs.core.processes import in_child
from menagerie.envs.core.validation import SIDE, Range, Several
from menagerie.models.registry import check_scorer
from menagerie.studies.analysis.growth_parts import Peak
from menagerie.studies.runs.machine import check_device, check_device_here, processor

if TYPE_CHECKING:
    import torch

    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors

WARM_UP = 2  # images of a first call, which loads libraries


@dataclass(frozen=True)
class Pairs:
    """Score all images with all texts, forward and backward: time, memory and what chunks change."""

    models: Annotated[tuple[str, ...], Several(1)] = ("oc-clip",)
    """Scorers by name, in their papers' sizes."""
    images: Annotated[tuple[int, ...], Range(2, 100_000), Several(1)] = (128, 1024)
    """Numbers of images, each with as many texts."""
    at_once: Annotated[int, Range(0, 100_000)] = 128
    """Largest number of images that are also compared with all texts at once."""
    nodes: Annotated[int, Range(1, 100)] = 3
    """Phrases of a text."""
    relation: bool = False
    """Relate a text's first two phrases."""
    architecture: str = "nano"
    """Towers. They aren't measured, but their patches are compared."""
    resolution: Annotated[int, SIDE] = 112
    """Side of the images in pixels; with nano 14 x 14 patches."""
    device: str = "cpu"
    """cpu or cuda."""


class Pass(NamedTuple):
    """A forward and a backward pass."""

    seconds: float
    gib: float
    """Peak memory in GiB beyond that of the embeddings, gradients included."""
    results: list["torch.Tensor"]
    """The scores, then the gradients of the embeddings."""


class PairCost(NamedTuple):
    """Time and memory of one way of scoring all pairs (as in `Pass`), and its numerical differences."""

    seconds: float
    gib: float
    scores: float = math.nan
    """Largest difference from the scores computed all at once, over the largest of these."""
    gradients: float = math.nan
    """The same for the gradients of the embeddings."""


def embeddings_of(config: Pairs, model: str, count: int) -> tuple["Scorer", "Tensors", "Tensors"]:
    """Return a scorer, random image embeddings, and its embeddings of texts, `count` of each."""
    import torch

    from menagerie.generators.captions.graph import Edge, SceneGraph
    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.texts import map_tensors
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space

    phrases = [[f"w{text * config.nodes + node}" for node in range(config.nodes)] for text in range(count)]
    edges = (Edge("to the left of", 0, 1),) if config.relation and config.nodes > 1 else ()
    captions, graphs = [" ".join(words) for words in phrases], [SceneGraph(tuple(words), edges) for words in phrases]
    towers = TowerConfig(config.architecture, resolution=config.resolution)
    torch.manual_seed(0)
    scorer = build_scorer(model, towers, text_space(towers, [*captions, "to the left of"])).to(config.device)
    with torch.no_grad():
        one = scorer.encode_images(torch.zeros(1, 3, config.resolution, config.resolution, device=scorer.device))
        images = map_tensors(one, lambda part: torch.randn(count, *part.shape[1:], device=part.device))
        texts = scorer.encode_texts(scorer.read(captions, graphs))
    return scorer, images, texts


def one_pass(scorer: "Scorer", images: "Tensors", texts: "Tensors") -> Pass:
    """Score all pairs, and compute the gradients of the embeddings from fixed gradients of the scores."""
    import torch

    from menagerie.models.texts import leaves, map_tensors

    images, texts = (
        map_tensors(
            embedding, lambda part: part.detach().clone().requires_grad_() if part.is_floating_point() else part
        )
        for embedding in (images, texts)
    )
    on_gpu = scorer.device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    peak, start = Peak(), time.perf_counter() if on_gpu else time.process_time()
    scores = scorer.similarity(images, texts)
    (scores * torch.linspace(-1, 1, scores.numel(), device=scores.device).view_as(scores)).sum().backward()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = (time.perf_counter() if on_gpu else time.process_time()) - start
    gib = (torch.cuda.max_memory_allocated() - before) / 2**30 if on_gpu else peak.more() / 1024
    gradients = [part.grad for part in leaves((images, texts)) if part is not None and part.grad is not None]
    return Pass(seconds, gib, [scores.detach(), *gradients])


def pair_costs(config: Pairs, model: str, count: int) -> dict[str, PairCost]:
    """Return the cost of scoring `count` images in chunks and, up to `at_once` images, also all at once."""
    import torch

    from menagerie.models import chunks

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    one_pass(*embeddings_of(config, model, WARM_UP))
    embeddings, both = embeddings_of(config, model, count), count <= config.at_once
    chunks.MOST_BYTES = 0 if both else chunks.MOST_BYTES
    chunked = one_pass(*embeddings)
    found = {"in chunks": PairCost(*chunked[:2])}
    if both:
        chunks.MOST_BYTES = 1 << 60
        whole = one_pass(*embeddings)
        scores, *gradients = (
            ((one - other).abs().max() / other.abs().max()).item()
            for one, other in zip(chunked.results, whole.results, strict=True)
        )
        found = {
            "at once": PairCost(*whole[:2]),
            "in chunks": found["in chunks"]._replace(scores=scores, gradients=max(gradients)),
        }
    return found


def cost_lines(config: Pairs) -> Iterator[str]:
    """Yield the lines of the table."""
    for model in config.models:
        for count in config.images:
            for way, cost in in_child(pair_costs, config, model, count).items():
                numbers = f"{cost.seconds:>12.2f}{cost.gib:>12.2f}"
                if not math.isnan(cost.scores):
                    numbers += f"{cost.scores:>12.0e}{cost.gradients:>12.0e}"
                yield f"{model:<16}{count:>8}  {way:<12}{numbers}"


def measure_pairs(config: Pairs) -> int:
    for model in config.models:
        check_scorer(model)
    check_device(config.device)
    if config.device != "cpu":
        in_child(check_device_here, config.device)
    place, unit = (f"1 thread, {processor()}", "CPU-s") if config.device == "cpu" else (config.device, "s")
    print(f"{config.nodes} phrases a text, {config.architecture} at {config.resolution} px, {place}")
    print(f"{'':<16}{'images':>8}  {'':<12}{unit:>12}{'GiB':>12}{'scores':>12}{'gradients':>12}")
    for row in cost_lines(config):
        print(row, flush=True)
    return 0
