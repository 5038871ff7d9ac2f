"""Tables and figures of measured numbers: means over seeds by model, and how much of one bit each layer and each stage
of a model holds, and how that grows."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from menagerie.envs.core.files import write_csv
from menagerie.studies.analysis.intervals import NOTHING, Estimate, mean_over_seeds
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.parts import Chart, Heading, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import SCORE, Bits
from menagerie.studies.measures.probe_set import ALL_TOKENS, BOTH, EMBEDDING, IMAGE, MEAN, TEXT

STAGES = {
    (IMAGE, "tokens", ALL_TOKENS): "all patches",
    (IMAGE, EMBEDDING, MEAN): "image embedding",
    (TEXT, EMBEDDING, MEAN): "text embedding",
    (BOTH, SCORE, SCORE): "score",
}
"""The names of the stages at which binding may be lost, by part, layer, and what is read of the layer."""
OF = ("part", "layer", "read")
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


def write_rows(path: Path, rows: pd.DataFrame) -> None:
    """Write all rows of a measure as CSV, if there are any."""
    if len(rows):
        plain = rows.astype(object).where(rows.notna(), "")
        write_csv(path, plain.columns, plain.itertuples(index=False))


def seed_means(
    rows: pd.DataFrame, by: Sequence[str], least: float = 0.0, most: float = 1.0
) -> dict[tuple[Any, ...], Estimate]:
    """Return the mean over seeds of the values in rows, for each combination of the columns `by`. Places of a grid are
    pooled within a seed."""
    each = rows.dropna(subset="value").groupby([*by, "seed"], sort=False)["value"].mean()
    found = each.groupby(level=list(range(len(by))), sort=False)
    return {key if len(by) > 1 else (key,): mean_over_seeds(list(values), least, most) for key, values in found}


def table_by_model(
    name: str, rows: pd.DataFrame, by: Sequence[str], times: int = 100, digits: int = 1, **how: str
) -> Rows:
    """Return a table with a row for each combination of the columns `by`, and a column for each model: chance, and
    means over seeds with their intervals, of shares in percent or of plain numbers (`times` is 1)."""
    models, bounds = list(dict.fromkeys(rows["model"])), (0.0, 1.0) if times == 100 else (-np.inf, np.inf)
    means = seed_means(rows, (*by, "model"), *bounds)
    lines = []
    for key, its in rows.groupby(list(by), sort=False):
        found = (means.get((*key, model), NOTHING)._replace(times=times, digits=digits) for model in models)
        chance = its["chance"].astype(float).mean()
        lines.append((*key, DASH if np.isnan(chance) else f"{times * chance:.2g}", *map(str, found)))
    return Rows(name, (*by, "chance", *map(title_of, models)), lines, **how)


def rows_at_steps(records: Records, bits: Bits, states: Sequence[int] = ()) -> pd.DataFrame:
    """Return all rows of the measure, after the last step ("step" is None) and at the steps of kept states."""
    rows = records.rows_of(bits, (None, *states))
    return rows if "step" in rows else rows.assign(step=None)


def mean_bits(rows: pd.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], Estimate]:
    """Return the mean over seeds of bits, for each combination of the columns `by`."""
    return {key: its._replace(times=1, digits=2) for key, its in seed_means(rows, by).items()}


def bit_parts(
    rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str] = (), lengths: Mapping[str, int] | None = None
) -> Iterator[Part]:
    """Yield the parts of a page on the rows of the measure. `names` are the models' names in the page, `axes` the
    labels that tell places of a grid apart, and `lengths` has each model's number of steps, if states were kept."""
    if not len(rows):
        return
    yield from map(Sentence, stage_sentences(rows, names, axes))
    steps = rows["step"].astype(float).fillna(rows["model"].map(lengths or {}))
    named = rows.assign(step=steps, model=rows["model"].map(names), last=rows["step"].isna()).dropna(subset="value")
    last, bits = named[named["last"]], named[named["measure"] == "bits"]
    layers = layer_frame(last[last["measure"] == "bits"])
    yield Chart("bits-by-layer", bit_lines(layers, "of", "layer"), says=one_line(LAYERS_SAYS))
    if len(last) < len(named):
        yield Heading("Over training")
        yield Chart("bits-over-training", bit_lines(stage_frame(bits), "stage", "step"), says=one_line(STEPS_SAYS))
    yield Heading("All layers")
    header = ("model", "of", "layer", "bits", "bits by place")
    yield Rows("layers", header, layer_lines(last), says=one_line(TABLE_SAYS))


def stage_sentences(rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str] = ()) -> Iterator[str]:
    """Say how much of the bit each stage of each model holds in the end, at each place, and which embedding holds
    less."""
    bits = rows[(rows["measure"] == "bits") & rows["step"].isna()]
    for (*place, model), its in bits.groupby([*axes, "model"], sort=False):
        means = {STAGES.get(key): value for key, value in mean_bits(its, OF).items()}
        held = ", ".join(f"{stage} {means[stage]}" for stage in STAGES.values() if stage in means)
        said = ", ".join(f"{value:.0%} {name.replace('_', ' ')}" for name, value in zip(axes, place, strict=True))
        where = f" ({said})" if said else ""
        image, text = (means.get(f"{part} embedding", NOTHING) for part in (IMAGE, TEXT))
        less = "text" if text.high < image.low else "image" if image.high < text.low else ""
        lost = f" Binding is lost in the {less}'s embedding." if less else ""
        yield f"{names[model]}{where}, bits (of 1, chance 0) on which animal has which texture: {held}.{lost}"


def layer_frame(bits: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of the mean token of each layer of images and of texts."""
    frame = frame_of(bits[bits["read"] == MEAN].assign(of=bits["part"] + "s"), ("of", "model", "layer"))
    return frame.sort_values("layer", key=lambda names: names == EMBEDDING, kind="stable")  # behind scorers' own layers


def stage_frame(bits: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of each stage by training step."""
    stages = [STAGES.get(key) for key in zip(*(bits[name] for name in OF), strict=True)]
    return frame_of(bits.assign(stage=stages).dropna(subset="stage"), ("stage", "model", "step"))


def frame_of(bits: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    rows = [(*key, its.value, its.low, its.high) for key, its in mean_bits(bits, by).items()]
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high"])


def bit_lines(frame: pd.DataFrame, panel: str, x: str) -> Any:
    """Return a chart with a panel for each value of a column: a line for each model, with its interval as a band."""
    import altair as alt

    along = alt.X("step:Q") if x == "step" else alt.X(f"{x}:N", sort=list(dict.fromkeys(frame[x])))
    colour = alt.Color("model:N", sort=None, title=None, legend=alt.Legend(symbolOpacity=1))
    base = alt.Chart(frame).encode(x=along, color=colour)
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q")
    value = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1]), title="bits, of 1")
    lines = base.mark_line(point=True).encode(y=value, tooltip=list(frame))
    panels = alt.layer(band, lines, data=frame).properties(width=230, height=190)
    shown = sorted(dict.fromkeys(frame[panel]), key=[*STAGES.values(), "images", "texts"].index)
    return panels.facet(alt.Facet(f"{panel}:N", sort=shown, title=None), columns=2).resolve_scale(x="independent")


def layer_lines(last: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return a line for each layer of each model: the bits of an animal's texture, and the bits by place."""
    means = mean_bits(last[last["measure"].isin(("bits", "place_bits"))], ("model", *OF, "measure"))
    return [
        (
            *(model, part, layer if read in (MEAN, SCORE) else f"{layer}, side by side"),
            *(str(means.get((model, part, layer, read, name), DASH)) for name in ("bits", "place_bits")),
        )
        for model, part, layer, read in dict.fromkeys(key[:-1] for key in means)
    ]
