"""Error analysis: accuracy by properties of test images, and the records with the widest margins."""

import io
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64, Shaped

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.studies.analysis.spread import count_different
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.analysis.two_levels import accuracy_intervals, without_interval
from menagerie.studies.report.figures import image_uri
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.results import checked_file

# Properties by which records are grouped, in the order of tables. A record of two animals counts for both.
FACTORS = ("all", "animal", "texture", "size", "background", "relation", "mentioned first")
COLUMNS = ("subset", "task", "factor", "value", "accuracy", "low", "high", "clusters", "n")
TEXTS = ("subset", "task", "scene", "animals", "caption", "negative")
SCORES = ("score_caption", "score_negative")
COUNTERFACTUAL = ("counterfactual_caption", "counterfactual_negative")


class TestedCell(NamedTuple):
    """A finished cell: its seed, its folder and the split that it was tested on."""

    seed: int
    folder: Path
    split: Path


def scene_factors(scene: Scene, graph: SceneGraph) -> list[tuple[str, str]]:
    """Return the properties of a scene as distinct (factor, value). With several objects, they include the place of the
    object that is mentioned first, without its facing."""
    found = [("background", scene.background)]
    for obj in scene.objects:
        found += [("animal", obj.animal), ("texture", obj.texture), ("size", obj.size)]
    if scene.relation:
        found.append(("relation", scene.relation))
    first = [place_of(obj.slot) for obj in scene.objects if graph.nodes[:1] == (phrase(obj),)]
    if len(first) == 1 and len(scene.objects) > 1:
        found.append(("mentioned first", first[0]))
    return [label for label in dict.fromkeys(found) if label[1]]


@lru_cache(maxsize=2)
def factor_labels(split: Path) -> pd.DataFrame:
    """Return a row for each scene outside train and each of its factors: scene, factor, value."""
    from menagerie.generators.storage.split_file import read_split

    rows = [
        (scene.key, *label)
        for name, records in read_split(split).subsets.items()
        if name != "train"
        for scene, graph in zip(records.scenes, records.graphs, strict=True)
        for label in scene_factors(scene, graph)
    ]
    return pd.DataFrame(rows, columns=["scene", "factor", "value"]).drop_duplicates()


def read_predictions(folder: Path, counterfactuals: bool = False) -> pd.DataFrame:
    """Read a cell's records: both texts, the two scores, and `margin`, the true caption's score minus the false one's.
    With `counterfactuals` also the scores of both texts for the counterfactual image, NaN for records without a
    counterfactual."""
    types = dict.fromkeys(TEXTS, str) | dict.fromkeys((*SCORES, *(COUNTERFACTUAL if counterfactuals else ())), float)
    try:
        text = io.StringIO(read_text(checked_file(folder, FILE)), newline="")
        empty = {name: [""] for name in COUNTERFACTUAL if counterfactuals}
        frame = pd.read_csv(text, dtype=types, usecols=list(types), keep_default_na=False, na_values=empty)
    except ValueError as error:
        file = folder / FILE
        raise UserError(f"{file} can't be read ({error}); delete its folder and run the study again") from error
    return frame.assign(margin=frame["score_caption"] - frame["score_negative"])


@cache  # a finished cell doesn't change, and reports are rewritten after every run
def cluster_sums(source: TestedCell) -> pd.DataFrame:
    """Sum points (1 if right, one half for a tie) and records by subset, task, factor, value and cluster."""
    records = read_predictions(source.folder)
    # As in results: scores that are equal as written in the file are a tie.
    right, tied = (records[SCORES[0]] > records[SCORES[1]]), (records[SCORES[0]] == records[SCORES[1]])
    records = records[["subset", "task", "scene", "animals"]].assign(points=right + 0.5 * tied)
    records["animals"] = f"{source.seed} " + records["animals"]
    labelled = [records.assign(factor="all", value=""), records.merge(factor_labels(source.split), on="scene")]
    keys = ["subset", "task", "factor", "value", "animals"]
    sums = pd.concat(labelled).groupby(keys, sort=False)["points"].agg(points="sum", n="count")
    return sums.reset_index().astype(dict.fromkeys(keys, "category"))


@cache
def breakdown_rows(sources: tuple[TestedCell, ...]) -> pd.DataFrame:
    """Pool the records of several cells; returns a row of `COLUMNS` for each subset, task, factor and value.

    Accuracies are shares. `low` and `high` are the 95 % interval of `two_levels.intervals`, NaN for too few `clusters`,
    the different animal pairs, and for two seeds.
    """
    found = pd.concat([cluster_sums(source) for source in sources], ignore_index=True)
    if not len(found):
        return pd.DataFrame(columns=list(COLUMNS))
    tests, of_test = index_rows(found["subset"], found["task"])
    labels, of_label = index_rows(found["factor"], found["value"])
    clusters = found["animals"].to_numpy(str)
    sums = found[["points", "n"]].to_numpy(float)
    parts = []
    for number, (subset, task) in enumerate(tests):
        rows = of_test == number
        table = factor_accuracies(clusters[rows], of_label[rows], sums[rows])
        shown = sorted(np.unique(of_label[rows]).tolist(), key=lambda label: by_factor(labels[label]))
        factors, values = zip(*(labels[label] for label in shown), strict=True)
        parts.append(table.loc[shown].assign(subset=subset, task=task, factor=factors, value=values))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def index_rows(*columns: pd.Series) -> tuple[list[tuple[str, ...]], Int64[np.ndarray, " n"]]:
    """Return the distinct rows of some columns in order of appearance, and for each row its index among these."""
    codes, found = pd.factorize(pd.MultiIndex.from_arrays([column.astype(str) for column in columns]))
    return [tuple(row) for row in found], codes.astype(np.int64)


def factor_accuracies(
    clusters: Shaped[np.ndarray, " n"], columns: Int64[np.ndarray, " n"], sums: Float64[np.ndarray, "n 2"]
) -> pd.DataFrame:
    """Return accuracy, interval, and numbers of clusters and records for each distinct value of `columns`. Each row of
    `sums` has the points and the number of records of one cluster there."""
    names, row = np.unique(clusters, return_inverse=True)
    kept, column = np.unique(columns, return_inverse=True)
    points, n = np.zeros((2, len(names), len(kept)))
    np.add.at(points, (row, column), sums[:, 0])
    np.add.at(n, (row, column), sums[:, 1])
    seeds, _, pairs = zip(*(name.partition(" ") for name in names.tolist()), strict=True)
    low, high = accuracy_intervals(points, n, seeds, pairs)
    means = {"accuracy": points.sum(0) / n.sum(0), "low": low, "high": high}
    return pd.DataFrame(means | {"clusters": count_different(n, pairs), "n": n.sum(0).astype(int)}, kept)


def by_factor(label: tuple[str, str]) -> tuple[int, str]:
    """Return a sort key for factors and their values in the order of tables."""
    return FACTORS.index(label[0]), label[1]


def error_table(frame: pd.DataFrame, tests: Sequence[str], task: str = "swap") -> pd.DataFrame:
    """Write a breakdown as texts: a row for each factor and value, and a column for each test."""
    chosen = frame[(frame["task"] == task) & frame["subset"].isin(tests)]
    texts = {(row.factor, row.value, row.subset): accuracy_text(row) for row in chosen.itertuples()}
    order = sorted({label[:2] for label in texts}, key=by_factor)
    rows = [[*label, *(texts.get((*label, test), DASH) for test in tests)] for label in order]
    return pd.DataFrame(rows, columns=["shown", "value", *tests])


def accuracy_text(row: Any) -> str:
    """Write accuracy in percent, its interval and the number of records: "71.2 [65.0, 77.1] n 48"."""
    bounds = without_interval(row.low, row.high, row.clusters) or f"{100 * row.low:.1f}, {100 * row.high:.1f}"
    return f"{100 * row.accuracy:.1f} [{bounds}] n {row.n}"


SHOWN = 4
PIXELS = 128  # the longer side of an image on the page


class ErrorExample(NamedTuple):
    """A record for the page: its image as a data URI, both captions and their scores."""

    uri: str
    subset: str
    caption: str
    negative: str
    score_caption: str
    score_negative: str


class SurestRecords(NamedTuple):
    """The records with the widest margins, widest first."""

    wrong: list[ErrorExample]
    right: list[ErrorExample]


@cache  # a finished cell doesn't change
def surest_records(source: TestedCell, tests: tuple[str, ...], task: str = "swap") -> SurestRecords:
    """Return a cell's records with the widest margins in these tests, from as many different animal pairs as
    possible."""
    frame = read_predictions(source.folder)
    frame = frame[(frame["task"] == task) & frame["subset"].isin(tests)]
    chosen = [
        pick_varied(frame[sign * frame["margin"] > 0].sort_values("margin", ascending=sign < 0, kind="stable"))
        for sign in (-1, 1)
    ]
    uris = scene_uris(source, pd.concat(chosen)["scene"].tolist())
    return SurestRecords(*([to_example(row, uris) for row in part.itertuples()] for part in chosen))


def pick_varied(ranked: pd.DataFrame) -> pd.DataFrame:
    """Return the first `SHOWN` rows, after moving rows that repeat an animal pair or a caption behind the others."""
    repeats = ranked["animals"].duplicated().astype(int) + ranked["caption"].duplicated()
    kept = repeats.sort_values(kind="stable").index[:SHOWN]
    return ranked[ranked.index.isin(kept)]


def to_example(row: Any, uris: dict[str, str]) -> ErrorExample:
    """Convert a row of predictions to an example for the page."""
    scores = (f"{score:#.4g}" for score in (row.score_caption, row.score_negative))
    return ErrorExample(uris[row.scene], row.subset, row.caption, row.negative, *scores)


def scene_uris(source: TestedCell, scenes: Sequence[str]) -> dict[str, str]:
    """Return the images of scenes of a split as small data URIs, by their keys."""
    from menagerie.generators.storage.pictures import SplitPictures
    from menagerie.generators.storage.split_file import read_split

    split = read_split(source.split)
    shown, wanted = SplitPictures(split), set(scenes)
    tests = {name: records for name, records in split.subsets.items() if name != "train"}
    places = {scene.key: (name, i) for name, r in tests.items() for i, scene in enumerate(r.scenes)}
    return {key: image_uri(shown.images(places[key][0], [places[key][1]])[0], PIXELS) for key in sorted(wanted)}
