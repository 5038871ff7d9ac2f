"""Real photographs and their captions train through the same loop as the splits."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from menagerie.generators.sources.coco import CocoCaptions
from menagerie.generators.sources.mixture import Mixture
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.loop import train_scorer

SHARED = Path(os.environ.get("MENAGERIE_SHARED", Path(__file__).parents[3] / "shared"))
COCO = SHARED / "data" / "coco-mini"
TOWERS = TowerConfig("nano", resolution=32, tokenizer="open_clip")

needs_photographs = pytest.mark.skipif(not COCO.is_dir(), reason=f"there is no {COCO}; set MENAGERIE_SHARED")


@pytest.fixture(scope="module")
def photographs():
    return CocoCaptions(COCO / "annotations" / "captions_train2017.json", COCO / "train2017", resolution=32)


def trained(name, data, recipe):
    """A scorer trained on `data`, and its losses."""
    torch.manual_seed(0)
    model = build_scorer(name, TOWERS, text_space(TOWERS, data.texts()), dict(spec_of(name).small))
    losses = []
    train_scorer(model, data, recipe, 0, report=lambda progress: losses.append(progress.loss))
    return model, losses


@needs_photographs
def test_photographs_train_through_the_same_loop(photographs, tmp_path):
    """26 photographs of five captions each, byte pairs: 30 steps bring the loss down."""
    model, losses = trained("oc-clip", photographs, Recipe(steps=30, batch=16, learning_rate=4e-3, warmup=6))
    assert len(losses) == 30
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert model.texts.words == ()
    assert 20 < model.texts.context <= 77
    save_checkpoint(tmp_path, "oc-clip", model)
    back = load_checkpoint(tmp_path, "oc-clip")
    captions = photographs.captions([0, 1], [0, 0])
    texts = [[caption.text for caption in captions], [caption.graph for caption in captions]]
    pixels = model.pixel_scale(photographs.images([0, 1]))
    with torch.no_grad():
        one, other = (m.similarity(m.encode_images(pixels), m.encode_texts(m.read(*texts))) for m in (model, back))
    assert torch.equal(one, other)


@needs_photographs
def test_a_mixture_of_scenes_and_photographs_trains(photographs, data):
    """A quarter of each batch are photographs; the same seed, the same losses."""
    mixture = Mixture([SplitDataset(data.split, "train"), photographs], [0.75, 0.25])
    recipe = Recipe(steps=6, batch=8, warmup=2)
    runs = [trained("clip", mixture, recipe)[1] for _ in range(2)]
    assert runs[0] == runs[1]
    assert np.isfinite(runs[0]).all()
