"""Is it the loss or the architecture? Contrastive or generative, fused late or early, pooled or patches.

The eight combinations of three factors, each on the same towers (CLIP's own) with the same data, rates and steps:

- loss: contrastive (InfoNCE among the texts and images of the batch), or generative (the likelihood of the caption);
- fusion: late (the text tower never sees the image), or early (each of its blocks attends to the image);
- tokens: one pooled vector of the image, or all its patches; with late contrastive ones likewise of the text.

    python studies/loss_or_architecture.py --preset smoke      # tiny, under 90 seconds on 2 cores
    python studies/loss_or_architecture.py                     # laptop: 8 animals, 32 px, both hardest cells
    python studies/loss_or_architecture.py --preset pug --device cuda      # four combinations, 64 px
    python studies/loss_or_architecture.py --preset negatives  # what the number of negatives does
    python studies/loss_or_architecture.py --learning-rates 5e-4 1e-3 2e-3 # each combination's best on validation

Contrastive and late is `filip` (pooled: CLIP), contrastive and early `fusion`, generative `captioner`. Contrastive
combinations have equally many negatives (--negatives). Training is that of `compute`. Equal budgets have equally many
images; --equal-operations adds runs with as many operations as CLIP's. A generative combination is also scored with the
prior of texts subtracted (--alphas), without training.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Annotated, Any, NamedTuple

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import FIRST, PLACE, WHAT
from menagerie.envs.core.validation import POSITIVE, STEPS, Range
from menagerie.models.registry import spec_of
from menagerie.studies.compute import BY_COST, FLOPS, Compute, Finished, Key, Setup, every_cost, hardest_grid, runs_of
from menagerie.studies.frame.arm import Arm, Course, KnownResults
from menagerie.studies.frame.claims import clear_effects, contrasts, effect_parts
from menagerie.studies.frame.command import main
from menagerie.studies.frame.costs import cost_in_labels, step_flops
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Bars, Curves, Lines, Paragraph, Part, Sentence, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.runs.machine import check_device_here

LEVELS = {"loss": ("contrastive", "generative"), "fusion": ("late", "early"), "tokens": ("pooled", "patches")}
ALL = tuple("-".join(levels) for levels in product(*LEVELS.values()))


class Kind(NamedTuple):
    """A combination of levels, and its number of negatives in training."""

    loss: str
    fusion: str
    tokens: str
    negatives: int
    """0 if the loss has none."""

    @property
    def model(self) -> str:
        """The name of the scorer that the combination is a configuration of."""
        if self.loss == "generative":
            return "captioner"
        return "filip" if self.fusion == "late" else "fusion"

    def options(self, batch: int, alpha: float) -> dict[str, Any]:
        """Return the options with which the scorer `model` becomes this combination."""
        if self.loss == "generative":
            fixed = {"null_share": 0.0, "parallel": 0.0, "prior": "images"}
            return {"fusion": self.fusion, "tokens": self.tokens, "alpha": alpha, **fixed}
        shared = {"tokens": self.tokens, "negatives": self.negatives if self.negatives < batch - 1 else 0}
        if self.fusion == "late":
            return shared | {"symmetric": False}
        return shared | {"fusion": "early", "objective": "infonce", "hard": False}


@dataclass(frozen=True)
class LossOrArchitecture(Compute):
    """Is it the loss or the architecture?"""

    models: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ("filip", "fusion", "captioner")
    combinations: Axis[str] = ALL
    """Which of the eight are trained, each as LOSS-FUSION-TOKENS."""
    negatives: Annotated[Axis[int], POSITIVE] = (63,)
    """Wrong texts for each image, and wrong images for each text, of contrastive losses; fewer than the smallest of
    --batches."""
    alphas: Annotated[Axis[float], Range(0.0, 10.0)] = (0.0, 1.0)
    """Weights of log P(text), over 32 training images, that is subtracted from generative scores: 0 the likelihood, 1
    the pointwise mutual information."""
    equal_operations: Annotated[tuple[int, ...], WHAT, FIRST, GROWS, STEPS] = ()
    """Budgets of operations, as steps of CLIP: every combination gets a further run with that many operations, unless
    its steps are too few to end the first phase and the warm-up before the rate decays."""
    fused_device: Annotated[str, PLACE, FIRST] = ""
    """Device (cpu or cuda) of contrastive combinations with early fusion, which are the most expensive; empty takes
    --device."""

    def idle_options(self, preset: AnyStudy) -> Iterator[str]:
        for kind in self.subjects:
            mine, its = (study.scorers.of(kind.model) for study in (self, preset))
            for name in kind.options(min(self.batches), 0.0):
                if mine.get(name) != its.get(name):
                    option = f"--{spec_of(kind.model).name}.{name.replace('_', '-')}"
                    yield f"{option} is set by --combinations, --negatives and --alphas"

    def check(self) -> None:
        super().check()
        if self.fused_device:
            check_device_here(self.fused_device)
        if 0.0 not in self.alphas:
            raise UserError(f"--alphas needs 0, the likelihood itself, got {self.alphas}")
        if max(self.negatives) >= min(self.batches):
            raise UserError(f"--negatives {max(self.negatives)}: a batch of {min(self.batches)} has fewer wrong texts")

    @property
    def subjects(self) -> list[Kind]:
        """The combinations that are trained, each once."""
        named = [choose("combination", name, ALL).split("-") for name in self.combinations]
        found = [Kind(*levels, 0 if levels[0] == "generative" else n) for n in self.negatives for levels in named]
        return list(dict.fromkeys(found))

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan each combination on each split. A generative one is scored with priors too, once its weights exist."""
        for arm in super().plan(known):
            yield arm
            if arm.labels["loss"] == "generative" and known.over(arm) and not known.has_diverged(arm):
                at = arm.labels["split"], kind_of(arm), self.setup_of(arm), arm.cell.seed, arm.labels["steps"]
                yield from (self.run(*at, alpha) for alpha in self.alphas if alpha)

    def planned(self, split: str, model: Kind, course: Course) -> list[Arm]:
        """Return the runs of a combination on a split: those of its course, and those in which it has as many
        operations as CLIP in `equal_operations` steps."""
        budgets = self.equal_operations if course.chosen else ()
        steps = [its for each in budgets if (its := self.steps_for(split, model, course.chosen, each))]
        equal = [self.run(split, model, course.chosen, seed, each) for each in steps for seed in self.seed_numbers]
        return list({arm.id: arm for arm in (*course.arms, *equal)}.values())

    @cache  # noqa: B019, a command has one study
    def run(self, split: str, model: Kind, setup: Setup, seed: int, steps: int, alpha: float = 0.0) -> Arm:
        grid = hardest_grid(self, split)
        device = self.fused_device if model.model == "fusion" and self.fused_device else self.device
        towers = {"architecture": setup.architecture, "recipe": self.recipe_of(setup, steps), "device": device}
        place = grid.places[0] | model.options(setup.batch, alpha)
        labels = {"split": split, **model._asdict(), "alpha": alpha, **setup._asdict(), "steps": steps}
        return replace(grid, **towers).at(model.model, seed, **place)._replace(labels=labels)

    @cache  # noqa: B019, a command has one study
    def steps_for(self, split: str, kind: Kind, setup: Setup, budget: int) -> int | None:
        """Return how many steps of a combination have as many operations as `budget` steps of CLIP; None if these are
        too few."""
        clip = Kind("contrastive", "late", "pooled", min(setup.batch - 1, max(self.negatives)))
        own, its = (step_flops(self.run(split, each, setup, 0, budget).cell) for each in (kind, clip))
        first = self.singles_steps
        steps = first + round((first * (its[0] - own[0]) + (budget - first) * its[1]) / own[1])
        enough = steps - round(self.decay * steps) > max(first, self.warmup)
        return steps if enough else None

    def measures(self, arm: Arm, records: Records) -> Mapping[str, Any]:
        # Of the first seed, because counting takes seconds.
        first = self.run(arm.labels["split"], kind_of(arm), self.setup_of(arm), 0, arm.labels["steps"])
        return super().measures(arm._replace(cell=first.cell), records)

    def rank(self, arm: Arm) -> tuple[int, int, int]:
        return arm.labels["steps"], self.setups.index(self.setup_of(arm)), arm.cell.seed

    @property
    def levels(self) -> dict[str, tuple[str, str]]:
        """The factors that vary, with their levels; empty unless all combinations of them are trained."""
        named = {tuple(name.split("-")) for name in self.combinations}
        found = [[level for level in both if any(level in its for its in named)] for both in LEVELS.values()]
        whole = len(named) == len(list(product(*found)))
        return {name: (its[0], its[1]) for name, its in zip(LEVELS, found, strict=True) if whole and len(its) == 2}

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the effects of loss, fusion and tokens, and the accuracy of all combinations, at equal images first."""
        courses = self.courses(records)
        whole = self.finished_budgets(records, courses)
        compared = self.compared(records, courses, whole)
        if not compared.arms:
            yield Paragraph("All combinations have yet to finish a common budget with all seeds.")
            return
        swaps, by, most = compared.where(**self.unseen()), ("split", "negatives", "compared"), len(self.levels)
        found = contrasts(swaps, self.levels, by, most) if most else {}
        for (split, negatives, _), its in ((key, its) for key, its in found.items() if key[-1] == EQUAL):
            said = clear_effects(its, self.effect_in_words)
            yield Sentence(f"Swaps of unseen pairs, {split} split, {negatives} negatives: {said}.")
        equal = swaps.where(compared=EQUAL)
        if len(self.negatives) > 1:
            look: dict[str, Any] = {"x": "negatives", "colour": "fusion", "panels": ("split", "tokens"), "log": True}
            yield Lines("negatives", equal.where(loss="contrastive"), says=FIGURE, **look)
        else:
            look = {"rows": ("tokens", "fusion"), "colour": "loss", "dots": True, "panels": ("split",)}
            yield Bars("accuracy", equal, says=FIGURE, **look)
        place = ("compared", "split", *LEVELS, "negatives", "alpha", "steps")
        costs = {
            tuple(arm.place[name] for name in place): (*cost_in_labels(arm).texts[:2], f"{result['parameters']:,}")
            for arm, result in compared.results
        }
        look = {"intervals": True, "says": COMBINATIONS}
        look["beside"] = {name: {key: its[k] for key, its in costs.items()} for k, name in enumerate(COSTS)}
        unseen = compared.where(subset=self.unseen()["subset"], task=TASKS)
        yield Table("combinations", unseen, place, ("task",), **look)
        yield from effect_parts("effects", found, by, self.effect_in_words, EFFECTS)
        image = contrasts(swaps.four_way_items("image"), self.levels, by, most) if most else {}
        says = "The same for the image score of four-way items."
        yield from effect_parts("image-score", image, by, self.effect_in_words, says)
        yield from self.cost_parts(records, courses, whole)

    def cost_parts(self, records: Records, courses: Mapping[Key, Course], whole: Finished) -> Iterator[Part]:
        """Yield accuracy by operations, validation by budget, and training curves."""
        every = runs_of((arm for budgets in whole.values() for arms in budgets.values() for arm in arms), records)
        if len(self.budgets) > 1:
            look: dict[str, Any] = {"colour": "loss", "stroke": "fusion", "panels": ("split", "tokens", "negatives")}
            curves = every_cost(every).where(**self.unseen())
            yield Lines("operations", curves, x="steps", at=FLOPS, log=True, level=self.bar, says=BY_COST, **look)
        rates = {(split, *kind, its.chosen.learning_rate): its for (split, kind), its in courses.items() if its.chosen}
        beside = {"outcome": {key: its.outlook(self.rise) for key, its in rates.items()}}
        rows, validation = ("split", *Kind._fields, "learning_rate"), every.where(subset="validation", task="swap")
        yield Table("budgets", validation, rows, ("steps",), beside=beside, says="Validation (%), by steps.")
        longest = runs_of((arm for its in whole.values() if its for arm in its[max(its)][:1]), records)
        says = "The first seed, at the largest budget."
        yield Curves("training", longest, (*LEVELS, "negatives"), panels="split", says=says)

    def effect_in_words(self, effect: Sequence[str]) -> str:
        return " → ".join(self.levels[effect[0]]) if len(effect) == 1 else " × ".join(effect)

    def compared(self, records: Records, courses: Mapping[Key, Course], whole: Finished) -> Records:
        """Return the runs that are compared with one another, with the label `compared`, once for each comparison. Each
        generative run is compared with contrastive ones of each number of negatives, and has that as its label."""
        arms = []
        for split, count in product(self.names, self.negatives):
            its = {key: budgets for key, budgets in whole.items() if key[0] == split and key[1].negatives in (0, count)}
            last = set.intersection(*(set(budgets) for (at, _), budgets in whole.items() if at == split))
            for name, chosen in self.comparisons(records, courses, its, max(last)) if last else ():
                label = {"compared": name, "negatives": count}
                arms += [arm._replace(labels=arm.labels | label) for arm in chosen]
        return replace(records, arms=tuple(arms))

    def comparisons(
        self, records: Records, courses: Mapping[Key, Course], whole: Finished, last: int
    ) -> Iterator[tuple[str, list[Arm]]]:
        """Yield what is compared on a split: runs of equally many images (the budget `last`), with priors subtracted,
        of equally many operations, and at the best budget of each combination."""
        equal = [arm for budgets in whole.values() for arm in budgets[last]]
        yield EQUAL, equal
        for alpha in filter(None, self.alphas):
            twins = {arm.cell.trained_as.id: arm for arm, _ in records.results if arm.labels["alpha"] == alpha}
            pairs = [twins.get(arm.cell.trained_as.id) if arm.labels["loss"] == "generative" else arm for arm in equal]
            if twins and None not in pairs:
                yield f"{PRIOR}, alpha {alpha:g}", [arm for arm in pairs if arm]
        for budget in self.equal_operations:
            steps = {key: self.steps_for(*key, courses[key].chosen, budget) for key in whole}
            dear = [arm for key, budgets in whole.items() for arm in budgets.get(steps[key] or 0, ())]
            yield f"{OPERATIONS} {budget} steps of CLIP", dear
        if any(len(budgets) > 1 for budgets in whole.values()):
            best = (budgets[self.best_budget(records, budgets)] for budgets in whole.values())
            yield "each at its best budget", [arm for arms in best for arm in arms]


def kind_of(arm: Arm) -> Kind:
    return Kind(*(arm.labels[name] for name in Kind._fields))


COSTS = ("images", "TFLOP", "parameters")
TASKS = ("swap", "text score", "image score", "group score", "replace animal", "replace texture")
EQUAL, PRIOR, OPERATIONS = "equal images", "prior subtracted", "operations of"
FIGURE = "Accuracy (%) on swaps of unseen pairs, after equally many images; chance is 50. Pale dots are single seeds."
COMBINATIONS = """Unseen pairs (%). Chance is 50 in swaps and replaced words, 25 in text and image score, 17 in group
score. Alpha weights the prior of texts that is subtracted from a likelihood; it changes which text an image prefers."""
EFFECTS = """Accuracy at a factor's second level minus that at its first, in points, over all levels of the others. An
interaction of two factors is half of the change of one's effect with the other, one of three a quarter."""
PATCHES: dict[str, Any] = {"combinations": tuple(name for name in ALL if name.endswith("patches"))}
PRESETS: dict[str, LossOrArchitecture] = {
    "smoke": LossOrArchitecture(
        **{"cell": "smoke", "splits": ("binding",), "scorers": scorer_options("smoke"), "seeds": 1},
        **{"budgets": (24,), "architectures": ("nano",), "batches": (16,), "learning_rates": (2e-3,)},
        **{"warmup": 4, "singles_steps": 6, "negatives": (7,), "alphas": (0.0, 1.0)},
    ),
    "laptop": LossOrArchitecture(seeds=5, budgets=(1000, 2000, 4000), learning_rates=(2e-3,), negatives=(15,)),
    "pug": LossOrArchitecture(
        **PATCHES | {"cell": "laptop", "splits": ("binding",), "seeds": 3},
        **{"budgets": (2000, 4000), "learning_rates": (1e-3,), "singles_steps": 500, "negatives": (15,)},
    ),
    "negatives": LossOrArchitecture(
        **{"combinations": ("contrastive-late-patches", "contrastive-early-patches"), "splits": ("binding",)},
        **{"negatives": (1, 3, 15, 63), "budgets": (2000,), "learning_rates": (2e-3,)},
    ),
}


if __name__ == "__main__":
    main(PRESETS)
