"""Configurations of towers and scorers, free of torch so that `--help` answers at once."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TowerConfig:
    """Which towers a scorer is built on."""

    architecture: str = "mini"
    """A name in `models.towers.build.SMALL_TOWERS` or any open_clip architecture, such as ViT-B-16."""
    pretrained: str = ""
    """open_clip's name of pretrained weights, or a local file of them; empty trains from scratch."""
    resolution: int = 64
    """Side of the square images, in pixels."""
