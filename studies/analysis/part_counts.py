"""Parameters, multiplications and forward passes of a scorer's three parts: images, texts and their comparison."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from menagerie.generators.captions.templates import Caption
    from menagerie.models.scorer import Scorer


class Row(NamedTuple):
    """One scorer on its towers."""

    scorer: str
    architecture: str
    context: int


def captions_of(world: str, count: int) -> list["Caption"]:
    """Captions that state a relation, of random scenes."""
    from menagerie.envs.worlds import load_world, random_scenes
    from menagerie.generators.captions.templates import caption

    return [caption(scene, 0, "relation") for scene in random_scenes(load_world(world), count, seed=0, pairs=1.0)]


def distinct_captions(nodes: int, count: int) -> list["Caption"]:
    """Texts whose graphs share no phrase and no predicate."""
    from menagerie.generators.captions.graph import Edge, SceneGraph
    from menagerie.generators.captions.templates import Caption

    graphs = (
        SceneGraph(
            tuple(f"thing {number} {node}" for node in range(nodes)),
            tuple(Edge(f"beside {number} {node}", node, node + 1) for node in range(nodes - 1)),
        )
        for number in range(count)
    )
    return [Caption(", ".join(graph.nodes), graph) for graph in graphs]


def build(row: Row, resolution: int, captions: list["Caption"]) -> "Scorer":
    """The row's scorer with the options of its paper."""
    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.config import TextSpace, TowerConfig
    from menagerie.models.towers.tokenizers import words_of

    words = words_of(text for each in captions for text in (each.text, *each.graph.nodes, *predicates(each)))
    towers = TowerConfig(row.architecture, resolution=resolution)
    return build_scorer(row.scorer, towers, TextSpace(words, row.context)).train()


def predicates(caption: "Caption") -> list[str]:
    """The predicates of a text's graph."""
    return [edge.predicate for edge in caption.graph.edges]


def passes(scorer: "Scorer", captions: list["Caption"], side: int) -> list[Callable[[], object]]:
    """The three parts of a forward pass, each of which goes on from the results of those before it."""
    import torch

    texts = scorer.read([c.text for c in captions], [c.graph for c in captions])
    pixels, codes = torch.zeros(len(captions), 3, side, side, device=scorer.device), {}

    def images() -> None:
        codes["images"] = scorer.encode_images(pixels)

    def read() -> None:
        codes["texts"] = scorer.encode_texts(texts)

    return [images, read, lambda: scorer.similarity(codes["images"], codes["texts"])]


def parameters(scorer: "Scorer") -> dict[str, int]:
    """Numbers of weights by part."""
    towers = {name: sum(its.numel() for its in own) for name, own in scorer.backbones().items()}
    return towers | {"own": sum(its.numel() for its in scorer.parameters()) - sum(towers.values())}


def multiplications(scorer: "Scorer", captions: list["Caption"], side: int) -> tuple[int, int, int]:
    """Multiply-adds of each part, by the shapes alone; matrix products and convolutions count."""
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
    """How many images with as many texts pass per second: the median over repeats, after one that doesn't count."""
    from statistics import median

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
