"""The tables in a folder of the Hugging Face hub: parquet as the hub publishes it, arrow as `datasets` saves it.

A table is a split of a configuration, in one file or in several. File names are SPLIT-00000-of-00002.parquet,
CONFIGURATION/SPLIT/0000.parquet, SPLIT.parquet, or for `save_to_disk` SPLIT/data-00000-of-00001.arrow beside a
`state.json`. Rows are read a few at a time, and only the requested columns.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import check_accessible, check_regular, files_below, parse_json, read_json
from menagerie.generators.sources.rows import FileRow, reading_foreign

if TYPE_CHECKING:
    import pyarrow as pa

    Read = Callable[[list[str]], Iterator[pa.RecordBatch]]

ROWS = 64  # rows read at a time: images may be large
SUFFIXES = (".parquet", ".arrow")
STATE = "state.json"
SHARD = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(-[0-9a-f]{16})?")
NUMBER = re.compile(r"\d{4,}")
END = b"\xff\xff\xff\xff\0\0\0\0"  # the last bytes of an arrow stream, which is what `datasets` writes
CACHE = "cache-"  # start of the names of files that `datasets` keeps of what it computed
SAVED = "data"  # name of files that `save_to_disk` writes, and of a folder of tables on the hub
EXTRA = "pip install 'binding-menagerie[parquet]'"


class HubTable(NamedTuple):
    """A table of the hub: one split of a configuration, in one or several files."""

    configuration: str
    split: str
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return "/".join(filter(None, (self.configuration, self.split))) or "its only table"


def tables_in(folder: Path) -> list[HubTable]:
    """All tables in a folder, sorted; raises if a file of one is missing."""
    files: dict[tuple[str, str], list[Path]] = {}
    for path in files_below(folder):
        inner = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inner.parts)
        if path.suffix in SUFFIXES and not path.name.startswith(CACHE) and not hidden:
            files.setdefault(split_of_file(path, inner), []).append(path)
    return [HubTable(*names, order_files(parts)) for names, parts in sorted(files.items())]


def split_of_file(path: Path, inner: Path) -> tuple[str, str]:
    """The configuration and the split that a file belongs to."""
    folders, state = [part for part in inner.parent.parts if part != SAVED], saved_state(path.parent / STATE)
    name = found["name"] if (found := SHARD.fullmatch(path.stem)) else path.stem
    if state or name == SAVED or NUMBER.fullmatch(name):  # its folder has the split's name
        split = folders.pop() if folders else str(state.get("_split") or "")
    else:
        split = name if path.suffix == ".parquet" else name.rpartition("-")[2]  # in a cache the name is NAME-SPLIT
    return "/".join(folders), split


def saved_state(path: Path) -> dict[str, Any]:
    """What `save_to_disk` noted beside a table, if anything. Raises if a list of indices selects rows."""
    if not path.is_file():
        return {}
    with reading_foreign(path):
        state = read_json(path, dict[str, Any])
    if any(state.get(key) for key in ("_indices_files", "_indices_data_files")):
        raise UserError(f"{path} selects rows by a list of indices; save it with save_to_disk of a newer datasets")
    return state


def order_files(files: list[Path]) -> tuple[Path, ...]:
    """The files of a table in order; raises unless they are numbered from 0 to the number that their names state."""
    parts = [SHARD.fullmatch(path.stem) for path in files]
    names = [part["number"] if part else path.stem for part, path in zip(parts, files, strict=True)]
    if len(files) == 1 and not NUMBER.fullmatch(names[0]):
        return tuple(files)
    counts = {int(part["count"]) if part else len(files) for part in parts}  # 0000.parquet has no count
    places = {int(name): path for name, path in zip(names, files, strict=True) if NUMBER.fullmatch(name)}
    if len(places) != len(files) or any(places.keys() != set(range(count)) for count in counts):
        raise UserError(f"{files[0]}: files of its table are missing, or others lie among them; get the folder again")
    return tuple(places[number] for number in sorted(places))


def hub_columns(table: HubTable) -> dict[str, str]:
    """The types of a table's columns by name, from its first file."""
    with open_table(table.files[0]) as (schema, _):
        return dict(zip(schema.names, map(str, schema.types), strict=True))


def hub_classes(table: HubTable, column: str) -> list[str]:
    """The names of the classes whose numbers a column has, if the table's first file notes them."""
    with open_table(table.files[0]) as (schema, _):
        return column_classes(schema, table.files[0]).get(column, [])


class NotUTF8:
    """Stands for a value with a text that isn't UTF-8."""


def read_rows(batch: "pa.RecordBatch") -> list[dict[str, Any]]:
    """The rows of a batch; of a row with a text that isn't UTF-8, that value is a `NotUTF8`."""
    try:
        return batch.to_pylist()
    except UnicodeDecodeError:
        pass
    rows: list[dict[str, Any]] = [{} for _ in range(batch.num_rows)]
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for row, value in zip(rows, column, strict=True):
            try:
                row[name] = value.as_py()
            except UnicodeDecodeError:
                row[name] = NotUTF8()
    return rows


def read_hub_table(table: HubTable, columns: Sequence[str], numbered: bool = False) -> Iterator[FileRow]:
    """Yield the rows of a table as objects with the requested columns that exist; class numbers become class names,
    unless they are to stay `numbered`."""
    for path in table.files:
        number = 0
        with open_table(path) as (schema, read):
            there = [name for name in columns if name in schema.names]
            classes = {} if numbered else column_classes(schema, path)
            for batch in read(there):
                for row in read_rows(batch):
                    for key, names in classes.items():
                        if type(value := row.get(key)) is int and 0 <= value < len(names):
                            row[key] = names[value]
                    yield FileRow(path, f"row {number}", row)
                    number += 1


@contextmanager
def open_table(path: Path) -> Iterator[tuple["pa.Schema", "Read"]]:
    """Yield a file's schema, and a function that reads some columns, a few rows at a time; every fault raises
    `UserError`.

    Nothing is unpickled: pyarrow before 14.0.1 did so for its own types, and our extra excludes those versions.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UserError(f"reading {path.suffix} files needs pyarrow: {EXTRA}") from error
    check_regular(path)
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                yield file.schema_arrow, lambda columns: file.iter_batches(ROWS, columns=columns)
        else:
            with pa.memory_map(str(path)) as file:
                file.seek(max(0, file.size() - len(END)))
                if file.read(len(END)) != END:
                    raise ValueError("it has no end mark of an arrow stream: damaged, half-copied or of another format")
                file.seek(0)
                reader = pa.ipc.open_stream(file)
                yield reader.schema, lambda columns: read_batches(reader, columns)
    except UserError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        check_accessible(path, error)
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is no whole {path.suffix[1:]} file ({reason:.200}); get it again") from error


def read_batches(reader: Any, columns: list[str]) -> Iterator["pa.RecordBatch"]:
    """Yield some columns of an arrow stream, a few rows at a time. Each is validated: arrow trusts a file's offsets."""
    for batch in reader:
        for start in range(0, batch.num_rows, ROWS):
            part = batch.select(columns).slice(start, ROWS)
            part.validate(full=True)
            yield part


def column_classes(schema: "pa.Schema", path: Path) -> dict[str, list[str]]:
    """The names of classes by column, as `datasets` records them in a file."""
    content = parse_json((schema.metadata or {}).get(b"huggingface", b"{}"), f"what {path} notes of its columns")
    for key in ("info", "features"):
        content = content.get(key) if isinstance(content, dict) else None
    columns = content.items() if isinstance(content, dict) else ()
    noted = [(name, column.get("names")) for name, column in columns if isinstance(column, dict)]
    return {name: names for name, names in noted if isinstance(names, list)}
