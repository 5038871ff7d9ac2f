"""Saves the pictures in a hub table as files; columns hold bytes of pictures, or names of files in the table's
folder.
"""

import hashlib
import re
from pathlib import Path

from menagerie.envs.core.pictures import LARGEST_FILE, open_picture, picture_error
from menagerie.envs.core.reading import open_file, path_inside
from menagerie.generators.sources.folders import spellings
from menagerie.generators.sources.rows import FileRow

SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}
PLAIN = re.compile(r"\w[\w .,+()-]{0,120}\.(jpe?g|png|webp)", re.ASCII | re.IGNORECASE)
LETTERS = 16  # of a hash in a file name


class PictureFolder:
    """Writes pictures into `out`; pictures that a table has only by file name are read from `folder`."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder, self.out = folder, out
        self.digests: dict[str, str] = {}
        """The digest of each written file by its name in lower case, as some disks don't tell case apart."""

    def keep(self, row: FileRow, column: str, name: str = "") -> str:
        """Write the picture in a column of a row; return its file's name.

        The name is `name` if given; otherwise the picture's name in the table, if that is valid and no other picture
        has it, else a hash of the content. Equal pictures of one name share a file. Raises for a file that is no
        picture, for a `name` that is invalid or another picture's, and for a path that leads out of the folder.
        """
        if name and not PLAIN.fullmatch(name):
            raise row.error(f"calls its picture in {column!r} as no file can be called: {name!r}")
        content, path = self.read(row, column)
        digest = hashlib.sha256(content).hexdigest()
        ending = suffix_of(row, column, content)
        made = (Path(path.replace("\\", "/")).name, f"{digest[:LETTERS]}{ending}")
        for free in filter(PLAIN.fullmatch, (name,) if name else made):
            if self.digests.setdefault(free.lower(), digest) == digest:
                self.out.mkdir(parents=True, exist_ok=True)
                (self.out / free).write_bytes(content)
                return free
        raise row.error(f"calls its picture in {column!r} as another one is called: {name or made[1]!r}")

    def read(self, row: FileRow, column: str) -> tuple[bytes, str]:
        """The bytes of a picture, and its name in the table, which may be empty."""
        value = row.content[column]
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        about = value if isinstance(value, dict) else {"bytes" if isinstance(value, bytes) else "path": value}
        content, path = about.get("bytes"), about.get("path") or ""
        if not isinstance(path, str) or not (path or isinstance(content, bytes)):
            raise row.error(f"has no picture in {column!r}")
        if isinstance(content, bytes):
            return content, path
        ways = (path_inside(self.folder, way) for way in spellings(path))
        place = next((way for way in ways if way.is_file()), None)
        if place is None:
            raise row.error(f"names a picture in {column!r} that isn't in {self.folder}: {path!r}")
        with open_file(place, LARGEST_FILE) as file:
            return file.read(), path


def suffix_of(row: FileRow, column: str, content: bytes) -> str:
    """The file ending for a picture's format, from its header; raises for another format and for one too large."""
    try:
        with open_picture(content) as picture:
            return SUFFIXES.get(picture.format or "", ".jpg")
    except Exception as error:  # decoders raise exceptions of many types
        raise row.error(f"has a picture in {column!r} that can't be used: {picture_error(error)}") from error
