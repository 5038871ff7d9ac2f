"""The page of a study of sample efficiency: the answer first, then both searches, what mattered, and all trials."""

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
    capped_of,
    curve_of,
    fronts_of,
    importances,
    is_complete,
    judged_by,
    ratio_interval,
    ratio_rows,
    reached_of,
    test_sentences,
    volumes_so_far,
)

TESTED, IMAGES = "settings of it, on the test", "distinct training images"
PARETO = """Accuracy by the number of distinct training images. Rings: all settings that the first search tried, on
validation. Thin line: those that no other beats on validation with as few images, the model's front. Filled
points: the same settings on the test, where accuracy needn't rise with images. Dashed line: the target of the second
search. Dotted line: chance. Images on a logarithmic scale."""
MAPS = """Validation accuracy by how many of the animal pairs are in training (upwards) and how many of those have their
hard negatives there too (to the right). Circles: settings of which all seeds ended, of both searches. The paler colour
around them is a guess by Gaussian process regression; grey is too far from any circle for one. Views and share of
single-object scenes differ from circle to circle."""
HISTORY = """Left: the hypervolume of all that the first search had tried by then, on validation. Right: the distinct
images of each setting that the second search tried; filled where it reaches the target, a cross where it was pruned
before that was known. Images on a logarithmic scale."""
LINES = """A line for each setting of both searches, from parameter to parameter at the value that it had there, between
the least and the most that the parameter may have: fractions as they were requested, where the tables have what these
came to in whole pairs (10 % of few pairs may be none). The colour is the accuracy on validation, on one scale for all
models; the best is on top. Grey and dashed: trials that were pruned, of which it isn't known."""
REST = "several together, or nothing"
HEADER = ("images", "passes", "pairs", "hard negatives", "singles views", "singles share")
STATES = """Of both searches. `complete`: all seeds were trained; `missed`: so they were, but together they are below
the target; `pruned`: ended early, because seeds to come could no longer lift it to the target: `validation` is then of
what its seeds had got to so far, and never counts as reaching the target. `–`: not trained, or by another command.
`trials.csv` has the same, accuracies and fractions from 0 to 1."""


def parts(study: Any, points: Sequence[SearchTrial]) -> Iterator[Part]:
    """Yield the page: ratios in words and the fronts; then tables of both searches, what mattered, and all trials."""
    fronts, ratios = fronts_of(study, points), ratio_table(study, points)
    yield from (Sentence(f"{row[2]}.") for row in ratios.rows[: len(study.models) - 1])
    yield from map(Sentence, test_sentences(study, points))
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
    """Explain what is counted, how long each setting is trained, and by which accuracy settings are judged."""
    counted = (
        "Training images are distinct images: scenes in a view, those of single-object scenes counted, each once "
        "however often it is seen; apart from them there are passes. Each model is searched twice, "
        f"{study.trials} settings each: for few images and high accuracy at once, and for the fewest images that reach "
        f"{study.target:.0%} on validation. All settings are judged by the {judged_by(study)} over {study.seeds} seeds "
        "of the accuracy on validation pairs; what is reported of a chosen one as unseen pairs is the test, which no "
        "search has looked at. "
    )
    if not study.budgets:
        return f"{counted}Every model in every setting takes {study.recipe.steps} steps."
    capped = [f"{its[0]} of {its[1]} of {model}" for model, its in capped_of(study, points).items()]
    said = f" Settings that got the cap before validation had stopped rising: {', '.join(capped)}." if capped else ""
    return (
        f"{counted}Every setting takes {', '.join(map(str, study.budgets))} steps, one budget after the other, until "
        f"{study.patience} in a row bring no rise of its mean on validation by more than {100 * study.rise:g} points "
        "or less than that is left to 100 % (cap: the last; one that is at chance goes on to it, because it may not "
        "have begun to rise), and counts with the budget that is best on validation; the rate decays at the end of "
        f"each. All take {study.equal_steps} steps at least: what they are by then is compared at equal compute.{said}"
    )


def front_figure(study: Any, points: Sequence[SearchTrial], fronts: Mapping[str, Sequence[SearchTrial]]) -> Part:
    """Plot the fronts, and what the first search tried."""
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
        "often each distinct image was seen, in the mean. `singles views`: in how many views each single-object scene "
        "is there; `singles share`: the share of a batch that shows such scenes."
    )
    return Rows("pareto_fronts", ["model", *HEADER, "validation (%)", "unseen pairs (%)"], rows, says=says)


def volume_table(study: Any, fronts: Mapping[str, Sequence[SearchTrial]]) -> Rows:
    """Return a table of the hypervolume of each model's front on the test, and of its difference from the first
    model's."""
    axis = axis_of(study)
    curves = {model: curve_of(study, its) for model, its in fronts.items() if its}
    volumes = pareto.volumes(curves, axis) if curves else {}
    rows = [[name, f"{volume.value:.3f}", volume.interval] for name, volume in volumes.items()]
    says = (
        "Hypervolume of the Pareto fronts on unseen pairs, with 95 % intervals over seeds and pairs: a front as one "
        f"number from 0 to 1, higher being better, the share of the plane between {axis.least} images at 100 % and the "
        f"reference point, {axis.most} images at 50 %, that it dominates; images by their logarithm. A setting whose "
        "interval reaches down to chance dominates nothing; one that has too few pairs for an interval counts as it "
        "is. All models have the same draws. Intervals are for these settings, not for those of another search."
    )
    return Rows("hypervolumes", ["model", "hypervolume", "95 % interval"], rows, says=says)


def target_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of what each model needs to reach the target."""
    rows = []
    for model in study.models:
        bound, best, missed = reached_of(study, points, model)
        shown = (
            [*best.row()[1:], share_in_percent(best.accuracy), share_in_percent(best.test(study))]
            if best
            else [DASH] * 7
        )
        rows.append([model, DASH if bound is None else str(bound), *shown, DASH if missed is None else str(missed)])
    header = ["model", "images to target", *HEADER[1:], "validation (%)", "unseen pairs (%)"]
    says = (
        f"Distinct training images to {study.target:.0%} on validation, the fewest of any setting of both searches "
        f"whose {judged_by(study)} reaches it. A search finds a setting that is enough, not the proof that none with "
        "fewer is. `>`: no setting reached it, and this is the most images of one that was tried: more are needed, as "
        "far as more data does no harm."
    )
    return Rows("targets", [*header, "most images that missed it"], rows, says=says)


def importance_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of the share of each parameter alone in the variance of accuracy in the first search, from 0 to 1,
    and of the rest."""
    shares = {model: importances(points, model) for model in study.models}
    rows = [
        [word, *(f"{share[name]:.2f}" if name in share else DASH for share in shares.values())]
        for name, word in zip(Setting._fields, HEADER[2:], strict=True)
    ]
    rows.append([REST, *(f"{max(0, 1 - sum(share.values())):.2f}" if share else DASH for share in shares.values())])
    says = (
        "How much of the differences in accuracy each parameter explains alone in the first search, as a share of 1 "
        "(functional analysis of variance). The others are averaged over all values that the search allows, not over "
        f"the settings tried. {REST.capitalize()}: what parameters explain only together, and what none explains, such "
        f"as noise. Noise gives parameters a share, too: of {FEWEST} settings up to about 0.3, of 100 up to about 0.2. "
        f"`–`: fewer than {FEWEST} finished settings, or no differences: too little to tell."
    )
    return Rows("importances", ["parameter", *study.models], rows, says=says)


def ratio_table(study: Any, points: Sequence[SearchTrial]) -> Rows:
    """Return a table of how many times as many images the first model needs as each further one, as a number and in
    words.

    With budgets the table has both the ratio at convergence and that at equal compute, with intervals.
    """
    header = ["other model", f"images of {study.models[0]} / images of the other", "in words"]
    says = (
        "The first model against each other one: how many images it needs for every image that the other needs; below "
        "1 it needs fewer. `<`: the other didn't reach the target, so that the true ratio is smaller; `>`: the first "
        "didn't; `–`: neither did."
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
        " The ratio at convergence compares data alone; at equal compute it compares what the data are worth within so "
        "many steps, among the settings that were tried for convergence. Its interval draws seeds and animal pairs of "
        "validation anew and looks for the fewest images among the settings tried. Out of reach: there the first, or "
        "the other, reaches the target with none of them. Draws in which neither does have no ratio. The interval "
        "leaves them out and says how many they are; above 5 % it is unbounded."
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
    """An accuracy in percent."""
    return f"{100 * share:.1f}"
