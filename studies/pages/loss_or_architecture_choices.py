"""The runs that the page of `studies/loss_or_architecture.py` compares: after equally many images, with a prior
subtracted, after equally many operations, and each combination at its best budget."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from menagerie.studies.frame.adaptive import Course
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.contrasts import Levels
from menagerie.studies.frame.records import Records

FACTORS = ("loss", "fusion", "tokens")
ORDER = ("contrastive", "generative", "late", "early", "pooled", "patches")
PRIOR = "prior subtracted, alpha "
Key = tuple[Any, ...]
Runs = Mapping[tuple[str, Any], Mapping[int, Sequence[Arm]]]
"""The runs of each split and combination, by budget, for the budgets that all seeds have finished."""


class ComparedRuns(NamedTuple):
    """Runs that are compared with one another, for one number of negatives. `arms` has their ids."""

    name: str
    negatives: int
    arms: frozenset[str]


def finished_budgets(study: Any, records: Records, courses: Mapping[Key, Course]) -> Runs:
    """Return each combination's budgets that all seeds have finished, at the learning rate that was chosen for it."""
    found: dict[Key, dict[int, list[Arm]]] = {key: {} for key in courses}
    for arm, _ in records.results:
        key = arm.labels["split"], combination_of(study, arm)
        if not arm.labels["alpha"] and study.setup_of(arm) == courses[key].chosen:
            found[key].setdefault(arm.labels["steps"], []).append(arm)
    whole = {key: [item for item in budgets.items() if len(item[1]) == study.seeds] for key, budgets in found.items()}
    return {key: dict(sorted(budgets)) for key, budgets in whole.items()}


def combination_of(study: Any, arm: Arm) -> Any:
    """Return the combination of a run."""
    named = {kind: kind._asdict() for kind in study.kinds}
    return next(kind for kind, labels in named.items() if labels.items() <= arm.labels.items())


def largest_common_budgets(whole: Runs) -> dict[str, int]:
    """Return the largest budget of each split that all its combinations have finished."""
    common: dict[str, set[int]] = {}
    for (split, _), budgets in whole.items():
        common[split] = common.get(split, set(budgets)) & budgets.keys()
    return {split: max(budgets) for split, budgets in common.items() if budgets}


def factor_levels(study: Any) -> Levels:
    """Return the factors that vary, with their levels; empty unless all combinations of them are trained."""
    named = {tuple(name.split("-")) for name in study.combinations}
    found = [dict.fromkeys(column) for column in zip(*sorted(named), strict=True)]
    if len(named) != len(list(product(*found))):
        return {}
    return {n: tuple(sorted(both, key=ORDER.index)) for n, both in zip(FACTORS, found, strict=True) if len(both) == 2}


def comparisons(
    study: Any, records: Records, courses: Mapping[Key, Course], whole: Runs, last: Mapping[str, int]
) -> list[ComparedRuns]:
    """Return what is compared for each number of negatives: equal images, priors, equal operations, best budgets."""
    found, setups = [], {key: course.chosen for key, course in courses.items()}
    for count in study.negatives:
        its = {key: budgets for key, budgets in whole.items() if key[1].negatives in (0, count) and key[0] in last}
        equal = {arm.id: arm for (split, _), budgets in its.items() for arm in budgets[last[split]]}
        found.append(ComparedRuns("", count, frozenset(equal)))
        for alpha in filter(None, study.alphas):
            twin = with_prior(records, equal.values(), alpha)
            found.append(ComparedRuns(f"{PRIOR}{alpha:g}", count, twin))
        for budget in study.equal_operations:
            steps = {key: study.steps_for(*key, setups[key], budget) for key in its}
            dear = [arm.id for key, budgets in its.items() for arm in budgets.get(steps[key], ())]
            found.append(ComparedRuns(f"operations of {budget} steps of CLIP", count, frozenset(dear)))
        if any(len(budgets) > 1 for budgets in its.values()):
            best = [its[key][best_budget(records, budgets, study.budgets)] for key, budgets in its.items()]
            ids = frozenset(arm.id for arms in best for arm in arms)
            found.append(ComparedRuns("each at its best budget", count, ids))
    return [choice for choice in found if choice.arms]


def with_prior(records: Records, arms: Iterable[Arm], alpha: float) -> frozenset[str]:
    """Return the ids of these runs, each generative one replaced by the run with the same training that subtracts the
    prior with weight `alpha`. Empty if no run has this weight."""
    twins = {arm.cell.trained_as.id: arm.id for arm in records.arms if arm.labels["alpha"] == alpha}
    found = (twins.get(arm.cell.trained_as.id) if arm.labels["loss"] == "generative" else arm.id for arm in arms)
    return frozenset(filter(None, found)) if twins else frozenset()


def best_budget(records: Records, budgets: Mapping[int, Sequence[Arm]], given: Sequence[int]) -> int:
    """Return the budget, among `given`, that is best on validation; of equal ones the smallest."""
    return max(budgets.keys() & {*given}, key=lambda steps: (records.mean(budgets[steps]) or 0.0, -steps))
