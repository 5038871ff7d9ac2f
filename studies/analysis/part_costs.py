"""Measures the cost of a scorer's parts: parameters, multiplications and time, for `studies/throughput.py parts`.

OC-CLIP's text tower reads phrases, not sentences. Its binding module compares every image with every graph; this cost
doesn't depend on the image tower. Table 9 of the paper counts the batch of one GPU, with the texts of all GPUs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SIDE, Range, validate
from menagerie.models.registry import check_scorer, spec_of

if TYPE_CHECKING:
    from menagerie.generators.captions.templates import Caption
    from menagerie.models.scorer import Scorer


class TowerRow(NamedTuple):
    """One scorer on its towers."""

    scorer: str
    architecture: str
    context: int


def captions_of(world: str, count: int) -> list["Caption"]:
    """Return captions of random scenes that state a relation."""
    from menagerie.envs.worlds import load_world, random_scenes
    from menagerie.generators.captions.templates import caption

    return [caption(scene, 0, "relation") for scene in random_scenes(load_world(world), count, seed=0, pairs=1.0)]


def distinct_captions(nodes: int, count: int) -> list["Caption"]:
    """Return captions whose graphs have no phrase and no predicate in common."""
    from menagerie.generators.captions.graph import Edge, SceneGraph
    from menagerie.generators.captions.templates import Caption

    graphs = (
        SceneGraph(
            tuple(f"object {number} {node}" for node in range(nodes)),
            tuple(Edge(f"beside {number} {node}", node, node + 1) for node in range(nodes - 1)),
        )
        for number in range(count)
    )
    return [Caption(", ".join(graph.nodes), graph) for graph in graphs]


def build_row(row: TowerRow, resolution: int, captions: list["Caption"]) -> "Scorer":
    """Build the row's scorer with its paper's options."""
    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.config import TextSpace, TowerConfig
    from menagerie.models.towers.tokenizers import distinct_words

    graphs = [caption.graph for caption in captions]
    predicates = [edge.predicate for graph in graphs for edge in graph.edges]
    texts = [caption.text for caption in captions] + [node for graph in graphs for node in graph.nodes]
    words = distinct_words([*texts, *predicates])
    towers = TowerConfig(row.architecture, resolution=resolution)
    return build_scorer(row.scorer, towers, TextSpace(words, row.context)).train()


def passes(scorer: "Scorer", captions: list["Caption"], side: int) -> list[Callable[[], object]]:
    """Make the three parts of a forward pass, as functions; the last one uses the results of the other two."""
    import torch

    texts = scorer.read([c.text for c in captions], [c.graph for c in captions])
    pixels, embeddings = torch.zeros(len(captions), 3, side, side, device=scorer.device), {}

    def images() -> None:
        embeddings["images"] = scorer.encode_images(pixels)

    def read() -> None:
        embeddings["texts"] = scorer.encode_texts(texts)

    return [images, read, lambda: scorer.similarity(embeddings["images"], embeddings["texts"])]


def parameters_by_part(scorer: "Scorer") -> dict[str, int]:
    """Return the numbers of weights by part."""
    towers = {name: sum(weight.numel() for weight in part) for name, part in scorer.backbones().items()}
    return towers | {"own": sum(weight.numel() for weight in scorer.parameters()) - sum(towers.values())}


def multiplications(scorer: "Scorer", captions: list["Caption"], side: int) -> tuple[int, int, int]:
    """Count the multiply-adds of each part from shapes alone; matrix products and convolutions count."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    parts, counts = passes(scorer, captions, side), []
    with FakeTensorMode(allow_non_fake_inputs=True):
        for part in parts:
            with FlopCounterMode(display=False) as counter:
                part()
            counts.append(counter.get_total_flops() // 2)
    return tuple(counts)


def images_per_second(scorer: "Scorer", captions: list["Caption"], side: int, repeats: int, device: str) -> float:
    """Return images per second, in batches with as many texts as images: the median over repeats, without the first."""
    import torch

    spans = []
    with torch.no_grad():
        parts = passes(scorer.to(device), captions, side)
        for _ in range(repeats + 1):
            start = time.perf_counter()
            for part in parts:
                part()
            if device != "cpu":
                torch.cuda.synchronize()
            spans.append(time.perf_counter() - start)
    return len(captions) / median(spans[1:])


# Total relative to CLIP's in table 9, by scorer and towers, at a global batch of 8192; a multiply-add counts as one.
# The table prints 1x for OC-CLIP with L and 1.3x for CLIP; these are the values of the paper's text.
PAPER = {
    ("oc-clip", "ViT-B-16-text-256"): 2.2,
    ("clip", "ViT-B-16"): 1.0,
    ("oc-clip", "ViT-L-14-text-256"): 1.3,
    ("clip", "ViT-L-14"): 1.0,
}


@dataclass(frozen=True)
class Parts:
    """Count what images, texts and their comparison cost, forward, and time them on request (OC-CLIP's table 9)."""

    rows: tuple[str, ...] = (
        "clip=ViT-B-16/77",
        "oc-clip=ViT-B-16-text-256/20",
        "clip=ViT-L-14/77",
        "oc-clip=ViT-L-14-text-256/20",
    )
    """SCORER=TOWERS/CONTEXT; a total is divided by that of the last clip before it, or of the first row."""
    resolution: Annotated[int, SIDE] = 224
    """Side of the square images, in pixels."""
    batch: Annotated[int, Range(2, 1_000_000)] = 64
    """Images, and texts, of one worker."""
    workers: Annotated[int, Range(1, 1_000_000)] = 128
    """Workers whose texts every image is compared with."""
    nodes: Annotated[int, Range(0, 1000)] = 10
    """Phrases of a text's graph, each with a relation to the next and in no other text; 0 takes captions of the world,
    whose few phrases are encoded once each."""
    world: str = "pug"
    """World of the captions that are read with --nodes 0: two animals, a background and a relation each."""
    timed: Annotated[int, Range(0, 1_000_000)] = 0
    """Images to time a forward pass of; 0 only counts, which needs no weights and takes seconds."""
    repeats: Annotated[int, Range(1, 100_000)] = 3
    """Number of timed passes; figures are medians over them."""
    device: str = "cpu"
    """Where passes are timed: cpu (one thread) or cuda."""


class PartCost(NamedTuple):
    """The cost of a row, by parts: images, texts and their comparison."""

    parameters: dict[str, int]
    """Number of parameters of the vision tower, of the text tower, and of the scorer itself."""
    multiplications: tuple[int, int, int]
    """Multiply-adds of each part of a forward pass."""
    speed: str
    """Images per second of a whole forward pass; empty if it wasn't timed."""

    def total(self, workers: int) -> int:
        """Return the multiply-adds of one worker's step: its images and texts once, its images with the texts of all
        workers."""
        images, texts, comparison = self.multiplications
        return images + texts + comparison * workers


def parse_tower_row(text: str) -> TowerRow:
    """Parse one value of `--rows`; raises if it isn't valid."""
    scorer, _, towers = text.partition("=")
    architecture, _, context = towers.rpartition("/")
    if not (architecture and context.isdecimal() and 2 <= int(context) <= 1000):
        raise UserError(f"--rows {text!r} is not SCORER=TOWERS/CONTEXT, such as clip=ViT-B-16/77")
    check_scorer(scorer)
    return TowerRow(scorer, architecture, int(context))


def row_cost(row: TowerRow, config: Parts, captions: list["Caption"]) -> PartCost:
    scorer, texts, side = build_row(row, config.resolution, captions), captions[: config.timed], config.resolution
    counts = multiplications(scorer, captions[: config.batch], side)
    speed = f"{images_per_second(scorer, texts, side, config.repeats, config.device):.2f}" if texts else ""
    return PartCost(parameters_by_part(scorer), counts, speed)


def parse_rows(config: Parts) -> list[TowerRow]:
    """Check all options; returns the rows."""
    from menagerie.models.towers.build import check_towers
    from menagerie.models.towers.config import TowerConfig
    from menagerie.studies.runs.machine import check_device_here

    validate(config)
    check_device_here(config.device)
    if not config.rows:
        raise UserError("--rows needs one or more, such as clip=ViT-B-16/77")
    rows = [parse_tower_row(text) for text in config.rows]
    for row in rows:
        check_towers(TowerConfig(row.architecture, resolution=config.resolution))
        if spec_of(row.scorer).stage:
            raise UserError(f"--rows {row.scorer} is built on a trained scorer; give scorers that train in one stage")
    return rows


def measure_parts(config: Parts) -> int:
    import torch

    from menagerie.studies.runs.machine import processor

    rows = parse_rows(config)
    count = max(config.batch, config.timed)
    captions = distinct_captions(config.nodes, count) if config.nodes else captions_of(config.world, count)
    if config.device == "cpu":
        torch.set_num_threads(1)
    costs = {row: row_cost(row, config, captions) for row in rows}
    base = next(iter(costs.values()))
    read = f"{config.nodes} phrases each" if config.nodes else f"the world {config.world}"
    print(
        f"{config.resolution} px, {config.batch} images with as many texts of {read}, forward; total: with the "
        f"texts of {config.workers} workers\n"
        f"{'':<32}{'million parameters':>24}{'10^9 multiply-adds':>30}{'total':>8}{'paper':>8}{'images/s':>10}\n"
        f"{'':<32}{'vision':>8}{'text':>8}{'own':>8}{'images':>10}{'texts':>10}{'compare':>10}"
    )
    for row, cost in costs.items():
        base = cost if row.scorer == "clip" else base
        ratio = cost.total(config.workers) / base.total(config.workers)
        weights = "".join(f"{cost.parameters[name] / 1e6:>8.1f}" for name in ("vision", "text", "own"))
        counts = "".join(f"{count / 1e9:>10.1f}" for count in cost.multiplications)
        theirs = PAPER.get((row.scorer, row.architecture), "")
        print(f"{row.scorer + ' ' + row.architecture:<32}{weights}{counts}{ratio:>8.2f}{theirs:>8}{cost.speed:>10}")
    if config.timed:
        print(f"images/s: {config.timed} at a time, forward, {processor() if config.device == 'cpu' else 'GPU'}")
    return 0
