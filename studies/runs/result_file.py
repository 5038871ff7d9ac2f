"""The file of results in the folder of a cell or piece: its form, its digest, and those of the files beside it."""

from pathlib import Path
from typing import Any

import msgspec

from menagerie.envs.core.records import (
    FILES,
    RESULT,
    check_file,
    damaged,
    file_digest,
    noted_in,
    result_in,
    write_record,
)

Numbers = dict[str, float | None]


class CutTexts(msgspec.Struct):
    """Texts that were longer than a model reads; none of it where its reader can't tell."""

    texts: int = 0
    of: int = 0
    context: int = 0
    first: str = ""


class Result(msgspec.Struct):
    """Of what type each key is that is read; keys beside them are its place in a study, and counts."""

    id: str
    model: str
    seed: int = 0
    axes: list[str] = []
    settings: dict[str, Any] = {}
    subsets: dict[str, dict[str, Numbers]] = {}
    train_images: int = 0
    images_seen: int = 0
    parameters: int = 0
    carried: dict[str, Any] = {}
    split: str = ""
    benchmark: str = ""
    groups: dict[str, Numbers] = {}
    headlines: dict[str, Numbers] = {}
    wrong: list[dict[str, Any]] = []
    cut: CutTexts | None = None
    skipped: dict[str, int] = {}
    files: dict[str, str] = {}
    seconds: float = 0.0
    provenance: dict[str, Any] = {}


def write_result(folder: Path, result: dict[str, Any], files: tuple[str, ...] = (), varying: tuple[str, ...] = ()):
    """Write a result with the digests of files in its folder; of two runs of one cell only `varying` ones differ."""
    noted = {FILES: digests_in(folder, files)} if files else {}
    origin = result.get("provenance", {}) | ({FILES: digests_in(folder, varying)} if varying else {})
    write_record(folder / RESULT, result | noted | ({"provenance": origin} if origin else {}))


def digests_in(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The digests of files by their names."""
    return {name: file_digest(folder / name) for name in names}


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result in a folder, or None where there is none yet."""
    result = result_in(folder, Result)
    if result is not None and not result.keys() & {"subsets", "groups"}:
        raise damaged(folder / RESULT, "it has no numbers")
    return result


def checked_file(folder: Path, name: str) -> Path:
    """A file beside a result, as it was when the result was written; raises `Unreadable` if it isn't.

    Results of before there were digests have none; their files are taken as they are.
    """
    if digest := noted_in(read_result(folder) or {}, name):
        check_file(folder / name, digest)
    return folder / name
