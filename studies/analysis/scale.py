"""Forecasts what a long training would cost, from steps that are timed here (`studies/throughput.py scale`).

A step takes seconds = constant + operations / rate. Both numbers are fitted to short trainings of small towers, and
checked on a training of larger towers. On N devices each encodes 1/N of a batch, compares its images with all texts,
and exchanges gradients and the texts' embeddings in a ring. It sends 2 (N - 1) / N of the gradients, which are added
up, and (N - 1) / N of the embeddings, which are gathered."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import SIDE, Range, Several, validate
from menagerie.models.recipe import Precision
from menagerie.studies.analysis.part_costs import (
    TowerRow,
    build_row,
    distinct_captions,
    multiplications,
    parameters_by_part,
    parse_tower_row,
)
from menagerie.studies.analysis.step_timing import StepTiming, step_parts, step_recipe, training_data
from menagerie.studies.runs.machine import check_device_here, processor, settle_torch

if TYPE_CHECKING:
    from menagerie.generators.captions.templates import Caption
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer

# A multiplication and an addition, forward; the backward pass takes twice as many.
OPERATIONS = 2 * 3
FLOAT = 4  # bytes
COUNTED = 32  # images and texts whose operations are counted


@dataclass(frozen=True)
class Scale:
    """Forecast a long training on one device or many, by a cost model that is fitted to short ones here."""

    fit: Annotated[tuple[str, ...], Several(2)] = ("micro/32/32", "mini/32/64", "mini/64/32", "mini/64/64")
    """Towers, resolution and batch of the trainings to which the costs are fitted."""
    check: str = "small/64/128"
    """The same of the training on which the fit is checked."""
    rate: Annotated[float, Range(0, 1e6)] = 0.0
    """10^12 operations a second of each device, as `throughput.py training` measures on a GPU; 0: the fitted rate."""
    row: str = "clip=ViT-B-16/77"
    """Scorer, towers and length of texts of the long training, as SCORER=TOWERS/CONTEXT."""
    images: Annotated[int, Range(1, 10**12)] = 12_400_000
    """Number of images of the long training; CC12M's by default."""
    epochs: Annotated[int, Range(1, 10**6)] = 32
    """Passes over the images."""
    batch: Annotated[int, Range(2, 10**7)] = 4096
    """Images in a step, over all devices."""
    devices: Annotated[tuple[int, ...], Range(1, 10**6), Several(1)] = (1, 8, 64)
    """Numbers of devices."""
    link: Annotated[float, Range(0.001, 10**6)] = 50.0
    """10^9 bytes a second that a device sends to another; 50 is one network port of 400 Gbit/s."""
    resolution: Annotated[int, SIDE] = 224
    """Side of the images of the long training, in pixels."""
    precision: Precision = "float32"
    """Precision of the steps that are timed."""
    repeats: Annotated[int, Range(1, 100_000)] = 10
    """Number of timed steps of each training."""
    world: str = "eight"
    """World of the steps that are timed."""
    store: Path = Path("store")
    """Folder of atlases and split files."""
    device: str = "cpu"
    """Where steps are timed: cpu (one thread) or cuda."""


class StepCost(NamedTuple):
    """The cost of a step on each device."""

    operations: float
    sent: float
    """Bytes that a device sends."""


def parse_setting(text: str, config: Scale) -> StepTiming:
    """Read TOWERS/RESOLUTION/BATCH; raise if it has another form or the towers are unknown."""
    from menagerie.models.towers.build import check_towers
    from menagerie.models.towers.config import TowerConfig

    parts = text.split("/")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) > 1 for part in parts[1:]):
        raise UserError(f"{text!r} is not TOWERS/RESOLUTION/BATCH, such as mini/64/32")
    architecture, resolution, batch = parts[0], int(parts[1]), int(parts[2])
    check_towers(TowerConfig(architecture, resolution=resolution))
    every = {"world": config.world, "repeats": config.repeats, "device": config.device, "store": config.store}
    return StepTiming(architecture=architecture, resolution=resolution, batch=batch, **every)


def time_step(config: Scale, row: TowerRow, one: StepTiming, data: "SplitDataset") -> tuple[float, float]:
    """Return the operations of a step, and the seconds that it takes."""
    indices = np.flatnonzero(~data.strata["single_object"])[: one.batch]
    captions = data.captions(indices, indices)
    scorer = build_row(TowerRow(row.scorer, one.architecture, row.context), one.resolution, captions)
    operations = float(OPERATIONS) * sum(multiplications(scorer, captions, one.resolution))
    return operations, step_parts(one, row.scorer, step_recipe(one, config.precision), data)["whole step"] / 1000


def fit_costs(steps: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the constant (s) and rate (operations/s) with the least relative errors; constant 0 if no line fits."""
    operations, seconds = np.array(steps).T
    terms = np.stack([np.ones_like(operations), operations / operations.max()], 1) / seconds[:, None]
    constant, most = np.linalg.lstsq(terms, np.ones(len(seconds)), rcond=None)[0]
    if constant < 0 or most <= 0:  # with too slow small settings, or on a busy machine, no line fits
        constant, most = 0.0, float(np.exp(np.log(seconds / operations).mean()) * operations.max())
    return float(constant), float(operations.max() / most)


def embedding_size(scorer: "Scorer", captions: list["Caption"]) -> int:
    """Return how many numbers the embedding of a text has."""
    import torch

    from menagerie.models.texts import map_tensors

    sizes: list[int] = []
    with torch.no_grad():
        texts = scorer.read([caption.text for caption in captions], [caption.graph for caption in captions])
        map_tensors(scorer.encode_texts(texts), lambda tensor: sizes.append(tensor.numel()))
    return round(sum(sizes) / len(captions))


class Counts(NamedTuple):
    """Counts that don't depend on the number of devices."""

    multiplications: tuple[int, int, int]
    """Of `COUNTED` images, of as many texts, and of comparing them."""
    weights: int
    embedding: int
    """Numbers in a text's embedding."""


def count_step(row: TowerRow, resolution: int) -> Counts:
    """Count the costs of a few images and texts: all images cost the same, and so do all texts."""
    captions = distinct_captions(2, COUNTED)
    scorer = build_row(row, resolution, captions)
    products = multiplications(scorer, captions, resolution)
    return Counts(products, sum(parameters_by_part(scorer).values()), embedding_size(scorer, captions[:2]))


def step_cost(config: Scale, counted: Counts, devices: int) -> StepCost:
    """Return the cost of a step of the long training on each of `devices` devices."""
    images, texts, compared = counted.multiplications
    share = config.batch / devices
    whole = (images + texts) * share / COUNTED + compared * share * config.batch / COUNTED**2
    numbers = 2 * counted.weights + config.batch * counted.embedding
    return StepCost(OPERATIONS * whole, FLOAT * numbers * (devices - 1) / devices)


def measure_scale(config: Scale) -> int:
    validate(config)
    check_device_here(config.device)
    row = parse_tower_row(config.row)
    settings = {text: parse_setting(text, config) for text in (*config.fit, config.check)}
    settle_torch(threads=1)
    data = {side: training_data(one) for side, one in {one.resolution: one for one in settings.values()}.items()}
    steps = {text: time_step(config, row, one, data[one.resolution]) for text, one in settings.items()}
    constant, rate = fit_costs([steps[text] for text in config.fit])
    print(f"{row.scorer}: seconds of a step = {constant:.4f} + operations / {rate:.3g}; {device_text(config)}")
    print(f"{'':<24}{'operations':>12}{'measured':>12}{'as fitted':>12}{'over':>8}")
    for text, (operations, seconds) in steps.items():
        expected, note = constant + operations / rate, "" if text in config.fit else "  not fitted"
        print(f"{text:<24}{operations:>12.3g}{seconds:>12.4f}{expected:>12.4f}{expected / seconds:>8.2f}{note}")
    print_forecast(config, row, constant, config.rate * 1e12 or rate)
    return 0


def print_forecast(config: Scale, row: TowerRow, constant: float, rate: float) -> None:
    """Print the time of the long training for each number of devices."""
    count = config.epochs * config.images / config.batch
    print(
        f"{config.images:,} images, {config.epochs} times: {count:,.0f} steps of {config.batch}, {row.architecture} at "
        f"{config.resolution} px; {rate / 1e12:.4g} * 10^12 operations/s a device, {config.link:g} GB/s between them"
    )
    print(f"{'devices':>8}{'images/s':>12}{'step, s':>10}{'sent, s':>10}{'hours':>10}{'pixels, MB/s':>14}")
    counted = count_step(row, config.resolution)
    for devices in config.devices:
        each = step_cost(config, counted, devices)
        sent = each.sent / (config.link * 1e9)
        step = constant + each.operations / rate + sent
        pixels = 3 * config.resolution**2 * config.batch / step / 1e6
        hours = count * step / 3600
        print(f"{devices:>8}{config.batch / step:>12,.0f}{step:>10.3f}{sent:>10.3f}{hours:>10,.1f}{pixels:>14,.0f}")


def device_text(config: Scale) -> str:
    """Describe the device on which steps were timed."""
    import torch

    return f"1 thread, {processor()}" if config.device == "cpu" else torch.cuda.get_device_name(config.device)
