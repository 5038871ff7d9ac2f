"""What transfer's page says of zero-shot classification: the mean over VTAB's sets, with the differences to a baseline
(the first model of the page), and effective robustness."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from menagerie.generators.benchmarks.zero_shot import ENSEMBLED
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.parts import Chart, Part, Rows
from menagerie.studies.scoring.page import Score, in_percent

if TYPE_CHECKING:
    import altair as alt

MEASURE = " acc1"
# CLIP_benchmark's collection "vtab" (clip_benchmark/datasets/builder.py).
VTAB = (
    *("caltech101", "cifar100", "clevr_count_all", "clevr_closest_object_distance", "diabetic_retinopathy", "dmlab"),
    *("dsprites_label_orientation", "dsprites_label_x_position", "dtd", "eurosat", "kitti_closest_vehicle_distance"),
    *("flowers", "pets", "pcam", "resisc45", "smallnorb_label_azimuth", "smallnorb_label_elevation", "sun397", "svhn"),
)
IMAGENET, SHIFTED = "imagenet1k", ("imagenetv2", "imagenet_sketch")  # those with all of ImageNet's classes
FEWEST = 2  # models that a baseline's line needs
MEANS = (
    "Zero-shot accuracy (acc1, %): the mean over {} of VTAB's {} sets, as CLIP_benchmark names them, and each of them."
)
DIFFERENCES = "Zero-shot accuracy minus that of {}, in points, by data set of VTAB."
ROBUSTNESS = (
    "Effective robustness (Taori et al. 2020), in points: accuracy on the shifted set minus what a line predicts from "
    "that on ImageNet, fitted to the logits of both accuracies. The line is that of all other models of this page, not "
    "of the paper's. ImageNet-A, -R and ObjectNet need ImageNet's accuracy on their classes alone, and are left out."
)


def classification_parts(scores: Sequence[Score]) -> Iterator[Part]:
    """Yield VTAB's table and picture and the table of effective robustness, as far as there are numbers for them."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for one in scores:
        if one.test.partition(", ")[0] in ENSEMBLED and one.part == "task" and one.measure.endswith(MEASURE):
            found[one.model].setdefault(plain_name(one.measure.removesuffix(MEASURE)), one.its.value)
    shared = [name for name in VTAB if found and all(plain_name(name) in its for its in found.values())]
    if len(shared) > 1:
        levels = {model: np.array([its[plain_name(name)] for name in shared]) for model, its in found.items()}
        rows = [[model, *map(in_percent, [its.mean(), *its])] for model, its in levels.items()]
        says = MEANS.format(len(shared), len(VTAB))
        yield Rows("vtab", ("model", "mean", *shared), rows, says=says, folded="VTAB's mean")
        first, *others = levels
        if others:
            gaps = {model: (100 * (levels[model] - levels[first])).tolist() for model in others}
            yield Chart("vtab-differences", difference_chart(gaps, shared), says=DIFFERENCES.format(first))
    robust = {name: robustness_of(found, name) for name in SHIFTED}
    if any(robust.values()):
        rows = [[m, *(f"{100 * its[m]:+.1f}" if m in its else DASH for its in robust.values())] for m in found]
        yield Rows("effective-robustness", ("model", *SHIFTED), rows, says=ROBUSTNESS, folded="Effective robustness")


def plain_name(name: str) -> str:
    """A set's name by letters and digits, without VTAB's own: "vtab-dtd" is "dtd", "caltech101_vtab" "caltech101"."""
    return "".join(filter(str.isalnum, name.lower())).replace("vtab", "")


def difference_chart(gaps: Mapping[str, Sequence[float]], names: Sequence[str]) -> "alt.TopLevelMixin":
    """Draw a panel for each model, with a bar for each data set, ordered by the first model's differences."""
    import altair as alt

    rows = [(model, *its) for model, values in gaps.items() for its in zip(names, values, strict=True)]
    frame = pd.DataFrame(rows, columns=["model", "data set", "difference"])
    order = [name for _, name in sorted(zip(next(iter(gaps.values())), names, strict=True), reverse=True)]
    bars = alt.Chart(frame, width=220, height=alt.Step(14)).mark_bar()
    places = bars.encode(
        x=alt.X("difference:Q", title="difference (points)"), y=alt.Y("data set:N", sort=order, title=None)
    )
    return places.facet(alt.Facet("model:N", title=None, sort=list(gaps)), columns=3)


def robustness_of(found: Mapping[str, Mapping[str, float]], shifted: str) -> dict[str, float]:
    """Return each model's effective robustness on a shifted set, by the line of all other models; of none with fewer
    than `FEWEST` others, and not of one whose others have one accuracy on ImageNet. Models at 0 or 1 have no logit."""
    key = plain_name(shifted)
    both = {model: (its[IMAGENET], its[key]) for model, its in found.items() if {IMAGENET, key} <= its.keys()}
    both = {model: its for model, its in both.items() if all(0 < value < 1 for value in its)}
    gaps = {}
    for model, (seen, unseen) in both.items() if len(both) > FEWEST else ():
        x, y = logit(np.array([its for other, its in both.items() if other != model])).T
        if np.ptp(x):
            slope, start = np.polyfit(x, y, 1)
            gaps[model] = unseen - float(expit(start + slope * logit(seen)))
    return gaps
