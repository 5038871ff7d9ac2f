"""The command `menagerie published`, with its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from menagerie.envs.core.errors import UserError


@dataclass(frozen=True)
class Published:
    """Keep finished runs as small files of records, make their folders again without training, and check that what docs
    say of them comes out of the records (exit status 1 if something doesn't)."""

    what: tyro.conf.Positional[Literal["check", "add", "write", "restore"]] = "check"
    """check [NAME ...]: pages again. add RUN NAME: a run's records. write [NAME ...]: pages, and what docs repeat of
    them. restore NAME OUT: a folder again."""
    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Names of published runs, or the folder and the name that stand behind `add` and `restore`."""
    measured: Path = Path("docs/measured")
    """Folder of what docs keep of published runs; the records are in `records` there."""
    store: Path = Path("store")
    """Folder of atlases and split files, which are made again where they are missing."""
    command: str = ""
    """add: the command that draws the page of all these runs; default: the latest that a run recorded."""

    def run(self) -> bool:
        if self.what in ("check", "write"):
            return self.check()
        if len(self.names) != 2:
            raise UserError("write `published add RUN NAME`, or `published restore NAME OUT`")
        from menagerie.studies.published.pack import RECORDS, add_run
        from menagerie.studies.published.restore import restore_run

        (first, second), records = self.names, self.measured / RECORDS
        if self.what == "add":
            about = add_run(Path(first), second, records, self.command)
            print(f"{about['runs']} runs are in {records} as {second}; the page is that of {about['command']}")
            return False
        about = restore_run(first, Path(second), records, self.store)
        print(f"{about['runs']} runs are in {second}; this continues them: {about['command']} --out {second}")
        return False

    def check(self) -> bool:
        from menagerie.studies.frame.run import DRAWING

        try:
            from menagerie.studies.published.check import check_published
        except ModuleNotFoundError as error:
            if error.name not in DRAWING:
                raise
            raise UserError(f"pages can't be drawn, because {error.name} isn't installed here") from error
        return check_published(self.names, self.measured, self.store, self.what == "write")
