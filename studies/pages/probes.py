"""The page of probes: how much of one bit each layer holds, and how that grows during training."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from menagerie.envs.core.files import write_csv
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.parts import Heading, OwnFigure, Part, Rows, Sentence
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STAGES = {
    ("image", "tokens", "all tokens"): "all patches",
    ("image", "embedding", "mean"): "image embedding",
    ("text", "embedding", "mean"): "text embedding",
    ("image and text", "score", "score"): "score",
}
"""The names of the stages at which binding may be lost, by part, layer, and what is read of the layer."""
IMAGE_EMBEDDING, TEXT_EMBEDDING = ("image", "embedding", "mean"), ("text", "embedding", "mean")
SIDES = {("image", "mean"): "images", ("text", "mean"): "texts"}
LAYERS_SAYS = """Which animal has which texture is exactly 1 bit. A linear probe reads it from the mean token of each
layer, on pairs of animals that the probe wasn't trained on; 0 is chance. A line joins the layers that a model has.
Bands are 95 % intervals over seeds. A probe at 0 may miss binding that is stored by place; the table has that."""
STEPS_SAYS = """The same over training. At step 0 weights are random: what patches hold there is already in the pixels.
“All patches” are the last layer's tokens side by side. The score's bits are those of the difference between the scores
of the true caption and of the swapped one."""
LOOSE = """Bits of probes are a lower bound, which is loose with noise: of constructed embeddings that hold 0.87 bits,
probes read 0.61 with 8 animals and 3 textures, 0.78 with 20 and 4, and less the wider embeddings are. So compare only
within one probe set."""
TABLE_SAYS = f"""Bits: a probe reads the texture of each animal. Bits by place: two probes, of which animal and which
texture is on the left, are combined. Means over seeds with 95 % intervals. {LOOSE}"""


class Mean(NamedTuple):
    """The mean over seeds and its 95 % interval by Student's t, which is NaN for a single seed."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = "" if np.isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]"
        return f"{self.value:.2f}{interval}"


Panels = dict[str, dict[str, dict[Any, Mean]]]
"""Means by panel, model, and position along the panel's axis."""


def mean_of(values: Sequence[float], least: float = 0.0, most: float = 1.0) -> Mean:
    """Return the mean over seeds, with its interval cut at `least` and `most` (by default those of bits)."""
    from scipy.special import stdtrit

    from menagerie.studies.analysis.two_levels import CONFIDENCE

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Mean(mean, float("nan"), float("nan"))
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return Mean(mean, max(least, mean - half), min(most, mean + half))


def rows_at_steps(records: Records, bits: Measure, states: Sequence[int] = ()) -> "pd.DataFrame":
    """Return all rows of the measure, after the last step ("step" is None) and at the steps of kept states."""
    rows = records.rows_of(bits, (None, *states))
    return rows if "step" in rows else rows.assign(step=None)


def write_measure_rows(path: Path, rows: "pd.DataFrame") -> None:
    """Write all rows of a measure as CSV, if there are any."""
    if len(rows):
        plain = rows.astype(object).where(rows.notna(), "")
        write_csv(path, plain.columns, plain.itertuples(index=False))


def parts(
    found: "pd.DataFrame", axes: Sequence[str], lengths: Mapping[str, int], names: Mapping[str, str] | None = None
) -> Iterator[Part]:
    """Yield the parts of a page on the rows of the measure. `axes` are the labels that tell places of the grid apart,
    and `lengths` has each model's number of steps. `names` are the models' names in the page, by default the scorers'
    titles."""
    if not len(found):
        return
    names = names or {model: title_of(model) for model in dict.fromkeys(found["model"])}
    chosen = found[found["measure"].isin(("bits", "place_bits")) & found["value"].notna()]
    last = chosen[chosen["step"].isna()]
    bits = last[last["measure"] == "bits"]
    for where, rows in places_in_words(bits, axes):
        for model in dict.fromkeys(rows["model"]):
            yield Sentence(stage_sentence(names[model], rows[rows["model"] == model]) + where)
    yield BitLines("bits-by-layer", by_layer(bits), ("of", "layer"), names, says=LAYERS_SAYS)
    if len(last) < len(chosen):
        yield Heading("Over training")
        ended = chosen.assign(step=chosen["step"].astype(float).fillna(chosen["model"].map(lengths)))
        ended = ended.sort_values("step", kind="stable")
        grown = by_step(ended[ended["measure"] == "bits"])
        yield BitLines("bits-over-training", grown, ("stage", "step"), names, says=STEPS_SAYS)
    yield Heading("All layers")
    yield Rows("layers", ("model", "of", "layer", "bits", "bits by place"), layer_rows(last, names), says=TABLE_SAYS)


def places_in_words(bits: "pd.DataFrame", axes: Sequence[str]) -> "Iterator[tuple[str, pd.DataFrame]]":
    """Yield each place of the grid in words, for sentences, with its rows. Without axes the text is empty."""
    if not axes:
        yield "", bits
        return
    for values, rows in bits.groupby(list(axes), sort=False):
        where = ", ".join(f"{value:.0%} {name.replace('_', ' ')}" for name, value in zip(axes, values, strict=True))
        yield f" ({where})", rows


def means_over_seeds(rows: "pd.DataFrame", keys: Sequence[str]) -> dict[Any, Mean]:
    """Return the mean over seeds for each combination of keys; places of a grid are pooled within a seed."""
    each = rows.groupby([*keys, "seed"], sort=False)["value"].mean()
    return {key: mean_of(list(values)) for key, values in each.groupby(level=list(range(len(keys))), sort=False)}


def stage_sentence(name: str, rows: "pd.DataFrame") -> str:
    """Say how much of the bit each stage holds, and whether the image's or the text's embedding holds less."""
    means = means_over_seeds(rows, ("part", "layer", "read"))
    held = [f"{stage} {means[place]}" for place, stage in STAGES.items() if place in means]
    embeddings = [means.get(place) for place in (IMAGE_EMBEDDING, TEXT_EMBEDDING)]
    lost = say_where_lost(*embeddings)
    return f"{name}, bits (of 1, chance 0) on which animal has which texture: {', '.join(held)}.{lost}"


def say_where_lost(image: Mean | None, text: Mean | None) -> str:
    """Say which embedding holds fewer bits, or that this is undecided; empty if one is missing."""
    if image is None or text is None:
        return ""
    if text.high < image.low:
        return " Binding is lost in the text's embedding."
    if image.high < text.low:
        return " Binding is lost in the image's embedding."
    return " Whether the image's embedding or the text's holds less is undecided."


def layer_rows(last: "pd.DataFrame", names: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return a row for each layer of each model: the bits of an animal's texture, and the bits by place."""
    means = means_over_seeds(last, ("model", "part", "layer", "read", "measure"))
    rows = dict.fromkeys(key[:-1] for key in means)
    return [
        (
            names[model],
            part,
            layer if read in ("mean", "score") else f"{layer}, side by side",
            *(str(means.get((model, part, layer, read, measure), "–")) for measure in ("bits", "place_bits")),
        )
        for model, part, layer, read in rows
    ]


def by_layer(rows: "pd.DataFrame") -> Panels:
    """Return the panels of images and of texts, with a line over layers for each model."""
    found: Panels = {}
    for (model, part, layer, read), its in means_over_seeds(rows, ("model", "part", "layer", "read")).items():
        if side := SIDES.get((part, read)):
            found.setdefault(side, {}).setdefault(model, {})[layer] = its
    return found


def by_step(rows: "pd.DataFrame") -> Panels:
    """Return a panel for each stage, with a line over training steps for each model."""
    found: Panels = {stage: {} for stage in STAGES.values()}
    for (model, part, layer, read, step), its in means_over_seeds(
        rows, ("model", "part", "layer", "read", "step")
    ).items():
        if stage := STAGES.get((part, layer, read)):
            found[stage].setdefault(model, {})[int(step)] = its
    return {stage: lines for stage, lines in found.items() if lines}


@dataclass(frozen=True)
class BitLines(OwnFigure):
    """A panel for each key of `panels`: a line for each model, with its interval as a band."""

    panels: Panels
    columns: tuple[str, str]
    """The names that the columns of `numbers` have for a panel and for the position along its axis."""
    names: Mapping[str, str]
    """The names of models in the legend."""

    def numbers(self) -> list[dict[str, Any]]:
        panel, along = self.columns
        return [
            {panel: title, "model": model, along: place, **its._asdict()}
            for title, lines in self.panels.items()
            for model, line in lines.items()
            for place, its in line.items()
        ]

    def figure(self) -> "Figure | None":
        return draw_bit_lines(self.panels, self.columns[1], self.names)


def draw_bit_lines(panels: Panels, along: str, names: Mapping[str, str]) -> "Figure | None":
    if not panels:
        return None
    from menagerie.studies.frame.figures import panel_axes, style_axes
    from menagerie.studies.report.figures import COLOURS

    figure, axes = panel_axes(len(panels), (3.2, 2.6), sharey=True)
    models = list(dict.fromkeys(model for lines in panels.values() for model in lines))
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        axis.set_title(title, fontsize=9)
        style_axes(axis)
        places = list(dict.fromkeys(x for line in lines.values() for x in line))
        places.sort(key=lambda place: place == "embedding")  # behind the layers that scorers add
        numeric = all(isinstance(x, int) for x in places)
        for model, line in lines.items():
            points = sorted((place if numeric else places.index(place), its) for place, its in line.items())
            x, means = zip(*points, strict=True)
            colour = COLOURS[models.index(model) % len(COLOURS)]
            axis.plot(x, [its.value for its in means], color=colour, marker="o", markersize=3, label=names[model])
            axis.fill_between(x, [m.low for m in means], [m.high for m in means], color=colour, alpha=0.15, linewidth=0)
        if not numeric:
            axis.set_xticks(range(len(places)), places, rotation=45, ha="right", fontsize=8)
        axis.set_ylim(-0.03, 1.03)
        axis.set_xlabel(along, fontsize=9)
    axes[0].set_ylabel("bits, of 1", fontsize=9)
    shown = dict(pair for axis in axes for pair in zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), fontsize=7, loc="outside lower center", ncols=len(shown))
    return figure
