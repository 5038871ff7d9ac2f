"""The records of which a model was surest: those it got wrong and those it got right, with their images."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from menagerie.envs.core.figures import picture
from menagerie.studies.analysis.errors import Source, read_predictions

SHOWN = 4
PIXELS = 128  # the longer side of an image on the page


class Record(NamedTuple):
    """One record: its image as a data URI, both captions and what the model gave them."""

    uri: str
    subset: str
    caption: str
    negative: str
    score_caption: str
    score_negative: str


class Surest(NamedTuple):
    """The records with the widest margins, widest first."""

    wrong: list[Record]
    right: list[Record]


@cache  # what is finished doesn't change
def surest(source: Source, tests: tuple[str, ...], task: str = "swap") -> Surest:
    """The surest records of a cell among some tests, of as many different animal pairs as there are."""
    frame = read_predictions(source.folder)
    frame = frame[(frame["task"] == task) & frame["subset"].isin(tests)]
    chosen = [
        leading(frame[sign * frame["margin"] > 0].sort_values("margin", ascending=sign < 0, kind="stable"))
        for sign in (-1, 1)
    ]
    uris = pictures(source, pd.concat(chosen)["scene"].tolist())
    return Surest(*([record(row, uris) for row in part.itertuples()] for part in chosen))


def leading(ranked: pd.DataFrame) -> pd.DataFrame:
    """The first `SHOWN` rows; further ones of an animal pair, then of a caption, give way to others."""
    repeats = ranked["animals"].duplicated().astype(int) + ranked["caption"].duplicated()
    kept = repeats.sort_values(kind="stable").index[:SHOWN]
    return ranked[ranked.index.isin(kept)]


def record(row: Any, uris: dict[str, str]) -> Record:
    """A row of predictions as it is shown."""
    scores = (f"{score:#.4g}" for score in (row.score_caption, row.score_negative))
    return Record(uris[row.scene], row.subset, row.caption, row.negative, *scores)


def pictures(source: Source, scenes: Sequence[str]) -> dict[str, str]:
    """The images of scenes of a split, by their keys, as small data URIs."""
    from menagerie.generators.storage.pixels import PixelReader
    from menagerie.generators.storage.split_file import read_split

    split = read_split(source.split)
    reader, wanted = PixelReader(split), set(scenes)
    tests = [records for name, records in split.subsets.items() if name != "train"]
    rows = {scene.key: int(row) for r in tests for scene, row in zip(r.scenes, r.rows, strict=True)}
    return {key: picture(reader.read(rows[key]), PIXELS) for key in sorted(wanted)}
