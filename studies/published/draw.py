"""Draws the page of a published run from its restored folder: what docs keep of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.reading import read_text
from menagerie.studies.frame.command import changeable_options, study_of
from menagerie.studies.frame.page import DrawnParts, draw_parts
from menagerie.studies.frame.run import Running
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.ledger.claim_file import read_claims
from menagerie.studies.ledger.table import HEADER, PUBLISHED, VERDICT, ledger_row
from menagerie.studies.ledger.verdict import check_runs, judge_claim
from menagerie.studies.published.blocks import PAGE
from menagerie.studies.published.markdown import page_in_markdown
from menagerie.studies.runs.folder import run_folder


def kept_texts(name: str, about: Mapping[str, Any], out: Path, store: Path, figures: set[str]) -> dict[str, str]:
    """Return the files that docs keep of the published run `name`, restored in `out`: its page, accuracies, these
    figures, and the verdict if it tests a claim of the ledger."""
    study, drawn = draw_page(about["command"], out, store)
    origin = f"Made of published records. Command: `{about['command']}`, at commit {about['commit']}: {about['runs']} "
    taken = "" if about["minutes"] is None else f", {about['minutes']:g} minutes of a core"
    origin += f"runs, {about['seeds']} seeds{taken}. {about['machine']}."
    texts = {PAGE: page_in_markdown(study.title, origin, drawn), "results.csv": read_text(out / "results.csv")}
    if name.startswith(PUBLISHED):
        texts[VERDICT] = verdict_text(name.removeprefix(PUBLISHED), out)
    for figure in sorted(figures):
        if not (file := out / "figures" / f"{figure}.svg").exists():
            raise UserError(f"a page of docs shows the figure {figure} of {name}, which it doesn't have")
        texts[f"{figure}.svg"] = read_text(file)
    return texts


def verdict_text(claim: str, out: Path) -> str:
    """Judge the claim that runs in `out` test; returns its row of the ledger."""
    files = {file.name: file for file in read_claims(())}
    file = files[choose(f"claim after {PUBLISHED!r}", claim, files)]
    try:
        check_runs(file, out)
    except UserError as error:
        way_out = "restore the file, or run the claim again and add its runs"
        raise UserError(f"its runs are of another state of {file.path}; {way_out}") from error
    row = ledger_row(file, judge_claim(file.claim, out), out)._replace(folder=f"runs/ledger/{claim}")
    write_csv(out / VERDICT, HEADER, [row])
    return read_text(out / VERDICT)


def draw_page(command: str, out: Path, store: Path) -> tuple[AnyStudy, DrawnParts]:
    """Write the tables and parts of the page of the study that `command` names from the finished runs in `out`; returns
    study and parts. Raises if one of its runs isn't there; trains nothing."""
    study = study_of(command, out, store)
    with run_folder(out, study.as_recorded(), changeable_options(study), study.alone):
        running = Running(study.prepare(out), out)
        if waiting := running.waiting():
            number = f"{len(waiting)} of {len(running.arms())}"
            way_out = "restore it, let its command train them, and add it again"
            raise UserError(f"{number} runs of `{command}` have no records, first {waiting[0].name}; {way_out}")
        running.render(running.arms())
        records = running.records()
        running.study.tables(records)
        drawn = draw_parts(running.study, records)
        running.study.export(records)
        return running.study, drawn
