"""Weights of a scorer in a new one that reads other texts."""

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.carry_over import carry_over, widen, word_rows
from menagerie.models.checkpoint import build_scorer, save_checkpoint
from menagerie.models.registry import spec_of, specs
from menagerie.models.towers.config import TextSpace, TowerConfig

TOWERS = TowerConfig("nano", resolution=32)
BEFORE = TextSpace(("a", "blue", "cat", "dog", "red", "white"), 20)
PHOTOGRAPHS = TextSpace(("a", "bench", "cat", "red", "zebra"), 28)
NOW = widen(PHOTOGRAPHS, BEFORE)


def scorer(model, texts, seed, **options):
    torch.manual_seed(seed)
    return build_scorer(model, TOWERS, texts, dict(spec_of(model).smoke) | options).eval()


def test_widened_text_space_keeps_every_word_and_position():
    assert widen(PHOTOGRAPHS, BEFORE) == TextSpace(("a", "bench", "blue", "cat", "dog", "red", "white", "zebra"), 28)
    assert widen(BEFORE, NOW) == NOW
    assert word_rows(BEFORE.words, NOW.words) == {0: 0, 1: 1, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 9}


# A network reads maps of as many columns as the longest text has tokens; decoders predict each word.
REFUSED = ("dcsm", "captioner", "coca", "read-clip")


@pytest.mark.parametrize("model", specs())
def test_carried_over_weights_score_old_texts_as_before(model, tmp_path):
    """In every scorer whose other parts don't depend on the texts; the others refuse in one line."""
    old, new = scorer(model, BEFORE, 0), scorer(model, NOW, 1)
    save_checkpoint(tmp_path, model, old)
    if model in REFUSED:
        with pytest.raises(UserError, match="depends on the words of texts or the length of the longest"):
            carry_over(new, model, tmp_path)
        return
    carried = carry_over(new, model, tmp_path)
    assert (carried.words, carried.new_words) == (6, ("bench", "zebra"))
    assert (carried.positions, carried.new_positions) == (20, 8)
    captions = ["a red cat", "a white dog"]
    graphs = [SceneGraph(("red cat",)), SceneGraph(("white dog",))]
    pixels = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        scores = [
            its.similarity(its.encode_images(its.pixel_scale(pixels)), its.encode_texts(its.read(captions, graphs)))
            for its in (old, new)
        ]
    torch.testing.assert_close(*scores, atol=1e-5, rtol=1e-4)


def test_carry_over_leaves_new_words_and_positions_as_drawn(tmp_path):
    save_checkpoint(tmp_path, "clip", scorer("clip", BEFORE, 0))
    fresh, new = scorer("clip", NOW, 1), scorer("clip", NOW, 1)
    carry_over(new, "clip", tmp_path)
    rows = [2, 8]  # bench, zebra
    assert torch.equal(fresh.model.token_embedding.weight[rows], new.model.token_embedding.weight[rows])
    assert torch.equal(fresh.model.positional_embedding[20:], new.model.positional_embedding[20:])
    assert not torch.equal(fresh.model.token_embedding.weight[1], new.model.token_embedding.weight[1])
