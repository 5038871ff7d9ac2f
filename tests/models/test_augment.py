"""Variations of training images."""

import pytest
import torch
import torch.nn.functional as F

from menagerie.models.training.augment import draw_variation, sampling_grid


@pytest.mark.parametrize(("height", "width"), [(16, 16), (64, 64), (100, 75), (224, 224)])
def test_the_sampling_grid_is_torchs_bit_for_bit(height, width):
    affine = draw_variation(32, torch.Generator().manual_seed(0)).affine
    theirs = F.affine_grid(affine, [32, 3, height, width], align_corners=False)
    assert torch.equal(sampling_grid(affine, height, width), theirs)
