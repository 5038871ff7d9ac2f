"""What each part of a scorer's vectors adds to the scores of test items, and how accurate half of the slots are.

Slots are ranked by the accuracy of each alone on validation, and half of them are kept (SPARO, section 5.1, table 4).
This module has the measure, its table, and the paper's claim.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captions.templates import Caption
from menagerie.models.contract import TEXTS, TOLERANCE, build_for_contract
from menagerie.models.evaluation.scoring import BLOCK, encode_blocks, encode_pixels, encode_texts
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.tables import DASH, task_order
from menagerie.studies.analysis.words import one_line
from menagerie.studies.frame.claims import Verdict, make_verdict
from menagerie.studies.frame.estimate import estimates
from menagerie.studies.frame.measure import Measure
from menagerie.studies.frame.parts import Rows
from menagerie.studies.runs.data import Material

WITHOUT = "leave it out of --models, or masks out of --parts"
# Tasks that slots are ranked by: recognition, as the paper ranks them by zero-shot classification, and binding itself.
RANKINGS: Mapping[str, tuple[str, ...]] = {"recognition": ("replace animal", "replace texture"), "binding": ("swap",)}
SEPARATOR = " | "  # in the names of columns
ALL, BEST, WORST, RANDOM = "all slots", "best half", "worst half", "random half"
NOT_RANKED = {"ranked": "", "kept": ALL}
Kept = tuple[str, str]
"""The name of a ranking ("" without one), and which slots are kept."""
SAYS = """Slots chosen after the fact (table 4): accuracy in percent over all tests, by task, all seeds. Each
slot is ranked by its own accuracy on validation: recognition is replace animal and replace texture, binding is swap.
Random: the mean over several halves. Average: the mean of the tasks, with equal weights. Minus all slots: over all
records, so that a task with more records counts more, and the sign may differ from that of the averages' difference."""


class ItemKey(NamedTuple):
    """The columns of predictions that identify an item."""

    subset: str
    task: str
    scene: str
    caption: str
    animals: str


ITEM = ["seed", *ItemKey._fields]  # columns that identify a measured item


class EmbeddedItems(NamedTuple):
    """n items, each of an image, a true text and a false one."""

    records: list[ItemKey]
    products: Float[np.ndarray, "n 2 d"]
    """The elementwise products of the image's vector with the true and the false text's, which sum to scores."""
    squares: Float[np.ndarray, "n d"]
    """The squares of the elements of the image's vector."""

    def of_tasks(self, tasks: Iterable[str]) -> "EmbeddedItems":
        kept = [k for k, record in enumerate(self.records) if record.task in tasks]
        return EmbeddedItems([self.records[k] for k in kept], self.products[kept], self.squares[kept])

    def in_parts(self, parts: int) -> "EmbeddedItems":
        """Return the same items with `products` and `squares` summed in each of `parts` equal parts of the vectors."""
        n, texts, width = self.products.shape
        products = self.products.reshape(n, texts, parts, width // parts).sum(-1)
        return self._replace(products=products, squares=self.squares.reshape(n, parts, width // parts).sum(-1))

    def values(self, weights: Float[np.ndarray, "d v"]) -> Float[np.ndarray, "n v"]:
        """Return the value of each item if parts have these weights: 1 if it is right, one half for a tie, else 0."""
        scores = np.einsum("nkd,dv->nkv", self.products, weights)
        return (scores[:, 0] > scores[:, 1]) + 0.5 * (scores[:, 0] == scores[:, 1])

    def rows(self, values: Mapping[str, Float[np.ndarray, " n"]]) -> Iterator[dict[str, Any]]:
        columns = [array.tolist() for array in values.values()]
        for record, *numbers in zip(self.records, *columns, strict=True):
            yield record._asdict() | dict(zip(values, numbers, strict=True))


def embed_tests(scorer: Scorer, tests: Mapping[str, Benchmark], names: Iterable[str]) -> EmbeddedItems:
    """Embed the binary items of some tests. Raises if the scorer hasn't one vector for each image and each text."""
    each = [embed_test(scorer, name, tests[name]) for name in names if binary_items(tests[name])]
    records = [record for part in each for record in part.records]
    return EmbeddedItems(records, *(np.concatenate([part[k] for part in each]) for k in (1, 2)))


def binary_items(test: Benchmark) -> list[Item]:
    """Return the items that have one image, a true text and a false one."""
    return [item for item in test.items if (len(item.images), len(item.texts), item.true) == (1, 2, 1)]


@torch.no_grad()
def embed_test(scorer: Scorer, name: str, test: Benchmark) -> EmbeddedItems:
    items = binary_items(test)
    numbers = {image: k for k, image in enumerate(dict.fromkeys(item.images[0] for item in items))}
    texts = {text: k for k, text in enumerate(dict.fromkeys(text for item in items for text in item.texts))}
    of_images = encode_blocks(scorer, test.images, in_blocks(list(numbers)))
    of_texts = (encode_texts(scorer, block) for block in in_blocks(list(texts)))
    images, embeddings = (single_vectors(scorer, found) for found in (of_images, of_texts))
    image_embeddings = images[[numbers[item.images[0]] for item in items]]
    both = embeddings[[[texts[text] for text in item.texts] for item in items]]
    records = [ItemKey(name, item.task, item.record, item.texts[0].text, item.cluster) for item in items]
    return EmbeddedItems(records, image_embeddings[:, None] * both, image_embeddings**2)


def in_blocks(some: list[Any]) -> list[list[Any]]:
    return [some[k : k + BLOCK] for k in range(0, len(some), BLOCK)]


def check_vectors(model: str, towers: TowerConfig, options: Mapping[str, Any]) -> None:
    """Raise unless a model's scores are dot products of an image's and a text's vector, whose terms masks weight."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        scorer = build_for_contract(model, replace(towers, pretrained=""), dict(options)).eval()
        side = scorer.pixel_scale.framing.resolution
        images = encode_pixels(scorer, torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8))
        texts = encode_texts(scorer, [Caption(*text) for text in TEXTS])
        products = single_vectors(scorer, [images]) @ single_vectors(scorer, [texts]).T
        scores = scorer.similarity(images, texts).float().numpy()
    if np.abs(products - scores).max() > TOLERANCE:
        raise UserError(f"scores of {model} are not dot products of its vectors, whose terms masks weight; {WITHOUT}")


def single_vectors(scorer: Scorer, embeddings: Iterable[object]) -> Float[np.ndarray, "n d"]:
    """Return the embeddings of several blocks as one array; raises unless each is a single vector."""
    rows = list(embeddings)
    if not all(isinstance(embedding, Tensor) and embedding.ndim == 2 for embedding in rows):
        raise UserError(f"{type(scorer).__name__} has no single vector for an image or a text; {WITHOUT}")
    return torch.cat(rows).float().cpu().numpy()


def percent_right(values: pd.Series) -> float:
    """Return the mean of some items' values in percent."""
    return 100 * float(np.mean(values.to_numpy())) if len(values) else math.nan


def sorted_tasks(items: pd.DataFrame) -> list[str]:
    return sorted(set(items.task), key=task_order)


@dataclass(frozen=True)
class Selection(Measure):
    """The accuracy of selections of slots: a row for each item of the tests, a column for each selection, such as
    "recognition | best half".

    "random half" is the mean over `random_halves` of them. Rankings without items in validation are left out.
    """

    slots: int
    random_halves: int
    tests: tuple[str, ...]

    def rows(self, scorer: Scorer, material: Material, seed: int) -> Iterator[dict[str, Any]]:
        validation, tests = (embed_tests(scorer, material.tests, names) for names in (("validation",), self.tests))
        return selected_rows(validation.in_parts(self.slots), tests.in_parts(self.slots), self.random_halves, seed)


def selected_rows(
    validation: EmbeddedItems, tests: EmbeddedItems, random_halves: int, seed: int
) -> Iterator[dict[str, Any]]:
    chosen = selections(validation, tests.products.shape[-1], random_halves, seed)
    return tests.rows({SEPARATOR.join(kept): tests.values(weights).mean(1) for kept, weights in chosen.items()})


def selections(
    validation: EmbeddedItems, slots: int, random_halves: int, seed: int
) -> dict[Kept, Float[np.ndarray, "slots halves"]]:
    """Return the weights of slots for each selection. Of several columns the mean accuracy counts."""
    draws = generator(seed, "halves of slots")
    random = [first_half(draws.permutation(slots)) for _ in range(random_halves)]
    found = {("", ALL): np.ones((slots, 1)), ("", RANDOM): np.stack(random, 1)}
    for ranking, tasks in RANKINGS.items():
        if validation.of_tasks(tasks).records:
            order = np.argsort(-slot_accuracies(validation, tasks), kind="stable")
            found[ranking, BEST], found[ranking, WORST] = first_half(order)[:, None], first_half(order[::-1])[:, None]
    return found


def slot_accuracies(validation: EmbeddedItems, tasks: Sequence[str]) -> Float[np.ndarray, " slots"]:
    items = validation.of_tasks(tasks)
    return items.values(np.eye(items.products.shape[-1], dtype=items.products.dtype)).mean(0)


def first_half(order: Shaped[np.ndarray, " slots"]) -> Float[np.ndarray, " slots"]:
    """Return weight 1 for the first half of the slots in an order, and 0 for the others."""
    weights = np.zeros(len(order))
    weights[order[: max(1, len(order) // 2)]] = 1
    return weights


def selection_points(measured: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each item, ranking and selection, from the rows of `Selection`."""
    if not len(measured):
        return measured
    long = measured.melt(ITEM, [name for name in measured if SEPARATOR in name], "selection").dropna(subset="value")
    names = long.selection.str.split(SEPARATOR, expand=True, regex=False)
    return long.assign(ranked=names[0], kept=names[1])


def selection_table(points: pd.DataFrame) -> Rows:
    """Return a table with a row for each selection of slots: its accuracy on each task, their average, and how far its
    accuracy over all records is above that of all slots."""
    tasks, deltas = sorted_tasks(points), estimates(points, ("ranked", "kept"), NOT_RANKED)
    means = 100 * points.pivot_table("value", ["ranked", "kept"], "task", sort=False)[tasks]
    rows = [
        (
            ranked or DASH,
            kept,
            *(f"{value:.1f}" for value in (*each, each.mean())),
            str(deltas.get((ranked, kept), DASH)),
        )
        for (ranked, kept), each in means.iterrows()
    ]
    return Rows("selection", ("ranked by", "slots", *tasks, "average", "minus all slots"), rows, says=one_line(SAYS))


def selection_verdicts(points: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdict on table 4, that the half of the slots that recognises best beats all, and on two controls."""
    tests = f"all tests: {', '.join(sorted_tasks(points)) if len(points) else DASH}"
    texts = {
        ("", ALL): "The half of the slots that recognise best, chosen on validation, is better than all (table 4: "
        "SugarCrepe 76.1 against 73.0); over all tasks",
        ("", RANDOM): "... than random halves (our control)",
        ("recognition", WORST): "... than the worst half (our control)",
    }
    for (ranked, kept), text in texts.items():
        against = {"ranked": ranked, "kept": kept}
        deltas = estimates(points, ("ranked", "kept"), against) if len(points) else {}
        yield make_verdict(text, f"{BEST} − {kept}", tests, deltas.get(("recognition", BEST)), 1)
