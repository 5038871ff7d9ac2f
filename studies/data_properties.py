"""Which properties of training data help a model to bind, and which hurt?

The factors are those of Gurung, Hoffmann and Brox (GCPR 2025, "Common data properties limit object-attribute binding in
CLIP", arXiv 2507.07985): captions that leave textures or objects out, or mention the salient object alone; more objects
in an image; bigger batches; hard negatives. Each has two levels. All are varied together (a fractional factorial
design), so that every run counts for every factor and each pair of factors. The number of training images is always the
same, and so is that of steps (or, with `--held images`, that of images seen).

    python studies/data_properties.py --preset smoke                       # tiny, a minute on 2 cores
    python studies/data_properties.py                                      # laptop: 8 animals, 16 runs a seed
    python studies/data_properties.py --factors attributes mentioned       # 4 runs a seed
    python studies/data_properties.py --models clip oc-clip --held steps   # a bigger batch sees more images
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, Range, Several, option
from menagerie.envs.layouts import MOST
from menagerie.generators.captions.spec import expected_binding_share
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import (
    Effect,
    Signs,
    Verdict,
    claim_parts,
    clear_effects,
    contrasts,
    design,
    effect_parts,
    if_learnt,
    make_verdict,
    points_above,
)
from menagerie.studies.frame.command import flag_of, main
from menagerie.studies.frame.grids import LEARNS, SHALLOW, SMOKE
from menagerie.studies.frame.parts import Heading, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

TEST = "seen_2"  # on which effects are measured: two objects, both mentioned, as in a part of every run's training
RECOGNITION = ("replace animal", "replace texture")


class Factor(NamedTuple):
    """A factor of the design: the option that gives its levels, words, the format of its values, and what the paper
    claims; `complete` is the value with which captions are complete, if it makes them so."""

    option: str
    words: str
    form: str = "{:.0%}"
    claim: str = ""
    complete: float | None = None


FACTORS = {
    "attributes": Factor("attributes", "textures mentioned", claim="too few attributes hurt", complete=1.0),
    "objects": Factor("most", "objects in an image", "up to {}"),
    "mentioned": Factor("mentioned", "objects mentioned", claim="captions that leave objects out hurt", complete=1.0),
    "salient": Factor("salient", "only the salient object", claim="captions of the salient object hurt", complete=0.0),
    "batch": Factor("batches", "batch size", "{}", "a big batch alone gives no reliable binding"),
    "hard_negatives": Factor("hard_negatives", "hard negatives", claim="hard negatives alone give no reliable binding"),
}
PERFECT = "with the right data binding is nearly perfect"
OPTIONS = {name: factor.option for name, factor in FACTORS.items()}
COMPLETE = {name: factor.complete for name, factor in FACTORS.items() if factor.complete is not None}


@dataclass(frozen=True)
class DataProperties(SplitStudy):
    """Which properties of data help to bind"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe(objects=(1, 2), test_objects=(2,))
    decides: ClassVar[tuple[str, ...]] = ("split",)
    searched: ClassVar[frozenset[str]] = frozenset(OPTIONS)
    models: tuple[str, ...] = ("clip",)
    """Scorers by name, or FILE.py:Class of your own."""
    factors: Annotated[tuple[str, ...], WHAT, FIRST, Several(1)] = tuple(OPTIONS)
    """Factors to vary, between the two levels that their options give; other fields are those of the recipe. Without
    --recipe captions are complete, and images have one or two objects and no hard negatives."""
    attributes: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption includes the texture of an object that it mentions."""
    most: Annotated[tuple[int, ...], DATA, FIRST, Several(1), Range(2, MOST)] = (2, 4)
    """Largest number of objects in an image; images with each number up to that are equally many."""
    mentioned: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.5, 1.0)
    """Probability that a caption mentions an object; one always is."""
    salient: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.5)
    """Probability that a caption mentions the salient object alone."""
    batches: Annotated[tuple[int, ...], TRAINING, FIRST, Several(1), Range(2, 1_000_000)] = (32, 128)
    """Images per step."""
    hard_negatives: Annotated[tuple[float, ...], DATA, FIRST, SHARE, Several(1)] = (0.0, 0.4)
    """Share of the training images that are swaps of others, below half."""
    together: Annotated[bool, TRAINING, FIRST] = True
    """Put an image and its swap into the same batch, if training has both."""
    held: Annotated[Literal["steps", "images"], TRAINING, FIRST] = "steps"
    """What stays the same when the batch changes: the steps, or the number of images seen (--steps times --batch)."""
    train_scenes: Annotated[int, DATA, FIRST, SCENES] = 16_000
    """Number of training images."""
    world: Annotated[str, DATA, FIRST] = "eight-textures"
    """World, with at least as many animals and textures as a scene has objects."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Accuracy on swaps from which on binding counts as reliable."""

    @property
    def levels(self) -> dict[str, tuple[Any, Any]]:
        """The two values of each factor that is varied, as fields of recipes have them."""
        found = {name: getattr(self, OPTIONS[name]) for name in self.factors}
        return found | {"objects": tuple(map(numbers_up_to, found["objects"]))} if "objects" in found else found

    def idle_options(self, preset: AnyStudy) -> Iterator[str]:
        for name, levels in OPTIONS.items():
            if name not in self.factors and getattr(self, levels) != getattr(preset, levels):
                yield f"{flag_of(levels)} gives levels of {name}, which isn't among --factors"
        varied = "batch" in self.factors and self.held == "steps"
        if varied and self.recipe.batch != getattr(preset, "recipe", self.recipe).batch:
            yield "--batch changes nothing, because the batch is varied; give its levels as --batches"

    def check(self) -> None:
        if not isinstance(self.recipe_given, MultiObjectRecipe) or 2 not in self.recipe_given.test_objects:
            raise UserError(
                "--recipe must be of kind multi-object, with 2 among test_objects, as tests have two objects"
            )
        for name in self.factors:
            choose("factor", name, OPTIONS)
            given = getattr(self, OPTIONS[name])
            if len(given) != 2 or given[0] > given[1]:
                raise UserError(f"{option(OPTIONS[name])} must be two rising levels of {name}, got {given}")
        if 0 in (*self.attributes, *self.mentioned) or 1 in self.salient:
            raise UserError(
                "with --attributes 0, --mentioned 0 or --salient 1 no training caption mentions two objects with "
                "textures, as captions of tests do; give levels in between"
            )

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        for seed in self.seed_numbers:
            for signs in design(len(self.factors)):
                for model in self.models:
                    yield design_arm(self, model, seed, signs)

    def place(self, signs: Signs) -> dict[str, Any]:
        """Return the value of every factor in a run of the design; of one that isn't varied the recipe's."""
        given = {name: getattr(self.recipe_given, name) for name in OPTIONS if name != "batch"}
        chosen = {name: self.levels[name][sign > 0] for name, sign in zip(self.factors, signs, strict=True)}
        return {**given, "objects": numbers_up_to(max(given["objects"])), "batch": self.recipe.batch} | chosen

    def steps_of(self, batch: int) -> int:
        if self.held == "steps":
            return self.recipe.steps
        images = self.recipe.steps * self.recipe.batch
        if images % batch:
            raise UserError(
                f"--held images: {images} images (--steps times --batch) aren't a multiple of the batch {batch}"
            )
        return images // batch

    def page(self, records: Records) -> Iterator[Part]:
        seen = records.where(subset=TEST)
        found = contrasts(seen.where(task=("swap", *RECOGNITION)), self.levels, ("model", "task"))
        verdicts: list[Verdict] = []
        for model in records.labels("model"):
            its = found.get((model, "swap"), {})
            yield Sentence(f"{title_of(model)}, swaps: {clear_effects(its, self.effect_in_words)}.")
            cells = seen.where(model=model, task="swap").estimates(tuple(self.factors)).values()
            best = max((cell.value for cell in cells), default=0.0)
            verdicts += [
                each if each.claim == PERFECT else if_learnt(each, best)
                for each in self.verdicts(seen.where(model=model), its, title_of(model))
            ]
        yield from claim_parts(verdicts, CLAIMS.format(f"{self.enough:.0%}"))
        yield from effect_parts("effects", found, ("model", "task"), self.effect_in_words, SAYS)
        yield Heading("All runs", RUNS)
        swaps, by = seen.where(task="swap"), ("model", *FACTORS)
        words = {"objects": {text: f"up to {text.rpartition('+')[2]}" for text in swaps.labels("objects")}}
        recipes = {tuple(arm.place[name] for name in by): vars(arm.cell.data.recipe) for arm in swaps.arms}
        shares = {key: f"{100 * expected_binding_share(recipe):.0f}" for key, recipe in recipes.items()}
        look: dict[str, Any] = {"intervals": True, "words": words, "beside": {"captions that bind (%)": shares}}
        yield Table("arms", swaps, by, **look)

    def effect_in_words(self, effect: Effect) -> str:
        """Return an effect in words, a main effect with its levels: "batch size 32 → 128"."""
        names = " × ".join(FACTORS[name].words for name in effect)
        levels = [max(its) if isinstance(its, tuple) else its for its in self.levels[effect[0]]]
        return names if len(effect) > 1 else f"{names} {' → '.join(map(FACTORS[effect[0]].form.format, levels))}"

    def verdicts(self, seen: Records, found: "Mapping[Effect, Estimate]", model: str) -> Iterator[Verdict]:
        for name, complete in COMPLETE.items():
            row = f"{model}, {self.effect_in_words((name,))}" if name in self.factors else f"{model}, not varied"
            yield make_verdict(FACTORS[name].claim, row, f"{TEST}: swap", found.get((name,)), 1 if complete else -1)
        complete = seen.where(**COMPLETE)
        ids = {arm.id for arm in complete.arms}
        for name, factor in FACTORS.items():
            if factor.claim and name not in COMPLETE:
                most = {name: self.levels[name][1] if name in self.factors else ()}
                others = seen.where(lambda arm: arm.id not in ids, **most)
                yield self.level_verdict(factor.claim, f"{model}, captions not complete", others, -1)
        yield self.level_verdict(PERFECT, f"{model}, complete captions", complete, 1)

    def level_verdict(self, claim: str, row: str, runs: Records, sign: int) -> Verdict:
        """Return the verdict on the claim that the accuracy of runs is above `enough` (`sign` 1) or below it (-1).

        It is undecided if the runs don't recognise objects either: then low accuracy says nothing about binding.
        """
        tasks = {task: its for (task,), its in runs.estimates(("task",)).items()} if runs.arms else {}
        above = points_above(tasks["swap"], self.enough) if "swap" in tasks else None
        found = make_verdict(claim, f"{row}, against {self.enough:.0%}", f"{TEST}: swap", above, sign)
        known = min((tasks[task].value for task in RECOGNITION if task in tasks), default=1.0)
        if above and known < self.enough and above.value < 0:
            said = f"{found.difference}, undecided because recognition is {100 * known:.1f} % only"
            return found._replace(outcome="undecided", difference=said)
        return found


def numbers_up_to(most: int) -> tuple[int, ...]:
    """Return the numbers of objects in images of up to `most` objects."""
    return tuple(range(1, most + 1))


@cache  # the plan is called again after every run
def design_arm(study: DataProperties, model: str, seed: int, signs: Signs) -> Arm:
    place = study.place(signs)
    training = {"steps": study.steps_of(place["batch"])}
    training["image_negatives"] = study.recipe.image_negatives or (study.together and place["hard_negatives"] > 0)
    return study.at(model, seed, **place, **training)._replace(labels=place)


SAYS = """Effect of each factor on accuracy in percentage points: its second level minus its first, averaged over the
levels of all other factors; of two factors (×) their interaction, half of the change of one's effect with the other.
Coloured: the interval excludes 0."""
CLAIMS = """Claims of Gurung, Hoffmann and Brox (GCPR 2025) on CLIP. Binding is reliable where {0} of swaps are
right; such a claim is undecided if its runs are below {0} and don't recognise animals and textures either. Claims of
harm are testable if at least one run of the design has 90 % of swaps right."""
RUNS = """Accuracy (%) on swaps; chance is 50. Captions that bind: of images of two objects or more, the expected share
of captions that mention two objects with their textures. Only these say which texture belongs to which object."""

PRESETS = {
    "smoke": DataProperties(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24},
        **{"factors": ("attributes", "batch"), "batches": (16, 32), "train_scenes": 240, "views": 4},
    ),
    # The levels are mild, and the images equal: where CLIP learns nothing, nothing can hurt it.
    "laptop": DataProperties(
        **LEARNS,
        **{"factors": ("attributes", "mentioned", "salient", "batch", "hard_negatives")},
        **{"salient": (0.0, 0.2), "held": "images"},
    ),
    # Half of each batch is single-object scenes, whatever the number of objects in the others.
    "shallow": DataProperties(
        **SHALLOW | {"recipe": Recipe(steps=1200, singles_share=0.5, single_object_phase=0.25)}, train_scenes=4000
    ),
}

if __name__ == "__main__":
    main(PRESETS)
