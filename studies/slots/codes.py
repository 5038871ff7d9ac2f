"""What each part of a scorer's vectors adds to the scores of a finished run's tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import QUAD, Benchmark, Item
from menagerie.generators.captions.templates import Caption
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.contract import TEXTS, TOLERANCE, build
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.analysis.paired_bootstrap import Key, Points, RecordScore
from menagerie.studies.runs.cell import CHECKPOINT, Job
from menagerie.studies.runs.data import CellData
from menagerie.studies.runs.results import finished

BLOCK = 32  # images or texts that are encoded at once
WITHOUT = "leave it out of --models, or masks out of --parts"


class Coded(NamedTuple):
    """n items, each of an image, a true text and a false one."""

    keys: list[Key]
    animals: list[str]
    products: Float[np.ndarray, "n 2 d"]
    """The products, number by number, of the image's vector with that of the true and of the false text: they sum to
    the scores."""
    squares: Float[np.ndarray, "n d"]
    """The squares of the numbers of the image's vector."""

    def of_tasks(self, tasks: Iterable[str]) -> "Coded":
        wanted = set(tasks)
        return self.chosen(np.array([key[2] in wanted for key in self.keys], bool))

    def chosen(self, mask: Bool[np.ndarray, " n"]) -> "Coded":
        numbers = np.flatnonzero(mask)
        keys, animals = ([values[k] for k in numbers] for values in (self.keys, self.animals))
        return Coded(keys, animals, self.products[numbers], self.squares[numbers])

    def in_parts(self, parts: int) -> "Coded":
        """Sums over as many equal parts of the vectors, contiguous ones."""
        n, texts, width = self.products.shape
        products = self.products.reshape(n, texts, parts, width // parts).sum(-1)
        return self._replace(products=products, squares=self.squares.reshape(n, parts, width // parts).sum(-1))

    def values(self, weights: Float[np.ndarray, "d v"]) -> Float[np.ndarray, "n v"]:
        """1 for each item that is right if the vectors' parts are weighted so, one half for a tie, else 0."""
        scores = np.einsum("nkd,dv->nkv", self.products, weights)
        return (scores[:, 0] > scores[:, 1]) + 0.5 * (scores[:, 0] == scores[:, 1])

    def points(self, values: Float[np.ndarray, " n"]) -> Points:
        """Values of the items, for comparisons record by record."""
        records = zip(self.keys, values.tolist(), self.animals, strict=True)
        return {key: RecordScore(value, animals) for key, value, animals in records}


class Coding(NamedTuple):
    """The encoded items of one trained model, of validation and of the tests."""

    validation: Coded
    tests: Coded


@cache  # what is finished doesn't change
def coding(folder: Path, model: str, data: CellData, data_file: Path, seed: int) -> Coding:
    """The items of a finished run, encoded."""
    scorer, tests = load_checkpoint(folder / CHECKPOINT, model), data.open(data_file).tests
    parts = {"validation": tests["validation"]}, {name: tests[name] for name in data.tests}
    return Coding(*(coded(scorer, tested, seed) for tested in parts))


def codings(jobs: Sequence[Job]) -> dict[int, Coding]:
    """The encoded items of all finished seeds."""
    done = [job for job in jobs if finished(job.folder) is not None]
    return {
        job.cell.seed: coding(job.folder, job.cell.model, job.cell.data, job.data_file, job.cell.seed) for job in done
    }


def coded(scorer: Scorer, tests: Mapping[str, Benchmark], seed: int) -> Coded:
    """The items of all binary tasks of some tests; raises for a scorer that has no single vectors."""
    scorer.eval()
    each = [of_test(scorer, name, test, seed) for name, test in tests.items() if binary(test)]
    keys, animals = ([one for part in each for one in part[k]] for k in (0, 1))
    return Coded(keys, animals, *(np.concatenate([part[k] for part in each]) for k in (2, 3)))


def binary(test: Benchmark) -> list[Item]:
    """The items of one image and two texts."""
    return [item for item in test.items if item.group != QUAD]


def of_test(scorer: Scorer, name: str, test: Benchmark, seed: int) -> Coded:
    items = binary(test)
    numbers = {image: k for k, image in enumerate(dict.fromkeys(item.images[0] for item in items))}
    texts = {text: k for k, text in enumerate(dict.fromkeys(text for item in items for text in item.texts[:2]))}
    images, codes = image_vectors(scorer, test, list(numbers)), text_vectors(scorer, list(texts))
    image_codes = images[[numbers[item.images[0]] for item in items]]
    both = codes[[[texts[text] for text in item.texts[:2]] for item in items]]
    keys = [(seed, name, item.group, item.record, item.texts[0].text) for item in items]  # as predictions have them
    return Coded(keys, [item.cluster for item in items], image_codes[:, None] * both, image_codes**2)


@torch.no_grad()
def image_vectors(scorer: Scorer, test: Benchmark, numbers: Sequence[int]) -> Float[np.ndarray, "n d"]:
    blocks = [numbers[k : k + BLOCK] for k in range(0, len(numbers), BLOCK)]
    pixels = (test.images(block).to(scorer.device) for block in blocks)
    return vectors(scorer, (scorer.encode_images(scorer.pixel_scale(block)) for block in pixels))


@torch.no_grad()
def text_vectors(scorer: Scorer, texts: Sequence[Caption]) -> Float[np.ndarray, "m d"]:
    blocks = [texts[k : k + BLOCK] for k in range(0, len(texts), BLOCK)]
    read = (scorer.read(*zip(*block, strict=True)) for block in blocks)
    return vectors(scorer, (scorer.encode_texts(block) for block in read))


def check_vectors(model: str, towers: TowerConfig, options: Mapping[str, Any]) -> None:
    """Raise unless the scores of a model are products of a vector of the image and one of the text, number by number:
    masks leave some of these out."""
    captions, graphs = zip(*TEXTS, strict=True)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        scorer = build(model, replace(towers, pretrained=""), dict(options)).eval()
        side = scorer.pixel_scale.framing.resolution
        pixels = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
        images = scorer.encode_images(scorer.pixel_scale(pixels))
        texts = scorer.encode_texts(scorer.read(captions, graphs))
        products = vectors(scorer, [images]) @ vectors(scorer, [texts]).T
        scores = scorer.similarity(images, texts).float().numpy()
    if np.abs(products - scores).max() > TOLERANCE:
        raise UserError(f"scores of {model} are not the products of its vectors, which masks need; {WITHOUT}")


def vectors(scorer: Scorer, codes: Iterable[object]) -> Float[np.ndarray, "n d"]:
    """The codes of several blocks as one array."""
    rows = list(codes)
    if not all(isinstance(code, Tensor) and code.ndim == 2 for code in rows):
        raise UserError(f"{type(scorer).__name__} has no single vector for an image or a text; {WITHOUT}")
    return torch.cat(rows).float().cpu().numpy()
