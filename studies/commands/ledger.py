"""The command that tests claims of papers: it runs what is missing, and judges."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from menagerie.envs.core.errors import Incomplete, UserError
from menagerie.envs.core.files import write_csv, write_text
from menagerie.envs.core.provenance import commit_of
from menagerie.envs.core.validation import SOME_PROCESSES
from menagerie.studies.ledger.claim_file import ClaimFile, read_claims
from menagerie.studies.ledger.table import HEADER, kept_rows, ledger_page, ledger_row
from menagerie.studies.ledger.verdict import Judgement, check_runs, judge_claim
from menagerie.studies.runs.folder import CLAIM


@dataclass(frozen=True)
class Ledger:
    """Test claims of papers. Each is a file that says what to run and which numbers decide; it is committed before its
    runs, which record its digest (docs/ledger.md). Runs what is missing, then judges; an interrupted command goes on.
    Writes ledger.csv and ledger.md."""

    files: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Claims as TOML files; without any, those that ship."""
    out: Path = Path("runs/ledger")
    """Folder of the ledger, with a folder for each claim's study."""
    store: Path = Path("store")
    """Folder of atlases and split files, which all studies share."""
    workers: Annotated[int, SOME_PROCESSES] = 0
    """Runs at once; 0 takes one per core."""
    dry_run: bool = False
    """Only report what each study would render and train, and how long it takes."""

    def run(self) -> None:
        from menagerie.studies.ledger.planned import check_planned, planned_arms  # not needed for `--help`

        claims = read_claims(self.files)
        found = {file.name: Judgement("not run") for file in claims}
        problems: list[UserError] = []
        for file in claims:
            print(f"{file.name}: {file.claim.claim}", flush=True)
            try:
                check_runs(file, self.out / file.name)
                check_planned(file, planned_arms(shlex.join(["menagerie", *self.command(file)]), self.out, self.store))
                run_study_of(file, self.command(file))
                if not self.dry_run:
                    found[file.name] = judge_claim(file.claim, self.out / file.name)
            except UserError as error:
                problems.append(error.at(file.path))
                found[file.name] = Judgement("not judged", str(error))
            if not self.dry_run:
                self.write(claims, found)
                print(f"{file.name}: " + "; ".join(filter(None, found[file.name])), flush=True)
        if not self.dry_run:
            print(self.out / "ledger.md")
        if problems:
            raise Incomplete("; ".join(map(str, problems)))

    def command(self, file: ClaimFile) -> list[str]:
        """Return the arguments of the study's command."""
        seeds = ["--first-seed", str(file.claim.seeds.first), "--seeds", str(file.claim.seeds.number)]
        place = ["--out", str(self.out / file.name), "--store", str(self.store), "--workers", str(self.workers)]
        return [file.claim.study, *file.claim.options, *seeds, *place, *["--dry-run"] * self.dry_run]

    def write(self, claims: Sequence[ClaimFile], found: dict[str, Judgement]) -> None:
        """Write ledger.csv and ledger.md. Rows of other claims stay, and those of claims that this command hasn't
        reached yet, unless their file has changed."""
        rows = {row.claim: row for row in kept_rows(self.out / "ledger.csv")}
        for file in claims:
            row, kept = ledger_row(file, found[file.name], self.out / file.name), rows.get(file.name)
            if not kept or kept.digest != row.digest or row.outcome != "not run":
                rows[file.name] = row
        write_csv(self.out / "ledger.csv", HEADER, rows.values())
        write_text(self.out / "ledger.md", ledger_page(rows.values()))


def run_study_of(file: ClaimFile, arguments: Sequence[str]) -> None:
    """Run a claim's study, whose runs record the claim's digest and the commit of its file. Raises if it fails."""
    noted = " ".join(filter(None, (file.digest, commit_of(file.path))))
    command = [sys.executable, "-m", "menagerie", *arguments]
    # In a group of its own: Ctrl-C comes to this process alone, which then stops the study once.
    study = subprocess.Popen(command, env=os.environ | {CLAIM: noted}, process_group=0)
    try:
        status = study.wait()
    except BaseException:
        study.terminate()
        study.wait()
        raise
    if status:
        raise UserError(f"its study ended with status {status}, see above; it isn't judged, what it finished is kept")
