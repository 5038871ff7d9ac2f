"""Damages thousands of files and prints what became of them, by kind.

    python -m tests.faults.survey 2000 [KIND ...]

Takes about 0.1 s a file; ends with status 1 if one of them gave a traceback, hung, or was silently read as another.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from tests.faults.damage import STEPS, Damage, faults_of
from tests.faults.file_kinds import FileKind, is_bad, made
from tests.faults.our_files import OURS
from tests.faults.their_files import THEIRS
from tests.helpers.judge import BAD, ERROR, RIGHT

COLUMNS = (ERROR, RIGHT, *BAD)


def survey(kind: FileKind, count: int, folder: Path) -> Counter[str]:
    """What became of `count` damaged files of a kind; prints what shouldn't have."""
    intact, found = made(kind, folder / "made"), Counter()
    rng = np.random.default_rng(len(kind.name))
    faults = rng.permutation(faults_of(intact.file)).tolist()
    while found.total() < count:
        damage = Damage(faults[found.total() % len(faults)], int(rng.integers(STEPS)), int(rng.integers(STEPS)))
        verdict = intact.judge(damage, folder / "work")
        if verdict:
            found[verdict.kind] += 1
            if is_bad(verdict):
                print(f"!! {kind.name}: {damage}: {verdict.kind}: …{verdict.detail[-600:]}", flush=True)
    return found


def main() -> int:
    """All kinds, or those that are named."""
    torch.set_num_threads(1)  # others would be lost in processes that are forked
    total, names = int(sys.argv[1]), sys.argv[2:]
    kinds = [kind for kind in (*OURS, *THEIRS) if not names or kind.name in names]
    every: Counter[str] = Counter()
    print(f"{'kind':<28}" + "".join(f"{column:>16}" for column in COLUMNS), flush=True)
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            found = survey(kind, -(-total // len(kinds)), Path(folder))
        every += found
        print(f"{kind.name:<28}" + "".join(f"{found[column]:>16}" for column in COLUMNS), flush=True)
    print(f"{'all':<28}" + "".join(f"{every[column]:>16}" for column in COLUMNS))
    return int(any(every[kind] for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
