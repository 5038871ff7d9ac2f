"""Wrong command lines, and the files that they name. Each line of `command_lines.txt` is an entry:

    COMMAND LINE :: WORDS | WORDS

The message has all of these words: what is wrong, the value, and the way out. `@LONG` stands for a hold-out rule of
100 000 terms.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.command import ROOT

TABLE = Path(__file__).with_suffix(".txt")
LONG = " & ".join(["texture=red"] * 100_000)
FRAME = re.compile(r"([\s│╭╰╮╯─]|-{4,})+")  # around messages of tyro

# Files by name: neither recipes nor worlds, then worlds, then recipes.
FILES = {
    "text.toml": "this is no table\n",
    "empty.toml": "",
    "list.json": "[1, 2]",
    "captions.txt": "a red cat\n",
    "own.py": "class Mine: pass\n",
    "empty.h5": "",
    "folder/file.txt": "x",
    "folder.toml/file.txt": "x",
}
WORLD = "textures = ['red', 'blue']\nbackgrounds = ['desert']\n"
WORLDS = {
    "thousand.toml": f"animals = {[f'animal {number}' for number in range(1000)]}\n{WORLD}",
    "own_thousand.toml": "\n".join(f'[animal.a{number}]\nfile = "a.py"' for number in range(1000)),
    "twice.toml": f"animals = ['cat', 'cat']\n{WORLD}",
    "fish.toml": f"animals = ['catt', 'elephant']\n{WORLD}",
    "words.toml": "animals = 'cat'\ntextures = 3\n",
}
# Fields of recipes of the kind "binding".
FIELDS = {
    "unknown.toml": "pears = 0.2",
    "wordy.toml": "pairs = 'many'",
    "million.toml": "views = 1e12",
    "nested.toml": "hold_out = [['texture=red'], ['animal=cat']]",
    "deep.toml": f"hold_out = {'[' * 2000}{']' * 2000}",
    "nan.toml": "pairs = nan",
    "inf.toml": "test_pairs = inf",
    "terms.toml": f"hold_out = ['{LONG}']",
    "rules.toml": f"hold_out = {['texture=red'] * 10_000}",
    "bool.toml": "views = true",
    "phrasings.toml": "phrasings = 'i see {objects}'",
    "sets.toml": "sets = 3",
    "set.toml": "[sets]\nfelines = ['catt']",
}
KINDS = {
    "list.toml": "kind = ['binding']",
    "kindless.toml": "pairs = 0.2",
    "kind.toml": "kind = 'bindin'",
    "nokind.toml": "kind = 3",
}


class Entry(NamedTuple):
    """A command line, and the words that its message must have."""

    line: str
    words: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        """The command as a list of words."""
        arguments = [LONG if part == "@LONG" else part for part in shlex.split(self.line)]
        return ["python", *arguments] if arguments[0] == "-m" else ["python", str(ROOT / arguments[0]), *arguments[1:]]


def entries() -> Iterator[Entry]:
    """Read the table."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        command, _, words = line.partition(" :: ")
        yield Entry(command, tuple(words.split(" | ")))


def write_files(folder: Path) -> None:
    """Write the files that command lines name."""
    recipes = {name: f"kind = 'binding'\n{text}\n" for name, text in FIELDS.items()}
    for name, text in (FILES | WORLDS | KINDS | recipes).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "binary.toml").write_bytes(bytes(range(256)))


def plain(text: str) -> str:
    """A message without frames and line breaks."""
    return FRAME.sub(" ", text)
