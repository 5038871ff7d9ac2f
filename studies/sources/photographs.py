"""Photographs with captions as the data of training runs: how they are read, which are held out, and their numbers."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest, generator, seed_of
from menagerie.envs.core.records import read_record
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.benchmarks.tested_photographs import images_of_tests
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.false_captions.gather import gather, resolve_given
from menagerie.generators.false_captions.made import Made
from menagerie.generators.false_captions.photographs import FalselyCaptioned
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import DEFAULT, open_parser
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.mixture import CaptionedSubset, Mixture
from menagerie.generators.sources.photographs import Photographs
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import load_source
from menagerie.generators.trained_on import Training, read_part
from menagerie.studies.runs.data import CellData, Material, SplitData
from menagerie.studies.runs.folder import CONFIG
from menagerie.studies.runs.results import read_result

VERSION = 1  # of the rule for held-out photographs, and of how parts are mixed
TOGETHER = "+"  # between the names of sources that are trained on together


def split_sources(together: str) -> tuple[str, ...]:
    """Return the names of the sources in a text such as "coco+visual_genome"."""
    return tuple(name.replace("_", " ") for name in together.split(TOGETHER))


@dataclass(frozen=True)
class PhotographOptions:
    """How photographs are found and read. Paths decide no identity: the photographs have one of their own."""

    sources: tuple[str, ...]
    base: Place
    """Where the files are, with absolute paths, and how they are read."""
    parser: str
    parses: Path
    unanswered: frozenset[str] = frozenset()
    """Captions for which the parser's server gave no answer: they are one node, and aren't asked again."""
    false_captions: tuple[str, ...] = ()
    """What `--false-captions` names."""

    def place(self, source: str, parse: Callable[[str], SceneGraph]) -> Place:
        """The location of one source's files, and the options by which they are read."""
        caption = self.base.caption if self.base.caption in load_source(source).recipes else ""
        return replace(self.base, parse=parse, caption=caption)


class OpenedPhotographs(NamedTuple):
    """Photographs by source, and the parser that made their graphs; None if each caption is one node."""

    sources: Sequence[Photographs]
    parser: CaptionParser | None

    @property
    def identity(self) -> str:
        """Hash of all images, captions and graphs, and of the parser."""
        parser = self.parser.identity() if self.parser else {}
        return digest({"sources": [source.identity for source in self.sources], "parser": parser})

    @property
    def names(self) -> list[str]:
        return [name for source in self.sources for name in source.names_of_images]

    @property
    def relational(self) -> bool:
        captions = (source.captions([k], [0])[0] for source in self.sources for k in range(len(source)))
        return any(caption.graph.edges for caption in captions)

    def training_parts(self) -> list[tuple[Photographs, list[int]]]:
        """Return each source with the numbers of its photographs that are trained on."""
        out = hold_out(self.names)
        return [(its, [k for k, name in enumerate(its.names_of_images) if name not in out]) for its in self.sources]


def open_photographs(
    opening: PhotographOptions, report: Callable[[str, str, Made], None] | None = None
) -> OpenedPhotographs:
    """Read the sources of a data root. Captions are parsed unless their graphs were kept before. `report` gets the
    source's name beside what `gather` gives it."""
    parser = open_parser(opening.parser, opening.parses) if opening.parser != DEFAULT else None

    def parse(text: str) -> SceneGraph:
        return one_node(text) if text in opening.unanswered else parser(text)

    given = parse if opening.unanswered else parser or one_node  # the parser itself takes many captions at once
    opened = [load_source(name).open(opening.place(name, given)) for name in opening.sources]
    if opening.false_captions:
        more = opening.false_captions, opening.base, opening.parses
        reports = [report and partial(report, name) for name in opening.sources]
        opened = [gather(source, *more, its) for source, its in zip(opened, reports, strict=True)]
    return OpenedPhotographs(opened, parser)


SHARE, LEAST = 0.05, 10  # of the photographs; at most a fifth of few
OTHERS = 4  # captions of other photographs
GROUP = "caption"


def hold_out(names: Iterable[str]) -> frozenset[str]:
    """Choose the names of photographs that aren't trained on: those with the smallest hashes."""
    ranked = sorted(set(names), key=lambda name: (seed_of(0, "held out", name), name))
    count = max(round(SHARE * len(ranked)), min(LEAST, len(ranked) // 5))
    return frozenset(ranked[:count])


class HeldOut(Benchmark):
    """A benchmark of held-out photographs: an item has one, its caption, and captions of other held-out ones."""

    logged_task = GROUP

    def __init__(self, opened: OpenedPhotographs) -> None:
        self.name, chosen = "the held-out photographs", hold_out(opened.names)
        self.whole = Mixture(opened.sources, [1.0, *[0.0] * (len(opened.sources) - 1)])
        # Of several sources with a photograph, the first has it.
        first = {name: place for place, name in reversed([*enumerate(opened.names)]) if name in chosen}
        self.names = sorted(first)
        self.places = [first[name] for name in self.names]
        self.captions = self.whole.captions(self.places, [seed_of(0, "held-out caption", name) for name in self.names])
        self.items = [item for number in range(len(first)) if (item := self._item(number))]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        return self.whole.images([self.places[number] for number in numbers])

    def _item(self, number: int) -> Item | None:
        """Make the item that asks for a photograph's caption among others; None if no other caption differs from it."""
        name, own = self.names[number], self.captions[number]
        said = {plain_text(own.text): own}
        for k in generator(0, "other captions", name).permutation(len(self.names)).tolist():
            said.setdefault(plain_text(self.captions[k].text), self.captions[k])
            if len(said) > OTHERS:
                break
        return Item(name, GROUP, (number,), tuple(said.values()), name) if len(said) > 1 else None


@dataclass(frozen=True)
class CaptionCounts:
    """Counts of photographs and captions, for reports."""

    images: int
    """Photographs that are trained on."""
    held_out: int
    captions: int
    left_out: tuple[tuple[str, int], ...] = ()
    """Numbers of photographs that are left out, by reason; `refused`: of texts."""
    refused: tuple[tuple[str, int], ...] = ()
    parsed: str = ""
    """How many captions the parser parsed, and how many are one node, in words; empty if none needed a parser."""
    false: tuple[tuple[str, int], ...] = ()
    """Numbers of captions with a false one, by kind, and of parts of captions with one ("part")."""


def count_opened(opened: OpenedPhotographs, unanswered: int = 0) -> CaptionCounts:
    """Count opened photographs and their captions, `unanswered` of which are one node for want of an answer."""
    left_out = sum((Counter(source.left_out) for source in opened.sources), Counter())
    refused = sum((Counter(source.refused_texts) for source in opened.sources), Counter())
    kept = sum(len(numbers) for _, numbers in opened.training_parts())
    captions = sum(source.counts()["captions"] for source in opened.sources)
    parsed = opened.parser.counts() if opened.parser else None
    # The number of graphs kept before differs between commands.
    text = parsed.text.partition(";")[0] if parsed and parsed.captions else ""
    text += f", and {unanswered} without an answer" if text and unanswered else ""
    every = sum(map(len, opened.sources))
    false = sum((Counter(its.counts_false()) for its in opened.sources if isinstance(its, FalselyCaptioned)), Counter())
    left, refusals = tuple(left_out.items()), tuple(refused.items())
    return CaptionCounts(kept, every - kept, captions, left, refusals, text, tuple(false.items()))


@dataclass(frozen=True)
class RealData:
    """Captioned photographs of one or several sources; a split may supply the share `mix` of each batch."""

    photographs: str
    """Identity of the photographs' images, captions and graphs."""
    sources: str
    parser: str
    opening: PhotographOptions = field(compare=False, repr=False)
    numbers: CaptionCounts = field(compare=False)
    relational: bool = field(compare=False)
    """Whether captions state relations."""
    mix: float = 0.0
    """Share of the split in each batch."""
    synthetic: CellData | None = None
    """The split that is mixed in; None if none is."""
    closed: bool = False
    """Whether models have a closed vocabulary, of words without capitals and punctuation."""

    kind = "photographs"
    tests: tuple[str, ...] = field(default=("validation",), init=False, compare=False)

    @property
    def axes(self) -> dict[str, Any]:
        return {"sources": self.sources, "parser": self.parser, "mix": self.mix}

    @property
    def name(self) -> str:
        share = f", {100 * self.mix:g}% synthetic" if self.mix else ""
        return f"{self.sources}, {self.parser}{share}"

    @property
    def settings(self) -> dict[str, Any]:
        photographs = {"photographs": self.photographs, "version": VERSION}
        return photographs | ({"mix": self.mix, "synthetic": self.synthetic.settings} if self.synthetic else {})

    @property
    def splits(self) -> tuple[SplitData, ...]:
        return (self.synthetic,) if isinstance(self.synthetic, SplitData) else ()

    def counts(self) -> dict[str, Any]:
        return {"photographs": self.numbers.images, "captions": self.numbers.captions}

    def open(self, file: Path) -> Material:
        """Open the photographs, and the split's training subset from `file`; the held-out photographs are the only
        test. Raises if the photographs have changed, or if nothing of a source is left."""
        opened = open_photographs(self.opening)
        if opened.identity != self.photographs:
            raise UserError(
                f"the photographs of {self.sources} in {self.opening.base.root} have changed since this run was "
                "started; start the command again: it trains again what has changed"
            )
        texts = {text for source in opened.sources for text in source.texts()}
        if self.closed:
            texts = {plain for text in texts if (plain := plain_text(text))}
        parts = opened.training_parts()
        if empty := [source for source, places in parts if not places]:
            raise UserError(f"{empty[0].name} has too few photographs: all {len(empty[0])} would be held out; get more")
        inner = self.synthetic.open(file) if self.synthetic else None
        train = mix_sources([CaptionedSubset(*part) for part in parts], inner.train if inner else None, self.mix)
        every = sorted(texts.union(inner.texts if inner else ()))
        return Material(train, {"validation": HeldOut(opened)}, every, inner.content if inner else str, may_be_cut=True)


def mix_sources(parts: Sequence[Captioned], synthetic: Captioned | None, mix: float) -> Captioned:
    """Mix the photographs of all sources, in proportion to their numbers, with a share of the split in each batch."""
    if synthetic and mix == 1:
        return synthetic
    if not synthetic and len(parts) == 1:
        return parts[0]
    total = sum(map(len, parts))
    shares = [(1 - mix) * len(part) / total for part in parts]
    return Mixture([*parts, synthetic], [*shares, mix]) if synthetic else Mixture(parts, shares)


Files = list[tuple[ImageFiles, list[int]]]
"""Readers of image files, each with the numbers of its images."""


@cache
def training_had(training: Training, bench: PhotographBenchmark) -> str:
    """Say how many texts and image files of a benchmark a training had, and what isn't known about it."""
    texts, files, gaps = {text for part in training.parts for text in read_part(part).texts}, [], [*training.unknown]
    for cell in training.photographs:
        try:
            more, its = photographs_in(cell)
        except (UserError, KeyError) as error:
            gaps.append(f"its photographs ({error})")
        else:
            texts, files = texts | more, files + its
    tested, shown = {text.text for text in bench.texts}, len(set(bench.files.names))
    shared = count_shared_files(files, bench.files)
    counts = f"{len(tested & texts)} of {len(tested)} texts, {shared} of {shown} image files"
    return "; ".join([counts] * bool(texts or files or not gaps) + [f"unknown: {'; '.join(gaps)}"] * bool(gaps))


def count_shared_files(trained: Files, tested: ImageFiles) -> int:
    """Count the tested files with the same bytes as a trained file. Only files of the same size are read."""
    every = [(files, index) for files, indices in trained for index in indices]
    sizes = {files.bytes_of(index) for files, index in every} & set(map(tested.bytes_of, range(len(tested))))
    known = {files.digest_of(index) for files, index in every if files.bytes_of(index) in sizes}
    alike = (index for index in range(len(tested)) if tested.bytes_of(index) in sizes)
    return len({tested.names[index] for index in alike if tested.digest_of(index) in known})


@lru_cache(maxsize=2)
def photographs_in(cell: Path) -> tuple[frozenset[str], Files]:
    """Return the texts and image files that a cell was trained on. Raises if they have moved or changed."""
    result, run = read_result(cell) or {}, cell.parents[1]
    config = read_record(run / CONFIG)["config"]
    root = run / "rendered" if config["rehearse"] else Path(config["data_root"])
    folders: dict[str, list[Path]] = {}
    for name, _, path in (text.partition("=") for text in config["images"]):
        folders.setdefault(name, []).append(Path(path))
    place = Place(root, config["resolution"], folders=folders, caption=config["caption"])
    place = replace(place, kept_out=images_of_tests(place, allow_unknown=config["allow_unknown"]))
    opened = open_photographs(
        PhotographOptions(
            split_sources(result["sources"]),
            place,
            result["parser"],
            Path(config["parses"]),
            false_captions=tuple(map(resolve_given, config.get("false_captions", ()))),
        )
    )
    if opened.identity != result["settings"]["data"]["photographs"]:
        raise UserError(f"those in {root} have changed since")
    parts = opened.training_parts()
    texts = frozenset(text for source, places in parts for k in places for text in source.texts_of(k))
    return texts, [(source.files, places) for source, places in parts]
