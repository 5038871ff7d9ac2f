"""What a cell reads: its data, graphs that aren't the generator's, and the negatives of its loss."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError
from menagerie.generators.parsers.graph_source import ReadGraphs
from menagerie.models.recipe import FALSE_CAPTIONS, negatives_of
from menagerie.models.registry import spec_of
from menagerie.studies.runs.cell import Cell, Job
from menagerie.studies.runs.data import Material

if TYPE_CHECKING:
    from menagerie.generators.captioned import Captioned
    from menagerie.generators.parsers.parser import CaptionParser
    from menagerie.models.scorer import Scorer


OPENED: dict[tuple[Any, ...], Material] = {}  # the data that this process opened last


def open_material(job: Job) -> Material:
    """Open a cell's data, or return those of the last cell if they are the same: opening takes seconds."""
    stat = job.data_file.stat() if job.data_file.exists() else None
    key = (job.cell.data, job.data_file, stat and (stat.st_mtime_ns, stat.st_size))
    if key not in OPENED:
        OPENED.clear()  # free memory first
        OPENED[key] = job.cell.data.open(job.data_file)
    return OPENED[key]


class Graphs(NamedTuple):
    """Sources of the graphs that are read in training and in tests; None means the caption's own graph."""

    train: ReadGraphs | None = None
    test: ReadGraphs | None = None

    @property
    def parser(self) -> "CaptionParser | None":
        return next((read.parser for read in self if read and read.parser), None)


PLAIN = Graphs()


def read_graphs(job: Job, material: Material) -> Graphs:
    """Open the sources of the graphs that a cell reads. Raises if its parser can't run here, or without a world."""
    source, seed = job.cell.graphs, job.cell.seed
    if source.plain:
        return PLAIN
    if material.words is None:
        raise UserError("--graphs needs data of a world; choose a parser of photographs' captions by --parser")
    read = ReadGraphs(source, material.words, seed, job.out / "parses")
    return Graphs(*(None if source.at(place).plain else read for place in ("train", "test")))


def give_readers(scorer: "Scorer", graphs: Graphs) -> None:
    """Make a scorer read these graphs in training and in tests."""
    from menagerie.models.texts import RegraphedReader

    plain, training = scorer.reader, scorer.training_reader or scorer.reader
    scorer.training_reader = RegraphedReader(plain, graphs.train) if graphs.train else training
    scorer.reader = RegraphedReader(plain, graphs.test) if graphs.test else plain


def parsed_texts(material: Material, graphs: Graphs) -> Iterator[str]:
    """Yield all nodes and predicates, perhaps new words, that a parser finds in all captions, parsed at once."""
    if graphs.parser is None:
        return
    everything = range(len(material.train))
    captions = dict.fromkeys(caption.text for caption in material.train.captions(everything, everything))
    items = (item for test in material.tests.values() for item in test.items)
    captions |= dict.fromkeys(caption.text for item in items for caption in item.texts)
    for graph in graphs.parser.parse(list(captions)):
        yield from graph.nodes
        yield from (edge.predicate for edge in graph.edges)


def kind_of_further_negatives(scorer: "Scorer") -> str:
    """Return the kind of false further captions in a scorer's training batches; empty if they have none."""
    return getattr(scorer.training_reader or scorer.reader, "false_further", "")


def loss_negatives(cell: Cell, train: "Captioned", further: str = "") -> list[str]:
    """List the negatives of the loss besides other images and their captions: false captions, also of further ones (of
    the kind `further`), counterfactual images (if the data have any), altered graphs (of relations)."""
    from menagerie.generators.splits.recipe_file import KINDS

    wanted = negatives_of(cell.recipe, cell.negatives)
    if wanted.images:
        wanted = wanted._replace(images=bool((train.counterfactual_items(range(len(train))) >= 0).any()))
    spec, data = spec_of(cell.model), cell.data
    options = spec.make_config(cell.options)
    relational = KINDS[data.kind].relational if data.kind in KINDS else getattr(data, "relational", False)
    altered = spec.local_loss and options.local_weight and relational
    words = [*wanted.words, *([f"graphs {' and '.join(options.local_negatives)}"] if altered else [])]
    return words + ([f"of further captions: {FALSE_CAPTIONS[further]}"] if further in train.text_negatives else [])
