"""Files that are added to the package: a mistake in one is a message that names the file and the field."""

import os
import sys

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import OWN_MODULES, own_module


@pytest.mark.parametrize(
    "line", ["1 / 0", "raise SystemExit", "from menagerie.envs.core.errors import choose; choose('a', 'b', ['c'])"]
)
def test_failing_file_leaves_no_module(tmp_path, line):
    mine = tmp_path / "fails.py"
    mine.write_text(f"{line}\n")
    with pytest.raises(UserError):
        own_module(mine)
    assert not [name for name in sys.modules if name.startswith(f"{OWN_MODULES}fails")]


def test_edit_within_a_second_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mine = tmp_path / "quick.py"
    for value in (1, 2):
        mine.write_text(f"VALUE = {value}\n")
        os.utime(mine, ns=(10**18, 10**18 + value))
        read = own_module(mine).VALUE
        assert read == value
