"""How many bits of which animal has which texture each layer of a scorer holds, as a measure of finished runs, and its
tables; or of which of two known objects is on the left, the question of the spatial grid. And pieces that probe models
as they are, with checks of their vocabulary and image size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.captioned import Indices
from menagerie.generators.captions.templates import TEMPLATES, Caption, content_of, write_caption
from menagerie.generators.splits.probe import RIGHT_FIRST, ProbeRecipe, choose_names
from menagerie.generators.splits.probe_scenes import mirror_probed, objects_from_left
from menagerie.models.checkpoint import config_in
from menagerie.models.layers import grid_of, image_layer_names, text_layer_names
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import FramedSplit
from menagerie.models.library.sources import Checkpoint
from menagerie.models.towers.features import TOKENS
from menagerie.studies.analysis.intervals import NOTHING, Estimate
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.measure import Measure, Row, write_measured
from menagerie.studies.frame.parts import Chart, Heading, Part, Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures import probe_set as probed
from menagerie.studies.measures.geometry import geometry
from menagerie.studies.measures.probe_set import ALL_TOKENS, BOTH, EMBEDDING, IMAGE, MEAN, TEXT, ProbeAxes, label_rows
from menagerie.studies.measures.probes import bits, probe_binding, probe_left
from menagerie.studies.measures.readers import AttentionReader, HiddenReader, read_binding
from menagerie.studies.scoring.models import Model, recorded_world
from menagerie.studies.scoring.piece import Piece

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.texts import Tensors
    from menagerie.studies.measures.patching import Patching
    from menagerie.studies.runs.data import Material

SCORE = "score"
HIDDEN_LAYER, ATTENTION = "hidden layer", "attention"
Setting = TypeVar("Setting", str, int)
RELATION = TEMPLATES["relation"]
STAGES = {  # the stages at which binding may be lost, by part, layer, and what is read of the layer
    (IMAGE, "tokens", ALL_TOKENS): "all patches",
    (IMAGE, EMBEDDING, MEAN): "image embedding",
    (TEXT, EMBEDDING, MEAN): "text embedding",
    (BOTH, SCORE, SCORE): "score",
}
OF = ("part", "layer", "read")
READER_NAMES = {  # what holds the bits of an image, by layer and what reads it
    (EMBEDDING, MEAN): ("pooled token", "linear"),
    (EMBEDDING, HIDDEN_LAYER): ("pooled token", HIDDEN_LAYER),
    (TOKENS, ALL_TOKENS): ("all tokens", "linear, side by side"),
    (TOKENS, ATTENTION): ("patches", ATTENTION),
}
READ_NAMES = {ALL_TOKENS: "side by side"}
BOUND_NAMES = {"bits": "mutual information", "bernoulli_bits": "sum of Bernoulli losses"}
READERS_SAY = """How much of the bit an image's single vector holds, and how much its tokens: 2606.03976 has below half
and above 90 %. All tokens: CLS, where a tower has one, and the patches, side by side. Attention: a learnt query for
each animal pools the patches alone. Each reader gives a lower bound, by the margin of the whole scene (mutual
information) and by the sum of its four Bernoulli losses, as that paper counts: 1 - 4 H(e) for a reader that errs with
probability e, 0 where that is below. Means over seeds with 95 % intervals."""
LAYERS_SAYS = """Which animal has which texture is exactly 1 bit. A linear probe reads it from the mean token of each
layer, on pairs of animals that the probe wasn't trained on; 0 is chance. Bands are 95 % intervals over seeds. A probe
at 0 may miss binding that is stored by place; the table has that."""
STEPS_SAYS = """The same over training. At step 0 weights are random: what patches hold there is already in the pixels.
“All patches” are the last layer's tokens side by side; the score is that of the true minus that of the swapped
caption."""
LOOSE = "Bits of probes are a lower bound, loose in noise and for wide embeddings: compare only within one probe set."
TABLE_SAYS = f"""Bits: a probe reads the texture of each animal. Bits by place: two probes, of which animal and which
texture is on the left, are combined. Means over seeds with 95 % intervals. {LOOSE}"""


@dataclass(frozen=True)
class Bits(probed.ProbeMeasure):
    """Rows of (part, layer, read, measure, value, chance, refused): what probes read from the mean token of each layer
    of images and of texts, and from all tokens of images side by side; the geometry of embeddings, unless `relation`;
    and the bits of scores, s(x, c) - s(x, c') for an image x, its caption c and the false caption c'."""

    version: ClassVar[int] = 4  # readers with a hidden layer and with attention

    layers: tuple[str, ...] = ()
    """Names of the layers that are read, of images and texts; a scorer's missing ones are skipped. Empty: all."""
    relation: bool = False
    """Whether the question is which of two objects is left, and captions state the relation."""

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        return self.read(scorer)

    def read(self, scorer: "Scorer") -> Iterator[Row]:
        """Yield the rows of a scorer in evaluation mode, whatever trained it. The two orders of mention count as views
        of texts, so that a probe of "left" can't read what is named first."""
        both = self.opened(scorer, RelatedSplit if self.relation else FramedSplit)
        axes, numbers = probed.probe_axes(both[0])
        of_images, of_texts = (
            [name for name in layers if not self.layers or name in self.layers]
            for layers in (image_layer_names(scorer), text_layer_names(scorer))
        )
        wanted = [(layer, MEAN) for layer in of_images] + [(TOKENS, ALL_TOKENS)] * (TOKENS in of_images)
        of_all = probed.image_layers(scorer, both[0], wanted)
        for (layer, read), embeddings in of_all.items():
            yield from self.probe(IMAGE, layer, read, embeddings[numbers], axes)
        if not self.relation:
            yield from learnt_rows(of_all, numbers, axes, int(np.prod(grid_of(scorer) or 0)))
        wanted = [(layer, MEAN) for layer in of_texts]
        found = [probed.text_layers(scorer, probed.captions_of(data), wanted) for data in both]
        for layer, read in wanted:
            embeddings = np.concatenate([each[layer, read][numbers] for each in found])
            yield from self.probe(TEXT, layer, read, embeddings, axes.repeated(2))
        yield bits(margins_of(scorer, both)).row(part=BOTH, layer=SCORE, read=SCORE, measure="bits")

    def probe(
        self, part: str, layer: str, read: str, embeddings: Float[np.ndarray, "v p q d"], axes: ProbeAxes
    ) -> Iterator[Row]:
        """Yield what probes read of a layer, and the geometry of its embeddings if it is the last one."""
        if self.relation:
            yield bits(probe_left(embeddings, axes)).row(part=part, layer=layer, read=read, measure="bits")
            return
        yield from label_rows(part, layer, read, probe_binding(embeddings, axes))
        if layer == EMBEDDING:
            yield from label_rows(part, layer, read, geometry(embeddings, axes))


def learnt_rows(
    found: probed.Layers, numbers: Int[np.ndarray, "v p q"], axes: ProbeAxes, patches: int
) -> Iterator[Row]:
    """Yield what readers find that are trained by gradient descent: in the only vector of images, and in the patches of
    the last layer, which are the last tokens."""
    if probed.VECTOR in found:
        vectors = found[probed.VECTOR][numbers][..., None, :]
        yield from label_rows(IMAGE, EMBEDDING, HIDDEN_LAYER, read_binding(vectors, axes, HiddenReader))
    if patches and (TOKENS, ALL_TOKENS) in found:
        tokens = found[TOKENS, ALL_TOKENS].reshape(len(numbers.flat), -1, found[TOKENS, MEAN].shape[-1])
        held = read_binding(tokens[:, -patches:][numbers], axes, AttentionReader)
        yield from label_rows(IMAGE, TOKENS, ATTENTION, held)


class RelatedSplit(FramedSplit):
    """A probe set whose captions state which object is left, "a red cat to the left of a white dog", or which is right
    if the right object is mentioned first. In the false caption the objects are exchanged."""

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self._state_relation(self.records.scenes[i]) for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        return [self._state_relation(mirror_probed(self.records.scenes[i])) for i in indices]

    def _state_relation(self, scene: Scene) -> Caption:
        objects = objects_from_left(scene)[:: -1 if self.subset == RIGHT_FIRST else 1]
        return write_caption(content_of(scene, 0, RELATION, objects), RELATION)


def margins_of(scorer: "Scorer", both: "Sequence[SplitDataset]") -> Float[np.ndarray, " n"]:
    """Return each image's score with its caption minus that with the false one, for both orders of mention."""

    def score(images: "Tensors", texts: Sequence[Any]) -> "torch.Tensor":
        return scorer.pair_similarity(images, scorer.encode_texts(scorer.read(*zip(*texts, strict=True))))

    found: list[torch.Tensor] = []
    with torch.no_grad():
        for start in range(0, len(both[0]), probed.BLOCK):
            some = range(start, min(start + probed.BLOCK, len(both[0])))
            draws = [0] * len(some)
            images = scorer.encode_images(scorer.pixel_scale(both[0].images(some).to(scorer.device)))
            for data in both:  # the same images in the same order
                true, false = data.captions(some, draws), data.negatives(some, draws)
                found.append((score(images, true) - score(images, false)).float().cpu())
    return torch.cat(found).numpy()


def rows_at_steps(records: Records, measure: Measure, states: Sequence[int] = ()) -> pd.DataFrame:
    """Return all rows of a measure, after the last step ("step" is None) and at the steps of kept states."""
    rows = records.rows_of(measure, (None, *states))
    return rows if "step" in rows else rows.assign(step=None)


def mean_bits(rows: pd.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], Estimate]:
    """Return the mean over seeds of bits, for each combination of the columns `by`."""
    return {key: its._replace(times=1, digits=2) for key, its in probed.seed_means(rows, by).items()}


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
    last, all_bits = named[named["last"]], named[named["measure"] == "bits"]
    layers = layer_frame(last[last["measure"] == "bits"])
    yield Chart("bits-by-layer", bit_lines(layers, "of", "layer"), says=LAYERS_SAYS)
    if len(readers := reader_frame(last)):
        yield Chart("readers", reader_chart(readers), says=READERS_SAY)
    if len(last) < len(named):
        yield Heading("Over training")
        yield Chart("bits-over-training", bit_lines(stage_frame(all_bits), "stage", "step"), says=STEPS_SAYS)
    yield Heading("All layers")
    header = ("model", "of", "layer", "bits", "bits by place")
    yield Rows("layers", header, layer_lines(last), says=TABLE_SAYS)


def stage_sentences(rows: pd.DataFrame, names: Mapping[str, str], axes: Sequence[str] = ()) -> Iterator[str]:
    """Say how much of the bit each stage of each model holds in the end, and which embedding holds less."""
    last = rows[(rows["measure"] == "bits") & rows["step"].isna()]
    for (*place, model), its in last.groupby([*axes, "model"], sort=False):
        means = {STAGES.get(key): value for key, value in mean_bits(its, OF).items()}
        held = ", ".join(f"{stage} {means[stage]}" for stage in STAGES.values() if stage in means)
        said = ", ".join(f"{value:.0%} {name.replace('_', ' ')}" for name, value in zip(axes, place, strict=True))
        where = f" ({said})" if said else ""
        image, text = (means.get(f"{part} embedding", NOTHING) for part in (IMAGE, TEXT))
        less = "text" if text.high < image.low else "image" if image.high < text.low else ""
        lost = f" A linear probe finds less in the {less}'s embedding." if less else ""
        yield f"{names[model]}{where}, bits (of 1, chance 0) on which animal has which texture: {held}.{lost}"


def layer_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of the mean token of each layer of images and of texts."""
    frame = frame_of(rows[rows["read"] == MEAN].assign(of=rows["part"] + "s"), ("of", "model", "layer"))
    return frame.sort_values("layer", key=lambda names: names == EMBEDDING, kind="stable")  # behind scorers' own layers


def stage_frame(rows: pd.DataFrame) -> pd.DataFrame:
    stages = [STAGES.get(key) for key in zip(*(rows[name] for name in OF), strict=True)]
    return frame_of(rows.assign(stage=stages).dropna(subset="stage"), ("stage", "model", "step"))


def reader_frame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bits of an image's single vector and of its tokens, by reader and bound."""
    of = [READER_NAMES.get(key) for key in zip(rows["layer"], rows["read"], strict=True)]
    images = rows.assign(of=of)[(rows["part"] == IMAGE) & rows["measure"].isin(BOUND_NAMES)].dropna(subset="of")
    holder, reader = (images["of"].str[k] for k in (0, 1))
    named = images.assign(holder=holder, reader=reader, bound=images["measure"].map(BOUND_NAMES))
    return frame_of(named, ("model", "holder", "reader", "bound"))


def reader_chart(frame: pd.DataFrame) -> Any:
    """Return a chart with a panel for each bound: bits by model and reader, with their intervals."""
    import altair as alt

    at = {"y": alt.Y("model:N", sort=None, title=None), "yOffset": alt.YOffset("reader:N", sort=None)}
    base = alt.Chart(frame).encode(**at, color=alt.Color("reader:N", sort=None), tooltip=list(frame))
    ends = base.mark_rule().encode(x="low:Q", x2="high:Q")
    value = alt.X("value:Q", scale=alt.Scale(domain=[0, 1]), title="bits, of 1")
    dots = base.mark_point(filled=True, size=60).encode(x=value, shape=alt.Shape("holder:N", sort=None))
    panels = alt.layer(ends, dots, data=frame).properties(width=260)
    return panels.facet(alt.Facet("bound:N", sort=None, title=None), columns=2)


def frame_of(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    means = [(*key, its.value, its.low, its.high, its.seeds) for key, its in mean_bits(rows, by).items()]
    return pd.DataFrame(means, columns=[*by, "value", "low", "high", "seeds"])


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
            *(model, part, layer if read in (MEAN, SCORE) else f"{layer}, {READ_NAMES.get(read, read)}"),
            *(str(means.get((model, part, layer, read, name), DASH)) for name in ("bits", "place_bits")),
        )
        for model, part, layer, read in dict.fromkeys(key[:-1] for key in means)
    ]


@dataclass(frozen=True)
class ProbePiece(Piece):
    """A model on the probe set."""

    measures: tuple["Bits | Patching", ...]
    called: str
    """The model's name in tables, which trainings that differ only in their seed share."""
    number: int
    """Seed of the model's training."""
    tests: ClassVar[tuple[str, ...]] = ()

    @property
    def model(self) -> str:
        return self.called

    @property
    def seed(self) -> int:
        return self.number

    @property
    def name(self) -> str:
        return self.tested.label

    def score(self, loaded: LoadedScorer, report: Callable[[int], None]) -> dict[str, Any]:
        """Probe the model; write the rows of each measure, and return the result."""
        for measure in self.measures:
            torch.manual_seed(self.seed)  # as after training
            write_measured(self.folder, measure, None, list(measure.read(loaded.scorer)))
        report(self.steps)
        return {"seed": self.seed, "subsets": {}}


def probe_piece(
    tested: Model, called: Model, seed: int, measures: "tuple[Bits | Patching, ...]", **how: Any
) -> ProbePiece:
    """Return the piece that probes one model, which tables call as `called`, with `seed`."""
    name, scenes = digest({"model": tested.weights, "probed": [its.settings for its in measures]}), measures[0].recipe
    return ProbePiece(tested, "probe set", name, scenes_in(scenes), measures, called.label, seed, **how)


@cache
def scenes_in(recipe: ProbeRecipe) -> int:
    return len(recipe.plan(load_world(recipe.world))[recipe.tests[0]])


def agreed_setting(option: str, given: Setting, found: Mapping[str, Setting], default: Setting) -> Setting:
    """Return the given setting, or that of all models' training (`found`, by their labels), or `default`."""
    values = {value: label for label, value in found.items() if value}
    if given or not values:
        return given or default
    if len(values) > 1:
        (one, first), (two, second), *_ = values.items()
        raise UserError(f"{first} was trained with {one}, {second} with {two}: give the {option} of the probe set")
    return next(iter(values))


def side_of(model: Model) -> int:
    """Return the side of the images that a checkpoint of ours reads; 0 for other models."""
    return config_in(model.source.folder).towers.resolution if isinstance(model.source, Checkpoint) else 0


def check_model_knows(model: Model, recipe: ProbeRecipe) -> None:
    """Raise for a model whose training world or vocabulary lacks something of the probe set."""
    way_out = "give its --world, or only animals and textures that it knows (--probe-animals, --probe-textures)"
    animals, textures = choose_names(recipe, load_world(recipe.world))
    if world := recorded_world(model):
        there = load_world(world)
        if strange := [name for name in (*animals, *textures) if name not in (*there.animals, *there.textures)]:
            raise UserError(f"{model.label} was trained in {world}, which has no {', '.join(strange)}; {way_out}")
    known = set(config_in(model.source.folder).texts.words) if isinstance(model.source, Checkpoint) else set()
    if known and (missing := [word for word in probe_words(recipe) if word not in known]):
        raise UserError(f"{model.label} has no {', '.join(missing)} in its vocabulary; {way_out}")


@cache
def probe_words(recipe: ProbeRecipe) -> tuple[str, ...]:
    scenes = recipe.plan(load_world(recipe.world))[recipe.tests[0]]
    texts = (recipe.texts(test, scene)[0].text for test in recipe.tests for scene in scenes)
    return tuple(dict.fromkeys(word for text in texts for word in text.split()))


def check_layers(models: Sequence[Model], layers: Sequence[str]) -> None:
    """Raise for a layer that no model has. Loads the models."""
    scorers = (model.source.scorer().eval() for model in models)
    known = dict.fromkeys(name for its in scorers for name in (*image_layer_names(its), *text_layer_names(its)))
    if strange := next((name for name in layers if name not in known), None):
        raise UserError(f"--layers {strange!r}: no such layer; there are: {', '.join(known)}")
