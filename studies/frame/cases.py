"""Images on pages: samples of splits, pictures with their texts, and where models err."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.studies.analysis.errors import (
    ErrorExample,
    TestedCell,
    breakdown_rows,
    error_table,
    read_predictions,
    scene_uris,
    surest_records,
)
from menagerie.studies.analysis.tables import to_csv
from menagerie.studies.frame.layout import Key, label_values, value_words
from menagerie.studies.frame.parts import Cases, Picture, Pictures
from menagerie.studies.frame.records import Records
from menagerie.studies.report.figures import image_uri, model_label
from menagerie.studies.report.tables import styled_table
from menagerie.studies.runs.evaluation import FILE

SAMPLES = 5  # images in a row
COMPARED = 4  # models whose scores are written below an image
SMALL = 128  # pixels; larger images are JPEGs, a tenth of the size of PNGs


def pictures_of(part: Pictures, out: Path) -> list[dict[str, Any]]:
    """Write the texts of all pictures as CSV; returns the pictures for the page."""
    texts = pd.DataFrame([its[1:] for its in part.pictures], columns=Picture._fields[1:])
    to_csv(out / "figures" / f"{part.name}.csv", texts)
    return [
        its._asdict() | {"uri": image_uri(its.image, kind="jpeg" if max(its.image.shape) > SMALL else "png")}
        for its in part.pictures
    ]


def error_sections(part: Cases, out: Path) -> list[dict[str, Any]]:
    """Write errors.csv, with a row for each place, test, task, factor and value; returns a section for each model.

    The records with the widest margins are those of a model's first place and seed: in a grid, the hardest place.
    """
    places: dict[Key, list[TestedCell]] = {}
    for arm, _ in part.records.results:
        if arm.file:
            source = TestedCell(arm.cell.seed, part.records.folder(arm), arm.file)
            places.setdefault(label_values(arm.place, part.rows), []).append(source)
    found = [breakdown_rows(tuple(its)).assign(**dict(zip(part.rows, key, strict=True))) for key, its in places.items()]
    if found:
        whole = pd.concat(found, ignore_index=True)
        to_csv(out / "errors.csv", whole[[*part.rows, *(name for name in whole if name not in part.rows)]])
    at = list(part.rows).index("model")
    models = dict.fromkeys(key[at] for key in places)
    return [error_section(part, {key: its for key, its in places.items() if key[at] == model}, at) for model in models]


def error_section(part: Cases, places: Mapping[Key, Sequence[TestedCell]], at: int) -> dict[str, Any]:
    """Describe one model's errors for the page."""
    tests = {test: value_words(part, "subset", test) for test in part.records.tests}
    (key, (first, *_)), names = next(iter(places.items())), list(part.rows)
    facts = [
        f"{n.replace('_', ' ')} {value_words(part, n, v)}" for n, v in zip(names, key, strict=True) if n != "model"
    ]
    rows = error_table(breakdown_rows(tuple(source for its in places.values() for source in its)), list(tests))
    wrong, right = surest_records(first, tuple(tests))
    return {
        "model": value_words(part, "model", key[at]),
        "html": styled_table(rows.rename(columns=tests), 2),
        "place": ", ".join([*facts, f"seed {first.seed}"]),
        "wrong": [example_texts(its, tests) for its in wrong],
        "right": [example_texts(its, tests) for its in right],
    }


def example_texts(record: ErrorExample, tests: Mapping[str, str]) -> dict[str, str]:
    return {
        "uri": record.uri,
        "true": f"✓ {record.caption}: {record.score_caption}",
        "false": f"✗ {record.negative}: {record.score_negative}",
        "note": tests[record.subset],
    }


def cases_with_scores(records: Records) -> list[dict[str, Any]]:
    """Return test images of the first split for the page, each with the scores of at most `COMPARED` models (of the
    first run of each)."""
    found = [(arm, arm.file or getattr(arm.cell, "path", None)) for arm, _ in records.results]
    # Photographs lie in folders and have no split file.
    found = [(arm, file) for arm, file in found if file and Path(file).is_file() and hasattr(arm.cell, "tests")]
    runs: dict[str, TestedCell] = {}
    for arm, file in found:
        if file == found[0][1] and (records.folder(arm) / FILE).exists():
            runs.setdefault(model_label(arm.cell.model), TestedCell(arm.cell.seed, records.folder(arm), file))
    return sample_cases(tuple(list(runs.items())[:COMPARED])) if runs else []


@lru_cache(maxsize=1)  # finished runs don't change, and reports are rewritten after every run
def sample_cases(runs: tuple[tuple[str, TestedCell], ...]) -> list[dict[str, Any]]:
    """Choose swaps evenly over the tests of one split. Each has its image, both captions, and the scores of each
    model."""
    texts, source = ["subset", "scene", "caption", "negative"], runs[0][1]
    tests = read_split(source.split).subsets.keys() - {"validation"}  # runs may be tested on other splits, too
    frames = {}
    for name, run in runs:
        frame = read_predictions(run.folder)
        swaps = frame[(frame["task"] == "swap") & frame["subset"].isin(tests)]
        frames[name] = swaps.drop_duplicates(texts).set_index(texts)
    first = next(iter(frames.values()))
    chosen = [first.index[len(first) * (2 * i + 1) // (2 * SAMPLES)] for i in range(min(SAMPLES, len(first)))]
    uris = scene_uris(source, [scene for _, scene, *_ in chosen])
    return [
        {"uri": uris[key[1]], "true": f"✓ {key[2]}", "false": f"✗ {key[3]}", "note": key[0]}
        | {"scores": [f"{name}: {compare_scores(its.loc[key])}" for name, its in frames.items() if key in its.index]}
        for key in chosen
    ]


def compare_scores(row: Any) -> str:
    """Write the scores of a record's true and false caption, and which is higher: "0.71 > 0.64"."""
    sign = ">" if row.margin > 0 else "<" if row.margin < 0 else "="
    shown = ([f"{score:#.{digits}g}" for score in (row.score_caption, row.score_negative)] for digits in (4, 6, 8))
    first, second = next((pair for pair in shown if len({*pair}) == 2), [f"{row.score_caption:#.4g}"] * 2)
    return f"{first} {sign} {second}"


@lru_cache(maxsize=1)  # they are the same in every report of a run
def sample_images(split: Path, tests: tuple[str, ...]) -> dict[str, list[dict[str, str]]]:
    """Return sample images of train and of each test that has images, with their captions, by subset."""
    samples, pictures = {}, SplitPictures(read_split(split))
    for subset in ("train", *tests):
        records = pictures.split.subsets.get(subset, ())  # of several files not each has all tests
        if not len(records):
            continue
        chosen = [len(records) * (2 * i + 1) // (2 * SAMPLES) for i in range(SAMPLES)]
        shown = zip(pictures.images(subset, chosen), chosen, strict=True)
        samples[subset] = [
            {"uri": image_uri(image), "true": records.captions[i], "false": records.negatives[i]} for image, i in shown
        ]
    return samples
