"""Lists the scorers and towers that studies can train.

python -m models
"""

from envs.common.command_help import no_options
from envs.common.errors import run_command
from models.registry import specs
from models.towers.sizes import SMALL_TOWERS


def main() -> None:
    """Print the names, below the options that take them."""
    no_options("python -m models")
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


if __name__ == "__main__":
    run_command(main)
