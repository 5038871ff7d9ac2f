"""Finds benchmarks of real photographs by name: files of this folder export them as `BENCHMARK` or `BENCHMARK_NAME`.

Add one by adding a file.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.plugins import Exports, own_module
from menagerie.envs.core.reading import read_toml
from menagerie.generators.sources.kept_out import PhotographId, file_numbers
from menagerie.generators.sources.place import Place

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.photographs import PhotographBenchmark, Record


@dataclass(frozen=True)
class BenchmarkSpec:
    """A benchmark: its files, where to get them, how to read them, and published results."""

    name: str
    about: str
    """One line that says what the benchmark tests."""
    files: tuple[str, ...]
    """Annotation files below the data root."""
    images: tuple[str, ...]
    """Folders of images below the data root."""
    source: str
    """Where to get the annotation files and the images."""
    licence: str
    build: Callable[["Place"], "PhotographBenchmark"]
    """Reads the annotation files; raises for errors in them, and for missing images unless they are allowed."""
    photographs: Callable[[Path], Iterable[PhotographId]] | None = None
    """Yields the photographs of COCO, Visual Genome or Flickr in an annotation file, so that training leaves them out;
    None if the benchmark has images of its own, or only images that training leaves out anyway."""
    one_of: tuple[str, ...] = ()
    """Alternative annotation files, of which at least one is needed."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Official number of records by task; tasks of unknown size are missing."""
    sets: Mapping[str, int] = field(default_factory=dict)
    """Official number of records of tasks that are optional."""
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Published percentages, by model and measure."""


def facts(name: str) -> dict[str, Any]:
    """The fields of a spec that `data/benchmarks.toml` has of a benchmark; none of a user's own."""
    return read_toml(Path(__file__).parent / "data" / "benchmarks.toml").get(name, {})


def benchmark_spec(
    name: str, build: Callable[[Place], "PhotographBenchmark"], images: tuple[str, ...], **given: Any
) -> BenchmarkSpec:
    """The spec of a benchmark that ships: its `facts`, and fields of `BenchmarkSpec`."""
    return BenchmarkSpec(name=name, build=build, images=images, **({"files": ()} | facts(name) | given))


def benchmark_of_files(
    name: str,
    files: Mapping[str, str],
    read: Callable[[Path, str], Iterable["Record"]],
    images: str,
    kind: Callable[..., "PhotographBenchmark"],
    shows: Callable[[Path, Iterable[str]], Iterable[PhotographId]] | str = "",
    folders: tuple[str, ...] = (),
) -> BenchmarkSpec:
    """Make the spec of a benchmark that ships from the function that reads the records of an annotation file.

    `files` are the annotation files of its parts; `read` gets a file and its part. Images are below the folder
    `images`, or, if not all of it belongs to the benchmark, in its `folders`. `kind` makes the benchmark of its name,
    `images`, records and `Place`. `shows` is the collection of all images (COCO, Visual Genome or Flickr), or gives the
    photographs of collections among a file's images.
    """

    def build(place: Place) -> "PhotographBenchmark":
        records = [record for part, file in files.items() for record in read(place.path(file), part)]
        return kind(name, images, records, place)

    def photographs(path: Path) -> Iterable[PhotographId]:
        part = next(part for part, file in files.items() if PurePath(file).name == path.name)
        images_of_file = (image.file for record in read(path, part) for image in record.images)
        return shows(path, images_of_file) if callable(shows) else file_numbers(shows, path, images_of_file)

    given = {"files": tuple(files.values()), "photographs": photographs if shows else None}
    return benchmark_spec(name, build, folders or (images,), **given)


EXPORTS = Exports("menagerie.generators.benchmarks", Path(__file__).parent, "BENCHMARK", "benchmark")
names: Callable[[], tuple[str, ...]] = EXPORTS.names


def check_benchmark_name(name: str) -> str:
    """Return `name` if a benchmark has it, or if it is file.py:NAME of an existing file, not run here; else raise."""
    path, _, attribute = name.rpartition(":")
    if not path:
        return choose("benchmark", name, names())
    if not Path(path).is_file() or not attribute.isidentifier():
        raise UserError(f"benchmark {name!r} is no file.py:NAME; there must be a file {path!r} with that BenchmarkSpec")
    return name


def load_benchmark(name: str) -> BenchmarkSpec:
    """Load the benchmark called `name`, or file.py:NAME from a user's file, which is run."""
    path, _, attribute = check_benchmark_name(name).rpartition(":")
    if not path:
        return EXPORTS.load(name)
    spec = getattr(own_module(path), attribute, None)
    if not isinstance(spec, BenchmarkSpec):
        raise UserError(f"{path} has no {attribute} that is a menagerie.generators.benchmarks.registry.BenchmarkSpec")
    if spec.name in names():
        raise UserError(f"{path}: {attribute} has the name of a benchmark that ships, {spec.name!r}; give it another")
    return spec


def load_benchmarks(named: Iterable[str]) -> list[BenchmarkSpec]:
    """The benchmarks that a command line names, or all if it names none; raises if two have one name."""
    specs = [load_benchmark(name) for name in tuple(named) or names()]
    called = [spec.name for spec in specs]
    if again := next((name for name in called if called.count(name) > 1), None):
        raise UserError(f"--benchmarks names {again!r} twice; name it once, or rename one of two that are called so")
    return specs
