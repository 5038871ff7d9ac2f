"""The page of a study of sample efficiency: the answer, both searches, what mattered, and all trials."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from menagerie.studies.analysis import pareto
from menagerie.studies.frame.parts import Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.sample_search.points import (
    DASH,
    FEWEST,
    SearchTrial,
    Setting,
    axis_of,
    count_capped,
    curve_of,
    fronts_of,
    images_to_target,
    importances,
    is_complete,
    judged_by,
    ratio_interval,
    ratio_rows,
    sentences_on_test,
    volumes_so_far,
)

TESTED, IMAGES = "settings of it, on the test", "distinct training images"
PARETO = """Accuracy by the number of distinct training images. Rings: all settings of the first search, on validation.
Thin line: the model's front, the settings that no other beats on validation with as few images. Filled points: the same
settings on the test, where accuracy needn't rise with images. Dashed line: the target of the second search. Dotted
line: chance. Images on a logarithmic scale."""
MAPS = """Validation accuracy by the share of animal pairs in training (upwards) and the share of these that have their
hard negatives there (to the right). Circles: settings of both searches with all seeds finished. The paler colour around
them is estimated by Gaussian process regression; grey is too far from any circle. Views and share of single-object
scenes differ between circles."""
HISTORY = """Left: the hypervolume of all settings that the first search had tried by then, on validation. Right: the
distinct images of each setting of the second search; filled if it reaches the target, a cross if it was pruned before
that was known. Images on a logarithmic scale."""
LINES = """A line for each setting of both searches, through its value of each parameter, between the least and the
largest value of that parameter. Fractions are as requested; the tables have the fractions in whole pairs (10 % of few
pairs may be none). The colour is the accuracy on validation, on one scale for all models; the best is on top. Grey and
dashed: pruned trials, whose accuracy isn't known."""
REST = "several together, or nothing"
HEADER = ("images", "passes", "pairs", "hard negatives", "singles views", "singles share")
STATES = """Of both searches. `complete`: all seeds were trained; `missed`: the same, but together they are below the
target; `pruned`: ended early, because further seeds could no longer lift it to the target; `validation` is then that of
the finished seeds, and never counts as reaching the target. `–`: not trained, or by another command. `trials.csv` has
the same, with accuracies and fractions from 0 to 1."""


def parts(study: Any, points: Sequence[SearchTrial]) -> Iterator[Part]:
    """Yield the page: ratios in words and the fronts; tables of both searches, what mattered, and all trials."""
    fronts, ratios = fronts_of(study, points), ratio_table(study, points)
    yield from (Sentence(f"{row[2]}.") for row in ratios.rows[: len(study.models) - 1])
    yield from map(Sentence, sentences_on_test(study, points))
    yield front_figure(study, points, fronts)
    yield Paragraph(explain_search(study, points))
    yield Heading("First search: fewest images against highest accuracy")
    yield front_table(study, fronts)
    yield volume_table(study, fronts)
    yield Heading(f"Second search: images to {study.target:.0%}")
    yield target_table(study, points)
    if len(study.models) > 1:
        yield ratios
    yield Heading("Pairs or hard negatives?")
    yield map_figure(study, points)
    yield importance_table(study, points)
    yield Heading("Course of the searches", LINES)
    yield from course_figures(study, points)
    yield Heading("All trials")
    yield trial_table(study, points)


def explain_search(study: Any, points: Sequence[SearchTrial]) -> str:
    """Explain what is counted, how long each setting is trained, and which accuracy it is judged by."""
    counted = (
        "Training images are distinct images: each scene in a view counts once, single-object scenes included, however "
        f"often it is seen; that is counted as passes. Each model is searched twice, {study.trials} settings each: for "
        f"few images and high accuracy at once, and for the fewest images that reach {study.target:.0%} on validation. "
        f"Settings are judged by the {judged_by(study)} over {study.seeds} seeds of accuracy on validation pairs. "
        "Accuracy of a chosen setting on unseen pairs is the test, which no search has looked at. "
    )
    if not study.budgets:
        return f"{counted}Every model in every setting takes {study.recipe.steps} steps."
    capped = [f"{its[0]} of {its[1]} of {model}" for model, its in count_capped(study, points).items()]
    said = (
        f" Settings that reached the cap before validation had stopped rising: {', '.join(capped)}." if capped else ""
    )
    return (
        f"{counted}Every setting takes {', '.join(map(str, study.budgets))} steps, one budget after the other, until "
        f"{study.patience} in a row raise its mean on validation by no more than {100 * study.rise:g} points, or less "
        "than that is left to 100 % (the last is the cap; a setting at chance goes on to it, because its rise may "
        "still begin). It counts with the budget that is best on validation; the rate decays at the end of each. All "
        f"take at least {study.equal_steps} steps: their results by then are compared at equal compute.{said}"
    )


def front_figure(study: Any, points: Sequence[SearchTrial], fronts: Mapping[str, Sequence[SearchTrial]]) -> Part:
    """Plot the fronts, and all settings of the first search."""
    from menagerie.studies.frame.search_figures import POINTS, RINGS, STEPS, ByModel, Side

    chosen = [p for settings in fronts.values() for p in settings]
    rows = [{"model": p.model, "images": p.images, "validation": p.accuracy, "test": p.test(study)} for p in chosen]
    tried = [p for p in points if p.question == "front" and is_complete(study, p)]
    series = {
        "a setting, on validation": (RINGS, [(p.model, p.images, 100 * p.accuracy) for p in tried]),
        "a model's front of these": (STEPS, [(row["model"], row["images"], 100 * row["validation"]) for row in rows]),
        TESTED: (POINTS, [(row["model"], row["images"], 100 * row["test"]) for row in rows]),
    }
    accuracy = f"accuracy (%), {judged_by(study)} over seeds"
    side = Side(IMAGES, accuracy, series, pale=TESTED, counts="x", accuracies=True, level=study.target)
    return ByModel("fronts", study.models, [side], rows, says=PARETO)


def map_figure(study: Any, points: Sequence[SearchTrial]) -> Part:
    """Draw maps of the validation accuracy between the settings of both searches."""
    from menagerie.studies.frame.search_figures import Maps

    places = {model: [] for model in study.models}
    for p in points:
        if is_complete(study, p):
            places[p.model].append((p.setting.hard_negatives, p.setting.pairs, p.accuracy))
    return Maps("map", places, says=MAPS)


def course_figures(study: Any, points: Sequence[SearchTrial]) -> Iterator[Part]:
    """Plot over the trials of the first search the hypervolume of the front on validation, and over those of the second
    the images of each trial. Then plot the settings of both searches as parallel coordinates, for each model."""
    from menagerie.studies.frame.search_figures import COURSE, CROSSES, HOLLOW, POINTS, ByModel, Side, parallels

    fronts = {m: [p for p in points if (p.model, p.question) == (m, "front")] for m in study.models}
    volumes = [(model, *its) for model, mine in fronts.items() for its in volumes_so_far(study, mine)]
    marks = {"reaches the target": (POINTS, []), "does not": (HOLLOW, []), "pruned": (CROSSES, [])}
    for p in points:
        if p.question == "target":
            reached = is_complete(study, p) and p.accuracy >= study.target
            how = "pruned" if p.state(study) == "pruned" else "reaches the target" if reached else "does not"
            marks[how][1].append((p.model, p.trial.number, p.images))
    first = Side("trial of the first search", "hypervolume on validation", {"": (COURSE, volumes)}, pale="")
    second = Side("trial of the second search", IMAGES, marks, counts="y")
    yield ByModel("history", study.models, [first, second], says=HISTORY)
    pruned = {id(p.trial) for p in points if p.state(study) == "pruned"}
    yield from parallels(
        *({model: [p.trial for p in points if p.model == model] for model in study.models}, {}),
        lambda trial: 100 * trial.values[1] if trial.values and id(trial) not in pruned else None,
        ("pairs", "hard_negatives", "singles_share"),
    )


def front_table(study: Any, fronts: Mapping[str, Sequence[SearchTrial]]) -> Rows:
    """Return a table with a row for each setting on a Pareto front."""
    chosen = [p for settings in fronts.values() for p in settings]
    rows = [[p.model, *p.row(), share_in_percent(p.accuracy), share_in_percent(p.test(study))] for p in chosen]
    says = (
        f"Settings that no other beats on validation with as few images; {judged_by(study)} over seeds. `passes`: how "
        "often each distinct image was seen, on average. `singles views`: the number of views of each single-object "
        "scene; `singles share`: the share of a batch that shows such scenes."
    )
    return Rows("pareto_fronts", ["model", *HEADER, "validation (%)", "unseen pairs (%)"], rows, says=says)


def volume_table(study: Any, fronts: Mapping[str, Sequence[SearchTrial]]) -> Rows:
    """Return a table of hypervolumes of the models' fronts on the test, and of differences from the first."""
    axis = axis_of(study)
    curves = {model: curve_of(study, its) for model, its in fronts.items() if its}
    volumes = pareto.volumes(curves, axis) if curves else {}
    rows = [[name, f"{volume.value:.3f}", volume.interval] for name, volume in volumes.items()]
    says = (
        "Hypervolume of the Pareto fronts on unseen pairs, with 95 % intervals over seeds and pairs: the share that a "
        f"front dominates of the plane between {axis.least} images at 100 % and the reference point, {axis.most} "
        "images at 50 %, with images by their logarithm; higher is better. A setting whose interval reaches down to "
        "chance dominates nothing; one with too few pairs for an interval counts as it is. All models share the draws. "
        "Intervals are for these settings, not for those of another search."
    )
    return Rows("hypervolumes", ["model", "hypervolume", "95 % interval"], rows, says=says)


def target_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of what each model needs to reach the target."""
    rows = []
    for model in study.models:
        bound, best, missed = images_to_target(study, points, model)
        shown = (
            [*best.row()[1:], share_in_percent(best.accuracy), share_in_percent(best.test(study))]
            if best
            else [DASH] * 7
        )
        rows.append([model, DASH if bound is None else str(bound), *shown, DASH if missed is None else str(missed)])
    header = ["model", "images to target", *HEADER[1:], "validation (%)", "unseen pairs (%)"]
    says = (
        f"Distinct training images to {study.target:.0%} on validation, the fewest of any setting of both searches "
        f"whose {judged_by(study)} reaches it. A search finds a setting that is enough; it doesn't prove that none "
        "with fewer images is. `>`: no setting reached the target, and this is the most images that were tried: more "
        "are needed, provided that more data does no harm."
    )
    return Rows("targets", [*header, "most images that missed it"], rows, says=says)


def importance_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of how much of the variance of accuracy each parameter explains alone, and of the rest."""
    shares = {model: importances(points, model) for model in study.models}
    rows = [
        [word, *(f"{share[name]:.2f}" if name in share else DASH for share in shares.values())]
        for name, word in zip(Setting._fields, HEADER[2:], strict=True)
    ]
    rows.append([REST, *(f"{max(0, 1 - sum(share.values())):.2f}" if share else DASH for share in shares.values())])
    says = (
        "The share of the variance of accuracy in the first search that each parameter explains alone, from 0 to 1 "
        "(functional analysis of variance). The others are averaged over all values that the search allows, not over "
        f"the settings tried. {REST.capitalize()}: what parameters explain only together, and what none explains, such "
        f"as noise. Noise gives parameters a share too: up to about 0.3 with {FEWEST} settings, up to about 0.2 with "
        f"100. `–`: fewer than {FEWEST} finished settings, or no differences."
    )
    return Rows("importances", ["parameter", *study.models], rows, says=says)


def ratio_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of how many times as many images the first model needs as each other one, as a number and in
    words.

    With budgets the table has the ratio at convergence and that at equal compute, with intervals.
    """
    header = ["other model", f"images of {study.models[0]} / images of the other", "in words"]
    says = (
        "The first model compared with each other one: how many images it needs for each image that the other needs; "
        "below 1 it needs fewer. `<`: the other didn't reach the target, so the true ratio is smaller; `>`: the first "
        "didn't, so it is larger; `–`: neither did."
    )
    if not study.budgets:
        return Rows("ratios", header, ratio_rows(study, points), says=says)
    equal = [point.at_equal_compute() for point in points if point.judged.equal]
    parts = {"at convergence": points, f"at equal compute, {study.equal_steps} steps": equal}
    rows = [
        [*row, when, ratio_interval(study, some, row[0])]
        for when, some in parts.items()
        if {point.model for point in some} == set(study.models)
        for row in ratio_rows(study, some)
    ]
    says += (
        " The ratio at convergence compares data alone; that at equal compute, what the data are worth within this "
        "many steps, among the settings that were tried for convergence. Its interval draws seeds and animal pairs of "
        "validation anew and finds the fewest images among the settings tried. Out of reach: in such a draw the first "
        "model, or the other, doesn't reach the target. Draws in which neither does have no ratio. The interval leaves "
        "them out and says how many they are; above 5 % it is unbounded."
    )
    return Rows("ratios", [*header, "compared", "95 % interval of the ratio"], rows, says=says)


def trial_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of all trials, in the words and units of the other tables."""
    header = ["search", "model", "trial", "state", *HEADER[2:], HEADER[0], "images seen", "validation (%)"]
    table = []
    for p in points:
        images, _, *setting = p.row()
        validation = share_in_percent(p.accuracy) if p.trial.values else DASH
        so_far = " (so far)" * (p.state(study) == "pruned" and bool(p.trial.values))
        seeds = [*map(share_in_percent, p.judged.validations), *[DASH] * study.seeds][: study.seeds]
        place = ["first" if p.question == "front" else "second", p.model, str(p.trial.number), p.state(study)]
        table.append([*place, *setting, images, str(p.images_seen), validation + so_far, *seeds])
    return Rows("all_trials", [*header, *(f"seed {k} (%)" for k in range(study.seeds))], table, says=STATES)


def share_in_percent(share: float) -> str:
    """Return a share in percent, with one decimal."""
    return f"{100 * share:.1f}"
