"""A PostgreSQL server of a test's own, in a temporary folder, where there is one to start."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDERS = [*os.environ.get("PATH", "").split(":"), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
SERVER = shutil.which("postgres", path=":".join(FOLDERS))


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a new server that listens on a socket in its folder and nowhere else."""
    programs = Path(SERVER).parent
    # It refuses to run as root; Debian's package makes a user for it.
    user = {"user": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # short: the path of a socket may have 107 characters
    try:
        if user:
            shutil.chown(folder, "postgres")

        def call(program: str, *arguments: str) -> None:
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(
                [programs / program, "-D", folder / "data", *arguments], check=True, cwd=folder, **quiet, **user
            )

        call("initdb", "--auth=trust", "--username=tester", "--no-sync")
        call("pg_ctl", "start", "-w", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off")
        try:
            yield f"postgresql+psycopg://tester@/postgres?host={folder}"
        finally:
            call("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)
