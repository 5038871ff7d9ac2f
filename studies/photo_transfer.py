"""Synthetic first, then real: what does training in a rendered world buy on photographs?

Animals cut out of photographs stand in the places and relations of the synthetic world, so that what an image
shows is known exactly. Four questions, each with a figure: (zero-shot) how well are models that were trained on
rendered animals on photographed ones, and is the gap one of recognition or of binding? (fine-tuning) what do a few
photographs give, from scratch and after synthetic training? (worth) how many real images reach an accuracy, with and
without it? (factors) what in the synthetic world helps?

    python studies/photo_transfer.py --preset smoke      # rendered cut-outs, under 90 seconds
    python studies/photo_transfer.py                     # Debian's tuxpaint-stamps-default
    python studies/photo_transfer.py --package stamps    # unpacked: dpkg-deb -x FILE.deb stamps
    python studies/photo_transfer.py --photos mine       # menagerie photos mine --cutouts ...

Photographs of a test are in no training set: checked by SHA-256 of the files before anything is trained. Ends with
`report.html`, `results.csv`, a table for each question and per-record predictions in `--out`. Run again, it skips what
is finished: also with further parts, models, numbers of photographs or of images.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from menagerie.envs.core.errors import UserError, choose, run_command
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, Range
from menagerie.envs.world import WORLDS
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.checks import check as check_grid
from menagerie.studies.frame.grid import Grid
from menagerie.studies.frame.overrides import check_overrides
from menagerie.studies.frame.presets import SMOKE
from menagerie.studies.grids.grid import chosen_alone
from menagerie.studies.photographs.trainings import FACTORS, PARTS, Factor, Part
from menagerie.studies.runs.command_line import EXECUTION, parse

# What doesn't decide the result of any run: a folder goes on with more of it.
FURTHER = EXECUTION | {"photos", "package", "backgrounds", "parts", "photographs", "other_animals", "images"}
FURTHER |= {"targets", "factors", "factor_models"}


@dataclass(frozen=True)
class Config(Grid):
    """One study of photographs."""

    plain_recipe: ClassVar[BindingRecipe] = BindingRecipe()

    world: str = "pug"
    """Built-in world of the rendered animals."""
    photos: Annotated[Path | None, DATA, FIRST] = None
    """Folder that `menagerie photos` wrote; empty takes the package."""
    package: Annotated[Path | None, DATA, FIRST] = None
    """Where the package was unpacked; empty takes the installed one."""
    rehearsal: Annotated[bool, DATA] = False
    """Without --photos and --package take rendered animals, cut out, for photographs: the numbers mean nothing."""
    backgrounds: Annotated[Path | None, DATA] = None
    """Folder of photographs for backgrounds of the factor of this name, as in `menagerie photos`."""
    parts: Annotated[tuple[Part, ...], WHAT, FIRST] = PARTS
    """Questions: zero-shot, fine-tuning, worth, factors."""
    photographs: Annotated[tuple[int, ...], WHAT, Range(1, 1000)] = (1, 2)
    """Photographs of each animal in fine-tuning; those of the test are others."""
    other_animals: Annotated[tuple[int, ...], WHAT, Range(3, 1000)] = (8, 24, 88)
    """Numbers of other animals whose photographs are trained on in place of those; as many as there are."""
    images: Annotated[tuple[int, ...], WHAT, Range(2, 1_000_000)] = (32, 128, 512, 2048)
    """Distinct images of photographs, rising, that are trained on to find how many reach a target."""
    targets: Annotated[tuple[float, ...], WHAT] = (0.7, 0.8, 0.9)
    """Accuracies to be reached, above chance, 0.5."""
    factors: Annotated[tuple[Factor, ...], WHAT] = FACTORS
    """What is changed in the synthetic world: views, textures, augmentation, backgrounds, vocabulary."""
    factor_models: Annotated[tuple[str, ...], WHAT] = ()
    """Those of --models that are trained with each factor; none takes the last one."""
    tuning_steps: Annotated[int, TRAINING, Range(1, 1_000_000)] = 150
    """Steps on photographs after synthetic training; from scratch all of --steps are on photographs."""
    tuning_rate: Annotated[float, TRAINING, Range(0.001, 10.0)] = 0.3
    """Peak learning rate after synthetic training, as a share of that from scratch."""
    spatial_views: Annotated[int, DATA, Range(1, 10_000)] = 2
    """Views of each synthetic training scene of the spatial split, which has many more scenes."""
    reserve: Annotated[float, DATA, SHARE] = 0.2
    """Share of all animal pairs that no training shows: the test."""
    tuning_reserve: Annotated[float, DATA, SHARE] = 0.4
    """The same among the few animals of which there are several photographs."""
    validation: Annotated[float, DATA, SHARE] = 0.1
    """Share of all pairs kept for validation curves, which select nothing."""
    pairs: tuple[float, ...] = (0.5,)
    """Fraction of the trainable animal pairs in training."""
    hard_negatives: tuple[float, ...] = (0.0,)
    """Fraction of these pairs that have hard negatives too."""
    seeds: int = 3
    """Number of seeds, from 0. Each decides split, training, and which photographs are held out."""

    @property
    def with_factors(self) -> tuple[str, ...]:
        """The models that are trained with each factor."""
        return self.factor_models or self.models[-1:]


PRESETS: dict[str, Config] = {
    "smoke": Config(
        **SMOKE | {"recipe": Recipe(steps=60, batch=32, warmup=5)},
        **{"views": 2, "spatial_views": 1, "seeds": 1, "rehearsal": True, "tuning_steps": 20},
        **{"photographs": (1,), "other_animals": (4,), "images": (16, 64), "targets": (0.55, 0.7)},
        **{"factors": ("augmentation",)},
    ),
    "laptop": Config(tuned="laptop", resolution=32, recipe=Recipe(steps=800), views=8, test_views=2, test_scenes=200),
    # For a GPU.
    "large": Config(
        **{"tuned": "laptop", "resolution": 128, "recipe": Recipe(steps=4000), "tuning_steps": 1000, "seeds": 5},
        **{"models": ("clip", "negclip", "oc-clip"), "factor_models": ("clip", "oc-clip"), "loaders": 4},
    ),
}


def check(config: Config) -> None:
    if config.base or config.split:
        raise UserError("--recipe and --split: photographs and rendered animals have splits of this study's own")
    choose("built-in world for --world, which has the same animals rendered,", config.world, WORLDS)
    for model in config.factor_models:
        choose("value of --factor-models", model, config.models)
    for name in ("pairs", "hard_negatives"):
        if len(getattr(config, name)) != 1:
            raise UserError(f"--{name.replace('_', '-')} is one fraction here, got {getattr(config, name)}")
    for name in ("photographs", "other_animals", "images", "targets"):
        values = getattr(config, name)
        if list(values) != sorted(set(values)) or (not values and name in ("photographs", "images")):
            raise UserError(f"--{name.replace('_', '-')} needs different values in rising order, got {values}")
    if not all(0.5 < target <= 1 for target in config.targets):
        raise UserError(f"--targets are above chance, 0.5, and at most 1; got {config.targets}")
    if not config.parts:
        raise UserError(f"--parts needs one or more of {', '.join(PARTS)}")
    if config.backgrounds and not config.backgrounds.is_dir():
        raise UserError(f"--backgrounds {config.backgrounds} is no folder; give one with photographs of scenery")
    if config.photos and config.package:
        raise UserError("--photos takes the place of --package; leave one of them out")
    check_grid(config)


def main() -> None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    check_overrides(config, PRESETS[preset])
    check(config)
    config = chosen_alone(config)
    out = config.out or Path(f"runs/photo_transfer-{preset}")
    if config.dry_run:
        from menagerie.studies.photographs.run import plan

        plan(config)
        return
    from menagerie.studies.photographs.run import run
    from menagerie.studies.runs.folder import run_folder

    with run_folder(out, config, FURTHER) as folder:
        run(replace(config, out=folder), folder)


if __name__ == "__main__":
    run_command(main)
