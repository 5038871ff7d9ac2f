"""Where numba keeps what it compiles: beside the source, or in the user's cache. Where neither can be written it raises
before anything is drawn, so that a folder of this command takes their place."""

import atexit
import contextlib
import os
import sys
from pathlib import Path

PLACE = "NUMBA_CACHE_DIR"


def place_compiled(package: Path) -> None:
    """Choose a folder where numba has none for the sources in `package`; processes that this one starts take it over.

    Its files are code, so that it is nobody else's, and new each time.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"
    if os.environ.get(PLACE) or is_writable(package) or is_writable(cache):
        return
    from menagerie.envs.core.files import scratch_folder

    kept = contextlib.ExitStack()
    try:
        os.environ[PLACE] = str(kept.enter_context(scratch_folder()))
    except OSError:  # numba will say what it lacks, to who needs it
        return
    atexit.register(kept.close)
    print(
        f"note: neither {package} nor {cache} can be written, so that every command compiles anew; set {PLACE} "
        "to a folder of yours",
        file=sys.stderr,
    )


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which itself is made where it isn't there."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK)
