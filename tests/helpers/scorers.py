"""Small scorers and random scene graphs for the tests of models."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import open_clip
import torch

from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.checkpoint import build_scorer
from menagerie.models.registry import specs
from menagerie.models.scorer import Scorer, Tensors
from menagerie.models.towers.config import TextSpace, TowerConfig

OBJECTS = [f"{texture} {animal}" for texture in ("red", "white", "grass") for animal in ("cat", "dog", "pig", "crow")]
PLACES = ["desert", "city", "circus"]
WORDS = tuple(sorted({word for text in (*OBJECTS, *PLACES, "a and in the to left of") for word in text.split()}))
TOWERS = TowerConfig("nano", resolution=32)
TEXTS = TextSpace(WORDS)
OPTIONS = {name: dict(spec.smoke) for name, spec in specs().items()}
OPTIONS["oc-clip"] = {"dim": 16, "relation_dim": 8, "layers": 1, "heads": 2}
SMALL_CLIP = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 48, "layers": 1, "width": 16, "head_width": 8, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


def scorer(name: str, seed: int = 0, **options: object) -> Scorer:
    """A tiny scorer with the weights of `seed`."""
    torch.manual_seed(seed)
    return build_scorer(name, TOWERS, TEXTS, OPTIONS[name] | options).eval()


def small_open_clip(folder: Path) -> str:
    """A small architecture that open_clip knows for the rest of the session, in a file of `folder`; it has no tags."""
    (folder / "small-test.json").write_text(json.dumps(SMALL_CLIP))
    open_clip.add_model_config(folder / "small-test.json")
    return "small-test"


def graph(rng: np.random.Generator, n_objects: int, relation: bool = False) -> SceneGraph:
    """`n_objects` different objects in a place, the first related to the second if requested."""
    objects = rng.choice(OBJECTS, n_objects, replace=False).tolist()
    edges = (Edge("to the left of", 0, 1),) if relation else ()
    return SceneGraph((*objects, str(rng.choice(PLACES))), edges)


def caption(graph: SceneGraph) -> str:
    """Some caption of the graph's words."""
    return "a " + " and a ".join(graph.nodes[:-1]) + f" in the {graph.nodes[-1]}"


def texts(model: Scorer, graphs: Sequence[SceneGraph]) -> Tensors:
    """The model's embeddings of the graphs and their captions."""
    return model.encode_texts(model.read([caption(graph) for graph in graphs], graphs))


def images(n: int, seed: int = 0) -> torch.Tensor:
    """Random normalised images (n, 3, 32, 32)."""
    return torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


# A file of a user's own: a linear map on the images of a frozen, trained CLIP.
STAGED = """
import torch
from menagerie.models.scorer import Scorer
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.spec import ScorerSpec, Stage

class Linear(CLIPScorer):
    spec = ScorerSpec(name="linear", implementation="", config=CLIPScorer.config_class, stage=Stage("clip"))

    def __init__(self, towers, texts, config, base):
        Scorer.__init__(self, towers, texts)
        self.config, self.base, self.reader, self.pixel_scale = config, base, base.reader, base.pixel_scale
        self.texts = base.texts
        self.map = torch.nn.Linear(32, 32, bias=False)

    def encode_images(self, pixels):
        return torch.nn.functional.normalize(self.map(self.base.encode_images(pixels)), dim=-1)

    def encode_texts(self, texts):
        return self.base.encode_texts(texts)

    def backbones(self):
        return self.base.backbones()
"""
