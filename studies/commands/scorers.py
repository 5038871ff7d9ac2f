"""List the scorers and towers that studies can train."""

from dataclasses import dataclass

from menagerie.models.registry import specs
from menagerie.models.towers.config import SMALL_TOWERS


@dataclass(frozen=True)
class Config:
    """No options."""


def run(config: Config) -> None:
    """Print the names, below the options that take them."""
    scorers = {name: ", ".join(filter(None, (spec.title, spec.source))) for name, spec in specs().items()}
    sizes = {name: size["vision_cfg"] for name, size in SMALL_TOWERS.items()}
    towers = {name: f"layers: {size['layers']}, width: {size['width']}" for name, size in sizes.items()}
    print("usage: python studies/STUDY.py --models NAME ... --architecture NAME [OPTIONS]")
    print_names("scorers, for --models", scorers | {"FILE.py:Class": "one of your own (docs/scorers.md)"})
    print_names("towers, for --architecture", towers | {"ViT-B-16": "or any of open_clip, also with --pretrained"})


def print_names(title: str, names: dict[str, str]) -> None:
    """Print names and what each stands for."""
    print(f"\n{title}:")
    for name, text in names.items():
        print(f"  {name:<18}{text}")
