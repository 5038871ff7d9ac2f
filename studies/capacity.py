"""How many things can a model bind at once?

Models train on scenes of at most one, two or three different animals, each in a texture of its own, and are tested on
two to six. The false caption has the same words, with the textures of two animals exchanged.

    python studies/capacity.py --preset smoke      # tiny, a minute on 2 cores
    python studies/capacity.py                     # laptop: 8 animals, 8 textures, 32 px, three seeds
    python studies/capacity.py --layout overlap --most 3  # animals hide one another

Ends with `report.html`, `results.csv`, `cells.jsonl` and per-record predictions in `--out`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.validation import SCENES, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.generators.splits.crowd import CrowdRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, Known, as_column
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import EIGHT, SMOKE
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Heading, Lines, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy, grid


@dataclass(frozen=True)
class Capacity(SplitStudy):
    """How many things a model binds"""

    plain_recipe: ClassVar[SplitRecipe] = CrowdRecipe()

    most: Annotated[Axis[int], Range(1, MOST)] = (1, 2, 3)
    """Largest number of things in a training scene: a run for each value, on scenes of one thing up to that number."""
    test_things: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2, 3, 4, 5, 6)
    """Numbers of things in tests."""
    triplets: Annotated[tuple[int, ...], DATA, Several(), Range(0, 2)] = (0, 1, 2)
    """Numbers of triplets (a thing, another of its animal, another of its texture) in further tests of four things."""
    layout: Annotated[Literal["apart", "rows", "overlap"], DATA, FIRST] = "apart"
    """Where things stand: side by side and above, in two rows, or in front of one another."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 16_000
    """Number of training images, whatever the number of things."""
    world: Annotated[str, DATA, FIRST] = "eight-textures"
    """Vocabulary of the scenes, with at least as many animals and textures as a scene has things."""
    mended: Annotated[bool, WHAT] = False
    """If oc-clip is among --models, also train it with our mends: competition weighted by fit, and incomplete
    captions."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Smallest accuracy on swaps of n things that counts as binding n things."""

    def check_given(self, preset: AnyStudy) -> None:
        if self.split:
            raise UserError("--split: how many things training shows is varied here; give a --recipe of kind crowd")
        super().check_given(preset)

    def plan(self, known: Known) -> Iterable[Arm]:
        """Plan every model with each value of `most`. With `mended`, plan each run of OC-CLIP with our mends too."""
        for arm in grid(self, things=self.trained):
            yield arm
            if self.mended and arm.cell.model == "oc-clip":
                mended = self.at("oc-clip", arm.cell.seed, **arm.labels, **MENDS)
                yield mended._replace(labels={"model": MENDED} | arm.labels)

    @property
    def trained(self) -> list[tuple[int, ...]]:
        """For each value of `most`, the numbers of things that training shows."""
        return [tuple(range(1, most + 1)) for most in self.most]

    def page(self, records: Records) -> Iterator[Part]:
        """Yield how many things each model binds, accuracy by number of things and by what captions mention, things
        that are hidden or share features, and all tasks."""
        tests = {f"seen_{n}": f"{n} things" for n in self.test_things}
        shared = {f"triplets_{t}": f"{t} triplets" for t in self.triplets}
        shown = {
            as_column(things): f"training: {'one thing' if things[-1] == 1 else f'up to {things[-1]} things'}"
            for things in self.trained
        }
        names = {model: name_of(model) for model in records.labels("model")}
        words = {"subset": tests | shared, "things": shown, "model": names}
        swaps = records.where(task="swap", subset=tuple(tests))
        yield from self.answer(swaps)
        yield Lines(
            "capacity",
            swaps,
            x="subset",
            along="things in the image",
            panels=("things",),
            level=self.enough,
            words=words | {"subset": {f"seen_{n}": str(n) for n in self.test_things}},
            says=SAYS,
        )
        yield Table("swaps", swaps, ("things", "model"), intervals=True, words=words, says="The same as a table.")
        yield Heading("By what captions mention", MENTIONING)
        tasks = records.where(task=("two mentioned", "swap", "swap all"), subset=tuple(tests))
        yield Table("mentioned", tasks, ("things", "subset", "model"), ("task",), intervals=True, words=words)
        if self.layout != "apart":
            yield from self.occluded(swaps, words)
        if shared:
            yield Heading("Things that share features", SHARED)
            found = records.where(task="swap", subset=tuple(shared))
            yield Table("triplets", found, ("things", "model"), intervals=True, words=words)
        yield Heading("All tasks")
        for test, name in tests.items():
            yield Table(
                f"tasks-{test}", records.where(subset=test), ("things", "model"), ("task",), words=words, says=name
            )

    def occluded(self, swaps: Records, words: Mapping[str, Mapping[str, str]]) -> Iterator[Part]:
        """Yield a figure and a table of accuracy by how much of the exchanged things is hidden."""
        from menagerie.studies.analysis.hidden import BINS, hidden_bins

        yield Heading("Things that others hide", HIDDEN)
        found = swaps.regrouped(BINS.values(), lambda arm: hidden_bins(arm.file) if arm.file else {})
        words = words | {"subset": {}}
        yield Lines("hidden", found, x="subset", panels=("things",), level=self.enough, words=words)
        yield Table("hidden-table", found, ("things", "model"), intervals=True, words=words)

    def answer(self, swaps: Records) -> Iterator[Part]:
        """Yield a sentence for each model: how many things it binds after training on the most things."""
        widest = as_column(max(self.trained, key=len))
        found = swaps.where(things=widest).estimates(("model", "subset"))
        for model in swaps.labels("model"):
            rising = {n: found[model, f"seen_{n}"] for n in sorted(self.test_things) if (model, f"seen_{n}") in found}
            if not rising:
                continue
            bound = [n for n in rising if all(its.value >= self.enough for k, its in rising.items() if k <= n)]
            says = f"binds up to {bound[-1]} things" if bound else "doesn't bind even two things"
            parts = ", ".join(f"{n}: {100 * its.value:.1f} [{its.bounds}]" for n, its in rising.items())
            yield Sentence(
                f"Trained on up to {max(self.most)} things, {name_of(model)} {says} (at least {self.enough:.0%} of "
                f"swaps right). Accuracy (%, chance 50) by number of things: {parts}."
            )


def name_of(model: str) -> str:
    """A model's name in sentences."""
    return f"{title_of('oc-clip')} with our mends" if model == MENDED else title_of(model)


MENDED = "oc-clip, mended"
MENDS: dict[str, Any] = {"focus": True, "mentioned": 0.7, "attributes": 0.8}  # chosen in docs/results.md
SAYS = """Accuracy (%) on swaps by the number of things in an image. Captions mention at most as many things as training
scenes show. The panels differ in how many things these show; the number of training images is the same. Dashed: the
accuracy from which on a model counts as one that binds. Dotted: chance."""
MENTIONING = """Images are the same, and so are the two textures that the false caption exchanges. Captions mention
these two things alone (two mentioned), as many things as training captions do at most (swap), or all things of the
image (swap all). A column has no number where another one has the same captions. Chance is 50 %."""
HIDDEN = """Accuracy (%) on swaps by how much of the two exchanged things others hide; the more hidden one counts.
Images of all numbers of things together; chance is 50 %."""
SHARED = """Scenes of four things. In a triplet one thing has the animal of a second and the texture of a third, so that
no single feature tells it from the others. Accuracy (%) on swaps; chance is 50."""

FIVE = ("clip", "filip-phrases", "sparo", "fdt", "oc-clip")
PRESETS = {
    "smoke": Capacity(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24},
        **{"most": (2,), "test_things": (2, 3), "triplets": (1,), "train_scenes": 240, "views": 4},
    ),
    "laptop": Capacity(
        **EIGHT | {"world": "eight-textures", "recipe": Recipe(steps=3000, single_object_phase=0.25)},
        seeds=3,
        models=FIVE,
        mended=True,
    ),
}

if __name__ == "__main__":
    main(PRESETS)
