"""Benchmarks of real photographs: records of image files and texts, read from a user's folder of data."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import (
    Benchmark,
    Item,
    Outcome,
    ScoredItem,
    Scores,
    Summary,
    first_of_best,
    summarise,
    texts_chosen,
)
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.folders import SearchedFolders
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.rows import writable

Rule = Callable[[Scores], Outcome]
Each = TypeVar("Each")
Vectors = Callable[[Sequence[Caption]], Mapping[Caption, Float[np.ndarray, " _d"]]]  # a unit vector of each text


class Box(NamedTuple):
    """A part of an image, in pixels."""

    left: int
    top: int
    width: int
    height: int


class Photograph(NamedTuple):
    """An image file, relative to a folder of images, or the part of it in a box."""

    file: str
    box: Box | None = None


class Record(NamedTuple):
    """k images and m texts, in their file's order. Of one image with several texts, or of one text with several images,
    the one at `truth` is true. Otherwise image i belongs with text i, and texts from k on are false, unless the
    benchmark says that more texts are true (`ItemBenchmark`, `Retrieval`)."""

    name: str
    task: str
    images: tuple[Photograph, ...]
    texts: tuple[str, ...]
    cluster: str = ""
    """A name shared by records that resemble each other: a bootstrap draws them together."""
    tags: tuple[str, ...] = ()
    """Names of groups of records whose results are reported too."""
    truth: int = 0
    """Index of the true text of an image, or of the true image of a text; it decides who wins a tie under an argmax."""


class PhotographBenchmark(Benchmark):
    """The base of benchmarks with records of image files."""

    figures: Sequence[str] = ("all",)
    """The figures that papers report besides the tasks: the mean over tasks if a name begins with "macro", else the
    mean over all records. Without any, the tasks are reported."""
    made_texts: bool = False
    """Whether our code made the texts; results then keep them."""
    as_stored: bool = False
    """Whether official code scales pictures before it makes them RGB, palettes and all; most code does it first."""
    lacking: str
    """Message that says which images are missing; empty if none are."""

    def __init__(self, name: str, folder: str, records: Sequence[Record], place: Place) -> None:
        """Check the records, and find their images in a folder below the data root. Raises if there are no records or
        two of one name in a task, and for missing images unless `place` allows them."""
        self.name = name
        images = place.images(folder)
        check_benchmark_records(name, images, records)
        _, lost, self.lacking = ImageFiles.search(images, sorted(image_names(records)))
        if lost and not place.allow_missing:
            raise UserError(f"{name}: {self.lacking}; put them there, or score the other records with --allow-missing")
        self.records = [record for record in records if not lost & image_names([record])]
        self.dropped = [record for record in records if lost & image_names([record])]
        self.missing = Counter(record.task for record in self.dropped)
        shown = list(dict.fromkeys(image for record in self.records for image in record.images))
        reading = {"squashed": place.squashed, "interpolation": place.interpolation, "workers": place.workers}
        reading |= {"boxes": [image.box for image in shown], "upright": False, "as_stored": self.as_stored}
        self.files = ImageFiles(images, [image.file for image in shown], place.resolution, **reading)
        self.numbers = {image: number for number, image in enumerate(shown)}

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks of all tests, including tests whose images are missing."""
        return list(dict.fromkeys([*self.tests(), *self.untested()]))

    def tests(self) -> Counter[str]:
        return Counter(record.task for record in self.records)

    def untested(self) -> Counter[str]:
        """By task, the number of tests whose images are missing."""
        return self.missing

    def content(self) -> Iterator[str]:
        """Yield everything that decides a result except pixels: records, and the sizes of image files in bytes."""
        yield from (repr((*record[:5], record.truth)) for record in self.records)  # without tags: they change no score
        for name in sorted(image_names(self.records)):
            yield f"{name} {self.files.place(name).stat().st_size}"

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        return self.files.read(numbers)

    def picture(self, number: int) -> UInt8[np.ndarray, "h w 3"]:
        return self.files.whole(number)

    def reframe(self, resolution: int, squashed: bool, interpolation: str) -> "PhotographBenchmark":
        """A copy whose images are cropped and scaled in another way; annotation files aren't read again."""
        made = copy(self)
        made.files = self.files.reframe(resolution, squashed, interpolation)
        return made

    @abstractmethod
    def reword(self, texts: Mapping[Caption, Caption]) -> "PhotographBenchmark":
        """A copy in which `texts` maps each text to another, without tests of which a text becomes empty."""

    def headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The `figures`, or others. To make intervals it is called with some of the items, so `self.items` decides
        which records or tasks count."""
        tasks = summaries_by_task(items, outcomes)
        means = {"macro": macro_mean(self.tasks_to_average(tasks)), "all": summarise(outcomes)}
        return {name: means["macro" if name.startswith("macro") else "all"] for name in self.figures} or tasks

    def further(
        self, results: Sequence[ScoredItem], vectors: Vectors | None = None, level: float | None = None
    ) -> Iterable[ScoredItem]:
        """Results under further rules of the authors, by task: headlines that need scores. `vectors` embeds texts, and
        gives none for a scorer without vectors; above `level`, if there is one, a score says that a text is true."""
        return ()

    def further_headlines(self, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Mapping[str, Summary]:
        """The numbers of `further`: each of its tasks."""
        return summaries_by_task(items, outcomes)

    def tasks_to_average(self, tasks: Mapping[str, Summary]) -> list[Summary]:
        """The tasks that count for the mean over tasks: all, but some benchmarks leave some out."""
        return list(tasks.values())


class ItemBenchmark(PhotographBenchmark):
    """A benchmark in which each record is one item. The default rule is "strictly higher than all others"."""

    def __init__(
        self,
        name: str,
        folder: str,
        records: Sequence[Record],
        place: Place,
        rules: Rule | Mapping[str, Rule] = texts_chosen,
        figures: Sequence[str] | None = None,
        true_texts: int = 1,
    ) -> None:
        """See `PhotographBenchmark`; `rules` is the rule for all records, or a rule by task. Of a record's texts
        `true_texts` are true of each image: those of image i start at text i."""
        super().__init__(name, folder, records, place)
        self._rules = {"": rules} if callable(rules) else rules
        self.figures = self.figures if figures is None else figures
        captions = {text: Caption(text, place.parse(text)) for record in self.records for text in record.texts}
        self.items = [
            Item(
                *(record.name, record.task),
                true_first([self.numbers[image] for image in record.images], record),
                true_first([captions[text] for text in record.texts], record),
                record.cluster or record.name,
                true_texts,
                record.truth,
            )
            for record in self.records
        ]
        self.true_texts = true_texts

    def items_without_images(self) -> Iterator[Item]:
        """Yield items of the records whose images are missing, for readers of texts alone; images have no numbers."""
        for record in self.dropped:
            texts = tuple(Caption(text, one_node(text)) for text in record.texts)
            yield Item(record.name, record.task, (-1,) * len(record.images), texts, record.cluster, self.true_texts)

    def content(self) -> Iterator[str]:
        """Yield everything that decides a result, also the names of the rules, so that a new rule causes new scores."""
        for task, rule in sorted(self._rules.items()):
            yield f"{task} {getattr(rule, '__qualname__', type(rule).__qualname__)}"
        yield from super().content()

    def reword(self, texts: Mapping[Caption, Caption]) -> "PhotographBenchmark":
        """A copy in which `texts` maps each text to another, without items of which a text becomes empty."""
        made = copy(self)
        kept = (item._replace(texts=tuple(texts[text] for text in item.texts)) for item in self.items)
        made.items = [item for item in kept if all(text.text for text in item.texts)]
        return made

    def outcome(self, item: Item, scores: Scores) -> Outcome:
        """Score an item by its rule; of one text with several images, the rule gets a row with the images' scores."""
        rule = self._rules.get("") or self._rules[item.task]
        row = np.ascontiguousarray(scores.T) if len(item.texts) == 1 else scores
        return first_of_best(row, item.truth) if rule is first_of_best else rule(row)


def true_first(options: Sequence[Each], record: Record) -> tuple[Each, ...]:
    """The images or the texts of a record, that at `truth` first; all of them if they are only one."""
    place = record.truth if len(options) > 1 else 0
    return (options[place], *options[:place], *options[place + 1 :])


def check_benchmark_records(name: str, folder: SearchedFolders, records: Sequence[Record]) -> None:
    """Raise unless there are records, and each has a name that is unique in its task and can be written to a file."""
    if not records:
        raise UserError(f"{name} has no records in {folder}; get its files again")
    named = ((record, (*record[:2], record.cluster, *image_names([record]))) for record in records)
    if halved := next((record for record, words in named if not writable(" ".join(words))), None):
        raise UserError(f"{name} names something with half a character in it: {halved.name!r}; rename it")
    if odd := next((record for record in records if not is_whole(record)), None):
        raise UserError(
            f"{name}: {odd.name!r} has {len(odd.images)} images, {len(odd.texts)} texts and truth {odd.truth}; give as "
            "many texts as images or more, or one text, and a truth only to choose among several beside one"
        )
    names = Counter((record.task, record.name) for record in records)
    if twice := next((record for (_, record), count in names.items() if count > 1), None):
        raise UserError(f"{name} has {twice!r} more than once; correct its files, or get them again")


def is_whole(record: Record) -> bool:
    """Whether a record has enough texts for its images, and the one that is true."""
    images, texts = len(record.images), len(record.texts)
    choices = max(images, texts) if min(images, texts) == 1 else 1
    return images > 0 and (images <= texts or texts == 1) and 0 <= record.truth < choices


def image_names(records: Sequence[Record]) -> set[str]:
    """The names of the images that records show."""
    return {image.file for record in records for image in record.images}


def macro_mean(parts: Sequence[Summary]) -> Summary:
    """The unweighted mean over the parts that have items; `n` is the sum over parts."""
    known = [part for part in parts if part.n]
    if not known:
        return summarise([])
    official, neutral, ties = (sum(values) / len(known) for values in zip(*(part[:3] for part in known), strict=True))
    return Summary(official, neutral, ties, sum(part.n for part in known))


def group_by_task(
    items: Sequence[Item], outcomes: Sequence[Each], name: Callable[[Item], Any] = attrgetter("task")
) -> dict[Any, list[Each]]:
    """Collect the items' outcomes, or whatever `outcomes` has for each item, by the items' tasks or another `name`."""
    parts: dict[Any, list[Each]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        parts.setdefault(name(item), []).append(outcome)
    return parts


def summaries_by_task(
    items: Sequence[Item], outcomes: Sequence[Outcome], name: Callable[[Item], Any] = attrgetter("task")
) -> dict[Any, Summary]:
    """The summary of each task's outcomes, or of those of the items that share another `name`."""
    return {part: summarise(its) for part, its in group_by_task(items, outcomes, name).items()}


def summaries_by_tag(
    items: Sequence[Item], outcomes: Sequence[Outcome], tags: Mapping[str, Sequence[str]]
) -> dict[str, Summary]:
    """The summaries of each tag's tasks, named "Object: text"; `tags` are those of each record, by its name."""
    found: dict[str, list[Outcome]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        for tag in tags[item.record]:
            found.setdefault(f"{tag}: {item.task}", []).append(outcome)
    return {name: summarise(found[name]) for name in sorted(found)}


def with_means(parts: Mapping[str, Summary]) -> dict[str, Summary]:
    """The unweighted mean over parts of each measure, and then the measures of the parts, named "PART: MEASURE"."""
    measures = dict.fromkeys(name.rpartition(": ")[2] for name in parts)
    means = {one: macro_mean([its for name, its in parts.items() if name.endswith(f": {one}")]) for one in measures}
    return means | dict(parts)
