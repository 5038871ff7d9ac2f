"""Bits of layers on a page: how much of one bit each layer and each stage of a model holds, and how that grows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from menagerie.studies.analysis.estimate import Estimate
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.parts import Chart, Heading, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import SCORE, Bits
from menagerie.studies.measures.measured import seed_means
from menagerie.studies.measures.probe_set import ALL_TOKENS, BOTH, EMBEDDING, IMAGE, MEAN, TEXT

IMAGE_EMBEDDING, TEXT_EMBEDDING = (IMAGE, EMBEDDING, MEAN), (TEXT, EMBEDDING, MEAN)
STAGES = {
    (IMAGE, "tokens", ALL_TOKENS): "all patches",
    IMAGE_EMBEDDING: "image embedding",
    TEXT_EMBEDDING: "text embedding",
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
    known = rows[rows["measure"].isin(("bits", "place_bits"))].dropna(subset="value")
    known = known.assign(model=known["model"].map(names))
    last, bits = known[known["step"].isna()], known[known["measure"] == "bits"]
    layers = layer_frame(bits[bits["step"].isna()])
    yield Chart("bits-by-layer", bit_lines(layers, "of", "layer"), says=one_line(LAYERS_SAYS))
    if len(last) < len(known):
        yield Heading("Over training")
        titled = {names[model]: steps for model, steps in (lengths or {}).items()}
        ended = bits.assign(step=bits["step"].astype(float).fillna(bits["model"].map(titled)))
        yield Chart("bits-over-training", bit_lines(stage_frame(ended), "stage", "step"), says=one_line(STEPS_SAYS))
    yield Heading("All layers")
    header = ("model", "of", "layer", "bits", "bits by place")
    yield Rows("layers", header, layer_lines(last), says=one_line(TABLE_SAYS))


def stage_sentences(rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str] = ()) -> Iterator[str]:
    """Say how much of the bit each stage of each model holds in the end, at each place, and which embedding holds
    less."""
    bits = rows[(rows["measure"] == "bits") & rows["step"].isna()]
    for (*place, model), its in bits.groupby([*axes, "model"], sort=False):
        means = mean_bits(its, OF)
        held = ", ".join(f"{stage} {means[key]}" for key, stage in STAGES.items() if key in means)
        said = [f"{value:.0%} {name.replace('_', ' ')}" for name, value in zip(axes, place, strict=True)]
        where = f" ({', '.join(said)})" if said else ""
        less = say_where_lost(means.get(IMAGE_EMBEDDING), means.get(TEXT_EMBEDDING))
        yield f"{names[model]}{where}, bits (of 1, chance 0) on which animal has which texture: {held}.{less}"


def say_where_lost(image: Estimate | None, text: Estimate | None) -> str:
    """Say which embedding holds fewer bits, or that this is undecided; empty if one is missing."""
    if image is None or text is None:
        return ""
    for name, one, other in (("text", text, image), ("image", image, text)):
        if one.high < other.low:
            return f" Binding is lost in the {name}'s embedding."
    return " Whether the image's embedding or the text's holds less is undecided."


def layer_frame(bits: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of the mean token of each layer of images and of texts."""
    means = mean_bits(bits[(bits["read"] == MEAN)].assign(of=bits["part"] + "s"), ("of", "model", "layer"))
    frame = frame_of(means, ("of", "model", "layer"))
    return frame.sort_values("layer", key=lambda names: names == EMBEDDING, kind="stable")  # behind scorers' own layers


def stage_frame(bits: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of each stage by training step."""
    stages = [STAGES.get(key) for key in zip(*(bits[name] for name in OF), strict=True)]
    known = bits.assign(stage=stages).dropna(subset="stage")
    return frame_of(mean_bits(known, ("stage", "model", "step")), ("stage", "model", "step"))


def frame_of(means: Mapping[tuple[Any, ...], Estimate], by: Sequence[str]) -> pd.DataFrame:
    rows = [(*key, its.value, its.low, its.high) for key, its in means.items()]
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high"])


def bit_lines(frame: pd.DataFrame, panel: str, x: str) -> Any:
    """Return a chart with a panel for each value of a column: a line for each model, with its interval as a band."""
    import altair as alt

    along = alt.X("step:Q") if x == "step" else alt.X(f"{x}:N", sort=list(dict.fromkeys(frame[x])))
    base = alt.Chart(frame).encode(
        x=along, color=alt.Color("model:N", sort=None, title=None, legend=alt.Legend(symbolOpacity=1))
    )
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q")
    value = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1]), title="bits, of 1")
    lines = base.mark_line(point=True).encode(y=value, tooltip=list(frame))
    panels = alt.layer(band, lines, data=frame).properties(width=230, height=190)
    shown = sorted(dict.fromkeys(frame[panel]), key=[*STAGES.values(), "images", "texts"].index)
    return panels.facet(alt.Facet(f"{panel}:N", sort=shown, title=None), columns=2).resolve_scale(x="independent")


def layer_lines(last: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return a line for each layer of each model: the bits of an animal's texture, and the bits by place."""
    means = mean_bits(last, ("model", *OF, "measure"))
    return [
        (
            *(model, part, layer if read in (MEAN, SCORE) else f"{layer}, side by side"),
            *(str(means.get((model, part, layer, read, name), DASH)) for name in ("bits", "place_bits")),
        )
        for model, part, layer, read in dict.fromkeys(key[:-1] for key in means)
    ]
