"""How many times the images of another model the first one needs: at convergence, and at equal compute."""

from collections.abc import Sequence

import pandas as pd

from menagerie.studies.analysis import pareto
from menagerie.studies.analysis.pareto import Bound, Curve, image_ratio
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.sample_search.budget import Config, equal_steps
from menagerie.studies.sample_search.tables import Point, reached_of


def ratio_table(config: Config, all_points: Sequence[Point]) -> pd.DataFrame:
    """How many times the images of each further model the first one needs, as a number and in words.

    Of settings that were trained until they stopped rising also at equal compute, both with intervals.
    """
    names = ["other model", f"images of {config.models[0]} / images of the other", "in words"]
    if not config.budgets:
        return pd.DataFrame(ratio_rows(config, all_points), columns=names)
    equal = [point.at_equal_compute() for point in all_points if "equals" in point.trial.user_attrs]
    parts = {"at convergence": all_points, f"at equal compute, {equal_steps(config)} steps": equal}
    rows = [
        [*row, when, interval_of(config, points, row[0])]
        for when, points in parts.items()
        if {point.model for point in points} == set(config.models)
        for row in ratio_rows(config, points)
    ]
    return pd.DataFrame(rows, columns=[*names, "compared", "95 % interval of the ratio"])


def ratio_rows(config: Config, all_points: Sequence[Point]) -> list[list[str]]:
    """Each further model, how many times its images the first one needs, and that in words."""
    first, *others = config.models
    need = {model: reached_of(config, all_points, model).bound for model in config.models}
    return [
        [other, pareto.ratio(need[first], need[other]), compared(first, need[first], other, need[other])]
        for other in others
    ]


def interval_of(config: Config, all_points: Sequence[Point], other: str) -> str:
    """The interval of the ratio to one model; a dash where one of both has no setting whose seeds all ended."""
    curves = []
    for model in (config.models[0], other):
        points = [
            point.known for point in all_points if point.model == model and len(point.seeds_known) == config.seeds
        ]
        curves.append(Curve([known.images[0] for known in points], [known.tests[0] for known in points]))
    if not all(curve.images for curve in curves):
        return DASH
    return image_ratio(*curves, config.target).interval


def compared(one: str, needs: Bound, other: str, rival: Bound) -> str:
    """Say which of two models reached the target, with how many images, and what follows for the ratio of these."""
    mine, theirs = needs.images, rival.images
    if needs.censored and rival.censored:
        return f"neither reached the target, {one} with up to {mine} images and {other} with up to {theirs}"
    times, reached = f"{mine / theirs:.2f} times as many", "reached the target on validation with"
    if needs.censored:
        return f"{other} {reached} {theirs} images, {one} not even with {mine}: {one} needs more than {times}"
    if rival.censored:
        return f"{one} {reached} {mine} images, {other} not even with {theirs}: {one} needs less than {times}"
    return f"{one} {reached} {mine} images, {other} with {theirs}: {one} needs {times}"


def on_the_test(config: Config, all_points: Sequence[Point]) -> list[str]:
    """A sentence for each model that reached the target on validation: its setting's accuracy on the test, and whether
    that says otherwise."""
    best = {model: reached_of(config, all_points, model).best for model in config.models}
    return [tested(model, point, config.target) for model, point in best.items() if point]


def tested(model: str, point: Point, target: float) -> str:
    """Say how the setting by which a model reached the target does on the test."""
    known, reached = f"{100 * point.accuracy:.1f} % on validation", f"{100 * point.test:.1f} %"
    has = f"On the test the setting by which {model} reached the target, {point.images} images, has {reached}"
    if point.test >= target:
        return f"{has}, {known}."
    return (
        f"{has} and misses it: {known} was luck, or what was learnt doesn't carry over. The number of images, and what "
        "is compared with it, hold for validation alone."
    )


def capped_of(config: Config, all_points: Sequence[Point]) -> dict[str, tuple[int, int]]:
    """For each model, how many settings got the largest budget before validation had stopped rising, and how many
    there are."""
    # By the cells of a setting: both searches share some settings.
    settings: dict[str, dict[tuple[str, ...], bool]] = {model: {} for model in config.models}
    for point in all_points:
        known = point.trial.user_attrs
        if point.model in settings and "at_caps" in known:
            settings[point.model][tuple(known["cells"])] = known["at_caps"][0]  # seeds get budgets together
    return {model: (sum(capped.values()), len(capped)) for model, capped in settings.items() if capped}
