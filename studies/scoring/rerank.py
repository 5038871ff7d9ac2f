"""A first pass for models that read each pair of image and text: another model, with vectors, ranks all candidates of a
large pool, and the tested model ranks each query's best candidates again."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.models.evaluation import scoring
from menagerie.models.evaluation.reranking import Reranked, rerank
from menagerie.models.evaluation.scoring import Encode, count_passes, encode_blocks, score_pool
from menagerie.models.judges.judge import Judge
from menagerie.models.scorer import Scorer
from menagerie.studies.scoring.models import Model
from menagerie.studies.scoring.piece import load_model
from menagerie.studies.scoring.texts import readable_texts


@dataclass(frozen=True)
class FirstPass:
    """The model that ranks all candidates, and how many candidates of each query are ranked again."""

    model: Model
    top: int

    @property
    def identity(self) -> dict[str, Any]:
        """The settings of the first pass that decide a result."""
        return {"model": self.model.weights, "top": self.top}

    def matters(self, bench: PhotographBenchmark) -> bool:
        """Return whether a benchmark has a pool with too many pairs to read each."""
        pools = bench.pools if isinstance(bench, MatrixBenchmark) else ()
        return any(count_passes(pool) > scoring.MOST_PAIRS for pool in pools)


class Reranker:
    """The first pass on the pools of a benchmark, with texts as the tested model reads them."""

    def __init__(self, first: FirstPass, bench: PhotographBenchmark, device: str) -> None:
        self.first, self.bench, self.device = first, bench, device
        self.record: dict[str, Mapping[str, Any]] = {}
        """For each pool, a record for the result of what was ranked again."""

    def __call__(self, scorer: Scorer, pool: Pool, encode: Encode) -> Reranked:
        """Rank each query's best candidates of the first pass again by `scorer`."""
        before, bench = self._opened
        first = score_pool(before, pool, partial(encode_blocks, before, bench.images))
        ranking = rerank(scorer, pool, encode, first, self.first.top)
        numbers = {"top": self.first.top, "pairs": ranking.pairs, "of": count_passes(pool)}
        self.record[pool.name] = {"model": self.first.model.label, **numbers}
        return ranking

    @cached_property
    def _opened(self) -> tuple[Scorer, PhotographBenchmark]:
        """The first model, and the benchmark as it reads it. Raises if it reads pairs or lacks a word."""
        model = self.first.model
        loaded = load_model(model, self.device)
        if isinstance(loaded, Judge) or loaded.scorer.pairs_only:
            raise UserError(f"--rerank {model.label} reads each pair too; name a model that has vectors")
        space, bench = loaded.scorer.texts, self.bench.reframe(*loaded.framing)
        readable_texts(bench, space.words, space.context, False, f"--rerank {model.label}")
        return loaded.scorer, bench


def rerank_sentence(one: Mapping[str, Any]) -> str:
    """Say which pairs of a pool were read."""
    return (
        f"only the best {one['top']} candidates of each query by {one['model']} were scored, {one['pairs']} of "
        f"{one['of']} pairs; all others keep that model's order, behind them"
    )
