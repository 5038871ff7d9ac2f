"""JSON of unknown origin, read so that whatever is wrong is named by file, place and key."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from envs.common.errors import UserError


class Entry(NamedTuple):
    """An object of a JSON file, and where it stands there."""

    file: Path
    place: str
    """ "images[3]"; empty for the file's outermost object."""
    content: dict[str, Any]

    def error(self, problem: str) -> UserError:
        """The error of this entry."""
        return UserError(f"{self.file}: {self.place or 'it'} {problem}; correct the file, or get it again")

    def field(self, key: str, *kinds: type) -> Any:
        """What stands under `key`, of one of the types `kinds`."""
        value = self.content.get(key)
        if key not in self.content:
            raise self.error(f"has no {key!r}")
        if type(value) not in kinds:  # exactly: JSON's true is no number
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"has a {key!r} that is no {wanted}, but {type(value).__name__}")
        return value

    def entries(self, key: str) -> list["Entry"]:
        """The objects of the list that stands under `key`."""
        entries = [Entry(self.file, f"{key}[{i}]", item) for i, item in enumerate(self.field(key, list))]
        for entry in entries:
            if not isinstance(entry.content, dict):
                raise entry.error("is no object")
        return entries


def read_json(path: Path) -> Entry:
    """The outermost object of a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}); name a file that is there") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON ({error}); get it again") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no JSON object, but {type(content).__name__}; is it the right file?")
    return Entry(path, "", content)
