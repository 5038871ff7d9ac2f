"""The command on cards of frozen benchmarks."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from menagerie.envs.core.errors import UserError


@dataclass(frozen=True)
class Cards:
    """Verify cards of frozen benchmarks (exit status 1 if one is wrong), or make a leaderboard of verified cards."""

    what: tyro.conf.Positional[Literal["verify", "board"]]
    """verify: seal, benchmark, and numbers against the scores beside it. board: write a page."""
    cards: tyro.conf.Positional[tuple[Path, ...]]
    """The cards, .json."""
    out: Path | None = None
    """The page that `board` writes."""

    def run(self) -> bool:
        """Verify the cards, or write the page and print its path; returns whether a card is wrong."""
        if not self.cards:
            raise UserError(f"cards {self.what} needs a card: 'menagerie evaluate MODEL --splits binding-2' writes one")
        if (self.what == "board") != bool(self.out):
            raise UserError("--out names the page of `cards board`: give it with board, and only there")
        from menagerie.studies.scoring.cards import verify_card, write_board

        if self.out:
            write_board(self.cards, self.out)
            print(self.out)
            return False
        refused = False
        for path in self.cards:
            try:
                card = verify_card(path)
            except UserError as error:
                print(f"refused: {error}", file=sys.stderr)
                refused = True
                continue
            print(f"{path}: {card.model.name} on {card.benchmark['name']} verified")
        return refused
