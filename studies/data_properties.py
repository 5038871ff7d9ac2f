"""Which properties of training data help a model to bind, and which hurt?

The factors are those of Gurung, Hoffmann and Brox (GCPR 2025, "Common data properties limit object-attribute binding in
CLIP", arXiv 2507.07985): captions that leave textures or objects out, or mention the salient object alone; more objects
in an image; bigger batches; hard negatives. Each has two levels. All are varied together (a fractional factorial
design), so that every run counts for every factor and each pair of factors. The number of training images is always the
same, and so is that of steps (or, with `--held images`, that of images seen).

    python studies/data_properties.py --preset smoke                       # tiny, a minute on 2 cores
    python studies/data_properties.py                                      # laptop: 8 animals, 32 runs a seed
    python studies/data_properties.py --factors attributes mentioned       # 4 runs a seed
    python studies/data_properties.py --models clip oc-clip --held images  # a bigger batch takes fewer steps

Ends with `report.html`, `results.csv`, `cells.jsonl` and per-record predictions in `--out`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.generators.captions.spec import expected_binding_share
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import (
    Verdict,
    claims_section,
    make_verdict,
    outcomes_sentence,
    points_above,
)
from menagerie.studies.frame.command import main
from menagerie.studies.frame.contrasts import Effect, Signs, contrasts, design, effect_parts, sign_of_effect
from menagerie.studies.frame.grids import EIGHT, SMOKE
from menagerie.studies.frame.parts import Heading, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

OPTIONS = {
    "attributes": "attributes",
    "objects": "most",
    "mentioned": "mentioned",
    "salient": "salient",
    "batch": "batches",
    "hard_negatives": "hard_negatives",
}
"""Map each factor to the option that gives its levels."""
TEST = "seen_2"
"""The test on which effects are measured: two objects, both mentioned, as in a part of every run's training."""
RECOGNITION = ("replace animal", "replace texture")
# Each factor in words, and the format of its values.
FACTORS = {
    "attributes": ("textures mentioned", "{:.0%}"),
    "objects": ("objects in an image", "up to {}"),
    "mentioned": ("objects mentioned", "{:.0%}"),
    "salient": ("only the salient object", "{:.0%}"),
    "batch": ("batch size", "{}"),
    "hard_negatives": ("hard negatives", "{:.0%}"),
}
# The values with which captions are complete.
COMPLETE = {"attributes": 1.0, "mentioned": 1.0, "salient": 0.0}
# The claims that less complete captions hurt, and that one other thing alone doesn't make binding reliable.
HURT = {
    "attributes": "too few attributes hurt",
    "mentioned": "captions that leave objects out hurt",
    "salient": "captions of the salient object hurt",
}
UNRELIABLE = {
    "batch": "a big batch alone gives no reliable binding",
    "hard_negatives": "hard negatives alone give no reliable binding",
}


@dataclass(frozen=True)
class DataProperties(SplitStudy):
    """Which properties of data help to bind"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe(objects=(1, 2), test_objects=(2,))
    decides: ClassVar[tuple[str, ...]] = ("split",)
    searched: ClassVar[frozenset[str]] = frozenset(OPTIONS)

    models: tuple[str, ...] = ("clip",)
    """Scorers by name, or FILE.py:Class of your own."""
    factors: Annotated[tuple[str, ...], WHAT, FIRST, Several(1)] = tuple(OPTIONS)
    """Factors to vary; other fields are those of the recipe. Without --recipe captions are complete, and images have
    one or two objects and no hard negatives."""
    attributes: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption includes the texture of an object that it mentions: two levels."""
    most: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2, 4)
    """Largest number of objects in an image; images with each number up to that are equally many. Two levels."""
    mentioned: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption mentions an object; one always is: two levels."""
    salient: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.5)
    """Probability that a caption mentions the salient object alone: two levels."""
    batches: Annotated[tuple[int, ...], TRAINING, FIRST, Several(1), Range(2, 1_000_000)] = (32, 128)
    """Images per step: two levels."""
    hard_negatives: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.4)
    """Share of the training images that are swaps of others, below half: two levels."""
    together: Annotated[bool, TRAINING, FIRST] = True
    """Put an image and its swap into the same batch, if training has both."""
    held: Annotated[Literal["steps", "images"], TRAINING, FIRST] = "steps"
    """What stays the same when the batch changes: the steps, or the number of images seen (--steps times --batch)."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 16_000
    """Number of training images, whatever the number of objects."""
    world: Annotated[str, DATA, FIRST] = "eight-textures"
    """Vocabulary of the scenes, with at least as many animals and textures as a scene has objects."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Accuracy on swaps from which on binding counts as reliable."""

    @property
    def levels(self) -> dict[str, tuple[Any, Any]]:
        """The two values of each factor that is varied, as fields of recipes have them."""
        found = {name: getattr(self, OPTIONS[name]) for name in self.factors}
        return found | {"objects": tuple(map(numbers_up_to, found["objects"]))} if "objects" in found else found

    def check(self) -> None:
        """Raise for a recipe without tests of two objects, factors without two levels, and levels at which no training
        caption mentions two objects with textures."""
        if not isinstance(self.recipe_given, MultiObjectRecipe) or 2 not in self.recipe_given.test_objects:
            raise UserError(
                "--recipe must be of kind multi-object, with 2 among test_objects, as tests have two objects"
            )
        for name in self.factors:
            choose("factor", name, OPTIONS)
            given = getattr(self, OPTIONS[name])
            if len(given) != 2 or given[0] > given[1]:
                raise UserError(f"{levels_flag(name)} must be two rising levels of {name}, got {given}")
        if 0 in (*self.attributes, *self.mentioned) or 1 in self.salient:
            raise UserError(
                "with --attributes 0, --mentioned 0 or --salient 1 no training caption mentions two objects with "
                "textures, as captions of tests do; give levels in between"
            )

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan each run of the design with every seed and model."""
        for seed in range(self.seeds):
            for signs in design(len(self.factors)):
                for model in self.models:
                    yield design_arm(self, model, seed, signs)

    def place(self, signs: Signs) -> dict[str, Any]:
        """Return the value of every factor in a run of the design. Factors that aren't varied have the recipe's
        value."""
        given = {name: getattr(self.recipe_given, name) for name in OPTIONS if name != "batch"}
        chosen = {name: self.levels[name][sign > 0] for name, sign in zip(self.factors, signs, strict=True)}
        return {**given, "objects": numbers_up_to(max(given["objects"])), "batch": self.recipe.batch} | chosen

    def steps_of(self, batch: int) -> int:
        """Return the number of steps of a run with a batch of this size."""
        if self.held == "steps":
            return self.recipe.steps
        images = self.recipe.steps * self.recipe.batch
        if images % batch:
            raise UserError(
                f"--held images: {images} images (--steps times --batch) aren't a multiple of the batch {batch}"
            )
        return images // batch

    def page(self, records: Records) -> Iterator[Part]:
        """Yield accuracy and clear effects of each model, all effects, the claims of the paper, and all runs."""
        from menagerie.studies.analysis.words import one_line

        seen = records.where(subset=TEST)
        found = contrasts(seen.where(task=("swap", *RECOGNITION)), self.levels, ("model", "task"))
        verdicts: list[Verdict] = []
        for model in records.labels("model"):
            its = seen.where(model=model)
            yield from self.answer(its.where(task="swap"), found.get((model, "swap"), {}))
            verdicts += self.verdicts(its, found.get((model, "swap"), {}), title_of(model))
        yield from effect_parts("effects", found, ("model", "task"), self.effect_in_words, one_line(SAYS))
        if verdicts:
            yield Sentence(outcomes_sentence(verdicts))
        yield from claims_section(verdicts, "points", one_line(CLAIMS).format(f"{self.enough:.0%}"))
        yield Heading("All runs", one_line(RUNS))
        swaps, by = seen.where(task="swap"), ("model", *FACTORS)
        yield Table("arms", swaps, by, intervals=True, words=objects_in_words(swaps), beside=run_columns(swaps))

    def effect_in_words(self, effect: Effect) -> str:
        """Return an effect in words, a main effect with its levels: "batch size 32 → 128"."""
        names = " × ".join(FACTORS[name][0] for name in effect)
        sides = " → ".join(level_in_words(effect[0], value) for value in self.levels[effect[0]])
        return names if len(effect) > 1 else f"{names} {sides}"

    def answer(self, swaps: Records, found: "Mapping[Effect, Estimate]") -> Iterator[Part]:
        """Yield a sentence on a model: its accuracy, with complete captions too, and the effects with a clear sign."""
        complete = swaps.where(**COMPLETE).estimates(("model",))
        for (model,), its in swaps.estimates(("model",)).items():
            text = f"{title_of(model)} gets {its} % of swaps right over all runs (chance is 50)"
            text += "".join(f", {one} % with complete captions" for one in complete.values())
            chance = any(sign_of_effect(points_above(one, 0.5)) != 1 for one in complete.values())
            text += ". That isn't above chance, so effects say little" if chance else ""
            clear = [f"{self.effect_in_words(effect)} {one}" for effect, one in found.items() if sign_of_effect(one)]
            yield Sentence(f"{text}. Clear effects in points: {', '.join(clear) or 'none'}.")

    def verdicts(self, seen: Records, found: "Mapping[Effect, Estimate]", model: str) -> Iterator[Verdict]:
        """Yield verdicts on the paper's claims, for the runs of a model."""
        for name, claim in HURT.items():
            row = f"{model}, {self.effect_in_words((name,))}" if name in self.factors else f"{model}, not varied"
            yield make_verdict(claim, row, f"{TEST}: swap", found.get((name,)), 1 if COMPLETE[name] else -1)
        complete = seen.where(**COMPLETE)
        ids = {arm.id for arm in complete.arms}
        for name, claim in UNRELIABLE.items():
            most = {name: self.levels[name][1] if name in self.factors else ()}
            others = seen.where(lambda arm: arm.id not in ids, **most)
            yield self.level_verdict(claim, f"{model}, captions not complete", others, -1)
        claim = "with the right data binding is nearly perfect"
        yield self.level_verdict(claim, f"{model}, complete captions", complete, 1)

    def level_verdict(self, claim: str, row: str, runs: Records, sign: int) -> Verdict:
        """Return the verdict on the claim that the accuracy of runs is above `enough` (`sign` 1) or below it (-1).

        It is undecided if the runs don't recognise objects either: then low accuracy says nothing about binding.
        """
        tasks = {task: its for (task,), its in runs.estimates(("task",)).items()} if runs.arms else {}
        above = points_above(tasks["swap"], self.enough) if "swap" in tasks else None
        found = make_verdict(claim, f"{row}, above {self.enough:.0%}", f"{TEST}: swap", above, sign)
        known = min((tasks[task].value for task in RECOGNITION if task in tasks), default=1.0)
        if above and known < self.enough and above.value < 0:
            said = f"{found.difference}; recognition {100 * known:.1f} % only"
            return found._replace(outcome="undecided", difference=said)
        return found


def level_in_words(name: str, value: Any) -> str:
    """Return a level of a factor in words."""
    return FACTORS[name][1].format(max(value) if isinstance(value, tuple) else value)


def objects_in_words(records: Records) -> dict[str, dict[Any, str]]:
    return {"objects": {text: f"up to {text.rpartition('+')[2]}" for text in records.labels("objects")}}


def run_columns(records: Records) -> dict[str, dict[tuple[Any, ...], str]]:
    """Return further columns of the table of runs, by the labels of its rows."""
    columns: dict[str, dict[tuple[Any, ...], str]] = {}
    for arm, result in records.results:
        shown, key = result["images_seen"], tuple(arm.place[name] for name in ("model", *FACTORS))
        if hasattr(arm.cell, "data"):  # one that is read back has no recipe
            columns.setdefault("captions that bind (%)", {})[key] = (
                f"{100 * expected_binding_share(vars(arm.cell.data.recipe)):.0f}"
            )
        numbers = {
            "training images": result["train_images"],
            "steps": shown // arm.place["batch"],
            "images seen": shown,
        }
        for name, number in numbers.items():
            columns.setdefault(name, {})[key] = str(number)
    return columns


def levels_flag(factor: str) -> str:
    """Return the command-line option of a factor's levels."""
    return f"--{OPTIONS[factor].replace('_', '-')}"


def numbers_up_to(most: int) -> tuple[int, ...]:
    """Return the numbers of objects in images of up to `most` objects."""
    return tuple(range(1, most + 1))


@cache  # the plan is called again after every run
def design_arm(study: DataProperties, model: str, seed: int, signs: Signs) -> Arm:
    place = study.place(signs)
    training = {"steps": study.steps_of(place["batch"])}
    training["image_negatives"] = study.recipe.image_negatives or (study.together and place["hard_negatives"] > 0)
    return study.at(model, seed, **place, **training)._replace(labels=place)


SAYS = """Effect of each factor on accuracy in percentage points: accuracy at its second level minus that at its first,
averaged over the levels of all other factors. Of two factors: half of the difference between the effects of the one at
the second and at the first level of the other. Grey: the interval includes 0, or there is none; of twenty effects that
are 0, one is expected to have a 95 % interval without 0. A swap compares a caption of the two objects in an image with
the same caption with their textures exchanged; replace: the false caption names an animal, or a texture, that the image
doesn't show, which needs no binding. Chance is 50 %. Only seeds whose runs are all finished count. Captions of only the
salient object also mention fewer objects, and with a bigger batch as many steps see more images (`--held images` shows
equally many). With five factors or more half of the combinations are run: interactions of three factors are taken to
be 0."""
CLAIMS = """Of Gurung, Hoffmann and Brox (GCPR 2025, arXiv 2507.07985) on CLIP, by its abstract and the caption of its
first figure. They also name the number of objects in an image, but state no direction; too many attributes can't be
tested, because an object has one texture here. Claims on reliable binding are judged by whether accuracy on swaps is
{0}: of the runs with a big batch or hard negatives and without complete captions, and of those with complete captions.
Such a claim is undecided if its runs are below {0} and don't recognise animals and textures either."""
RUNS = """Accuracy (%) on swaps; chance is 50. Captions that bind: of images of two objects or more, the expected share
of captions that mention two objects with their textures. Only these say which texture belongs to which object."""

PRESETS = {
    "smoke": DataProperties(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24},
        **{"factors": ("attributes", "batch"), "batches": (16, 32), "train_scenes": 240, "views": 4},
    ),
    # Half of each batch is single-object scenes, whatever the number of objects in the others.
    "laptop": DataProperties(
        **EIGHT | {"world": "eight-textures", "recipe": replace(EIGHT["recipe"], steps=1200, singles_share=0.5)},
        **{"seeds": 3, "train_scenes": 4000},
    ),
}

if __name__ == "__main__":
    main(PRESETS)
