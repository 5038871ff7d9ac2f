"""How many objects can a model bind at once?

Models train on scenes of at most one, two or three different animals, each in a texture of its own, and are tested on
two to six. The false caption has the same words, with the textures of two animals exchanged.

    python studies/capacity.py --preset smoke      # tiny, a minute on 2 cores
    python studies/capacity.py                     # laptop: 8 animals, 8 textures, 32 px, three seeds, two layers
    python studies/capacity.py --layout overlap --most 3  # animals hide one another
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any, ClassVar, Literal

from menagerie.envs.core.options import DATA, FIRST, WHAT
from menagerie.envs.core.validation import SCENES, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.arm import Arm, KnownResults, as_column
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import LEARNS, SMOKE
from menagerie.studies.frame.options import Axis
from menagerie.studies.frame.parts import Heading, Lines, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy, grid


@dataclass(frozen=True)
class Capacity(SplitStudy):
    """How many objects a model binds"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split",)

    most: Annotated[Axis[int], Range(1, MOST)] = (1, 2, 3)
    """Largest number of objects in a training scene; a run for each value."""
    test_objects: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2, 3, 4, 5, 6)
    """Numbers of objects in tests."""
    triplets: Annotated[tuple[int, ...], DATA, Several(), Range(0, 2)] = (0, 1, 2)
    """Further tests of four objects, by how many triplets (an object, another of its animal and of its texture)."""
    layout: Annotated[Literal["apart", "rows", "overlap"], DATA, FIRST] = "apart"
    """Where objects stand: side by side and above, in two rows, or in front of one another."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 16_000
    """Number of training images."""
    world: Annotated[str, DATA, FIRST] = "eight-textures"
    """World, with at least as many animals and textures as a scene has objects."""
    improved: Annotated[bool, WHAT] = False
    """Also train oc-clip, if it is among --models, with our changes: competition weighted by fit, incomplete
    captions."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Accuracy on swaps of n objects from which on a model binds n objects."""

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        for arm in grid(self, objects=self.trained):
            yield arm
            if self.improved and arm.cell.model == "oc-clip":
                improved = self.at("oc-clip", arm.cell.seed, **arm.labels, **CHANGES)
                yield improved._replace(labels={"model": IMPROVED} | arm.labels)

    @property
    def trained(self) -> list[tuple[int, ...]]:
        """For each value of `most`, the numbers of objects that training shows."""
        return [tuple(range(1, most + 1)) for most in self.most]

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.analysis.errors import HIDDEN_SHARES, hidden_bins

        tests, shared = tuple(f"seen_{n}" for n in self.test_objects), tuple(f"triplets_{t}" for t in self.triplets)
        words: dict[str, dict[Any, str]] = {
            "subset": {f"seen_{n}": f"{n} objects" for n in self.test_objects},
            "objects": {as_column(shown): f"training: up to {shown[-1]} objects" for shown in self.trained},
            "model": {model: model_title(model) for model in records.labels("model")},
        }
        look: dict[str, Any] = {"x": "subset", "panels": ("objects",), "level": self.enough, "words": words}
        rows, numbers = ("objects", "model"), {"intervals": True, "words": words}
        swaps = records.where(task="swap", subset=tests)
        yield from self.answer(swaps)
        yield Lines("capacity", swaps, along="objects in the image", says=SAYS, **look)
        yield Heading("By what captions mention", MENTIONING)
        tasks = records.where(task=("two mentioned", "swap", "swap all"), subset=tests)
        yield Table("mentioned", tasks, ("objects", "subset", "model"), ("task",), **numbers)
        if self.layout != "apart":
            yield Heading("Objects that others hide", HIDDEN)
            found = swaps.regroup(HIDDEN_SHARES.values(), lambda arm: hidden_bins(arm.file) if arm.file else {})
            yield Lines("hidden", found, **look)
            yield Table("hidden-table", found, rows, **numbers)
        if shared:
            yield Heading("Objects that share features", SHARED)
            yield Table("triplets", records.where(task="swap", subset=shared), rows, **numbers)
        yield Heading("All tasks")
        yield Table("tasks", records.where(subset=tests), (*rows, "subset"), ("task",), words=words)

    def answer(self, swaps: Records) -> Iterator[Part]:
        """Yield a sentence for each model: how many objects it binds after training on the most objects."""
        found = swaps.where(objects=as_column(max(self.trained, key=len))).estimates(("model", "subset"))
        for model in dict.fromkeys(model for model, _ in found):
            rising = [(n, found[key]) for n in sorted(self.test_objects) if (key := (model, f"seen_{n}")) in found]
            bound = len([*takewhile(lambda its: its[1].value >= self.enough, rising)])
            says = f"binds up to {rising[bound - 1][0]} objects" if bound else "doesn't bind even two objects"
            numbers = "; ".join(f"{estimate} with {n} objects" for n, estimate in rising)
            trained = f"Trained on up to {max(self.most)} objects, {model_title(model)} {says}"
            yield Sentence(f"{trained}. Binding means {self.enough:.0%} of swaps right on average; it has {numbers}.")


def model_title(model: str) -> str:
    """Return a model's name in sentences."""
    return f"{title_of('oc-clip')} with our changes" if model == IMPROVED else title_of(model)


IMPROVED = "oc-clip, improved"
CHANGES: dict[str, Any] = {"focus": True, "mentioned": 0.7, "attributes": 0.8}  # chosen in docs/results/textures.md
SAYS = """Accuracy (%) on swaps by the number of objects in an image; a panel for each largest number in training.
Dashed: from there on a model counts as binding. Dotted: chance."""
MENTIONING = """Of the same images. Captions mention the two objects whose textures the false caption exchanges (two
mentioned), at most as many objects as in training (swap), or all (swap all)."""
HIDDEN = "Accuracy (%) on swaps by the hidden share of the more hidden one of the two exchanged objects; chance is 50."
SHARED = """Scenes of four objects. In a triplet one has the animal of a second and the texture of a third, so that no
single feature distinguishes it. Accuracy (%) on swaps; chance is 50."""

FIVE = ("clip", "filip-phrases", "sparo", "fdt", "oc-clip")
PRESETS = {
    "smoke": Capacity(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24},
        **{"most": (2,), "test_objects": (2, 3), "triplets": (1,), "train_scenes": 240, "views": 4},
    ),
    "laptop": Capacity(**LEARNS, models=FIVE, improved=True),
}

if __name__ == "__main__":
    main(PRESETS)
