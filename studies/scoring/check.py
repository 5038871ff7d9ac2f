"""Finds out which benchmarks are complete on disk, without a model and without decoding images."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import set_name
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.words_alone import words_alone
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import SourceSpec, State


def print_benchmark_states(specs: Iterable[BenchmarkSpec], place: Place, kind: str = "") -> list[bool]:
    """Print what is missing or wrong in benchmarks, and how many records they have; return which are complete. Of these
    also print what words alone decide."""
    complete = []
    for spec in specs:
        problem, bench = inspect_benchmark(spec, replace(place, allow_missing=True, tag=None))
        records = len(bench.records) + sum(bench.missing.values()) if bench else 0
        state = State(spec.name, problem, spec.source, spec.licence)
        found = words_alone(bench, bench.items) if bench and state.complete else None
        words = f"; {found.text}" if found else ""
        complete.append(print_state(kind + spec.name, state, f", {records} records{words}"))
    return complete


def print_state(name: str, state: State, count: str = "") -> bool:
    """Print the state of a benchmark or a source, and what to get for it. Returns whether it is complete."""
    print(f"{name}: {'complete' if state.complete else 'incomplete'}{count}", flush=True)
    if not state.complete:
        print(f"  {state.problem}\n  get it: {state.get}\n  licence: {state.licence}", flush=True)
    return state.complete


def folders_given(given: Sequence[str], specs: Iterable[BenchmarkSpec | SourceSpec]) -> dict[str, tuple[Path, ...]]:
    """Return the paths of `--images FOLDER=PATH` by FOLDER, which may have several: a folder of some benchmark or
    source, or one below it."""
    folders: dict[str, tuple[Path, ...]] = {}
    known = {folder for spec in (specs if given else ()) for folder in spec.images}
    for text in given:
        name, found, path = text.partition("=")
        name = name.rstrip("/")
        inside = any(f"{name}/".startswith(f"{folder}/") for folder in known) and ".." not in name.split("/")
        if not found or not inside:
            places = ", ".join(sorted(known))
            raise UserError(f"--images {text}: give FOLDER=PATH, FOLDER one of {places}, or a folder below one")
        if not Path(path).is_dir():
            raise UserError(f"--images {text}: there is no folder {path}")
        if Path(path).resolve() in map(Path.resolve, folders.get(name, ())):
            raise UserError(f"--images {text} is given twice")
        folders[name] = (*folders.get(name, ()), Path(path))
    return folders


def read_benchmarks(
    specs: Sequence[BenchmarkSpec], named: bool, place: Place
) -> list[tuple[BenchmarkSpec, PhotographBenchmark]]:
    """Read all `specs` if they are `named` by the user, else the complete ones, and print which these are."""
    if named:
        return [(spec, spec.build(place)) for spec in specs]
    found = []
    for spec in specs:
        problem, bench = inspect_benchmark(spec, place)
        if bench and not problem:
            found.append((spec, bench))
        elif not inspect_benchmark(spec, replace(place, tag=None))[0]:
            print(f"left out: {spec.name}: {problem}", flush=True)
    print(f"complete in {place.root}: {', '.join(spec.name for spec, _ in found) or 'none'}", flush=True)
    return found


def inspect_benchmark(spec: BenchmarkSpec, place: Place) -> tuple[str, PhotographBenchmark | None]:
    """Return what is missing or wrong in a benchmark, in words, and the benchmark if its files can be read."""
    lacking = [str(place.path(name)) for name in (*spec.files, *spec.images) if not place.has(name)]
    if lacking:
        return f"there is no {lacking[0]}" + f" and {len(lacking) - 1} more" * (len(lacking) > 1), None
    if spec.one_of and not any(place.path(name).exists() for name in spec.one_of):
        return f"there is none of {', '.join(str(place.path(name)) for name in spec.one_of)}", None
    try:
        bench = spec.build(place)
    except UserError as error:
        return str(error), None
    lost = sum(bench.missing.values())
    problems = [f"{lost} records lack their images: {bench.lacking}"] if lost else []
    wrong = wrong_counts(spec, Counter(record.task for record in bench.records) + bench.missing)
    return "; ".join([*problems, *(f"{name} has {found} records, not {all_}" for name, all_, found in wrong)]), bench


def wrong_counts(spec: BenchmarkSpec, records: Counter[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the names whose number of records isn't the official one, with the official number and ours. A name is that
    of a task, "all" or the beginning of the names of several. Sets may be spelled as their folders are."""
    sets = {name: spec.sets[set_name(name)] for name in +records if set_name(name) in spec.sets}
    for name, count in (spec.counts | sets).items():
        found = records.total() if name == "all" else records[name]
        found = found or sum(n for task, n in records.items() if task.startswith(f"{name} "))
        if found != count:
            yield name, count, found
