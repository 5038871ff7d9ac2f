"""The origin of files: the commit of the code."""

import subprocess
from pathlib import Path


def commit() -> str:
    """The commit of this code, with "+" if there are uncommitted changes; empty outside git."""
    return ask_git(Path(__file__).parent, "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*")


def commit_of(file: Path) -> str:
    """The last commit that changed a file; empty outside git, and if the file isn't as it was committed."""
    here, name = file.resolve().parent, file.name
    changed = ask_git(here, "status", "--short", name)
    return "" if changed else ask_git(here, "log", "-1", "--format=%h", "--abbrev=12", name)


def ask_git(folder: Path, *words: str) -> str:
    """What git says; empty where it isn't there, or in a folder that has no repository."""
    try:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
