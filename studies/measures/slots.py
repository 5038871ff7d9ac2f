"""What each part of a scorer's vectors adds to the scores of test items (SPARO): how accurate half of the slots are,
ranked by the accuracy of each alone on validation (section 5.1, table 4), and what masks of image vectors, trained on
one task, change on others (section 5.2, table 5, appendix 0.C.1). Measures, tables, and the paper's claims."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator, seed_of
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captions.templates import Caption
from menagerie.models.contract import TEXTS, TOLERANCE, build_for_contract
from menagerie.models.evaluation.scoring import BLOCK, encode_blocks, encode_pixels, encode_texts
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.tables import DASH, task_order
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import Verdict, make_verdict
from menagerie.studies.frame.estimate import estimate, estimates
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.frame.parts import Rows
from menagerie.studies.runs.data import Material

WITHOUT = "leave it out of --models, or masks out of --parts"
# Tasks that slots are ranked by: recognition, as the paper ranks them by zero-shot classification, and binding itself.
RANKINGS: Mapping[str, tuple[str, ...]] = {"recognition": ("replace animal", "replace texture"), "binding": ("swap",)}
SEPARATOR = " | "  # in the names of columns
ALL, BEST, WORST, RANDOM = "all slots", "best half", "worst half", "random half"
Kept = tuple[str, str]  # the name of a ranking ("" without one), and which slots are kept
# As the paper trains masks. It states neither a batch size nor a start; here all weights start equal.
EPOCHS, RATE, MOMENTUM, BATCH = 100, 0.02, 0.9, 64
LEAST_SCALE = 100.0
BESIDE = "clip-gap"  # the model that SPARO is compared with in table 5, if it is among the models
SELECTION_SAYS = """Accuracy in percent over all tests, by task, all seeds. Each slot is ranked by its own accuracy on
validation: recognition is replace animal and replace texture, binding is swap. Random: the mean over several halves.
Average: of the tasks, with equal weights. Minus all slots: over all records, so that a task with more counts more."""
MASKS_SAY = """Accuracy in percent without and with the mask, all seeds. A mask is a weight between 0 and 1 for each
slot, or for each number, of the image's vector; vectors without slots are cut into as many equal parts. It is trained
on validation's items of one task, and the epoch that is best there is taken: the paper overfits on purpose."""


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
        width = self.squares.shape[1] // parts
        summed = (its.reshape(*its.shape[:-1], parts, width).sum(-1) for its in (self.products, self.squares))
        return EmbeddedItems(self.records, *summed)

    def values(self, weights: Float[np.ndarray, "d v"]) -> Float[np.ndarray, "n v"]:
        """Return the value of each item if parts have these weights: 1 if it is right, one half for a tie, else 0."""
        scores = np.einsum("nkd,dv->nkv", self.products, weights)
        return (scores[:, 0] > scores[:, 1]) + 0.5 * (scores[:, 0] == scores[:, 1])

    def rows(self, values: Mapping[str, Float[np.ndarray, " n"]]) -> Iterator[Row]:
        columns = [array.tolist() for array in values.values()]
        for record, *numbers in zip(self.records, *columns, strict=True):
            yield record._asdict() | dict(zip(values, numbers, strict=True))


def embed_tests(scorer: Scorer, tests: Mapping[str, Benchmark], names: Iterable[str]) -> EmbeddedItems:
    """Embed the binary items of some tests: those with one image, a true text and a false one. Raises if the scorer
    hasn't one vector for each image and each text."""
    found = []
    for name in names:
        items = [i for i in tests[name].items if (len(i.images), len(i.texts), i.true) == (1, 2, 1)]
        found += [embed_items(scorer, name, tests[name], items)] if items else []
    records = [record for part in found for record in part.records]
    return EmbeddedItems(records, *(np.concatenate([part[k] for part in found]) for k in (1, 2)))


@torch.no_grad()
def embed_items(scorer: Scorer, name: str, test: Benchmark, items: Sequence[Item]) -> EmbeddedItems:
    numbers = {image: k for k, image in enumerate(dict.fromkeys(item.images[0] for item in items))}
    texts = {text: k for k, text in enumerate(dict.fromkeys(text for item in items for text in item.texts))}
    blocks = [[[*its][k : k + BLOCK] for k in range(0, len(its), BLOCK)] for its in (numbers, texts)]
    of_texts = (encode_texts(scorer, block) for block in blocks[1])
    encoded = (encode_blocks(scorer, test.images, blocks[0]), of_texts)
    image_vectors, text_vectors = (single_vectors(scorer, its) for its in encoded)
    own = image_vectors[[numbers[item.images[0]] for item in items]]
    both = text_vectors[[[texts[text] for text in item.texts] for item in items]]
    records = [ItemKey(name, item.task, item.record, item.texts[0].text, item.cluster) for item in items]
    return EmbeddedItems(records, own[:, None] * both, own**2)


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


def sorted_tasks(items: pd.DataFrame) -> list[str]:
    return sorted(set(items.task), key=task_order)


@dataclass(frozen=True)
class Selection(Measure):
    """A row for each item of the tests, a column with its value for each selection of slots, such as "recognition |
    best half". "random half" is the mean over several. Rankings without items in validation are left out."""

    slots: int
    random_halves: int
    tests: tuple[str, ...]

    def rows(self, scorer: Scorer, material: Material, seed: int) -> Iterator[Row]:
        validation, tests = (embed_tests(scorer, material.tests, names) for names in (("validation",), self.tests))
        return selected_rows(validation.in_parts(self.slots), tests.in_parts(self.slots), self.random_halves, seed)


def selected_rows(validation: EmbeddedItems, tests: EmbeddedItems, random_halves: int, seed: int) -> Iterator[Row]:
    """Yield the rows of `Selection`; of several weights for slots the mean accuracy counts."""
    slots, draws = tests.products.shape[-1], generator(seed, "halves of slots")
    random = [first_half(draws.permutation(slots)) for _ in range(random_halves)]
    weights = {("", ALL): np.ones((slots, 1)), ("", RANDOM): np.stack(random, 1)}
    for ranking, tasks in RANKINGS.items():
        if validation.of_tasks(tasks).records:
            order = np.argsort(-slot_accuracies(validation, tasks), kind="stable")
            weights[ranking, BEST], weights[ranking, WORST] = (first_half(its)[:, None] for its in (order, order[::-1]))
    return tests.rows({SEPARATOR.join(kept): tests.values(its).mean(1) for kept, its in weights.items()})


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


def selection_deltas(points: pd.DataFrame, base: Kept) -> dict[Any, Any]:
    """Return how far the accuracy of each selection, over all records, is above that of `base`."""
    return estimates(points, ("ranked", "kept"), {"ranked": base[0], "kept": base[1]}) if len(points) else {}


def selection_table(points: pd.DataFrame) -> Rows:
    tasks, deltas = sorted_tasks(points), selection_deltas(points, ("", ALL))
    means = 100 * points.pivot_table("value", ["ranked", "kept"], "task", sort=False)[tasks]
    rows = [
        (its[0] or DASH, its[1], *(f"{value:.1f}" for value in (*each, each.mean())), str(deltas.get(its, DASH)))
        for its, each in means.iterrows()
    ]
    header = ("ranked by", "slots", *tasks, "average", "minus all slots")
    return Rows("selection", header, rows, says=SELECTION_SAYS)


def selection_verdicts(points: pd.DataFrame) -> Iterator[Verdict]:
    """Yield the verdict on table 4, that the half of the slots that recognises best beats all, and on two controls."""
    tests = f"all tests: {', '.join(sorted_tasks(points)) if len(points) else DASH}"
    best = "The half of the slots that recognise best, chosen on validation, is better than all"
    texts = {
        ("", ALL): f"{best} (table 4: SugarCrepe 76.1 against 73.0); over all tasks",
        ("", RANDOM): "... than random halves (our control)",
        ("recognition", WORST): "... than the worst half (our control)",
    }
    for base, text in texts.items():
        delta = selection_deltas(points, base).get(("recognition", BEST))
        yield make_verdict(text, f"{BEST} − {base[1]}", tests, delta, 1)


def train_mask(items: EmbeddedItems, seed: int) -> Float[np.ndarray, " parts"]:
    """Train a mask, whose weights are between 0 and 1. Of its states before training and after each epoch, return the
    one that scores the most true texts above false ones; of equal ones the first."""
    products, squares = (torch.from_numpy(array).double() for array in (items.products, items.squares))
    theta = torch.zeros(products.shape[-1], dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor(math.log(LEAST_SCALE), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([theta, alpha], RATE, MOMENTUM)
    draws = torch.Generator().manual_seed(seed_of(seed, "mask"))
    best, kept = -1.0, np.empty(0)
    for _ in range(EPOCHS + 1):
        mask = mask_of(theta, alpha).detach().numpy()
        if (value := float(items.values(mask[:, None]).mean())) > best:
            best, kept = value, mask
        for batch in torch.randperm(len(products), generator=draws).split(BATCH):
            optimizer.zero_grad()
            mask_loss(theta, alpha, products[batch], squares[batch]).backward()
            optimizer.step()
    return kept


def inverse_temperature(alpha: Tensor) -> Tensor:
    """Return s = max(100, e^alpha), the inverse temperature of both the sigmoid and the loss."""
    return alpha.exp().clamp_min(LEAST_SCALE)


def mask_of(theta: Tensor, alpha: Tensor) -> Tensor:
    """Return the mask sigmoid(s theta / 4)."""
    return torch.sigmoid(inverse_temperature(alpha) * theta / 4)


def mask_loss(theta: Tensor, alpha: Tensor, products: Tensor, squares: Tensor) -> Tensor:
    """Return the cross-entropy of s times the masked image's cosines with true and false texts, unit vectors."""
    mask = mask_of(theta, alpha)
    cosines = products @ mask / (squares @ mask**2).clamp_min(1e-12).sqrt()[:, None]
    return F.cross_entropy(inverse_temperature(alpha) * cosines, torch.zeros(len(products), dtype=torch.int64))


@dataclass(frozen=True)
class Masks(Measure):
    """What masks of a model's vectors change. For each task, two masks are trained on validation's items of that task:
    one with a weight for each of `slots` equal parts, if vectors can be cut so, and one with a weight for each number.
    Gives a row for each item of the tests, and for each item of validation in `tasks`: its value before and after each
    mask, in columns such as "slots | swap | after"."""

    slots: int
    tasks: tuple[str, ...]
    tests: tuple[str, ...]

    def rows(self, scorer: Scorer, material: Material, seed: int) -> Iterator[Row]:
        validation = embed_tests(scorer, material.tests, ("validation",)).of_tasks(self.tasks)
        tests = embed_tests(scorer, material.tests, self.tests)
        values = masked_values(validation, tests, self.slots, self.tasks, seed)
        for items, columns in zip((validation, tests), values, strict=True):
            yield from items.rows(columns)


def masked_values(
    validation: EmbeddedItems, tests: EmbeddedItems, slots: int, tasks: Sequence[str], seed: int
) -> list[dict[str, Float[np.ndarray, " _"]]]:
    """Return values before and after each mask, for validation and tests; masks need items in validation."""
    found: list[dict[str, Any]] = [{}, {}]
    width = tests.products.shape[-1]
    for shape, parts in {"slots": slots, "numbers": width}.items():
        sides = [items.in_parts(parts) for items in (validation, tests)] if width % parts == 0 else []
        for task in tasks if sides and len(validation.records) else ():
            trained_on = sides[0].of_tasks([task])
            if trained_on.records:
                weights = np.stack([np.ones(parts), train_mask(trained_on, seed)], 1)
                for columns, items in zip(found, sides, strict=True):
                    columns |= dict(zip(mask_columns(shape, task), items.values(weights).T, strict=True))
    return found


def mask_columns(shape: str, task: str) -> list[str]:
    return [SEPARATOR.join((shape, task, when)) for when in ("before", "after")]


class MaskRow(NamedTuple):
    """One row of table 5: a mask with a weight for each slot, or for each number, and the task it was trained on."""

    model: str
    shape: str
    task: str


def masks_in(model: str, measured: pd.DataFrame, tasks: Sequence[str]) -> dict[MaskRow, pd.DataFrame]:
    """Return the items of each mask of a model, with values before and after, from the rows of `Masks`."""
    found = {}
    for place in (MaskRow(model, shape, task) for shape in ("slots", "numbers") for task in tasks):
        sides = dict(zip(mask_columns(place.shape, place.task), ("before", "after"), strict=True))
        if set(sides) <= set(measured):
            found[place] = measured[[*ITEM, *sides]].rename(columns=sides).dropna()
    return found


def mask_table(masks: Mapping[MaskRow, pd.DataFrame]) -> Rows:
    """Return a table of accuracy on the task that a mask was trained on and on all others, before and after."""
    rows = []
    for place, items in masks.items():
        validation, trained = items.subset == "validation", items.task == place.task
        sides = [items[validation & trained], items[~validation & trained], other_tasks(items, place.task)]
        shown = [f"{100 * its.before.mean():.1f} → {100 * its.after.mean():.1f}" for its in sides]
        change = estimate(sides[-1], signed=True) if len(sides[-1]) else DASH
        rows.append([title_of(place.model), place.shape, place.task, *shown, str(change)])
    header = ["model", "a weight for each", "trained on", "there, on validation", "that task, tested"]
    return Rows("masks", [*header, "other tasks, tested", "their change, points"], rows, says=MASKS_SAY)


def other_tasks(items: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the tested items of other tasks than that of a mask, with the change of each as its value."""
    others = items[(items.subset != "validation") & (items.task != task)]
    return others.assign(value=others.after - others.before)


def mask_verdicts(masks: Mapping[MaskRow, pd.DataFrame], task: str) -> Iterator[Verdict]:
    """Yield verdicts on the claims of table 5, about what masks trained on one task change on all others."""
    ours = MaskRow("sparo", "slots", task)
    claims = {
        ours._replace(shape="numbers"): (
            f"A mask of slots, trained on {task}, harms other tasks less than one of single numbers (table 5, in % of "
            "ImageNet for each % gained: −0.3 against −2.3); over all other tasks",
            f"{title_of(ours.model)}, a weight for each slot − for each number",
        ),
        ours._replace(model=BESIDE): (
            "... and less than one of equal parts of CLIP's vector with average pooling (table 5: −0.3 against −3.9)",
            f"{title_of(ours.model)} − {title_of(BESIDE)}, a weight for each slot",
        ),
    }
    for theirs, (claim, row) in claims.items():
        if theirs not in masks or ours not in masks:
            yield make_verdict(claim, row, DASH, None, 1)
            continue
        changes = [other_tasks(masks[place], task).assign(mask=k) for k, place in enumerate((theirs, ours))]
        delta = estimates(pd.concat(changes), ("mask",), {"mask": 0}).get((1,))
        yield make_verdict(claim, row, f"all tests: {', '.join(sorted_tasks(changes[0]))}", delta, 1)
