"""Error analysis: accuracy by properties of test images, and the records with the widest margins."""

import io
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_text
from menagerie.envs.scene import Scene
from menagerie.envs.slots import place_of
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.analysis.intervals import accuracy_intervals, count_different, without_interval
from menagerie.studies.analysis.pictures import image_uri
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.results import checked_file

# Properties by which records are grouped, in the order of tables. A record of two animals counts for both.
FACTORS = ("all", "animal", "texture", "size", "background", "relation", "mentioned first")
COLUMNS = ("subset", "task", "factor", "value", "accuracy", "low", "high", "clusters", "n")
TEXTS = ("subset", "task", "scene", "animals", "caption", "negative")
SCORES = ("score_caption", "score_negative")
COUNTERFACTUAL = ("counterfactual_caption", "counterfactual_negative")
# Upper ends of the bins of hidden shares of objects, each with the name of its bin.
HIDDEN_SHARES = {
    0.02: "hidden by up to 2 %",
    0.1: "2 to 10 %",
    0.25: "10 to 25 %",
    0.5: "25 to 50 %",
    1.0: "50 % or more",
}
SHOWN = 4
PIXELS = 128  # the longer side of an image on the page


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
    rows = [
        (scene.key, *label)
        for name, records in read_split(split).subsets.items()
        if name != "train"
        for scene, graph in zip(records.scenes, records.graphs, strict=True)
        for label in scene_factors(scene, graph)
    ]
    return pd.DataFrame(rows, columns=["scene", "factor", "value"]).drop_duplicates()


def read_predictions(folder: Path, counterfactuals: bool = False) -> pd.DataFrame:
    """Read a cell's records: both texts, the two scores, `margin`, the true caption's score minus the false one's, and
    `value`, 1 if that is above 0 and one half for a tie. With `counterfactuals` also the scores of both texts for the
    counterfactual image, NaN where there is none."""
    types = dict.fromkeys(TEXTS, str) | dict.fromkeys((*SCORES, *(COUNTERFACTUAL if counterfactuals else ())), float)
    try:
        text = io.StringIO(read_text(checked_file(folder, FILE)), newline="")
        empty = {name: [""] for name in COUNTERFACTUAL if counterfactuals}
        frame = pd.read_csv(text, dtype=types, usecols=list(types), keep_default_na=False, na_values=empty)
    except ValueError as error:
        file = folder / FILE
        raise UserError(f"{file} can't be read ({error}); delete its folder and run the study again") from error
    true, false = (frame[name] for name in SCORES)
    return frame.assign(margin=true - false, value=(true > false) + 0.5 * (true == false))


@cache  # a finished cell doesn't change, and reports are rewritten after every run
def cluster_sums(source: TestedCell) -> pd.DataFrame:
    """Sum points (1 if right, one half for a tie) and records by subset, task, factor, value and cluster."""
    records = read_predictions(source.folder)
    records = records[["subset", "task", "scene", "value"]].assign(animals=f"{source.seed} " + records["animals"])
    records = records.rename(columns={"value": "points"})
    labelled = [records.assign(factor="all", value=""), records.merge(factor_labels(source.split), on="scene")]
    keys = ["subset", "task", "factor", "value", "animals"]
    sums = pd.concat(labelled).groupby(keys, sort=False)["points"].agg(points="sum", n="count")
    return sums.reset_index().astype(dict.fromkeys(keys, "category"))


@cache
def breakdown_rows(sources: tuple[TestedCell, ...]) -> pd.DataFrame:
    """Pool the records of several cells; returns a row of `COLUMNS` for each subset, task, factor and value. `low` and
    `high` are those of `accuracy_intervals`; `clusters` are different animal pairs."""
    found = pd.concat([cluster_sums(source) for source in sources], ignore_index=True)
    if not len(found):
        return pd.DataFrame(columns=list(COLUMNS))
    tests = found.groupby(["subset", "task"], sort=False, observed=True)
    parts = [factor_accuracies(part).assign(subset=subset, task=task) for (subset, task), part in tests]
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def factor_accuracies(sums: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each factor and value of a test, in the order of tables, from its `cluster_sums`."""
    sums = sums.astype({name: str for name in ("factor", "value", "animals")})
    table = sums.pivot_table(["points", "n"], "animals", ["factor", "value"], "sum", fill_value=0)
    points, n = table["points"].to_numpy(float), table["n"].to_numpy(float)
    seeds, _, pairs = zip(*(name.partition(" ") for name in table.index), strict=True)
    low, high = accuracy_intervals(points, n, seeds, pairs)
    means = {"accuracy": points.sum(0) / n.sum(0), "low": low, "high": high}
    counts = {"clusters": count_different(n, pairs), "n": n.sum(0).astype(int)}
    found = pd.DataFrame(means | counts, table["n"].columns)
    return found.loc[sorted(found.index, key=by_factor)].reset_index()


def by_factor(label: tuple[str, str]) -> tuple[int, str]:
    return FACTORS.index(label[0]), label[1]


def error_table(frame: pd.DataFrame, tests: Sequence[str]) -> pd.DataFrame:
    """Write a breakdown of swaps as texts, such as "71.2 [65.0, 77.1] n 48", by factor and value, and test."""
    chosen = frame[(frame["task"] == "swap") & frame["subset"].isin(tests)]
    texts = {}
    for row in chosen.itertuples():
        bounds = without_interval(row.low, row.high, row.clusters) or f"{100 * row.low:.1f}, {100 * row.high:.1f}"
        texts[row.factor, row.value, row.subset] = f"{100 * row.accuracy:.1f} [{bounds}] n {row.n}"
    order = sorted({label[:2] for label in texts}, key=by_factor)
    rows = [[*label, *(texts.get((*label, test), DASH) for test in tests)] for label in order]
    return pd.DataFrame(rows, columns=["shown", "value", *tests])


@cache  # a finished cell doesn't change
def surest_records(source: TestedCell, tests: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Return the "wrong" and "right" records with the widest margins in these tests, widest first, of as many animal
    pairs as possible, with the image of each as a data URI."""
    frame = read_predictions(source.folder)
    frame = frame[(frame["task"] == "swap") & frame["subset"].isin(tests)]
    ranked = (frame[s * frame["margin"] > 0].sort_values("margin", ascending=s < 0, kind="stable") for s in (-1, 1))
    chosen = list(map(pick_varied, ranked))
    uris = scene_uris(source, pd.concat(chosen)["scene"].tolist())
    sides = zip(("wrong", "right"), chosen, strict=True)
    return {side: part.assign(uri=part["scene"].map(uris)) for side, part in sides}


def pick_varied(ranked: pd.DataFrame) -> pd.DataFrame:
    """Return the first `SHOWN` rows, after moving rows that repeat an animal pair or a caption behind the others."""
    repeats = ranked["animals"].duplicated().astype(int) + ranked["caption"].duplicated()
    kept = repeats.sort_values(kind="stable").index[:SHOWN]
    return ranked[ranked.index.isin(kept)]


def scene_uris(source: TestedCell, scenes: Sequence[str]) -> dict[str, str]:
    split = read_split(source.split)
    shown, wanted = SplitPictures(split), set(scenes)
    tests = {name: records for name, records in split.subsets.items() if name != "train"}
    places = {scene.key: (name, i) for name, r in tests.items() for i, scene in enumerate(r.scenes)}
    return {key: image_uri(shown.images(places[key][0], [places[key][1]])[0], PIXELS) for key in sorted(wanted)}


@lru_cache(maxsize=8)
def hidden_bins(split: Path) -> dict[str, str]:
    """Return the bin of each test scene of several objects, by key: of the more hidden one of the exchanged objects."""
    pictures, found = SplitPictures(read_split(split)), {}
    for name, records in pictures.split.subsets.items():
        if name == "train" or not len(records):
            continue
        for scene, row in zip(records.scenes, pictures.hidden(name, range(len(records))), strict=True):
            if len(scene.objects) > 1 and not np.isnan(most := row[list(exchanged_objects(scene))].max()):
                found[scene.key] = next(bin_ for end, bin_ in HIDDEN_SHARES.items() if most <= end)
    return found
