"""The page of a study of sample efficiency: the answer first, then both searches, what mattered, and all trials."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from menagerie.studies.frame.parts import Heading, Paragraph, Part, Sentence
from menagerie.studies.sample_search.points import Point, capped_of, done, fronts_of, volumes_so_far
from menagerie.studies.sample_search.tables import (
    front_table,
    importance_table,
    judged_by,
    on_the_test,
    ratio_table,
    target_table,
    trial_rows,
    trial_table,
    volume_table,
)

PARETO = """Accuracy by the number of distinct training images. Rings: all settings that the first search tried, on
validation. Thin line: those that no other beats on validation with as few images, the model's front. Filled
points: the same settings on the test, where accuracy needn't rise with images. Dashed line: the target of the second
search. Dotted line: chance. Images on a logarithmic scale."""
MAPS = """Validation accuracy by how many of the animal pairs are in training (upwards) and how many of those have their
hard negatives there too (to the right). Circles: settings of which all seeds ended, of both searches. The paler colour
around them is a guess by Gaussian process regression; grey is too far from any circle for one. Views and share of
single-object scenes differ from circle to circle."""
COURSE = """Left: the hypervolume of all that the first search had tried by then, on validation. Right: the distinct
images of each setting that the second search tried; filled where it reaches the target, a cross where it was pruned
before that was known. Images on a logarithmic scale."""
LINES = """A line for each setting of both searches, from parameter to parameter at the value that it had there, between
the least and the most that the parameter may have: fractions as they were requested, where the tables have what these
came to in whole pairs (10 % of few pairs may be none). The colour is the accuracy on validation, on one scale for all
models; the best is on top. Grey and dashed: trials that were pruned, of which it isn't known."""


def parts(study: Any, points: Sequence[Point]) -> Iterator[Part]:
    """The page: ratios in words and the fronts; then tables of both searches, what mattered, and all trials."""
    fronts, ratios = fronts_of(study, points), ratio_table(study, points)
    yield from (Sentence(f"{row[2]}.") for row in ratios.rows[: len(study.models) - 1])
    yield from map(Sentence, on_the_test(study, points))
    yield front_figure(study, points, fronts)
    yield Paragraph(explained(study, points))
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
    yield course_figure(study, points)
    yield from setting_figures(study, points)
    yield Heading("All trials")
    yield trial_table(study, trial_rows(study, points))


def explained(study: Any, points: Sequence[Point]) -> str:
    """What is counted, how long everything is trained, and by what settings are judged."""
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


def front_figure(study: Any, points: Sequence[Point], fronts: Mapping[str, Sequence[Point]]) -> Part:
    """The fronts, and what the first search tried."""
    from menagerie.studies.frame.search_figures import Fronts, Tried

    tried = {
        model: [
            Tried(p.images, p.accuracy) for p in points if (p.model, p.question) == (model, "front") and done(study, p)
        ]
        for model in study.models
    }
    chosen = {model: [Tried(p.images, p.accuracy, p.test(study)) for p in its] for model, its in fronts.items()}
    return Fronts("fronts", tried, chosen, study.target, judged_by(study), says=PARETO)


def map_figure(study: Any, points: Sequence[Point]) -> Part:
    """Accuracy between the settings of both searches."""
    from menagerie.studies.frame.search_figures import Maps

    places = {
        model: [
            (p.setting.hard_negatives, p.setting.pairs, p.accuracy)
            for p in points
            if p.model == model and done(study, p)
        ]
        for model in study.models
    }
    return Maps("map", places, says=MAPS)


def course_figure(study: Any, points: Sequence[Point]) -> Part:
    """How both searches got on."""
    from menagerie.studies.frame.search_figures import Searches

    volumes = {
        m: volumes_so_far(study, [p for p in points if (p.model, p.question) == (m, "front")]) for m in study.models
    }
    images = {
        model: [
            (p.trial.number, p.images, outcome(study, p)) for p in points if (p.model, p.question) == (model, "target")
        ]
        for model in study.models
    }
    return Searches("history", volumes, images, says=COURSE)


def outcome(study: Any, point: Point) -> str:
    """Whether a trial reached the target."""
    if point.state(study) == "pruned":
        return "pruned"
    return "reached" if done(study, point) and point.accuracy >= study.target else "missed"


def setting_figures(study: Any, points: Sequence[Point]) -> Sequence[Part]:
    """For each model the settings of both searches, as parallel coordinates."""
    from menagerie.studies.frame.trial_figures import parallels

    pruned = {id(p.trial) for p in points if p.state(study) == "pruned"}
    tried = {model: [p.trial for p in points if p.model == model] for model in study.models}
    return parallels(
        *(tried, {}),
        lambda trial: 100 * trial.values[1] if trial.values and id(trial) not in pruned else None,
        ("pairs", "hard_negatives", "singles_share"),
    )
