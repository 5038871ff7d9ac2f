"""Compares parts of ours with those of other libraries, and with the least time that this machine needs for the same
operations (`studies/throughput.py peers`).

Ours and the peer take turns, so that other load slows both alike. Both start from the same scenes, texts and weights.
The least time is a part's operations over those of a large matrix product, or its bytes over those of a large copy,
each measured here.
"""

import copy
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.models.recipe import Recipe
from menagerie.studies.analysis.step_timing import WARM_UP, Timed, training_data
from menagerie.studies.runs.machine import processor, settle_torch

if TYPE_CHECKING:
    import torch

    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer

SIDE, MEGABYTES = 1024, 256  # of the matrices and the copy that give the machine's best rates
HELD = 256  # samples in webdataset's shuffle buffer
SCORED = 256  # images, and as many captions, in evaluation


@dataclass(frozen=True)
class Peers(Timed):
    """Time reading, a training step and scoring, ours and others', in turns and on one thread."""


class PeerPart(NamedTuple):
    """A timed part; its functions receive the round's number."""

    name: str
    ours: Callable[[int], object]
    peers: str
    """The peer's name."""
    theirs: Callable[[int], object]
    least: float
    """Seconds that the part's operations or bytes take at this machine's best rate."""


class Rates(NamedTuple):
    """The best rates of this machine on one thread."""

    operations: float
    """Floating-point operations a second."""
    copied: float
    """Bytes copied a second."""


def best_seconds(call: Callable[[], object], repeats: int = 10) -> float:
    """Return the shortest processor time of a call, in seconds."""
    spans = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        spans.append(time.process_time() - start)
    return min(spans)


def machine_rates() -> Rates:
    """Measure a large matrix product and a large copy."""
    import torch

    left, right = torch.rand(2, SIDE, SIDE)
    source = np.ones(MEGABYTES << 20, np.uint8)
    target = np.zeros_like(source)
    return Rates(
        2 * SIDE**3 / best_seconds(lambda: torch.mm(left, right)),
        len(source) / best_seconds(lambda: np.copyto(target, source)),
    )


def reading_parts(config: Peers, data: "SplitDataset", folder: Path, copied: float) -> Iterator[PeerPart]:
    """Yield the reading of a batch of images and captions in random order: from memory, and composed from the
    atlas. webdataset reads the same images one after another, as `menagerie export` writes them, and draws from those
    that it holds."""
    from menagerie.generators.storage.dataset import SplitDataset

    peer = from_tar_files(data, folder, config.batch)
    least = config.batch * 3 * config.resolution**2 / copied
    drawn = np.random.default_rng(0).integers(len(data), size=(config.repeats + WARM_UP, config.batch))
    composed = SplitDataset(data.split, "train", preload=False)
    for place, source in (("from memory", data), ("from the atlas", composed)):

        def read(number: int, source: "SplitDataset" = source) -> object:
            return source.images(drawn[number]), source.captions(drawn[number], drawn[number])

        yield PeerPart(f"read a batch {place}", read, "webdataset", lambda number: next(peer), least)


def from_tar_files(data: "SplitDataset", folder: Path, batch: int) -> Iterator[object]:
    """Export train as tar files, and read batches of images and captions from them without end."""
    from menagerie.generators.export.write import export_split

    try:
        import webdataset
    except ImportError:
        raise UserError("the peer of reading is webdataset: pip install webdataset") from None
    export_split(data.split.path, "webdataset", folder, ["train"])
    files = sorted(map(str, folder.glob("train-*.tar")))
    samples = webdataset.WebDataset(files, shardshuffle=False).repeat().shuffle(HELD, rng=random.Random(0))
    return iter(samples.decode("rgb8").to_tuple("png", "txt").batched(batch))


def paired_clips(config: Peers, data: "SplitDataset") -> tuple["Scorer", "torch.nn.Module"]:
    """Return our CLIP, and open_clip's with the same weights."""
    import torch

    from menagerie.models.checkpoint import build_scorer
    from menagerie.models.towers.attention import as_in_torch
    from menagerie.models.towers.config import TowerConfig
    from menagerie.models.towers.tokenizers import text_space

    towers = TowerConfig(config.architecture, resolution=config.resolution)
    torch.manual_seed(0)
    scorer = build_scorer("clip", towers, text_space(towers, data.texts()), {}).train()
    peer = copy.deepcopy(scorer.model)
    as_in_torch(peer)
    with torch.no_grad():
        peer.logit_scale.copy_(scorer.log_scale)
    return scorer, peer


def open_clip_optimizer(model: "torch.nn.Module", recipe: Recipe) -> "torch.optim.Optimizer":
    """Make AdamW as open_clip's trainer does: gains and biases don't decay."""
    import torch

    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) == matrices], "weight_decay": decay}
        for matrices, decay in ((True, recipe.weight_decay), (False, 0.0))
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, foreach=True)


def open_clip_step(
    model: "torch.nn.Module", optimizer: "torch.optim.Optimizer", images: "torch.Tensor", texts: "torch.Tensor"
) -> "torch.Tensor":
    """Take a step as open_clip's trainer does, with clipped gradients; returns the loss."""
    import open_clip
    import torch

    from menagerie.models.training.loop import LARGEST_GRADIENT

    optimizer.zero_grad()
    loss = open_clip.ClipLoss()(*model(images, texts)[:3])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    return loss.detach()


def training_part(config: Peers, data: "SplitDataset", operations: float) -> PeerPart:
    """Return a training step from a prepared batch: of images in uint8 for ours, of floats, as its loader gives, for
    open_clip."""

    from menagerie.models.registry import spec_of
    from menagerie.models.training.batch_loss import batch_pixels
    from menagerie.models.training.feed import Feed
    from menagerie.models.training.loop import build_optimizer, train_step

    recipe = Recipe(steps=10_000, batch=config.batch)
    scorer, peer = paired_clips(config, data)
    feed = Feed(data, scorer.reader, recipe, 0, spec_of("clip").negatives)
    batches = [feed[number] for number in range(config.repeats + WARM_UP)]
    floats = [batch_pixels(scorer, batch) for batch in batches]
    ours = build_optimizer(scorer, recipe)
    theirs = open_clip_optimizer(peer, recipe)

    def step(number: int) -> object:
        return train_step(scorer, ours, batches[number], recipe, 0, number)

    def their_step(number: int) -> object:
        return open_clip_step(peer, theirs, floats[number], batches[number].texts)

    return PeerPart("train CLIP, a step", step, "open_clip", their_step, count_operations(step) / operations)


def count_operations(call: Callable[[int], object]) -> int:
    """Return the floating-point operations of `call(0)`."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call(0)
    return counter.get_total_flops()


def scoring_part(config: Peers, data: "SplitDataset", operations: float) -> PeerPart:
    """Return the scoring of up to `SCORED` images with as many captions, all with all. open_clip's encoders get blocks
    as large as ours."""
    import torch

    from menagerie.generators.benchmarks.matrix import Pool
    from menagerie.models.evaluation.scoring import BLOCK, TEXTS, encode_blocks, score_pool

    scorer, peer = paired_clips(config, data)
    peer.eval()
    numbers = tuple(range(min(SCORED, len(data))))
    captions = data.captions(numbers, numbers)
    pool = Pool("", (), numbers, tuple((caption,) for caption in captions), ())
    pixels = data.images(numbers)

    def score(number: int) -> object:
        return score_pool(scorer, pool, partial(encode_blocks, scorer, lambda block: pixels[list(block)]))

    @torch.no_grad()
    def their_score(number: int) -> object:
        blocks = torch.split(scorer.pixel_scale(pixels), BLOCK)
        images = torch.cat([peer.encode_image(block, normalize=True) for block in blocks])
        tokens = scorer.reader.tokenizer([text for text, _ in captions], scorer.reader.context)
        texts = torch.cat([peer.encode_text(block, normalize=True) for block in torch.split(tokens, TEXTS)])
        return (images @ texts.T).numpy()

    name = f"score {len(numbers)} images, {len(numbers)} texts"
    return PeerPart(name, score, "open_clip", their_score, count_operations(score) / operations)


def in_turns(part: PeerPart, repeats: int) -> tuple[float, float, float]:
    """Return the median processor times of ours and of the peer, in seconds, and the median of their ratios."""
    rounds = []
    for number in range(repeats + WARM_UP):
        spans = []
        for call in (part.ours, part.theirs):
            start = time.process_time()
            call(number)
            spans.append(time.process_time() - start)
        rounds.append(spans)
    counted_rounds = rounds[WARM_UP:]
    ours, theirs = (median(times) for times in zip(*counted_rounds, strict=True))
    return ours, theirs, median(mine / other for mine, other in counted_rounds)


def measure_peers(config: Peers) -> int:
    """Print a row for each part."""
    config.check()
    settle_torch(threads=1)
    data, best_rates = training_data(config), machine_rates()
    print(f"{config.architecture}, {config.resolution} px, batch {config.batch}, 1 thread, {processor()}; CPU-ms")
    rate, copied = best_rates.operations / 1e9, best_rates.copied / 1e9
    print(f"at best {rate:.0f} billion operations a second, {copied:.1f} GB a second copied")
    print(f"{'':<30}{'ours':>10}{'peer':>10}{'ratio':>8}{'at best':>10}  peer")
    with TemporaryDirectory() as folder:
        parts = [*reading_parts(config, data, Path(folder), best_rates.copied)]
        parts += [part(config, data, best_rates.operations) for part in (training_part, scoring_part)]
        for part in parts:
            ours, theirs, ratio = in_turns(part, config.repeats)
            times = "".join(f"{1000 * seconds:>10.2f}" for seconds in (ours, theirs))
            print(f"{part.name:<30}{times}{ratio:>8.3f}{1000 * part.least:>10.2f}  {part.peers}", flush=True)
    return 0
