"""Draws the pages of published runs again from their records, and compares them with those that docs keep."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import scratch_folder, write_csv, write_text
from menagerie.envs.core.reading import read_text
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.frame.page import DrawnParts, draw_parts
from menagerie.studies.frame.run import Running
from menagerie.studies.frame.study import AnyStudy, Study
from menagerie.studies.ledger.claim_file import read_claims
from menagerie.studies.ledger.table import HEADER, VERDICT, ledger_row
from menagerie.studies.ledger.verdict import check_runs, judge_claim
from menagerie.studies.published.kept_page import PAGE, figures_shown, filled, page_in_markdown, pages_of_docs
from menagerie.studies.published.pack import published_names
from menagerie.studies.published.restore import restore_run
from menagerie.studies.runs.command_line import only_models, parse_study
from menagerie.studies.runs.folder import run_folder

LEDGER = "ledger"  # how runs that test a claim are called: ledger-CLAIM


def check_published(names: tuple[str, ...], records: Path, store: Path, write: bool = False) -> bool:
    """Draw the pages of these published runs (none: all) anew, and print what of the kept files and of the blocks in
    docs differs from them; returns whether anything does. With `write`, files and blocks are written instead."""
    if not (index := published_names(records)):
        raise UserError(f"{records} has no published run; `menagerie published add RUN NAME` adds one")
    measured = records.parent
    pages = [*pages_of_docs(records.parents[1], measured)]
    shown, differ = figures_shown(pages), False
    for name in names or index:
        figures = {figure for run, figure in shown if run == name}
        try:
            with scratch_folder() as folder:
                texts = kept_texts(restore_run(name, folder / name, records, store), folder / name, store, figures)
            files = {measured / name / file: text for file, text in texts.items()}
            wrong = bring_up_to_date(files, write)
            said = ", ".join([f"{path} {'is new' if write else 'differs'}" for path in wrong] or ["as it is kept"])
        except UserError as error:
            wrong, said, differ = [], str(error), True
        print(f"{name}: {said}", flush=True)
        differ |= bool(wrong) and not write
    wrong = bring_up_to_date({page: filled(page, measured) for page in pages}, write)
    for page in wrong:
        print(f"{page}: {'its blocks are new' if write else 'a block differs from what is kept'}")
    return differ or (bool(wrong) and not write)


def bring_up_to_date(texts: Mapping[Path, str], write: bool) -> list[Path]:
    """Return which files have other texts than these; with `write` they get them."""
    wrong = [path for path, text in texts.items() if not path.exists() or read_text(path) != text]
    for path in wrong if write else ():
        write_text(path, texts[path])
    return wrong


def kept_texts(about: Mapping[str, Any], out: Path, store: Path, figures: set[str]) -> dict[str, str]:
    """Return the files that docs keep of a restored run, by name: page, accuracies, these figures, and the verdict of a
    run that tests a claim of the ledger."""
    study, drawn = draw_page(about["command"], out, store)
    origin = f"Made of published records. Command: `{about['command']}`, at commit {about['commit']}: {about['runs']} "
    origin += f"runs, {about['seeds']} seeds, {about['minutes']:g} minutes of a core. {about['machine']}."
    texts = {PAGE: page_in_markdown(study.title, origin, drawn), "results.csv": read_text(out / "results.csv")}
    if file := next((file for file in read_claims(()) if f"{LEDGER}-{file.name}" == out.name), None):
        check_runs(file, out)
        row = ledger_row(file, judge_claim(file.claim, out), out)._replace(folder=f"runs/{LEDGER}/{file.name}")
        write_csv(out / VERDICT, HEADER, [row])
        texts[VERDICT] = read_text(out / VERDICT)
    for name in sorted(figures):
        if not (file := out / "figures" / f"{name}.svg").exists():
            raise UserError(f"docs show the figure {name} of {out.name}, which its page doesn't have")
        texts[f"{name}.svg"] = read_text(file)
    return texts


def draw_page(command: str, out: Path, store: Path) -> tuple[AnyStudy, DrawnParts]:
    """Write the tables and parts of the page of the study that `command` names from the finished runs in `out`; returns
    study and parts. Raises if one of its runs isn't there; trains nothing."""
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
        records = running.records()
        running.study.tables(records)
        drawn = draw_parts(running.study, records)
        running.study.export(records)
        return running.study, drawn
