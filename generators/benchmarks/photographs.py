"""Benchmarks of real photographs: records of image files and texts, read from a folder of somebody's data."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Benchmark, Item, Outcome, Scores, Summary, summarise, texts_chosen
from menagerie.generators.benchmarks.tagging import Tagger, spacy_tags
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.coco import one_node
from menagerie.generators.sources.folders import ITSELF, Given, SearchedFolders
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.json_file import writable
from menagerie.generators.sources.nearby import hint
from menagerie.generators.sources.registry import given_above

Rule = Callable[[Scores], Outcome]


class Box(NamedTuple):
    """A part of an image, in pixels."""

    left: int
    top: int
    width: int
    height: int


class Photograph(NamedTuple):
    """A file below a folder of images, or the part of it in a box."""

    file: str
    box: Box | None = None


class Record(NamedTuple):
    """k images and m texts: image i belongs with text i, texts from k on belong with none."""

    name: str
    group: str
    images: tuple[Photograph, ...]
    texts: tuple[str, ...]
    cluster: str = ""
    """Records of one cluster resemble each other: a bootstrap draws them together."""


@dataclass(frozen=True)
class Place:
    """The location of benchmarks' files, and the options by which they are read."""

    root: Path
    resolution: int = 224
    """Side of images as they are read, in pixels."""
    parse: Callable[[str], SceneGraph] = one_node
    """Makes the scene graph of a text, for scorers that read graphs."""
    squashed: bool = False
    """Whether a whole image is squashed to the square, in place of its centre."""
    interpolation: str = "bicubic"
    """One of Pillow's resampling filters."""
    workers: int = 1
    """Threads that decode images."""
    allow_missing: bool = False
    """Whether records whose images are missing are left out and counted, in place of an error."""
    folders: Given = field(default_factory=dict)
    """Folders of images that aren't below the root, by the path that they would have there: all are searched."""
    tag: Tagger | None = spacy_tags
    """Parts of speech of a text, for benchmarks that shuffle words by them; None shuffles none, enough to count."""

    def path(self, name: str) -> Path:
        """A file or folder below the root, or where it is instead: the first such place that there is."""
        places = self.places(name)
        return next((place for place in places if place.exists()), places[0])

    def places(self, name: str) -> tuple[Path, ...]:
        """The paths at which a file or folder may lie."""
        part, below = given_above(name, self.folders)
        return tuple(folder / below for folder in self.folders[part]) if part else (self.root / name,)

    def only(self, name: str) -> Path:
        """A folder that is read as a whole; raises where several are given for it."""
        if len(places := self.places(name)) > 1:
            raise UserError(
                f"--images {name} is given {len(places)} times; what is in it is listed, so give one folder"
            )
        return places[0]

    def images(self, name: str) -> SearchedFolders:
        """A folder of images, with all folders that are given for it and for folders in it."""
        within = {
            PurePosixPath(given).relative_to(name).as_posix(): tuple(path.resolve() for path in paths)
            for given, paths in self.folders.items()
            if PurePosixPath(given).is_relative_to(name)
        }
        places = tuple(path.resolve() for path in self.places(name))
        return SearchedFolders(places[0], within if len(places) == 1 else within | {ITSELF: places})


class PhotographSet(Benchmark):
    """Records over image files, whatever is asked of them."""

    made_texts: bool = False
    """Whether its texts were made here and are part of its results."""
    reader: type[ImageFiles] = ImageFiles
    """The class that reads the images."""
    lacking: str
    """A text that says which images are missing; empty where none is."""

    def __init__(self, name: str, folder: str, records: Sequence[Record], place: Place) -> None:
        """`folder` is that of its images below the data root.

        Raises for two records of one name, and where images are missing, unless that is allowed.
        """
        self.name = name
        images = place.images(folder)
        check_records(name, images, records)
        lost = missing_images(images, records, self.reader)
        self.lacking = missing_in_words(images, lost, len(images_of(records)), self.reader)
        if lost and not place.allow_missing:
            raise UserError(f"{name}: {self.lacking}; put them there, or score the other records with --allow-missing")
        self.records = [record for record in records if not lost & images_of([record])]
        self.dropped = [record for record in records if lost & images_of([record])]
        self.missing = Counter(record.group for record in self.dropped)
        shown = list(dict.fromkeys(image for record in self.records for image in record.images))
        reading = {"squashed": place.squashed, "interpolation": place.interpolation, "workers": place.workers}
        reading["boxes"] = [image.box for image in shown]
        self.files = self.reader(images, [image.file for image in shown], place.resolution, **reading)
        self.numbers = {image: number for number, image in enumerate(shown)}

    @property
    def groups(self) -> Sequence[str]:
        """The groups of all records, including groups whose images are missing."""
        return list(dict.fromkeys([*self.tests(), *self.untested()]))

    def tests(self) -> Counter[str]:
        return Counter(record.group for record in self.records)

    def untested(self) -> Counter[str]:
        """The number of tests in each group that lack their images."""
        return self.missing

    def content(self) -> Iterator[str]:
        """All that decides a result, but for the pixels: records, and the sizes of image files in bytes."""
        yield from (repr(tuple(record)) for record in self.records)
        for name in sorted(set(map(self.reader.file_of, images_of(self.records)))):
            yield f"{name} {self.files.place(name).path.stat().st_size}"

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        return self.files.read(numbers)

    def fingerprint(self, number: int) -> str:
        """Hash of all that decides the pixels of an image."""
        return self.files.fingerprint(number)

    def framed(self, resolution: int, squashed: bool, interpolation: str) -> "PhotographSet":
        """The same records over images that are read as other squares; no annotation is read again."""
        made = copy(self)
        made.files = self.files.framed(resolution, squashed, interpolation)
        return made

    @abstractmethod
    def reworded(self, texts: Mapping[Caption, Caption]) -> "PhotographSet":
        """The same with other texts, without the tests of which a text has no word left."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The figures that papers report beside the groups; for most benchmarks the mean over all records."""
        return {"all": summarise(outcomes)}


class Photographs(PhotographSet):
    """Each record is scored by itself. The rule is "strictly higher than all others" unless a benchmark has its own."""

    true_texts: int = 1
    """How many texts of a record are true of image i: text i, and those behind it."""

    def __init__(
        self,
        name: str,
        folder: str,
        records: Sequence[Record],
        place: Place,
        rules: Rule | Mapping[str, Rule] = texts_chosen,
    ) -> None:
        """`rules` are of all records, or by group."""
        super().__init__(name, folder, records, place)
        self._rules = rules
        captions = {text: Caption(text, place.parse(text)) for record in self.records for text in record.texts}
        self.items = [
            Item(
                *(record.name, record.group),
                tuple(self.numbers[image] for image in record.images),
                tuple(captions[text] for text in record.texts),
                record.cluster or record.name,
                self.true_texts,
            )
            for record in self.records
        ]

    def content(self) -> Iterator[str]:
        """All that decides a result: also the rules, by name, so that one by another rule is scored again."""
        rules = {"": self._rules} if callable(self._rules) else self._rules
        for group, rule in sorted(rules.items()):
            yield f"{group} {getattr(rule, '__qualname__', type(rule).__qualname__)}"
        yield from super().content()

    def reworded(self, texts: Mapping[Caption, Caption]) -> "PhotographSet":
        """The same with other texts; the items that have none left are gone."""
        made = copy(self)
        kept = (item._replace(texts=tuple(texts[text] for text in item.texts)) for item in self.items)
        made.items = [item for item in kept if all(text.text for text in item.texts)]
        return made

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        rule = self._rules if callable(self._rules) else self._rules[item.group]
        return rule(scores)


def check_records(name: str, folder: SearchedFolders, records: Sequence[Record]) -> None:
    """Raise unless there are some, each with a name of its own that can be written to a file."""
    if not records:
        raise UserError(f"{name} has no records in {folder}; get its files again")
    if halved := next((record for record in records if not writable(words_of(record))), None):
        raise UserError(f"{name} names something with half a character in it: {halved.name!r}; rename it")
    names = Counter((record.group, record.name) for record in records)
    if twice := next((record for (_, record), count in names.items() if count > 1), None):
        raise UserError(f"{name} has {twice!r} more than once; correct its files, or get them again")


def words_of(record: Record) -> str:
    """The text that identifies a record in results, apart from its captions: name, group, cluster and image files."""
    return " ".join((record.name, record.group, record.cluster, *(image.file for image in record.images)))


def images_of(records: Sequence[Record]) -> set[str]:
    """The images that records name, each a file or in one."""
    return {image.file for record in records for image in record.images}


def missing_images(folder: SearchedFolders, records: Sequence[Record], reader: type[ImageFiles]) -> set[str]:
    """The images whose files aren't there; one that would lie elsewhere raises."""
    named = images_of(records)
    there = folder.found(set(map(reader.file_of, named)))
    return {name for name in named if reader.file_of(name) not in there}


def missing_in_words(folder: SearchedFolders, lost: set[str], every: int, reader: type[ImageFiles]) -> str:
    """Say how many of all images are missing, and where the first lies instead if it is near; empty where none is."""
    if not lost:
        return ""
    first = min(lost)
    places = folder.places(reader.file_of(first))
    where, near = " and ".join(str(place.folder) for place in places), "".join(hint(*place) for place in places)
    return f"{len(lost)} of {every} images are missing in {where}, the first is {first!r:.200}{near}"


def macro(parts: Sequence[Summary]) -> Summary:
    """The mean over parts, each as heavy as the others; n counts their records."""
    known = [part for part in parts if part.n]
    if not known:
        return summarise([])
    official, neutral, ties = (sum(values) / len(known) for values in zip(*(part[:3] for part in known), strict=True))
    return Summary(official, neutral, ties, sum(part.n for part in known))


def by_group(items: Sequence[Item], outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    parts: dict[str, list[Outcome]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        parts.setdefault(item.group, []).append(outcome)
    return parts


def of_groups(items: Sequence[Item], outcomes: Sequence[Outcome]) -> dict[str, Summary]:
    """Summarise the outcomes of the items of each group."""
    return {group: summarise(part) for group, part in by_group(items, outcomes).items()}
