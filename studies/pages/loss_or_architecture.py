"""The page of `studies/loss_or_architecture.py`: the effects of loss, fusion and tokens, and all combinations."""

from collections.abc import Iterator, Mapping
from typing import Any

from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.adaptive import Course
from menagerie.studies.frame.arm import Arm, label_text
from menagerie.studies.frame.costs import cost_in_labels
from menagerie.studies.frame.parts import Bars, Curves, Heading, Lines, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.pages.compute import FLOPS, STATES, WAITING, cost_labels
from menagerie.studies.pages.loss_or_architecture_choices import (
    FACTORS,
    ORDER,
    Key,
    Runs,
    comparisons,
    factor_levels,
    finished_budgets,
    largest_common_budgets,
)
from menagerie.studies.pages.loss_or_architecture_effects import (
    IMAGE_SCORE,
    MEASURES,
    SWAP,
    all_effects_table,
    effect_figures,
    effect_sentences,
    negatives_in_words,
    single_effect_table,
)

PLACE = ("split", *FACTORS, "negatives", "alpha")


def parts(study: Any, records: Records, courses: Mapping[Key, Course], judged: Mapping[str, Key]) -> Iterator[Part]:
    """Yield the page: the decomposition, a figure, the table of combinations, all effects, and the training curves."""
    whole = finished_budgets(study, records, courses)
    last = largest_common_budgets(whole)
    if not last:
        yield Paragraph("All combinations have yet to finish a common budget with all seeds.")
        return
    unseen = tuple(dict.fromkeys(test for tests in judged.values() for test in tests))
    swaps = records.where(subset=unseen, task="swap")
    levels, chosen = factor_levels(study), comparisons(study, records, courses, whole, last)
    equal_images, others = ([each for each in chosen if bool(each.name) == named] for named in (False, True))
    for choice in equal_images if levels else ():
        yield from effect_sentences(swaps, choice, levels, len(study.negatives) > 1)
    plain = swaps.where(lambda arm: any(arm.id in choice.arms for choice in equal_images))
    yield from negatives_sentences(study, plain.where(loss="contrastive"))
    yield from accuracy_figure(study, plain)
    equal = {arm.cell.trained_as.id for (split, _), of in whole.items() if split in last for arm in of[last[split]]}
    shown = records.where(lambda arm: arm.cell.trained_as.id in equal)
    yield Rows("combinations", *combination_table(study, shown.where(subset=unseen)), says=COMBINATIONS)
    yield Rows("tests", *table_by_test(study, shown), says=ALL_TESTS)
    if levels:
        yield Heading("Effects", EFFECTS)
        yield from effect_figures(swaps, equal_images, levels)
        yield Rows("one-at-a-time", *single_effect_table(swaps, chosen, levels), says=ONE)
        yield Rows("decomposition", *all_effects_table(swaps, equal_images, levels))
        if others:
            yield Rows("decomposition-otherwise", *all_effects_table(swaps, others, levels), says=OTHERWISE)
    yield Heading("By operations", BY_COST)
    runs = {arm.id for budgets in whole.values() for arms in budgets.values() for arm in arms}
    curves = swaps.where(lambda arm: arm.id in runs).with_labels(cost_labels)
    if len(study.negatives) > 1:
        curves = curves.with_labels(loss_with_negatives)
    look: dict[str, Any] = {"at": FLOPS, "colour": "loss", "stroke": "fusion", "log": True, "level": study.bar}
    if len(study.budgets) > 1:
        yield Lines("operations", curves, x="steps", panels=("split", "tokens"), **look)
    if study.equal_operations:
        yield Rows("equal-operations", *equal_operations_table(study, swaps, courses, whole), says=EQUAL)
    yield Heading("How they trained", TRAINED)
    yield Rows("budgets", *budget_table(study, records, courses, whole))
    longest = {arm.id for budgets in whole.values() if budgets for arm in budgets[max(budgets)]}
    seed = min(records.labels("seed"))
    first = records.where(lambda arm: arm.id in longest and arm.cell.seed == seed)
    yield Curves("training", first, (*FACTORS, "negatives"), panels="split", says=f"Seed {seed}, the largest budget.")


def negatives_sentences(study: Any, contrastive: Records) -> Iterator[Part]:
    """Yield a sentence for each contrastive combination: how much it gains with more negatives than the fewest."""
    least, *more = sorted(study.negatives)
    places = ("split", "fusion", "tokens")
    found = contrastive.estimates((*places, "negatives"), against={"negatives": least}) if more else {}
    for place in dict.fromkeys(key[:-1] for key in found):
        gains = [f"{found[*place, n]} with {n}" for n in more if (*place, n) in found]
        yield Sentence(
            f"{place[0].capitalize()}, contrastive, {place[1]} fusion of {place[2]}: compared with "
            f"{negatives_in_words(least)}, {', '.join(gains)} points."
        )


def loss_with_negatives(arm: Arm, _: Records) -> dict[str, str]:
    """Add the number of negatives to the name of a contrastive loss, so that each number has a line of its own."""
    loss, negatives = arm.labels["loss"], arm.labels["negatives"]
    return {"loss": f"{loss}, {negatives_in_words(negatives)}" if loss == "contrastive" else loss}


def accuracy_figure(study: Any, plain: Records) -> Iterator[Part]:
    """Yield the figure of accuracy: of all combinations, or by the number of negatives if several are trained."""
    if len(study.negatives) > 1:
        look: dict[str, Any] = {"x": "negatives", "colour": "fusion", "panels": ("split", "tokens"), "log": True}
        contrastive = plain.where(loss="contrastive")
        yield Lines("negatives", contrastive, **look, along="negative texts, and images, of each pair", says=FIGURE)
    else:
        look = {"rows": ("tokens", "fusion"), "colour": "loss", "dots": True, "panels": ("split",)}
        yield Bars("accuracy", plain, **look, says=FIGURE)


TASKS = ("swap", "text score", "image score", "group score", "replace animal", "replace texture")


def combination_table(study: Any, shown: Records) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each split, combination, number of negatives and prior, at equal images."""
    found, four_way_items = shown.estimates((*PLACE, "task")), shown.four_way_items("image").estimates(PLACE)
    found |= {(*key, IMAGE_SCORE): its for key, its in four_way_items.items()}
    rows = []
    for key, (arm, result) in ordered_rows(study, shown).items():
        cost = cost_in_labels(arm)
        scores = {task: found.get((*key, task)) for task in TASKS}
        numbers = [
            DASH if its is None else str(its) if task in MEASURES else f"{100 * its.value:.1f}"
            for task, its in scores.items()
        ]
        if scores[SWAP] and scores[SWAP].seeds < study.seeds:  # of a prior some runs aren't scored yet
            numbers = [WAITING] * len(numbers)
        rows.append([*key_texts(key), *numbers, *cost.texts[:2], f"{result['parameters']:,}"])
    return ["split", *FACTORS, "negatives", "alpha", *TASKS, "images", "TFLOP", "parameters"], rows


def table_by_test(study: Any, shown: Records) -> tuple[list[str], list[list[str]]]:
    """Return a table with the accuracy on the swaps of every test, with the rows of `combination_table`."""
    found = shown.where(task="swap").estimates((*PLACE, "subset"))
    tests = list(dict.fromkeys(key[-1] for key in found))
    rows = [
        [*key_texts(key), *(str(found.get((*key, test), DASH)) for test in tests)] for key in ordered_rows(study, shown)
    ]
    return ["split", *FACTORS, "negatives", "alpha", *(label_text("subset", test) for test in tests)], rows


def ordered_rows(study: Any, shown: Records) -> dict[Key, tuple[Arm, dict[str, Any]]]:
    """Return the keys of tables' rows in order, each with its first run and that run's result."""
    first = {tuple(arm.place[name] for name in PLACE): (arm, result) for arm, result in reversed(shown.results)}
    return dict(sorted(first.items(), key=lambda item: row_order(study, item[0])))


def key_texts(key: Key) -> list[str]:
    """Return the cells that name a row."""
    return [*map(str, key[:4]), str(key[4] or DASH), f"{key[5]:g}" if key[1] == "generative" else DASH]


def row_order(study: Any, key: Key) -> tuple[int, ...]:
    """Return the key by which tables sort combinations."""
    split, *levels, negatives, alpha = key
    return study.names.index(split), *map(ORDER.index, levels), negatives, study.alphas.index(alpha)


def equal_operations_table(
    study: Any, swaps: Records, courses: Mapping[Key, Course], whole: Runs
) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each combination: for each given number of CLIP's steps, the number of its own
    steps that take as many operations, and its accuracy after these."""
    rows = []
    for (split, kind), budgets in whole.items():
        chosen, texts = courses[split, kind].chosen, []
        for budget in study.equal_operations if chosen else ():
            steps = study.steps_for(split, kind, chosen, budget)
            ids = {arm.id for arm in budgets.get(steps, ())}
            level = swaps.where(lambda arm, ids=ids: arm.id in ids).estimates(("split",)).get((split,)) if ids else None
            reached = f"{100 * level.value:.1f} [{level.bounds}]" if level else WAITING
            texts += [str(steps), reached] if steps else ["too few", DASH]
        rows.append([split, *kind[:3], str(kind.negatives or DASH), *texts])
    names = [name for each in study.equal_operations for name in ("steps", f"swap, {each} steps of CLIP")]
    return ["split", *FACTORS, "negatives", *names], rows


def budget_table(
    study: Any, records: Records, courses: Mapping[Key, Course], whole: Runs
) -> tuple[list[str], list[list[str]]]:
    """Return a table of each combination's validation accuracy by budget, and whether a larger one would help."""
    rows = []
    for (split, kind), budgets in whole.items():
        means = {steps: records.mean(arms) for steps, arms in budgets.items()}
        texts = [DASH if means.get(steps) is None else f"{100 * means[steps]:.1f}" for steps in study.budgets]
        course = courses[split, kind]
        rate = DASH if course.chosen is None else f"{course.chosen.learning_rate:g}"
        outlook = STATES[course.outlook(study.rise)]
        rows.append([split, *kind[:3], str(kind.negatives or DASH), rate, *texts, outlook])
    return ["split", *FACTORS, "negatives", "rate", *(f"{steps} steps" for steps in study.budgets), "outcome"], rows


FIGURE = """Accuracy (%) on swaps of unseen pairs, after equally many images; chance is 50. Pale dots are single
seeds."""
COMBINATIONS = """At the largest budget that all have finished, so after equally many images. In percent; chance is 50
in swaps and replaced words, 25 in text and image score, 17 in group score. Alpha weights the prior of texts
that is subtracted from a likelihood. It changes which text an image prefers. It changes which image a text prefers, and
so the image score, by rounding only."""
EFFECTS = """The effect of a factor in points: accuracy at its second level minus that at its first, over all levels of
the others. Levels are in this order: contrastive, generative; late, early; pooled, patches. An interaction of two
factors is half of the change of one's effect with the other, one of three factors a quarter."""
ALL_TESTS = """Accuracy (%) on the swaps of every test; chance is 50. A generative scorer that is right in far less than
half of the swaps prefers the captions that training showed."""
ONE = """How accuracy changes, in points, if one factor alone goes from its first level to its second while the others
have the levels that are named. Where these changes differ in sign, the effect above is their mean and says little."""
OTHERWISE = """The same for other comparisons. Prior subtracted: generative combinations score by likelihood minus
prior, contrastive ones as always. Best budget: each combination at the budget that is best on validation."""
BY_COST = """Accuracy by the operations that training takes. The combination of contrastive loss and early fusion reads
each image with each negative, so it takes more operations for as many images."""
EQUAL = """Accuracy (%) on swaps of unseen pairs, after as many operations as CLIP takes in so many steps; chance is
50."""
TRAINED = """Accuracy on validation (%), mean over seeds; chance is 50. Budgets rise until accuracy stops rising.
A combination that is still at chance may not have begun to learn."""
