"""docs/tutorials: their blocks run as they stand, one page after the other in one folder, and print what stands there,
numbers aside."""

import os
import re
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.command import ROOT, as_before, run_here

FOLDER = ROOT / "docs" / "tutorials"
PAGES = re.findall(r"^\d\. \[.*?\]\((.*?)\.md\)", (FOLDER / "README.md").read_text(), re.MULTILINE)
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:(?:(?!^```).)*?^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END\n", re.MULTILINE | re.DOTALL)
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
        printed = commands(folder, code) if language == "sh" else script(folder, code)
        said = {blank(line) for line in printed.splitlines()}
        assert all(any(blank(line) in other for other in said) for line in expected.splitlines()), (code, printed)


def commands(folder: Path, code: str) -> str:
    """Write the files of a block of commands, and run the commands."""
    for name, text in FILE.findall(code):
        (folder / name).write_text(text)
    printed = ""
    for line in FILE.sub("", code).replace("\\\n", "").splitlines():
        program, *words = shlex.split(line, comments=True)
        words = [found for word in words for found in (expanded(folder, word) if "*" in word else [word])]
        start = {"menagerie": ["-m", "menagerie"], "python": [str(ROOT / words[0])]}[program]
        result = run_here([sys.executable, *start, *words[program == "python" :]], folder)
        assert result.returncode == 0, (line, result.stdout, result.stderr)
        printed += result.stdout
    return printed


def expanded(folder: Path, word: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(word))


def script(folder: Path, code: str) -> str:
    """What a block of Python prints."""
    with as_before(), redirect_stdout(StringIO()) as out:
        os.chdir(folder)
        exec(compile(code, "docs/tutorials", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def blank(line: str) -> str:
    return " ".join(NUMBER.sub("#", line).split())
