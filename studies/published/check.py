"""Draws the pages of published runs again from their records, and compares their tables with those that are kept."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import scratch_folder
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.frame.run import Running
from menagerie.studies.frame.study import Study
from menagerie.studies.published.pack import published_names
from menagerie.studies.published.restore import restore_run
from menagerie.studies.runs.command_line import only_models, parse_study
from menagerie.studies.runs.folder import run_folder


def check_published(names: tuple[str, ...], records: Path, store: Path) -> bool:
    """Draw the pages of these published runs (none: all) anew, and print which tables differ from the kept ones;
    returns whether any does."""
    if not (index := published_names(records)):
        raise UserError(f"{records} has no published run; `menagerie published add RUN NAME` adds one")
    differ = False
    for name in names or index:
        try:
            with scratch_folder() as folder:
                about = restore_run(name, out := folder / name, records, store)
                draw_page(about["command"], out, store)
                tied = about["tables"]
                wrong = [*differing_tables(tied, out, records.parent)] if tied else ["no kept table is tied to it"]
                right = f"{about['runs']} runs, {len(tied.split())} tables as they are kept"
        except UserError as error:
            wrong = [str(error)]
        print(f"{name}: {'; '.join(wrong) or right}", flush=True)
        differ |= bool(wrong)
    return differ


def draw_page(command: str, out: Path, store: Path) -> None:
    """Write tables and page of the study that `command` names from the finished runs in `out`. Raises if one of its
    runs isn't there; trains nothing."""
    words = shlex.split(command)
    name = "".join(words[1:2])
    known = [path.stem.replace("_", "-") for path in Path(__file__).parents[1].glob("[!_]*.py")]
    presets = import_module(f"menagerie.studies.{choose('study', name, known).replace('-', '_')}").PRESETS
    before, sys.argv[:] = sys.argv[:], [f"menagerie {name}", *words[2:], "--out", str(out), "--store", str(store)]
    try:
        _, study = parse_study(presets, "laptop" if "laptop" in presets else next(iter(presets)), "")
    except SystemExit as error:
        raise UserError(f"`{command}` isn't a command of this program any more, see above") from error
    finally:
        sys.argv[:] = before
    study = study.fill_in()
    if isinstance(study, Study):
        study = replace(study, scorers=only_models(study.scorers, study.models))
    with run_folder(out, study.as_recorded(), changeable_options(study), study.alone):
        running = Running(study.prepare(out), out)
        if waiting := running.waiting():
            number = f"{len(waiting)} of {len(running.arms())}"
            raise UserError(f"{number} runs of `{command}` have no records, first {waiting[0].name}")
        running.render(running.arms())
        running.publish()


def differing_tables(tables: str, out: Path, measured: Path) -> Iterator[str]:
    """Yield which tables of a page differ from the copies that the index names: "results.csv=NAME.csv ..."."""
    for pair in tables.split():
        made, _, kept = pair.partition("=")
        if not (out / made).exists() or not (measured / kept).exists():
            yield f"{made} or {measured / kept} isn't there"
        elif (out / made).read_bytes() != (measured / kept).read_bytes():
            yield f"{made} differs from {measured / kept}"
