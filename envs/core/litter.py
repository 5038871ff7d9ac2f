"""What operating systems leave in folders and archives, which is nobody's data."""

from pathlib import PurePath

NAMES = frozenset(("__MACOSX", ".DS_Store", ".AppleDouble", "Thumbs.db", "desktop.ini"))
BESIDE = "._"  # how macOS begins the name of what it writes beside a file, "._a.jpg"


def is_litter(path: str | PurePath) -> bool:
    """Whether a path below a folder, or in an archive, is of such a file or leads through such a folder."""
    return any(part in NAMES or part.startswith(BESIDE) for part in PurePath(path).parts)
