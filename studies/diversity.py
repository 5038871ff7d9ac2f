"""Does diversity of training make a model generalise to compositions that it has never seen, and does language?

Training has animals in more or fewer of the textures (`coverage`), with equally many images and steps. Every model is
tested on the same images, of animals in textures that no training has on them. Three kinds of supervision have the same
image tower: captions, captions of animals alone, and classes of animals (Abbasi et al. 2024). Further runs are in
worlds with other numbers of animals and textures, and with more images of the same compositions (Uselis et al. 2025).

    python studies/diversity.py --preset smoke           # tiny, a minute on 2 cores
    python studies/diversity.py                          # laptop: 12 animals, 12 textures, 32 px, three seeds
    python studies/diversity.py --models clip sparo      # captions for each of them

Ends with `report.html`, `results.csv`, `robustness.csv`, `cells.jsonl` and per-record predictions in `--out`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.coverage import round_coverage
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import EIGHT, SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy
from menagerie.studies.measures.recognition import Recognition

Supervision = Literal["captions", "objects", "classes"]
CLASSIFIER = "classifier"


@dataclass(frozen=True)
class Diversity(SplitStudy):
    """Diversity, language and unseen compositions"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe()

    models: tuple[str, ...] = ("clip",)
    """Scorers that train on captions, and on captions of animals alone. On classes a classifier is trained, whose image
    tower has as many parameters as CLIP's."""
    supervision: Annotated[tuple[Supervision, ...], WHAT, FIRST, GROWS, Several(1)] = ("captions", "objects", "classes")
    """Supervision of training: captions with textures, captions of animals alone, or classes of animals."""
    coverage: Annotated[Axis[float], SHARE] = (0.167, 0.333, 0.5, 0.667, 0.833)
    """Shares of the compositions (animal and texture) in training: multiples of 1 / `classes`, below 1."""
    classes: Annotated[int, DATA, FIRST, Range(2, 1000)] = 6
    """Number of classes of animals, and of textures. Training leaves out combinations of an animal class and a texture
    class."""
    worlds: Annotated[tuple[str, ...], DATA, FIRST, GROWS] = ("four-textures", "eight-textures")
    """Further worlds, of n animals and n textures, for a grid of n and k: with captions only, training has each animal
    in k of the n textures, for every even k below n."""
    more_scenes: Annotated[tuple[int, ...], DATA, FIRST, SCENES, GROWS] = (12_000,)
    """Further numbers of training images, with captions at the lowest coverage."""
    objects: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(1, MOST)] = (1, 2)
    """Numbers of objects in training images."""
    test_objects: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2,)
    """Numbers of objects in test images."""
    layout: Annotated[Literal["apart", "rows", "overlap"], DATA, FIRST] = "apart"
    """Where objects stand: side by side and above, in two rows, or in front of one another."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 4000
    """Training images of every run but those of `more_scenes`."""
    world: Annotated[str, DATA, FIRST] = "twelve-textures"
    """Vocabulary of the scenes, with at least twice as many animals and textures as --classes."""

    def check_given(self, preset: AnyStudy) -> None:
        if self.split:
            raise UserError("--split can't be used, because this study varies it; give a --recipe of kind multi-object")
        super().check_given(preset)

    def check(self) -> None:
        super().check()
        if CLASSIFIER in self.models:
            raise UserError(
                f"--models {CLASSIFIER}: it learns from classes; give models that read captions, and --supervision "
                "classes for it"
            )
        if max(self.coverage) >= 1:
            raise UserError("--coverage 1 leaves no composition unseen for tests; give shares below 1")
        for share in self.coverage:
            round_coverage(share, self.classes)
        for name in self.worlds:
            if (n := sides(load_world(name))[0]) != sides(load_world(name))[1] or n % 2 or n < 4:
                raise UserError(f"--worlds {name} needs as many textures as animals, and an even number from 4 on")

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan every supervision at every coverage, then captions in further worlds and with more images."""
        place = {"world": self.world, "classes": self.classes, "images": self.train_scenes}
        for seed in range(self.seeds):
            for share in self.coverage:
                for supervision in self.supervision:
                    for model in self.models if supervision != "classes" else (CLASSIFIER,):
                        yield self.run(model, seed, supervision, share, **place)
            for model in self.models:
                for world in self.worlds:
                    classes = sides(load_world(world))[0] // 2
                    for shown in range(1, classes):
                        share = round(shown / classes, 3)
                        yield self.run(model, seed, "captions", share, self.train_scenes, world, classes)
                for images in self.more_scenes:
                    yield self.run(model, seed, "captions", min(self.coverage), images, self.world, self.classes)

    def run(self, model: str, seed: int, supervision: str, share: float, images: int, world: str, classes: int) -> Arm:
        """Return the training run with these settings, and with the labels of all runs of the study."""
        names = load_world(world)
        fields: dict[str, Any] = {"coverage": share, "classes": classes, "world": world, "train_scenes": images}
        fields["attributes"] = float(supervision == "captions")
        options = {"animals": names.animals} if supervision == "classes" else {}
        arm = self.at(model, seed, **fields, **options)
        labels = {"supervision": self.name_of(supervision, model), "world": world, "coverage": share, "images": images}
        shown = round_coverage(share, classes) * sides(names)[1] / classes
        return arm._replace(labels=labels | {"values": min(sides(names)), "combinations": round(shown, 2)})

    def name_of(self, supervision: str, model: str) -> str:
        """Return a supervision's name in tables, with the model's name if several models train on captions."""
        return supervision if supervision == "classes" or len(self.models) == 1 else f"{supervision}, {model}"

    def measurements(self, arm: Arm) -> Sequence[Recognition]:
        return (self.recognition(arm),)

    def recognition(self, arm: Arm) -> Recognition:
        """Return the measure of a run: recognition of animals, and of textures if its captions have them."""
        return Recognition(textures=str(arm.labels["supervision"]).startswith("captions"))

    def page(self, records: Records) -> Iterable[Part]:
        from menagerie.studies.pages.diversity import DiversityPage

        return DiversityPage(self, records).parts()


def sides(world: World) -> tuple[int, int]:
    """Return the numbers of animals and of textures."""
    return len(world.animals), len(world.textures)


PRESETS = {
    "smoke": Diversity(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24, "recipe": Recipe(steps=30, batch=32, warmup=5)},
        **{"classes": 4, "coverage": (0.25, 0.75), "worlds": ("four-textures",), "more_scenes": (360,)},
        **{"train_scenes": 240, "views": 4},
    ),
    "laptop": Diversity(
        **EIGHT | {"world": "twelve-textures", "recipe": Recipe(steps=1500), "architecture": "micro"}, seeds=3
    ),
}

if __name__ == "__main__":
    main(PRESETS)
