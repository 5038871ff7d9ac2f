"""Sources of classes, read once: tyro wants those of all options at each command line, for which whole files are
parsed.
"""

import inspect
from pathlib import Path

KEPT: dict[tuple[str, str, int, int], str] = {}
read = inspect.getsource


def kept_source(obj: object) -> str:
    """In the place of `inspect.getsource`; a file that was written anew is read anew."""
    if not inspect.isclass(obj):
        return read(obj)
    try:
        file = inspect.getfile(obj)
        stamp = Path(file).stat()
    except (OSError, TypeError):
        return read(obj)
    key = (obj.__qualname__, file, stamp.st_mtime_ns, stamp.st_size)
    if key not in KEPT:
        KEPT[key] = read(obj)
    return KEPT[key]
