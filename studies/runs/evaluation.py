"""Evaluates a scorer: accuracies by subset and task, and scores; on validation also during training."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file
from menagerie.envs.core.identity import generator
from menagerie.generators.splits.facts import SEEN

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Scores
    from menagerie.generators.familiarity import Familiar
    from menagerie.models.judges.judge import Judge
    from menagerie.models.recipe import Recipe
    from menagerie.models.scorer import Scorer

FILE = "predictions.csv"
PREDICTIONS = (
    *("subset", "task", "scene", "animals", "caption", "negative"),
    *("score_caption", "score_negative", "counterfactual_caption", "counterfactual_negative"),
    *SEEN,
)
Results = dict[str, dict[str, dict[str, Any]]]
Keep = Callable[[str, Sequence["Item"], Sequence["Scores"]], None]


def evaluate(
    folder: Path,
    tests: Mapping[str, "Benchmark"],
    scorer: "Scorer | Judge",
    keep: Keep | None = None,
    trained: "Familiar | None" = None,
) -> Results:
    """Return results by subset and task, and write `predictions.csv`. `keep` receives subsets, items and scores.
    `trained` is what the scorer's training shows and says; if that isn't known, the columns `SEEN` are empty."""
    import numpy as np

    from menagerie.generators.benchmarks.benchmark import four_way_rules
    from menagerie.generators.benchmarks.split_tests import SplitTests
    from menagerie.generators.familiarity import seen_columns
    from menagerie.models.evaluation.scoring import score_items
    from menagerie.models.judges.judge import Judge

    rules = four_way_rules(not isinstance(scorer, Judge) or scorer.form.compares_images)
    subsets = {}
    with whole_file(folder / FILE) as temporary, temporary.open("w", newline="") as file:
        rows = csv.DictWriter(file, PREDICTIONS, lineterminator="\n", restval="")
        rows.writeheader()
        for subset, test in tests.items():
            scores = score_items(scorer, test)
            subsets[subset] = summaries(test, scores, rules)
            # With 0 for NaN, texts without a judge's answer tie.
            of_split = trained and isinstance(test, SplitTests)
            seen = seen_columns(test.data.split.vocabulary, trained) if of_split else None
            rows.writerows(predictions(subset, test.items, list(map(np.nan_to_num, scores)), seen))
            if keep:
                keep(subset, test.items, scores)
    return subsets


def summaries(
    test: "Benchmark", scores: Sequence["Scores"], rules: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the results of each task (accuracy None without items), and of four-way items by `rules` (None: all)."""
    from menagerie.generators.benchmarks.benchmark import FOUR_WAY, FOUR_WAY_RULES, apply_rule, summarise

    scored = list(zip(test.items, scores, strict=True))
    tasks: dict[str, dict[str, Any]] = {}
    for task in (task for task in test.tasks if task != FOUR_WAY):
        found = [apply_rule(partial(test.outcome, item), matrix) for item, matrix in scored if item.task == task]
        official, neutral, tie_rate, n = summarise(found)
        tasks[task] = {"accuracy": neutral, "official": official, "tie_rate": tie_rate, "n": n}
    four_way = [matrix for item, matrix in scored if item.task == FOUR_WAY]
    for part in (rules or FOUR_WAY_RULES) if FOUR_WAY in test.tasks else ():
        found = [apply_rule(FOUR_WAY_RULES[part], matrix) for matrix in four_way]
        # A tie is wrong, unless the model gives no verdict.
        tasks[f"{part} score"] = {"accuracy": summarise(found).official, "tie_rate": None, "n": len(found)}
    return tasks


def predictions(
    subset: str, items: Sequence["Item"], scores: Sequence["Scores"], seen: Callable[["Item"], Mapping] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a row for each record and task, with its best false caption; of swaps also with counterfactual scores.
    `seen` gives an item's columns `SEEN`."""
    from menagerie.generators.benchmarks.benchmark import FOUR_WAY

    scored = list(zip(items, scores, strict=True))
    counterfactuals = {item.record: matrix[1] for item, matrix in scored if item.task == FOUR_WAY}
    for item, matrix in scored:
        if item.task == FOUR_WAY:
            continue
        row = {"subset": subset, "task": item.task, "scene": item.record, "animals": item.cluster}
        false = item.true + int(matrix[0, item.true :].argmax())
        row |= {"caption": item.texts[0].text, "negative": item.texts[false].text}
        numbers = {"score_caption": matrix[0, : item.true].min(), "score_negative": matrix[0, false]}
        if item.task == "swap" and item.record in counterfactuals:
            both = counterfactuals[item.record]
            numbers |= {"counterfactual_caption": both[0], "counterfactual_negative": both[1]}
        yield row | {name: f"{number:.9g}" for name, number in numbers.items()} | (seen(item) if seen else {})


MOST = 200  # swaps of an evaluation during training, which are always the same
EVALUATIONS, LEAST_STEPS = 10, 100  # the default number of evaluations in a run, the least number of steps between two


def evaluates_after(step: int, recipe: "Recipe", every: int) -> bool:
    """Whether to evaluate after a step: after every `every` steps (0: a tenth of the run, at least `LEAST_STEPS`) and
    after the last, but not in the single-object phase, which is shared by cells with different validation sets."""
    from menagerie.models.training.feed import single_steps

    between = every or max(LEAST_STEPS, -(-recipe.steps // EVALUATIONS))
    return step > single_steps(recipe) and (step % between == 0 or step == recipe.steps)


def sample_accuracy(scorer: "Scorer", test: "Benchmark") -> float:
    """Return the tie-neutral accuracy on a sample of a test's swaps (or the items that replace them), always the same;
    NaN if there are none, or if a score isn't finite. A scorer in training mode stays in it."""
    import torch

    from menagerie.generators.benchmarks.benchmark import summarise
    from menagerie.models.evaluation.scoring import score_items

    items = [item for item in test.items if item.task == test.logged_task]
    if len(items) > MOST:
        chosen = generator(0, "sample of swaps").choice(len(items), MOST, replace=False)
        items = [items[i] for i in sorted(chosen)]
    neutral = None
    with torch.random.fork_rng([scorer.device] if scorer.device.type == "cuda" else []), suppress(UserError):
        scores = score_items(scorer, test, items)
        neutral = summarise([test.outcome(*pair) for pair in zip(items, scores, strict=True)]).neutral
    return float("nan") if neutral is None else neutral
