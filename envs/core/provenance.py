"""The origin of files: the commit of the code."""

import subprocess
from pathlib import Path


def commit() -> str:
    """The commit of this code, with "+" if there are uncommitted changes; empty outside git."""
    here = Path(__file__).parent
    try:
        call = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
        return subprocess.run(call, cwd=here, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
