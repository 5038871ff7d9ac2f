"""A study's output folder: one configuration, one writer at a time, and a record of commands and machines."""

import contextlib
import os
import platform
import re
import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import msgspec

import menagerie
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import clear_leftovers, writing
from menagerie.envs.core.identity import json_value
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.options import default_of
from menagerie.envs.core.provenance import commit
from menagerie.envs.core.reading import Unreadable
from menagerie.envs.core.records import read_record, write_record
from menagerie.studies.runs.machine import processor

CONFIG, LOCK = "config.json", ".lock"
CLAIM = "MENAGERIE_CLAIM"  # the variable with the digest of the claim that a run is for, and the commit of its file
LIBRARIES = ("torch", "open_clip_torch", "numpy", "numba", "h5py")


class RunConfig(msgspec.Struct):
    """The part of a run's `config.json` that is read back."""

    config: dict[str, Any]
    id: str = ""  # a random name of this folder, which stays if the folder is moved


@cache
def folder_lock(out: Path) -> FileLock:
    """Return the lock that a command holds while it claims a folder, or reads results and publishes them."""
    return FileLock(out / LOCK)


@contextlib.contextmanager
def run_folder(out: Path, config: Any, ignored: frozenset[str], alone: bool = False) -> Iterator[Path]:
    """Yield `out` as the new or continued folder of `config`, of which the fields in `ignored` don't affect results and
    may differ from run to run. With `alone`, keep other commands out."""
    if out.exists() and not out.is_dir():
        raise UserError(f"the output folder {out} is a file; choose another --out")
    if out.is_dir() and not (out / LOCK).exists() and any(out.iterdir()):
        raise UserError(f"{out} has files but is not a study's folder; choose another --out")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    lock = folder_lock(out)
    if not lock.acquire(wait=not alone):
        raise UserError(f"another run is working in {out}; wait for it or choose another --out")
    try:
        claim(out, config, ignored)
        clear_leftovers(out, below=True, alone=alone)
        if not alone:
            lock.release()
        yield out
    finally:
        lock.release()


def id_of(out: Path) -> str:
    """Return the name of a folder as an owner of trials: its random name or, without one, its path."""
    return str(recorded_config(out).get("id") or out.resolve())


def recorded_config(out: Path) -> Mapping[str, Any]:
    """Read `config.json` of a folder; empty if there is none."""
    return read_record(out / CONFIG, RunConfig) if (out / CONFIG).exists() else {}


def claim(out: Path, config: Any, ignored: frozenset[str]) -> None:
    """Write `config.json`; raise if `out` has results of another configuration. Options of scorers are compared for the
    models that both have; those of further models are added."""
    file, wanted = out / CONFIG, json_value(asdict(config))
    if not file.exists():
        write_record(file, {"config": wanted, "id": secrets.token_hex(8), **provenance()}, indent=1)
        return
    try:
        record = read_record(file, RunConfig)
    except Unreadable as error:
        raise UserError(f"{file} is damaged ({error}); choose another --out, or delete the folder") from error
    recorded = record["config"]
    before, now = recorded.get("scorers", {}), wanted.get("scorers", {})
    one_sided = {f"scorers.{flag}" for flag in before.keys() ^ now.keys()}
    if others := describe_differences(recorded, config, ignored | one_sided):
        if {path.name for path in out.iterdir()} <= {CONFIG, LOCK}:  # nothing was made yet
            file.unlink()
            return claim(out, config, ignored)
        raise UserError(f"{out} belongs to another configuration: {others}; choose another --out")
    if now.keys() - before.keys():
        write_record(file, record | {"config": recorded | {"scorers": now | before}}, indent=1)


def command_line() -> str:
    """Return this command as the user typed it, without passwords."""
    # Bytes of a path that aren't UTF-8 become \xff.
    words = (os.fsencode(word).decode("utf-8", "backslashreplace") for word in sys.argv)
    plain = map(without_passwords, words)
    return " ".join(["python", *(shlex.quote(its) if not its or re.search(r"[\s'\"]", its) else its for its in plain)])


def provenance() -> dict[str, Any]:
    """Return the command, versions, processor and commit of this run, and the claim of the ledger that it is for."""
    claim = os.environ.get(CLAIM)
    return {
        **({"claim": claim} if claim else {}),
        "command": command_line(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "processor": processor(),
        "cores": usable_cores(),
        "versions": {"binding-menagerie": menagerie.__version__, **{name: version(name) for name in LIBRARIES}},
    }


def machines_of_runs(out: Path, results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Collect where a study and its finished runs ran, as far as it is recorded, and which command draws this page."""
    study, now = recorded_config(out), provenance()
    runs = [each["provenance"] for each in results if each.get("provenance")]
    known = {name: study[name] for name in ("command", "started") if name in study}
    for name in ("commit", "processor", "cores", "python", "versions"):  # they may differ from run to run
        if text := join_values(run.get(name) for run in runs or [study]):
            known[name] = text
    drawn = f"{now['started']}, commit {now['commit'] or 'unknown'}, {now['command']}"
    return {name: str(value) for name, value in known.items()} | {"this page was drawn": drawn}


def join_values(values: Iterable[Any]) -> str:
    """Join the values that runs recorded into a text; if they differ, with the number of runs of each."""
    counted = Counter(str(value) for value in values if value not in (None, ""))
    texts = (f"{value} ({number} run{'s' * (number > 1)})" for value, number in counted.most_common())
    return "; ".join(texts if len(counted) > 1 else counted)


def with_defaults(recorded: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """Fill in the defaults of the fields, nested ones too, that were added since a configuration was recorded."""
    whole = dict(recorded)
    for item in fields(config):
        current, default = getattr(config, item.name), default_of(item)
        if is_dataclass(current) and isinstance(before := recorded.get(item.name, {}), Mapping):
            whole[item.name] = with_defaults(before, current)
        elif item.name not in recorded:
            whole[item.name] = json_value(current if default is MISSING else default)
    return whole


def describe_differences(
    recorded: Mapping[str, Any], config: Any, ignored: frozenset[str] = frozenset(), place: str = ""
) -> str:
    """Describe how a recorded configuration differs, outside of `ignored`: "recipe.steps (60 there, 40 now)"."""
    wanted = json_value(asdict(config)) if is_dataclass(config) else json_value(config)
    before = with_defaults(recorded, config) if is_dataclass(config) else recorded
    found = []
    for name in sorted(before.keys() | wanted.keys()):
        one, other, where = before.get(name), wanted.get(name), place + name
        if isinstance(one, Mapping) and isinstance(other, Mapping) and where not in ignored:
            found.append(describe_differences(one, other, ignored, f"{where}."))
        elif one != other and where not in ignored:
            found.append(f"{where} ({one} there, {other} now)")
    return ", ".join(filter(None, found))


# Passwords are looked for only in addresses: of the web with any host and port before a path, of databases also with
# IPv6 hosts. SQLAlchemy takes "/" and "@" for part of a password.
START = r"(?<![\w+.-])(?!(?:sqlite|file)[\w+.-]*:)"
HOST_ALONE = r"(?!(?:https?://[^/?#@:\s]*|[\w+.-]+://\[[\da-f:.]+\])(?::\d+)?(?:[/?#\s'\"]|$))"
# As people write them, with "/", "?" and "@" within a password too: all before the last "@" that follows a name and
# ":". The name may have a "/", and the address may lack its own.
USER = re.compile(
    rf"({START}{HOST_ALONE}(?:[\w+.-]*://(?:[^:/?#]*:|[^:?\s]*:(?!\s))|[a-z][\w+.-]*:/?[^:/?@\s]+:(?![\s/])))(.*)@",
    re.DOTALL | re.IGNORECASE,
)
# All values of a query are removed: drivers have their own names for keys, passwords and strings that hold one.
QUERY = re.compile(r"(://[^?]*\?).+", re.DOTALL)
SETTING = re.compile(
    r"""(\b\w*(?:password|passwd|passphrase|pwd|secret)\s*=\s*)('[^']*'|"[^"]*"|\{[^}]*\}|\S+)""", re.IGNORECASE
)
KEY = re.compile(r"(\b\w*(?:key|token)=)\S+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """One address, or an option that contains one, without its password and its query."""
    return SETTING.sub(r"\1***", QUERY.sub(r"\1***", USER.sub(r"\1***@", text)))


def error_without_passwords(text: str, address: str) -> str:
    """An error's text without passwords and keys: those of `address`, and those of other addresses in the text."""
    for secret in sorted(passwords(address), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return KEY.sub(r"\1***", without_passwords(text))


def passwords(address: str) -> set[str]:
    """The passwords in an address, as written and percent-decoded, and parts that a driver may take for a host."""
    found = [match[2] for match in USER.finditer(address)]
    for text in (address, unquote_plus(address)):
        found += [re.split("[&;]", match[2])[0].strip("'\"{}") for match in SETTING.finditer(text)]
    written = {word for secret in found for word in (secret, unquote_plus(secret))}
    return {part for secret in written for part in (secret, *re.split("[@/:?]", secret)) if part}
