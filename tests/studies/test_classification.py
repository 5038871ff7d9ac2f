"""Probes of image embeddings against scikit-learn called by hand; one prompt; VTAB's mean; effective robustness."""

import sys
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from menagerie.models.checkpoint import save_checkpoint
from menagerie.models.evaluation.scoring import encode_blocks
from menagerie.models.library.pictures import framing_for
from menagerie.studies.frame.parts import Chart, Rows
from menagerie.studies.scoring.classification import VTAB, classification_parts
from menagerie.studies.scoring.page import Score, level_of
from menagerie.studies.scoring.probe import STRENGTHS, image_vectors, probe_results
from tests.command import ROOT, read_rows, succeed
from tests.helpers.benchmark_files import build, make, write_images
from tests.helpers.scorers import scorer

TRANSFER = [sys.executable, str(ROOT / "studies" / "transfer.py"), "--data-root", "data", "--threads", "1"]


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    """A set of three classes with 30 training images, without validation, and random vectors that know the class."""
    folder = tmp_path_factory.mktemp("probe")
    for name in ("pear", "plum", "fig"):
        write_images(folder / "zero_shot_train/fruit", [f"{name}/{k}.png" for k in range(10)], (8, 8))
        write_images(folder / "zero_shot/fruit", [f"{name}/{k}.png" for k in range(20)], (8, 8))
    bench = build("probe", folder)
    rng, parts = np.random.default_rng(0), bench.parts["fruit"]
    classes = dict(label for part in parts.values() for label in part)
    vectors = np.stack([np.eye(3, 5)[classes[k]] + 0.7 * rng.standard_normal(5) for k in range(len(bench.numbers))])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = {}
    for one in probe_results(bench, vectors):
        found.setdefault(one.item.task, []).append(one.outcome.official)
    return parts, vectors, found


def by_hand(parts, vectors, *names):
    return [np.concatenate([its[part] for part in names]) for its in split(parts, vectors)]


def split(parts, vectors):
    return (
        {part: vectors[[image for image, _ in its]] for part, its in parts.items()},
        {part: np.array([label for _, label in its]) for part, its in parts.items()},
    )


def test_parts_are_apart_and_a_tenth_validates(probed):
    parts, _, _ = probed
    assert {part: len(its) for part, its in parts.items()} == {"train": 27, "val": 3, "test": 60}
    assert len({image for its in parts.values() for image, _ in its}) == 90


def test_a_linear_probe_is_scikit_learn_s_with_the_c_that_validation_chooses(probed):
    """CLIP_benchmark's search: find_peak and evaluate in clip_benchmark/metrics/linear_probe.py."""
    parts, vectors, found = probed
    x, y, x_val, y_val = *by_hand(parts, vectors, "train"), *by_hand(parts, vectors, "val")

    def accuracy(k):
        return LogisticRegression(C=STRENGTHS[k], max_iter=1000).fit(x, y).score(x_val, y_val)

    def find_peak(numbers):
        best, most = 0, 0.0
        for k in numbers:
            if most < (own := accuracy(k)):
                best, most = k, own
        return best

    peak, span = find_peak(range(0, 97, 16)), 8
    while span > 0:
        peak = find_peak([max(peak - span, 0), peak, min(peak + span, 96)])
        span //= 2
    fitted = LogisticRegression(C=STRENGTHS[peak], max_iter=1000).fit(*by_hand(parts, vectors, "train", "val"))
    x_test, y_test = by_hand(parts, vectors, "test")
    assert found["fruit linear acc1"] == (fitted.predict(x_test) == y_test).astype(float).tolist()
    assert 0.5 < np.mean(found["fruit linear acc1"]) < 1


def test_nearest_neighbours_are_scikit_learn_s_with_the_number_that_validation_chooses(probed):
    parts, vectors, found = probed
    x_val, y_val = by_hand(parts, vectors, "val")
    tried = {k: KNeighborsClassifier(k).fit(*by_hand(parts, vectors, "train")) for k in (1, 5, 10, 20)}
    best = max(tried, key=lambda k: tried[k].score(x_val, y_val))
    fitted = KNeighborsClassifier(best).fit(*by_hand(parts, vectors, "train", "val"))
    x_test, y_test = by_hand(parts, vectors, "test")
    assert found["fruit k-NN acc1"] == (fitted.predict(x_test) == y_test).astype(float).tolist()


def test_few_shots_are_so_many_of_each_class(probed):
    parts, _, found = probed
    fewest = min(np.bincount([label for _, label in parts["train"]]))
    shots = [k for k in (1, 2, 4, 8, 16) if k <= fewest]
    assert [*found] == [f"fruit {kind} acc1" for kind in ("linear", *(f"linear, {k}-shot" for k in shots), "k-NN")]
    assert np.mean(found["fruit linear, 1-shot acc1"]) > 1 / 3


def test_a_checkpoint_is_probed(tmp_path):
    """From the command line; every score is that of the classifiers on its unit vectors."""
    bench, loaded = make("probe", tmp_path / "data"), scorer("clip")
    save_checkpoint(tmp_path / "ours", "clip", loaded)
    succeed([*TRANSFER, "ours", "--benchmarks", "probe", "--out", "runs/probe"], tmp_path, figures=False)
    rows = read_rows(tmp_path / "runs/probe/results.csv")
    named = {row["name"]: float(row["official"]) for row in rows if row["kind"] == "task"}
    bench = bench.reframe(*framing_for(loaded))
    vectors = image_vectors(loaded, bench, partial(encode_blocks, loaded, bench.images))
    found = {}
    for one in probe_results(bench, vectors):
        found.setdefault(one.item.task, []).append(one.outcome.official)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert named == pytest.approx({task: np.mean(its) for task, its in found.items()})


def test_one_prompt_is_the_plain_one(tmp_path):
    bench = make("zero-shot", tmp_path, ensemble=False)
    texts = {pool.name: [[text.text for text in its] for its in pool.texts] for pool in bench.pools}
    assert texts["mine"] == [["a photo of a cat."], ["a photo of a dog."]]
    assert all(len(its) == 1 for its in texts["mnist"])
    ensemble = {pool.name: pool.texts for pool in build("zero-shot", tmp_path).pools}
    assert len(ensemble["mine"][0]) == 2


def levels(**accuracies):
    """Scores of models on sets."""
    return [
        Score(model, "zero-shot", "task", f"{name} acc1", level_of({"official": value, "n": 100}))
        for model, its in accuracies.items()
        for name, value in its.items()
    ]


def test_vtab_s_mean_is_that_of_the_shared_sets_and_the_picture_has_the_differences():
    names = ("vtab-dtd", "svhn", "sun397")
    scores = levels(
        base=dict(zip(names, (0.2, 0.4, 0.9), strict=True)),
        other={"vtab-dtd": 0.3, "svhn": 0.3, "imagenet1k": 0.5},
    )
    table, chart = classification_parts(scores)
    assert isinstance(table, Rows)
    assert isinstance(chart, Chart)
    assert table.header == ("model", "mean", "dtd", "svhn")
    assert table.rows == [["base", "30.0", "20.0", "40.0"], ["other", "30.0", "30.0", "30.0"]]
    frame = chart.chart.data
    assert dict(zip(frame["data set"], frame.difference, strict=True)) == pytest.approx({"dtd": 10, "svhn": -10})
    assert len(VTAB) == len(set(VTAB)) == 19
    assert not list(classification_parts(levels(alone={"svhn": 0.5})))


def test_effective_robustness_is_the_distance_from_the_others_line():
    """format_eff_robust in plotting/eff_robust_inspect_plot.py of github.com/modestyachts/imagenet-testbed, with all
    other models as the baseline."""
    from scipy.stats import linregress

    seen, shifted = [0.5, 0.6, 0.7, 0.76], [0.4, 0.48, 0.61, 0.7]
    models = {f"m{k}": {"imagenet1k": x, "imagenetv2": y} for k, (x, y) in enumerate(zip(seen, shifted, strict=True))}
    (table,) = classification_parts(levels(**models))
    for k, row in enumerate(table.rows):
        x, y = (np.log(np.delete(its, k) / (1 - np.delete(its, k))) for its in (np.array(seen), np.array(shifted)))
        line = linregress(x, y)
        predicted = line.slope * np.log(seen[k] / (1 - seen[k])) + line.intercept
        assert row == [f"m{k}", f"{100 * (shifted[k] - np.exp(predicted) / (1 + np.exp(predicted))):+.1f}", "–"]
    few = dict(list(models.items())[:2])
    assert not list(classification_parts(levels(**few)))
