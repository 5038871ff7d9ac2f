"""How much of what a world can show must training show before a model binds the rest?

Training shows a share of all combinations of animal and texture (`coverage`), in images of up to 2 or 4 objects
(`objects`), with captions that leave out objects and textures (`completeness`). Tests have objects that are all in
combinations that training never showed, and ask for the texture of each. First each form of the score is trained at a
quarter and at three quarters of the combinations; then, round by round, where a logistic curve through what is known
says that the form is nearest to the line. Further cells are drawn beforehand and never fitted: they check the map. Each
cell has seeds of its own, so that no split is shared and errors of cells are independent.

    python studies/phases.py --preset smoke        # tiny, a minute on 2 cores
    python studies/phases.py --preset pilot        # how many steps does each form need?
    python studies/phases.py                       # laptop: some 315 runs, 5 to 6 hours on 2 cores
    python studies/phases.py --rounds 4            # the same folder goes on near the line
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SCENES, SHARE, STEPS, Range, Several
from menagerie.envs.layouts import MOST
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.hard_negatives.tasks import EXCHANGES
from menagerie.generators.coverage import nearest_rank
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.multi_object_tests import IN_PAIRS
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import recipe_line, training_recipe
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import EIGHT, SMOKE
from menagerie.studies.frame.options import GROWS
from menagerie.studies.frame.parts import Paragraph, Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.measures.boundary import Diagram


class Place(NamedTuple):
    """Where in the diagram a run is."""

    objects: int
    coverage: float
    completeness: float


@dataclass(frozen=True)
class Phases(SplitStudy):
    """Where binding of unseen compositions begins"""

    plain_recipe: ClassVar[SplitRecipe] = MultiObjectRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split", "steps")
    searched: ClassVar[frozenset[str]] = frozenset({"objects", "coverage"})

    models: tuple[str, ...] = ("clip", "filip", "filip-phrases", "oc-clip")
    """Forms of the score."""
    budgets: Annotated[tuple[int, ...], TRAINING, FIRST, GROWS, STEPS] = (1000,)
    """Steps of each model, or one number."""
    objects: Annotated[tuple[int, ...], WHAT, FIRST, Several(1), Range(2, MOST)] = (2, 4)
    """Even numbers of objects, in tests and at most in training."""
    coverage: Annotated[tuple[float, ...], WHAT, FIRST, Several(2), SHARE] = (
        *(0.167, 0.2, 0.25, 0.333, 0.4, 0.5, 0.6, 0.667, 0.75, 0.8, 0.833),
    )
    """Shares of the compositions in training: multiples of 1 / n."""
    completeness: Annotated[tuple[float, ...], WHAT, FIRST, Several(1), SHARE] = (0.6, 0.8, 1.0)
    """Chance that captions mention an object, and then its texture."""
    rounds: Annotated[int, WHAT, FIRST, GROWS, Range(0, 100)] = 3
    """Rounds of cells near the line."""
    checked: Annotated[int, WHAT, Range(0, 1000)] = 20
    """Cells on which the map is checked, with --seeds seeds each and as many of each model; none is fitted."""
    enough: Annotated[float, WHAT, Range(0.5, 1.0)] = 0.9
    """Accuracy on swaps of scenes as training shows them from which on these are learnt."""
    trial: Annotated[tuple[int, ...], WHAT, GROWS, Several(), STEPS] = ()
    """Train no diagram: each form for these numbers of steps at the middle coverage, to choose --budgets."""
    train_scenes: Annotated[int, DATA, SCENES] = 4000
    """Number of training images."""
    world: Annotated[str, DATA, FIRST] = "twelve-plain"
    """World, with as many animals as textures."""

    def check(self) -> None:
        super().check()
        if len(self.budgets) not in (1, len(self.models)):
            raise UserError(
                f"--budgets has {len(self.budgets)} numbers for {len(self.models)} --models; give one for each, or one "
                "for all"
            )
        if self.checked % len(self.models):
            raise UserError(f"--checked {self.checked} isn't a multiple of the {len(self.models)} --models")
        if max(self.coverage) >= 1:
            raise UserError("--coverage 1 leaves no composition unseen for tests; give shares below 1")
        if odd := [n for n in self.objects if n % 2]:
            raise UserError(f"--objects {odd[0]}: objects exchange their textures in pairs; give even numbers")
        for share, objects in product(self.coverage, self.objects):
            fewest_classes(share, objects // 2, self.most_classes)
        if self.checked > (most := (len(self.places) - len(self.start)) * len(self.models)):
            raise UserError(f"--checked {self.checked} must be at most {most}: the cells outside of each form's start")

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan the start of all forms, the held-out cells, and rounds near the line, for each form as soon as its last
        round has ended."""
        if self.trial:
            yield from self.trials()
            return
        runs = {form: [self.arm(form, at, self.seeds_of(at)[0]) for at in self.start] for form in self.models}
        yield from chain(*runs.values())
        for form in self.models:
            yield from (self.arm(form, at, seed) for at in self.held_out(form) for seed in self.seeds_of(at))
        for _ in range(self.rounds):
            for form, own in runs.items():
                yield from (more := self.nearest(known, form, own))
                own += more

    def trials(self) -> Iterator[Arm]:
        """Plan all forms at the middle coverage, with the fewest and most objects and the least complete captions."""
        middle, completeness = sorted(self.coverage)[len(self.coverage) // 2], min(self.completeness)
        for objects, form, steps in product(sorted({min(self.objects), max(self.objects)}), self.models, self.trial):
            yield self.arm(form, Place(objects, middle, completeness), self.first_seed, steps)

    def arm(self, form: str, at: Place, seed: int, steps: int = 0) -> Arm:
        steps = steps or self.budget(form)
        split = {"coverage": at.coverage, "classes": fewest_classes(at.coverage, at.objects // 2, self.most_classes)}
        split |= {"mentioned": at.completeness, "attributes": at.completeness}
        shown = {"objects": tuple(range(1, at.objects + 1)), "test_objects": (at.objects,), "exchanged": (at.objects,)}
        arm = self.at(form, seed, **split, **shown, steps=steps)
        return arm._replace(labels=at._asdict() | {"steps": steps})

    @property
    def most_classes(self) -> int:
        """The most classes whose animals, and textures, are two or more each."""
        world = load_world(self.world)
        return min(len(world.animals), len(world.textures)) // 2

    def budget(self, form: str) -> int:
        return self.budgets[self.models.index(form) % len(self.budgets)]

    def notes(self) -> dict[str, str]:
        """Return each form's recipe in a line, with its budget, or the longest trial."""
        steps = {form: max(self.trial, default=self.budget(form)) for form in self.models}
        recipes = {form: replace(training_recipe(self, form), steps=steps[form]) for form in self.models}
        return super().notes() | {f"recipe of {form}": recipe_line(self, form, its) for form, its in recipes.items()}

    def seeds_of(self, at: Place) -> list[int]:
        """Return a cell's seeds. No two cells of a form share a split, so their errors are independent; forms share
        them, so each is compared with others on the same splits."""
        return [self.first_seed + self.places.index(at) + k * len(self.places) for k in range(self.seeds)]

    @property
    def conditions(self) -> list[tuple[int, float]]:
        """Numbers of objects with completeness: along each of these a form crosses the line once."""
        return list(product(self.objects, self.completeness))

    @property
    def start(self) -> list[Place]:
        """The cells that each form begins with: the coverages a quarter from both ends, on each line."""
        shares, quarter = sorted(self.coverage), (len(self.coverage) - 1) // 4
        ends = dict.fromkeys((shares[quarter], shares[-1 - quarter]))
        return [Place(number, share, captions) for number, captions in self.conditions for share in ends]

    @property
    def places(self) -> list[Place]:
        return [Place(number, share, captions) for number, captions in self.conditions for share in self.coverage]

    def held_out(self, form: str) -> list[Place]:
        """The cells of a form on which the map is checked, drawn by its name alone among those without a start."""
        left = [at for at in self.places if at not in self.start]
        return random.Random(form).sample(left, self.checked // len(self.models))

    def nearest(self, known: KnownResults, form: str, runs: Sequence[Arm]) -> list[Arm]:
        """Return the missing seeds of one cell for each of `conditions`: of those without all seeds the one that a
        curve through the form's `runs` puts nearest to the line; none before all runs have ended, and none for a number
        of objects without a run that has a result."""
        if not all(known.over(arm) for arm in runs):
            return []
        done, held = {(place_in_diagram(arm), arm.cell.seed) for arm in runs}, self.held_out(form)
        scored = [self.scored(known, arm) for arm in runs if not known.has_diverged(arm)]
        rows = tuple(tuple(row.items()) for row in scored if row["unseen"] is not None)
        fitted = {dict(row)["objects"] for row in rows}
        places = (at for at in self.places if at.objects in fitted and at not in held)
        left = [at for at in places if (at, self.seeds_of(at)[-1]) not in done]
        distances = distances_from_line(rows, form, tuple(left), self.test_scenes) if left else []
        chosen: dict[tuple[int, float], Place] = {}
        for _, at in sorted(zip(distances, left, strict=True)):
            chosen.setdefault((at.objects, at.completeness), at)
        missing = [(at, seed) for at in chosen.values() for seed in self.seeds_of(at)]
        return [self.arm(form, at, seed) for at, seed in missing if (at, seed) not in done]

    def scored(self, known: KnownResults, arm: Arm) -> dict[str, Any]:
        """Return an arm's place and accuracies: per pair of objects on exchanges in `seen` and in `unseen`
        compositions, and on swaps as training shows them (`learnt`); None for what has no result."""
        objects = place_in_diagram(arm).objects
        task, row = f"{EXCHANGES} {objects // 2}", {"model": arm.cell.model, "seed": arm.cell.seed, **arm.labels}
        scores = {kind: known.score(arm, f"{kind}{IN_PAIRS}{objects}", task) for kind in ("seen", "unseen")}
        pairs = {kind: score if score is None else score ** (2 / objects) for kind, score in scores.items()}
        return row | pairs | {"learnt": known.score(arm, f"seen_{objects}")}

    def runs(self, records: Records) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame([self.scored(records, arm) for arm, _ in records.results])

    def diagram(self, runs: "pd.DataFrame") -> "Diagram | None":
        """Fit the diagram; None for trials, and where no run outside of held-out cells has ended."""
        from menagerie.studies.measures.boundary import fit_diagram

        held = [(form, *at) for form in self.models for at in self.held_out(form)]
        return None if self.trial or not len(runs) else fit_diagram(runs, held, self.test_scenes)

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the critical coverages, the map, its check on held-out cells, and all numbers."""
        from menagerie.studies.measures.phase_map import cell_parts, phase_parts, trial_parts

        runs = self.runs(records)
        if not len(runs):
            yield Paragraph("No run has ended yet.")
            return
        if self.trial:
            yield from trial_parts(runs, self.enough)
        elif diagram := self.diagram(runs):
            yield from phase_parts(diagram, self.enough)
        else:
            yield Paragraph("No run outside of held-out cells has ended yet, so there is no line.")
        yield from cell_parts(runs)

    def export(self, records: Records) -> None:
        """Write the numbers of the page's tables of words, in place of the words."""
        from menagerie.studies.analysis.tables import to_csv

        if diagram := self.diagram(self.runs(records)):
            to_csv(records.out / "critical.csv", diagram.fitted.lines)
            to_csv(records.out / "checks.csv", diagram.checks)


@cache
def distances_from_line(
    rows: tuple[tuple[tuple[str, Any], ...], ...], form: str, places: tuple[Place, ...], scenes: int
) -> list[float]:
    """Return how far from the line a curve through runs, with tests of so many scenes, puts places of a form."""
    import pandas as pd

    from menagerie.studies.measures.boundary import LINE, Boundary

    cells = pd.DataFrame(places, columns=Place._fields).assign(model=form)
    return list(abs(Boundary(pd.DataFrame(map(dict, rows)), scenes).curve(cells)[0] - LINE))


def place_in_diagram(arm: Arm) -> Place:
    return Place(*(arm.labels[name] for name in Place._fields))


def fewest_classes(coverage: float, pairs: int, most: int) -> int:
    """Return the smallest number of classes up to `most`, as many as a test's scenes have pairs or more, of which a
    coverage is a multiple: the fewer classes, the more pairs of objects a test can exchange."""
    numbers = (n for n in range(max(pairs, 2), most + 1) if 0 < nearest_rank(coverage, n) < n)
    if not (found := next(numbers, 0)):
        raise UserError(
            f"--coverage {coverage:g} is no multiple of 1 / n for an n from {max(pairs, 2)} to {most}, half of the "
            "world's names; choose others, or a --world with more names"
        )
    return found


RECIPE = Recipe(learning_rate=1e-3, warmup=100, decay=0.2, single_object_phase=0.125)
LAPTOP: dict[str, Any] = EIGHT | {
    **{"world": "twelve-plain", "architecture": "deep-text-micro", "recipe": RECIPE, "seeds": 3},
    **{"views": 32, "test_views": 8, "test_scenes": 400, "budgets": (5000, 2000, 1200, 1200)},
}
PRESETS = {
    "smoke": Phases(
        **SMOKE | {"world": "eight-textures", "test_scenes": 24, "views": 8, "train_scenes": 240, "budgets": (60,)},
        **{"models": ("filip",), "objects": (2,), "coverage": (0.25, 0.5, 0.75), "completeness": (1.0,)},
        **{"rounds": 1, "checked": 0},
    ),
    "pilot": Phases(**LAPTOP | {"budgets": (1000,)}, trial=(600, 1200, 2400)),
    "laptop": Phases(**LAPTOP),
}

if __name__ == "__main__":
    main(PRESETS)
