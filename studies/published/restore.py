"""Makes the folder of a study again from its published records. Splits are made again, nothing is trained."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.reading import Unreadable, path_inside
from menagerie.envs.core.records import file_digest, read_record, write_record
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.benchmark import FOUR_WAY as FOUR_WAY_ITEM
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.familiarity import familiar_records, seen_columns
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.split_file import read_split
from menagerie.models.cell_results import FILES, RESULT
from menagerie.models.library.cells import find_split_file, read_recipe_scenes
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.errors import COUNTERFACTUAL, SCORES
from menagerie.studies.published.pack import (
    DIGESTED_COLUMNS,
    FOUR_WAY,
    REST,
    SEPARATOR,
    SWAP,
    TABLE,
    content_digest,
    published_names,
    read_frame,
    read_packed,
    read_rest,
    tests_digest,
)
from menagerie.studies.runs.data import make_splits
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.folder import CONFIG, LOCK
from menagerie.studies.runs.training_log import FILE as LOG


def read_margins(path: Path, digest: str) -> pd.DataFrame:
    """Read `NAME.csv.xz`; raises `Unreadable` if margins were changed, or are of other runs."""
    table = read_frame(read_packed(path), path)
    if not {*DIGESTED_COLUMNS} <= {*table.columns} or content_digest(table) != digest:
        way_out = "take it from the repository again, or repeat `add` if that was interrupted"
        raise Unreadable(f"{path} was changed since it was written; {way_out}")
    return table


def restore_run(name: str, out: Path, records: Path, store: Path) -> dict[str, Any]:
    """Write the folder of the published run `name`, so that its study finds its runs finished; returns what the index
    says of it. What is there of an interrupted call is kept."""
    choose("published run", name, published_names(records))
    rest = read_rest(records / f"{name}{REST}")
    table = read_margins(records / f"{name}{TABLE}", rest["records"])
    claim_folder(out, name, rest["config"])
    for path, text in rest["files"].items():
        if not (file := path_inside(out, path)).exists():
            write_text(file, text)
    rows = {cell: its for cell, its in table.groupby("id", sort=False)}
    for cell, result in sorted(rest["results"].items(), key=data_of_result):  # runs on one split follow each other
        folder = path_inside(out, f"cells/{cell}")
        if not (folder / RESULT).exists():
            restore_cell(folder, result, rows.get(cell), rest.get("tests", {}), store)
    return rest["about"]


def data_of_result(item: tuple[str, Mapping[str, Any]]) -> str:
    """Return what decides the split of a run, given with its name, as JSON."""
    return json.dumps(item[1].get("settings", {}).get("data"), sort_keys=True)


def claim_folder(out: Path, name: str, config: Mapping[str, Any]) -> None:
    """Write the configuration into a new folder; raise for a folder with anything else."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose a new folder")
    if out.is_dir() and any(out.iterdir()):
        if not (out / CONFIG).exists() or read_record(out / CONFIG).get("id") != config["id"]:
            raise UserError(f"{out} has other files than those of {name}; choose a new folder")
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / LOCK).touch()  # as all folders of studies have
    write_record(out / CONFIG, dict(config), indent=1)


def restore_cell(
    folder: Path, result: dict[str, Any], rows: pd.DataFrame | None, kept: Mapping[str, str], store: Path
) -> None:
    """Write a run's predictions and, last, its result with their digest. `kept` are tests that no recipe makes."""
    if rows is not None:
        if text := kept.get(rows["tests"].iloc[0]):
            tests = read_frame(text, folder / FILE)
        else:
            settings = result["settings"]
            side = settings.get("towers", {}).get("resolution", TowerConfig.resolution)
            tests = tests_of(make_split(settings["data"], side, folder, store))
        if rows["tests"].iloc[0] != tests_digest(tests):
            raise UserError(
                f"run {folder.name} was tested on other scenes or captions than this program makes of its recipe; "
                f"check out the commit that the run recorded, {result['provenance'].get('commit')}"
            )
        write_csv(folder / FILE, PREDICTIONS, with_scores(tests, rows)[list(PREDICTIONS)].to_numpy().tolist())
        result[FILES][FILE] = file_digest(folder / FILE)
    if (folder / LOG).exists():
        result["provenance"][FILES] = {LOG: file_digest(folder / LOG)}
    write_record(folder / RESULT, result)


def make_split(data: Mapping[str, Any], side: int, folder: Path, store: Path) -> Path:
    """Return the split file that a run's settings describe, made if it is missing."""
    if "split_file" in data:
        return find_split_file(data["split_file"], folder).file
    recipe = read_recipe_scenes(data, side, folder).recipe
    return make_splits(SplitFolder(store, load_world(recipe.world), side), [recipe], usable_cores())[recipe]


@lru_cache(maxsize=1)
def tests_of(file: Path) -> pd.DataFrame:
    """Return the predictions of a split's tests without scores, as `evaluate` writes them. Where a record has several
    false captions, the one that the model preferred isn't known, and is empty."""
    split = read_split(file)
    train = split.subsets["train"]
    seen = seen_columns(split.vocabulary, familiar_records(train, range(len(train))))
    rows = [
        {"subset": name, "task": item.task, "scene": item.record, "animals": item.cluster}
        | {"caption": item.texts[0].text, "negative": item.texts[-1].text if len(item.texts) == item.true + 1 else ""}
        | {column: "" if count is None else str(count) for column, count in seen(item).items()}
        for name in sorted(split.subsets.keys() - {"train"})
        for item in SplitTests(SplitDataset(split, name, preload=False)).items
        if item.task != FOUR_WAY_ITEM
    ]
    return pd.DataFrame(rows, columns=[name for name in PREDICTIONS if name not in (*SCORES, *COUNTERFACTUAL)])


def with_scores(tests: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Add scores that have the margins in a run's rows. The false caption of an image has score 0."""
    found = {(row.subset, row.task): row.margins.split(SEPARATOR) for row in rows.itertuples()}
    whole = tests.assign(**dict.fromkeys((*SCORES, *COUNTERFACTUAL), ""))
    for (subset, task), part in tests.groupby(["subset", "task"], sort=False):
        margins = found.get((subset, task), [])
        orders = found.get((subset, FOUR_WAY), [""] * len(part)) if task == SWAP else [""] * len(part)
        if not len(margins) == len(orders) == len(part):
            raise Unreadable(
                f"run {rows['id'].iloc[0]} has {len(margins)} records of {subset}, {task}, not {len(part)}"
            )
        scores = [four_scores(float(m), order) for m, order in zip(margins, orders, strict=True)]
        whole.loc[part.index, [*SCORES, *COUNTERFACTUAL]] = scores
    return whole


def four_scores(margin: float, order: str) -> tuple[str, str, str, str]:
    """Return scores of a true and a false caption with this margin, and of both with the counterfactual image in this
    order of all four (`score_order`); the latter empty without an order."""
    ranks = list(map(int, order)) if order else [int(margin > 0), int(margin < 0)]
    step = margin / (ranks[0] - ranks[1]) if margin else 1.0
    scores = [f"{(rank - ranks[1]) * step:.9g}" for rank in ranks]
    return (*scores, *[""] * (4 - len(scores)))
