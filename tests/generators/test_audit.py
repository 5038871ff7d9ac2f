"""The audit's command."""

import re
import shutil
import sys
from pathlib import Path

from menagerie.generators.storage.split_file import read_split
from tests.command import run_here
from tests.helpers.planting import contents_of, light_file, with_contents


def leak(path: Path) -> None:
    """Put a scene of a test into train."""
    split = read_split(path)
    leaked = [*contents_of(split, "train"), contents_of(split, "unseen_pairs")[0]]
    light_file(path.parent, split, with_contents(split, "train", leaked))


def run(*arguments):
    return run_here([sys.executable, "-m", "menagerie", "audit", *map(str, arguments)], Path.cwd())


def test_one_bad_file_keeps_no_other_from_being_audited(copied, tmp_path):
    """Each has its findings, and the exit status is 1; of a single file that can't be read it is 2."""
    missing, sound = tmp_path / "none.h5", copied.with_name("sound.h5")
    shutil.copy(copied, sound)
    leak(copied)
    done, alone = run(missing, copied, sound), run(missing)
    assert (done.returncode, alone.returncode) == (1, 2)
    assert done.stderr == alone.stderr
    assert alone.stderr.startswith("error: there is no file")
    assert len(alone.stderr.splitlines()) == 1
    first, second = re.findall(r"checks hold, (\d+) fail", done.stdout)
    assert int(first) > 0 == int(second)
