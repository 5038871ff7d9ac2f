"""Proves from the files that no photograph of a test is trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import sha256
from menagerie.envs.custom.world_file import read_table
from menagerie.studies.photographs.trainings import SYNTHETIC, Material, all_trainings
from menagerie.studies.photographs.worlds import world_name, worlds_tested


class Shared(NamedTuple):
    """How many photographs a world of training and one of a test have, and how many of them are in both."""

    training: str
    trained: int
    test: str
    tested: int
    both: int


def shared_photographs(config: Any, material: Material, files: Mapping[str, Path]) -> list[Shared]:
    """Each world of photographs that is trained on beside each that its runs are tested on, as the files have them."""
    rows = []
    for training in all_trainings(config, material):
        if training.world == SYNTHETIC:
            continue
        for test in worlds_tested(training):
            if test not in files:
                continue
            trained, tested = cutouts_in(files[world_name(training)]), cutouts_in(files[test])
            rows.append(
                Shared(world_name(training), len(trained), test, len(tested), len(trained.keys() & tested.keys()))
            )
    return list(dict.fromkeys(rows))


def check_apart(config: Any, material: Material, files: Mapping[str, Path]) -> None:
    """Raise for a photograph that is both trained on and tested, whatever it is called."""
    for row in shared_photographs(config, material, files):
        if row.both:
            trained, tested = cutouts_in(files[row.training]), cutouts_in(files[row.test])
            found = min(trained.keys() & tested.keys())
            raise UserError(
                f"{trained[found]} of training world {row.training!r} and {tested[found]} of test world {row.test!r} "
                "are the same photograph (SHA-256); remove one of them from the folder of --photos or --cutouts"
            )


def cutouts_in(path: Path) -> dict[bytes, Path]:
    """The photographs that a world file names, by SHA-256."""
    entries = read_table(path).animal.values()
    files = [path.parent / its for entry in entries for its in entry.get("cutouts", ())]
    return {sha256(file): file for file in files}
