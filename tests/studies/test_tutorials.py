"""docs/tutorials: their blocks run as they stand, one page after the other in one folder, and print what stands there,
numbers aside."""

import os
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.command import ROOT, as_before, paste

FOLDER = ROOT / "docs" / "tutorials"
PAGES = re.findall(r"^\d\. \[.*?\]\((.*?)\.md\)", (FOLDER / "README.md").read_text(), re.MULTILINE)
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:(?:(?!^```).)*?^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder in which pages are read, and those that were; a page goes on with the runs of those before."""
    folder = tmp_path_factory.mktemp("tutorials")
    return folder, []


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_runs_as_it_stands(done, page):
    folder, read = done
    for name in PAGES[len(read) : PAGES.index(page) + 1]:
        follow(folder, name)
        read.append(name)
    assert page in read


def follow(folder: Path, page: str) -> None:
    """Run the blocks of a page in a folder, and compare what they print."""
    blocks = BLOCK.findall((FOLDER / f"{page}.md").read_text())
    assert blocks
    for language, code, expected in blocks:
        printed = paste(code, folder) if language == "sh" else script(folder, code)
        said = {blank(line) for line in printed.splitlines()}
        assert all(any(blank(line) in other for other in said) for line in expected.splitlines()), (code, printed)


def script(folder: Path, code: str) -> str:
    """What a block of Python prints."""
    with as_before(), redirect_stdout(StringIO()) as out:
        os.chdir(folder)
        exec(compile(code, "docs/tutorials", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def blank(line: str) -> str:
    return " ".join(NUMBER.sub("#", line).split())
