"""Faults of one line in the sources of a checkout, planted one at a time: which of them do its tests find?

    python -m tests.faults.one_line list CHECKOUT
    python -m tests.faults.one_line plant CHECKOUT --number 3        # until a key is pressed
    python -m tests.faults.one_line check CHECKOUT --kept found.jsonl --seconds 600

CHECKOUT is a git worktree of any version of the project, with a .venv of its own; `check` throws away changes in it.
Every 32 faults have each kind once in each top folder, so the shares that two versions find can be compared. Tests run
by how closely they import the changed module, until one fails that passes without the fault. Answers are kept; a fault
that ran out of time goes on where it stopped when `--seconds` is larger.
"""

import argparse
import ast
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FLOORS = ("envs", "generators", "models", "studies")
KINDS = ("comparison", "sign", "and/or", "constant", "if", "index", "return", "not")
TURNED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Eq: ast.NotEq, ast.In: ast.NotIn, ast.Is: ast.IsNot}
OTHER: dict[type, Any] = {**TURNED, ast.And: ast.Or, ast.Add: ast.Sub}
OTHER |= {second: first for first, second in OTHER.items()}
# Calls that only say something, and arguments whose values change nothing that can be seen.
SILENT = {"UserError", "warn", "print", "strict", "exist_ok", "parents", "flush", "stacklevel", "daemon", "timeout"}
FILES = 6  # of tests in the first run; then twice as many, and so on
MEMORY = 24 << 20  # KiB of a process at most


class Fault(NamedTuple):
    """The bytes from `start` to `end` of a line become `new`."""

    kind: str
    path: str
    line: int
    start: int
    end: int
    new: str
    function: str

    def planted_in(self, content: bytes) -> bytes:
        """Return a file's content with the fault."""
        lines = content.splitlines(keepends=True)
        old = lines[self.line - 1]
        return b"".join(
            [*lines[: self.line - 1], old[: self.start], self.new.encode(), old[self.end :], *lines[self.line :]]
        )


def nodes_that_run(parent: ast.AST, function: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield what runs when functions are called, with the function: no messages and no compiled loops."""
    for node in ast.iter_child_nodes(parent):
        called = getattr(node, "func", node)
        name = getattr(called, "attr", getattr(called, "id", getattr(node, "arg", "")))
        if isinstance(node, ast.FunctionDef):
            if not any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield from nodes_that_run(ast.Module(node.body, []), node)
        elif not isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) and name not in SILENT:
            if function is not None:
                yield node, function
            yield from nodes_that_run(node, function)


def mutations(node: Any, function: Any) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield the faults of a node: the kind, the part that changes, and what it becomes."""
    match node:
        case ast.Compare(ops=[sign]):
            yield "comparison", node, ast.unparse(ast.Compare(node.left, [OTHER[type(sign)]()], node.comparators))
        case ast.BinOp(op=ast.Add() | ast.Sub()) if "'" not in ast.unparse(node):  # no text
            yield "sign", node, ast.unparse(ast.BinOp(node.left, OTHER[type(node.op)](), node.right))
        case ast.BoolOp():
            yield "and/or", node, ast.unparse(ast.BoolOp(OTHER[type(node.op)](), node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, ast.unparse(node.operand)
        case ast.Constant(value=bool() | int() | float() as value):
            other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value or 1.0
            yield "constant", node, repr(other)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "if", test, f"(not ({ast.unparse(test)}))"
        case ast.Subscript(slice=place):
            for bound in (place.lower, place.upper) if isinstance(place, ast.Slice) else (place,):
                if re.fullmatch(r"-?\d+", number := ast.unparse(bound) if bound else ""):
                    yield "index", bound, str(int(number) + (-1 if number[0] == "-" else 1))
        case ast.Return(value=ast.expr() as value):
            for argument in [each.arg for each in function.args.args if each.arg not in ("self", "cls")][:1]:
                yield "return", value, argument


def draw_faults(checkout: Path, seed: int, count: int) -> list[Fault]:
    """Draw faults of a checkout."""
    found: dict[tuple[str, str], list[Fault]] = defaultdict(list)
    for path in (path for floor in FLOORS for path in sorted((checkout / floor).rglob("*.py"))):
        name = path.relative_to(checkout).as_posix()
        for node, function in nodes_that_run(ast.parse(path.read_bytes())):
            for kind, part, new in mutations(node, function):
                if part.lineno == part.end_lineno:
                    place = (part.lineno, part.col_offset, part.end_col_offset or 0)
                    found[name.split("/")[0], kind].append(Fault(kind, name, *place, new, function.name))
    strata, chance, faults = [(floor, kind) for floor in FLOORS for kind in KINDS], random.Random(seed), []
    for number in range(count):
        if not number % len(strata):
            chance.shuffle(strata)
        some = random.Random(f"{seed} {number}").choices(found[strata[number % len(strata)]], k=99)
        faults.append(next(fault for fault in some if is_program(fault, (checkout / fault.path).read_bytes())))
    return faults


def is_program(fault: Fault, content: bytes) -> bool:
    """Return whether a content is Python with the fault, and another program."""
    try:
        return ast.dump(ast.parse(content)) != ast.dump(ast.parse(fault.planted_in(content)))
    except SyntaxError:
        return False


@contextmanager
def planted(path: Path, fault: Fault) -> Iterator[None]:
    """Plant a fault for a while; then the file is as it was, with the time at which it was written."""
    content, times = path.read_bytes(), path.stat()
    try:
        path.write_bytes(fault.planted_in(content))
        yield
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@cache
def importers_in(checkout: Path) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the text of each file, and the files that import it, or are tests that name it as a command."""
    files = [file for folder in (*FLOORS, "tests") for file in sorted((checkout / folder).rglob("*.py"))]
    texts = {file.relative_to(checkout).as_posix(): file.read_text(encoding="utf-8") for file in files}
    paths = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in texts}
    importers: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        names = {word.removeprefix("menagerie.") for word in re.findall(r"(?:menagerie|tests)\.[\w.]+", text)}
        for source, imported in re.findall(r"from (?:menagerie\.)?([\w.]+) import (\([^)]*\)|.*)", text):
            names |= {f"{source}.{name}" for name in re.findall(r"\w+", imported)}
        names |= {f"studies.{word}" for word in re.findall(r"\w+", text) if path.startswith("tests/")}
        for name in names & paths.keys():
            importers[paths[name]].add(path)
    return texts, importers


def tests_by_distance(checkout: Path, fault: Fault) -> list[str]:
    """Return the files of tests: first those that import the changed module and have words of its function and line."""
    texts, importers = importers_in(checkout)
    steps, level = {fault.path: 0}, {fault.path}
    while level:
        level = {path for near in level for path in importers[near]} - steps.keys()
        steps |= dict.fromkeys(level, max(steps.values()) + 1)
    line, beside = texts[fault.path].splitlines()[fault.line - 1], f"tests/{fault.path.split('/')[0]}/"
    words = {fault.function, *re.findall(r"[a-z]{4,}", f"{fault.function} {line}".lower())}
    order = {
        path: (steps.get(path, 99), not path.startswith(beside), -sum(word in text for word in words), len(text))
        for path, text in texts.items()
        if path.split("/")[-1].startswith("test_")
    }
    return sorted(order, key=lambda path: order[path])


def first_failure(checkout: Path, tests: list[str], failing: set[str], seconds: float) -> tuple[str, str]:
    """Return the first test that fails and its message: ("", "") if none does, ("?", what was said) if time ran out."""
    words = shlex.join([*tests, *(f"--deselect={test}" for test in failing)])
    shell = f"ulimit -Sv {MEMORY}; exec .venv/bin/python -m pytest -x -q -rfE --tb=line -o addopts= -p no:cacheprovider"
    command = ["bash", "-c", f"{shell} {words}"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=checkout, text=True, start_new_session=True, **pipes)
    try:
        said, _ = process.communicate(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired as end:
        return "?", (end.stdout or b"").decode(errors="replace")[-300:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if failed := re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", said, re.MULTILINE):
        return failed[1], " ".join(re.findall(r"^(?:E  |/).*", said, re.MULTILINE)[:3])
    return ("", "") if process.returncode in (0, 5) else ("pytest", said[-300:])


def check_fault(checkout: Path, fault: Fault, done: int, failing: set[str], seconds: float) -> dict[str, Any]:
    """Run tests with a fault in place, of which `done` files have run before; `failing` fail without it, too."""
    tests, began, size, test, message = tests_by_distance(checkout, fault), time.monotonic(), FILES, "", ""
    while done < len(tests) and (left := began + seconds - time.monotonic()) > 0:
        some = [test for test in tests[done : done + size] if test not in failing] or tests[:1]
        with planted(checkout / fault.path, fault):
            test, message = first_failure(checkout, some, failing, left)
        name = test.split("[")[0]  # without parameters
        if not test:
            done, size = min(len(tests), done + size), 2 * size
        elif test == "?" or not first_failure(checkout, some if test == "pytest" else [name], set(), seconds)[0]:
            break
        else:
            failing.add(name)
    took = {"files": done, "of": len(tests), "seconds": round(time.monotonic() - began, 1)}
    return {"found": test.strip("?"), "message": message[:300], **took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("list", "plant", "check"))
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--faults", type=int, default=32)
    parser.add_argument("--seed", type=int, default=58)
    parser.add_argument("--number", type=int, nargs="*", help="of faults; else all")
    parser.add_argument("--kept", type=Path, default=Path("one_line.jsonl"))
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of a fault, earlier runs included")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which gives files back
    git = ["git", "-C", str(options.checkout)]
    if options.do == "check":
        subprocess.run([*git, "checkout", "-q", "--", *FLOORS], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    rows = options.kept.read_text(encoding="utf-8").splitlines() if options.kept.exists() else []
    kept = {(row["commit"], row["seed"], row["number"]): row for row in map(json.loads, rows)}
    failing: set[str] = set()
    for number, fault in enumerate(draw_faults(options.checkout, options.seed, options.faults)):
        if options.number and number not in options.number:
            continue
        path, key = options.checkout / fault.path, (commit, options.seed, number)
        lines = path.read_bytes().splitlines()[fault.line - 1]
        both = {"old": lines.decode().strip(), "changed": fault._replace(line=1).planted_in(lines).decode().strip()}
        print(f"{number} {fault.kind}: {fault.path}:{fault.line}", *both.values(), sep="\n  ", flush=True)
        if options.do == "plant":
            with planted(path, fault):
                input("planted; press Enter to take it out")
        before = kept.get(key, {"found": "", "files": 0, "of": 1, "seconds": 0})
        left = options.seconds - before["seconds"]
        if options.do == "check" and not before["found"] and before["files"] < before["of"] and left > 0:
            row = dict(zip(("commit", "seed", "number"), key, strict=True)) | fault._asdict() | both
            row |= check_fault(options.checkout, fault, before["files"], failing, left)
            kept[key] = row | {"seconds": row["seconds"] + before["seconds"]}
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept[key]) + "\n")
        if key in kept:
            print("  {found!r} found it, after {files} of {of} files of tests".format(**kept[key]), flush=True)
    mine = [row for key, row in kept.items() if key[:2] == (commit, options.seed)]
    late = sum(not row["found"] and row["files"] < row["of"] for row in mine)
    print(f"{sum(bool(row['found']) for row in mine)} of {len(mine)} found; {late} not finished")


if __name__ == "__main__":
    main()
