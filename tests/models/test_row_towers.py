"""Towers that read an image in columns."""

import pytest
import torch

from menagerie.models.towers.build import build_towers
from menagerie.models.towers.config import TextSpace, TowerConfig
from tests.helpers.scorers import WORDS


def row_towers(name: str = "row"):
    torch.manual_seed(0)
    return build_towers(TowerConfig(name, resolution=40), TextSpace(WORDS, 8))


def test_a_token_is_a_column():
    visual = row_towers().model.visual
    pixels = torch.randn(1, 3, 40, 40)
    changed = pixels.clone()
    changed[..., 12:16] += 1
    before, after = visual.conv1(pixels), visual.conv1(changed)
    assert before.shape == (1, 64, 1, 10)
    assert (before != after).any(1).squeeze().nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize(("name", "told_apart"), [("row", True), ("row-sinusoidal", True), ("row-no-positions", False)])
def test_only_positions_tell_columns_apart(name, told_apart):
    """Without them an image and its mirror image are the same to the tower."""
    pixels = torch.randn(1, 3, 40, 10).repeat_interleave(4, 3)
    towers = row_towers(name)
    first, mirrored = towers.image.pool(pixels), towers.image.pool(pixels.flip(3))
    assert torch.allclose(first, mirrored, atol=1e-5) != told_apart


@pytest.mark.parametrize(("name", "trained"), [("row", True), ("row-sinusoidal", False), ("row-no-positions", False)])
def test_fixed_positions_are_not_trained(name, trained):
    assert row_towers(name).model.visual.positional_embedding.requires_grad is trained
