"""Where the runs of a folder were made, as they recorded it, and by what the page is drawn that says so."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.records import read_record
from menagerie.studies.runs.folder import CONFIG, RunConfig, provenance
from menagerie.studies.runs.result_file import read_result

# Of what a run records: its command and start are those of the study's first, the rest may differ from run to run.
OF_STUDY, OF_RUNS = ("command", "started"), ("commit", "processor", "cores", "python", "versions")


def where_it_ran(out: Path, results: Iterable[Mapping[str, Any]] | None = None) -> dict[str, str]:
    """What the folder of a study recorded of itself and of its finished runs, and last of all who draws this page.

    `results` are those of its runs, where they have been read. A study that is drawn anew keeps its start, commit and
    machine. Nothing is said of what wasn't recorded.
    """
    file, now = out / CONFIG, provenance()
    study: Mapping[str, Any] = read_record(file, RunConfig) if file.exists() else {}
    runs = [its["provenance"] for its in (results_in(out) if results is None else results) if its.get("provenance")]
    known = {name: study[name] for name in OF_STUDY if name in study}
    known |= {name: text for name in OF_RUNS if (text := together(its.get(name) for its in runs or [study]))}
    drawn = f"{now['started']}, commit {now['commit'] or 'unknown'}, {now['command']}"
    return {name: str(value) for name, value in known.items()} | {"this page was drawn": drawn}


def results_in(out: Path) -> Iterable[dict[str, Any]]:
    """The results of all finished cells or pieces of a study's folder."""
    folders = sorted(folder for kind in ("cells", "pieces") for folder in (out / kind).glob("*"))
    return filter(None, map(read_result, folders))


def together(values: Iterable[Any]) -> str:
    """What runs recorded as one text: of different values each with the number of its runs."""
    counted = Counter(str(value) for value in values if value not in (None, ""))
    if len(counted) < 2:
        return next(iter(counted), "")
    return "; ".join(f"{value} ({number} run{'s' * (number > 1)})" for value, number in counted.most_common())
