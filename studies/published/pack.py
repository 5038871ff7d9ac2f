"""Packs the finished runs of a study into two small files, from which its folder is made again without training.

`NAME.csv.xz` has a row for each run, test and task, with the margins of all records, the true caption's score minus the
false one's: of swaps four significant digits, of other tasks the sign, of "four-way" the order of four scores.
`NAME.json.xz` has the rest: configuration, results, measured rows, and curves of training as pages draw them.
"""

import argparse
import io
import lzma
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import whole_file, write_text
from menagerie.envs.core.identity import digest
from menagerie.envs.core.reading import Unreadable, read_bytes, read_text
from menagerie.envs.core.records import read_record, seal, unseal
from menagerie.generators.splits.facts import SEEN
from menagerie.models.cell_results import CONFIG as CHECKPOINT_CONFIG
from menagerie.models.cell_results import FILES
from menagerie.studies.analysis.errors import COUNTERFACTUAL, SCORES
from menagerie.studies.frame.arm import as_column
from menagerie.studies.frame.charts import POINTS
from menagerie.studies.frame.measure import FOLDER as MEASURES
from menagerie.studies.runs.cell import DIVERGED
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.folder import CONFIG, join_values
from menagerie.studies.runs.results import checked_file, read_result, read_results
from menagerie.studies.runs.training_log import COLUMNS as LOGGED
from menagerie.studies.runs.training_log import FILE as LOG
from menagerie.studies.runs.training_log import read_training

RECORDS = "records"  # folder of records in docs/measured
INDEX, TABLE, REST = "index.csv", ".csv.xz", ".json.xz"
SWAP, FOUR_WAY = "swap", "four-way"
SPLIT_COLUMNS = ("subset", "task", "scene", "animals", "caption", "negative", *SEEN)  # what the split decides
DIGESTED_COLUMNS = ("tests", "id", "subset", "task", "animals", "margins")  # columns of the table
SEPARATOR = "|"
JOURNAL = "journal.log"  # trials of a search
LARGEST = 1 << 28  # bytes of an unpacked file
Packed = dict[str, Any]


def add_run(run: Path, name: str, records: Path, command: str = "") -> Packed:
    """Write the finished runs in a study's folder as `name` into the folder `records`, and into its index. Files
    of that name are replaced if they have no other runs. Returns what the index says of them.

    `command` draws the page of all these runs; empty takes the latest one that a run recorded."""
    if not re.fullmatch(r"\w[\w-]*", name) or name == RECORDS:
        raise UserError(f"a name is of letters, digits, '-' and '_', and not {RECORDS!r}; got {name!r}")
    rows, rest = pack_run(run)
    table, former = records / f"{name}{TABLE}", records / f"{name}{REST}"
    if former.exists() and (lost := read_rest(former)["results"].keys() - rest["results"].keys()):
        way_out = f"`menagerie published restore {name} OUT` puts them into a new folder; continue that one"
        raise UserError(f"{former} has {len(lost)} runs that {run} lacks; {way_out}")
    about = describe_run(rest["results"].values()) | ({"command": command} if command else {})
    columns = list(dict.fromkeys(column for row in rows for column in row)) or [*DIGESTED_COLUMNS]
    frame = pd.DataFrame(rows, columns=columns).fillna("").astype(str)
    frame.loc[frame.duplicated(["tests", "subset", "task"]), "animals"] = ""  # the same for all runs on a split
    write_packed(table, frame.to_csv(index=False, lineterminator="\n"))
    write_packed(former, seal(rest | {"about": about, "records": content_digest(frame)}))
    write_text(records / INDEX, index_text(records))
    return about


def pack_run(run: Path) -> tuple[list[dict[str, str]], Packed]:
    """Return the rows of the table, and everything else."""
    labels = {result["id"]: result.get("labels", {}) for result in reversed(read_results(run))}
    folders = [
        folder for folder in sorted((run / "cells").glob("*")) if (folder / DIVERGED).exists() or read_result(folder)
    ]
    if not folders:
        raise UserError(f"{run} has no finished training run; scores of trained models have cards (docs/benchmarks.md)")
    rows: list[dict[str, str]] = []
    rest: Packed = {"config": plain_config(run), "results": {}, "files": {}}
    tests: dict[str, pd.DataFrame] = {}
    for folder in folders:
        if result := read_result(folder):
            rest["results"][folder.name] = plain_result(result)
            if (folder / FILE).exists():
                frame = read_frame(read_text(checked_file(folder, FILE)), folder / FILE)
                rows += record_rows(folder, result, labels.get(folder.name, {}), frame)
                if not is_of_split(result):
                    keep_tests(tests, frame)
            if start := result.get("carried", {}).get("from"):
                rest["files"] |= dict(kept_weights(run, Path(start)))
        rest["files"] |= dict(kept_files(run, folder))
    rest |= {"tests": {name: its.to_csv(index=False) for name, its in tests.items()}} if tests else {}
    if not rest["results"]:
        raise UserError(f"{run} has only runs that diverged, which have no records")
    if (run / JOURNAL).exists():
        rest["files"][JOURNAL] = read_text(run / JOURNAL)
    return rows, rest


def is_of_split(result: Mapping[str, Any]) -> bool:
    """Whether a run's tests are of the split that it trained on, which its settings make again."""
    data = result["settings"]["data"]
    return bool(data.keys() & {"split", "split_file"}) and "tests" not in data


def keep_tests(tests: dict[str, pd.DataFrame], predictions: pd.DataFrame) -> None:
    """Add the tests of a run's predictions to `tests`. A false caption that not all of their runs have is emptied: it
    is the one of several that the model preferred."""
    its, name = predictions.reindex(columns=list(SPLIT_COLUMNS)), tests_digest(predictions)
    same = tests.setdefault(name, its)["negative"] == its["negative"]
    tests[name] = its.assign(negative=its["negative"].where(same, ""))


def record_rows(
    folder: Path, result: Mapping[str, Any], labels: Mapping[str, Any], frame: pd.DataFrame
) -> Iterator[dict[str, str]]:
    """Yield a row for each test and task of a run's predictions: its labels, the identity of all its tests, the
    margins."""
    place = {"tests": tests_digest(frame), "id": folder.name, "model": result["model"], "seed": result["seed"]}
    place |= {name: as_column(value) for name, value in labels.items()}
    scores = frame[[*SCORES, *COUNTERFACTUAL]].replace("", "nan").astype(float)
    for (subset, task), part in frame.groupby(["subset", "task"], sort=False):
        its = scores.loc[part.index].to_numpy()
        row = place | {"subset": subset, "animals": SEPARATOR.join(part["animals"])}
        yield row | {"task": task, "margins": join_margins(its[:, 0] - its[:, 1], 4 if task == SWAP else 0)}
        if task == SWAP and not np.isnan(its).all(0)[-1]:
            yield row | {"task": FOUR_WAY, "margins": SEPARATOR.join(map(score_order, its))}


def join_margins(margins: Float64[np.ndarray, " n"], digits: int) -> str:
    """Write margins with so many significant digits, which keep their sign, or with 0 digits their signs alone."""
    return SEPARATOR.join(f"{m:.{digits}g}" if digits else f"{np.sign(m):.0f}" for m in margins)


def score_order(scores: Float64[np.ndarray, "4"]) -> str:
    """Return the ranks of the four scores, lowest 0, equal ones alike: "2013"; empty without a counterfactual image."""
    return "" if np.isnan(scores).any() else "".join(map(str, np.unique(scores, return_inverse=True)[1]))


def kept_files(run: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files beside a run's result that a page reads."""
    paths = [folder / DIVERGED, *sorted((folder / MEASURES).glob("*.jsonl"))]
    yield from ((path.relative_to(run).as_posix(), read_text(path)) for path in paths if path.exists())
    if log := read_training(folder):
        yield (folder / LOG).relative_to(run).as_posix(), thin_curve(pd.DataFrame(log))


def kept_weights(run: Path, checkpoint: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of the file that identifies weights with which another run of the study began."""
    if (file := run.joinpath(*checkpoint.parts[-3:], CHECKPOINT_CONFIG)).exists():
        yield file.relative_to(run).as_posix(), read_text(file)


def thin_curve(log: pd.DataFrame) -> str:
    """Write a training log with a row for each point of a page's curves, the mean of neighbouring steps. Validation
    keeps its step."""
    blocks = np.arange(len(log)) // max(1, len(log) // POINTS)
    points, evaluated = log.groupby(blocks).mean(), log["step"].where(log["validation"].notna()).groupby(blocks).max()
    points["step"] = evaluated.fillna(points["step"]).map("{:.6g}".format)
    return points[list(LOGGED)].to_csv(index=False, float_format="%.4g", lineterminator="\n")


def plain_result(result: Mapping[str, Any]) -> Packed:
    """Return a result without places on this machine, and without the digests of files that are made again."""
    plain = {name: value for name, value in result.items() if name != FILES}
    if "carried" in plain:
        plain["carried"] = plain["carried"] | {"from": ""}
    origin = {name: value for name, value in result["provenance"].items() if name != FILES}
    files = {name: digest for name, digest in result.get(FILES, {}).items() if name != FILE}
    origin |= {"command": plain_command(origin["command"])}
    return plain | {"provenance": origin, FILES: files}


def plain_config(run: Path) -> Packed:
    """Return a folder's configuration without its place."""
    record = read_record(run / CONFIG)
    options = record["config"] | {"out": None, "store": "store"}
    return record | {"config": options, "command": plain_command(record["command"])}


def plain_command(recorded: str) -> str:
    """Return "menagerie STUDY OPTIONS" for a recorded command, without the options that say where it ran."""
    _, script, *given = map(str, shlex.split(recorded))
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--out", "--store", "--workers"):
        parser.add_argument(option)
    options = parser.parse_known_args(given)[1]
    return shlex.join(["menagerie", Path(script).stem.replace("_", "-"), *options])


def describe_run(results: Collection[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row of the index. Minutes are None of runs that don't record their time, such as fits."""
    taken = [result["seconds"] for result in results if "seconds" in result]
    origins = sorted((result["provenance"] for result in results), key=itemgetter("started"))
    return {
        "command": origins[-1]["command"],
        "commit": join_values(its["commit"] for its in origins),
        "machine": join_values(its["processor"] for its in origins),
        "minutes": round(sum(taken) / 60, 1) if taken else None,
        "versions": join_values(", ".join(map(" ".join, its["versions"].items())) for its in origins),
        "runs": len(results),
        "seeds": len({result["seed"] for result in results}),
    }


def index_text(records: Path) -> str:
    """Return the index of a folder of records: a row for each run."""
    rows = [{"name": its} | read_rest(records / f"{its}{REST}")["about"] for its in published_names(records)]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def published_names(records: Path) -> list[str]:
    return [path.name.removesuffix(REST) for path in sorted(records.glob(f"*{REST}"))]


def read_frame(text: str, path: Path) -> pd.DataFrame:
    """Read a CSV table of texts."""
    try:
        return pd.read_csv(io.StringIO(text, newline=""), dtype=str, keep_default_na=False)
    except ValueError as error:
        raise UserError(f"{path} is no CSV table ({error}); take it from the repository again") from error


def tests_digest(predictions: pd.DataFrame) -> str:
    """Return a digest of everything in predictions that the split decides; false captions are those of swaps, which
    have one each."""
    its = predictions.reindex(columns=list(SPLIT_COLUMNS), fill_value="")
    return digest(its.assign(negative=its["negative"].where(its["task"] == SWAP, "")).to_csv(index=False))


def content_digest(table: pd.DataFrame) -> str:
    """Return a digest of all margins and of whose they are. Columns of labels may be renamed."""
    return digest(table[list(DIGESTED_COLUMNS)].to_csv(index=False))


def write_packed(path: Path, text: str) -> None:
    """Write a text as .xz, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


class Rest(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `NAME.json.xz`."""

    about: dict[str, Any]
    config: dict[str, Any]
    results: dict[str, dict[str, Any]]
    files: dict[str, str]
    records: str
    tests: dict[str, str] = {}
    """Tests that no recipe makes again, such as those on photographs, by their digest."""


def read_rest(path: Path) -> dict[str, Any]:
    """Read `NAME.json.xz`; raises `Unreadable` if it was changed since it was written."""
    return unseal(read_packed(path), path, shape=Rest)


def read_packed(path: Path) -> str:
    """Read the text of an .xz file; raises `Unreadable` if it is damaged or far too large."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        text = unpacker.decompress(read_bytes(path), LARGEST)
        if not unpacker.eof or unpacker.unused_data:
            raise Unreadable(f"{path} isn't whole, or has more than {LARGEST >> 20} MB")
        return text.decode()
    except (lzma.LZMAError, UnicodeError) as error:
        raise Unreadable(f"{path} is damaged ({error}); take it from the repository again") from error
