"""What the audit of images and masks claims, and the rows at which a claim fails."""

from dataclasses import dataclass, field

from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.shown import ShownRows

CLAIMS = {
    "read": "every image and mask can be read",
    "digest": "every image and mask is the one that was rendered",
    "ids": "every mask holds its scene's things",
    "places": "things stand as their places and relations say",
    "alike": "no two rows have the same picture",
    "colors": "things have the colours of their textures",
    "again": "images and masks are the same when rendered again",
}


@dataclass
class Problems:
    """The rows at which a check fails."""

    shown: ShownRows
    first: str = ""
    rows: set[int] = field(default_factory=set)

    def add(self, row: int, what: str) -> None:
        """A row at which the check fails, and how."""
        if not self.rows:
            self.first = f"{self.shown.where(row)}: {what}; {self.shown.remedy(row)}"
        self.rows.add(row)

    def finding(self, name: str, detail: str) -> Finding:
        """The check as a finding; `detail` is for one that holds."""
        return Finding(
            CLAIMS[name], not self.rows, f"{len(self.rows)} rows, first {self.first}" if self.rows else detail
        )
