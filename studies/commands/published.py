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
    """What the words after it name."""
    records: Path = Path("docs/measured/records")
    """Folder of the records and their index; pages are kept in folders beside it."""
    store: Path = Path("store")
    """Folder of atlases and split files, which are made again where they are missing."""
    command: str = ""
    """add: the command that draws the page of all these runs; default: the latest that a run recorded."""

    def run(self) -> bool:
        if self.what in ("check", "write"):
            from menagerie.studies.published.check import check_published

            return check_published(self.names, self.records, self.store, self.what == "write")
        if len(self.names) != 2:
            raise UserError("write `published add RUN NAME`, or `published restore NAME OUT`")
        first, second = self.names
        if self.what == "add":
            from menagerie.studies.published.pack import add_run

            print(add_run(Path(first), second, self.records, self.command))
            return False
        from menagerie.studies.published.restore import restore_run

        about = restore_run(first, Path(second), self.records, self.store)
        print(f"{about['runs']} runs are in {second}; this continues them: {about['command']} --out {second}")
        return False
