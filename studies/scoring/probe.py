"""Fits the classifiers of probes to image embeddings, with scikit-learn."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from torch.nn.functional import normalize

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.generators.benchmarks.benchmark import SEED, ScoredItem
from menagerie.generators.benchmarks.probe import NEIGHBOURS, SHOTS, TEST, TRAIN, VAL, Labels, Probe
from menagerie.models.evaluation.scoring import Encode, equal_blocks
from menagerie.models.judges.judge import Judge
from menagerie.models.layers import evaluation_mode
from menagerie.models.scorer import Scorer

# C of CLIP's linear probes (Radford et al. 2021, appendix A.3), searched as CLIP_benchmark searches weight decay:
# seven values, then the neighbours of the best at half the distance, until they are next to each other.
STRENGTHS = np.logspace(-6, 6, 97)
FIRST_STEP = 16
COUNTS = (1, 5, 10, 20, 50)  # of neighbours
ITERATIONS = 1000
Vectors = Float[np.ndarray, "_n _d"]
Fitted = tuple[Vectors, Int64[np.ndarray, " _n"]]


def image_vectors(scorer: Scorer | Judge, bench: Probe, encode: Encode | None) -> Vectors:
    """Return the unit vector of each image; raises for a model without vectors of images."""
    if isinstance(scorer, Judge) or encode is None:
        raise UserError("a judge has no vectors of images to probe; name other benchmarks for it")
    numbers, found = list(range(len(bench.numbers))), []
    with evaluation_mode(scorer):
        for embedding in encode(equal_blocks(numbers)):
            if (vectors := scorer.vectors_of(embedding)) is None:
                raise UserError(f"{type(scorer).__name__} has no vectors of images to probe; name other benchmarks")
            found.append(normalize(vectors.float(), dim=1).cpu().numpy())
    return np.concatenate(found)[: len(numbers)]


def probe_results(bench: Probe, vectors: Vectors) -> Iterator[ScoredItem]:
    """Yield the results of every classifier of every set on its test images."""
    for pool in bench.pools:
        name, kind = bench.kinds[pool.name]
        train, val, test = (labelled_vectors(vectors, bench.parts[name][part]) for part in (TRAIN, VAL, TEST))
        some = few_shots(train, shots, name) if (shots := SHOTS[kind]) else train
        final = some if shots else both(train, val)
        if kind == NEIGHBOURS:
            numbers = range(sum(k <= len(train[1]) for k in COUNTS))
            model = best_model(neighbour_classifier, numbers, 0, some, val, final)
        else:
            model = best_model(linear_classifier, range(len(STRENGTHS)), FIRST_STEP, some, val, final)
        yield from bench.results(pool, decisions(model, test[0], len(pool.texts)))


def labelled_vectors(vectors: Vectors, labels: Labels) -> Fitted:
    images, classes = np.array(labels, np.int64).T
    return vectors[images], classes


def both(one: Fitted, other: Fitted) -> Fitted:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def few_shots(train: Fitted, shots: int, name: str) -> Fitted:
    """Return the first images of each class, as many as `shots`, in an order drawn for the set."""
    seen: defaultdict[int, int] = defaultdict(int)
    chosen = []
    for k in generator(SEED, "shots of a probe", name).permutation(len(train[1])):
        label = int(train[1][k])
        seen[label] += 1
        if seen[label] <= shots:
            chosen.append(k)
    return train[0][chosen], train[1][chosen]


def linear_classifier(number: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTHS[number], max_iter=ITERATIONS, random_state=0)


def neighbour_classifier(number: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(COUNTS[number])


def best_model(
    make: Callable[[int], Any], numbers: Sequence[int], step: int, train: Fitted, val: Fitted, final: Fitted
) -> Any:
    """Return the classifier whose number has the best accuracy on `val`, the first of equal ones, fitted to `final`.
    All numbers are tried, or with a `step` every so many and then around the best one."""
    known: dict[int, float] = {}

    def best(some: Sequence[int]) -> int:
        for number in some:
            if number not in known:
                known[number] = float(make(number).fit(*train).score(*val))
        return max(some, key=known.__getitem__)

    peak = best(numbers[:: step or 1])
    while step := step // 2:
        peak = best([max(peak - step, 0), peak, min(peak + step, len(numbers) - 1)])
    return make(peak).fit(*final)


def decisions(model: Any, vectors: Vectors, classes: int) -> Float[np.ndarray, "_n _c"]:
    """Return a classifier's score of each class: log-odds, or the share of neighbours; -1e9 of one it never saw."""
    if hasattr(model, "decision_function"):
        values = model.decision_function(vectors)
        values = values if values.ndim == 2 else np.stack([-values, values], 1)
    else:
        values = model.predict_proba(vectors)
    out = np.full((len(vectors), classes), -1e9, np.float64)
    out[:, model.classes_] = values
    return out
