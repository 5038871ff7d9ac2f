"""What judges answered, apart from their scores: items without a verdict, choices decided by place, and tokens."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import Benchmark
from menagerie.generators.benchmarks.matrix import MatrixBenchmark, Pool
from menagerie.models.judges.forms import QuestionForm, make_form
from menagerie.models.judges.judge import PROBLEMS, Judge
from menagerie.models.library.judged import JudgeSource
from menagerie.models.library.sources import ScorerSource

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer
    from menagerie.studies.frame.records import Records

MOST_UNDECIDED = 0.05  # share of items without a verdict above which a row is marked


def questions_to(source: ScorerSource, benchmarks: Iterable[Benchmark]) -> int:
    """Return the number of questions to a judge about benchmarks, if none was answered before; 0 for a scorer, and for
    benchmarks that don't fit its form of questions."""
    if not isinstance(source, JudgeSource):
        return 0
    form = make_form(source.form, source.options, source.blind)
    return sum(questions_about(form, benchmark) for benchmark in benchmarks)


def questions_about(form: QuestionForm, benchmark: Benchmark) -> int:
    """Return the number of different questions about a benchmark. Equal images with two numbers, and equal texts in two
    pools, count as different."""
    if isinstance(benchmark, MatrixBenchmark):
        return sum(questions_in(form, pool) for pool in benchmark.pools) if form.compares_images else 0
    try:
        form.check(benchmark, benchmark.items)
    except UserError:
        return 0
    every = {one for item in benchmark.items for one in form.comparisons(item)}
    return len({question for one in every for question in form.questions(one)})


def questions_in(form: QuestionForm, pool: Pool) -> int:
    """Return the number of different questions about a pool: each image with each text, and texts alone for a prior."""
    images, texts = len({*pool.images}), len({phrasing.text for text in pool.texts for phrasing in text})
    return texts if form.blind else (images + bool(form.prior)) * texts


def judged_record(scorer: "Scorer | Judge") -> dict[str, Any]:
    """Return the counts of a judge for its result; empty for a scorer."""
    if not isinstance(scorer, Judge):
        return {}
    return {"judged": scorer.totals(), "answered_by": list(scorer.models)}


def undecided_share(result: Mapping[str, Any]) -> float:
    """Return the share of a result's items without a verdict."""
    counts = result.get("judged") or {}
    return counts.get("undecided", 0) / max(1, counts.get("items", 0))


def check_verdicts(records: "Records") -> None:
    """Raise if none of a judge's answers gave a verdict."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for arm, result in records.results:
        counts[arm.cell.model].update(result.get("judged") or {})
    for model, count in counts.items():
        if 0 < count["items"] == count["undecided"]:
            why = ", ".join(f"{count[problem]} {problem}" for problem in PROBLEMS if count[problem])
            raise UserError(
                f"{model}: none of {count['items']} items has a verdict (answers: {why}), so nothing was measured; "
                "ask another model, or ask in another way (--judge)"
            )


def flag_undecided(records: "Records", model: str, name: str) -> str:
    """Return a model's name in tables, with a remark if too many of its items have no verdict."""
    worst = max((undecided_share(result) for arm, result in records.results if arm.cell.model == model), default=0.0)
    return f"{name}, {worst:.0%} without a verdict" if worst > MOST_UNDECIDED else name


def answers_in_words(result: Mapping[str, Any]) -> str:
    """Return the counts of a judge's result in words, as `Judge.totals` names them."""
    counted = [f"{name.replace('_', ' ')} {number}" for name, number in result["judged"].items() if number]
    names = result.get("answered_by", [])
    several = [f"answered under several names: {', '.join(names)}"] * (len(names) > 1)
    return "; ".join([f"{undecided_share(result):.1%} of items without a verdict", *counted, *several])
