"""EqBen, VisMin, NaturalBench-Retrieval, SPEC, SVO-Probes, CREPE and Flickr8k, against the official evaluators.

These are written anew from what the official code does, named above each, and read the files by themselves. Both get
the same random scores of images and texts, with ties and without."""

import ast
import csv
import json
from collections import defaultdict

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks import crepe, text_to_image
from menagerie.generators.benchmarks.benchmark import Outcome
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.kept_out import FLICKR, PhotographId
from tests.helpers.benchmark_files import MAKERS, RULES, build, make

LEVELS = {"without ties": 2**30, "with ties": 3, "all equal": 1}
DRAWS = 10


class RandomScores(dict):
    """A score for each image file and text, drawn when it is first asked for."""

    def __init__(self, seed, levels):
        self.rng, self.levels = np.random.default_rng(seed), levels

    def __missing__(self, pair):
        return self.setdefault(pair, float(self.rng.integers(self.levels)))


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def mean(values):
    return float(np.mean(list(values)))


def found(bench, score):
    """The official accuracies of all headlines and tasks."""
    files = bench.files.names
    scores = [np.array([[score[files[i], t.text] for t in item.texts] for i in item.images]) for item in bench.items]
    outcomes = [bench.outcome(item, matrix) for item, matrix in zip(bench.items, scores, strict=True)]
    tasks = defaultdict(list)
    for item, outcome in zip(bench.items, outcomes, strict=True):
        tasks[item.task].append(outcome.official)
    headlines = {name: its.official for name, its in bench.headlines(bench.items, outcomes).items()}
    return {task: mean(values) for task, values in tasks.items()} | headlines


def winoground_scores(records, score):
    """Text, image and group score of records of two images and two texts."""
    text, image, group = [], [], []
    for i0, i1, c0, c1 in records:
        text.append(score[i0, c0] > score[i0, c1] and score[i1, c1] > score[i1, c0])
        image.append(score[i0, c0] > score[i1, c0] and score[i1, c1] > score[i0, c1])
        group.append(text[-1] and image[-1])
    return dict(zip(RULES, map(mean, (text, image, group)), strict=True))


def by_part(parts, score):
    """These scores of all records, and of each part."""
    whole = winoground_scores([record for its in parts.values() for record in its], score)
    own = {name: winoground_scores(its, score) for name, its in parts.items()}
    return whole | {f"{name}: {rule}": value for name, its in own.items() for rule, value in its.items()}


# Wangt-CN/EqBen, evaluate_eqben_locally.py, cal_wino_score for each data set; the whole: src/eqben/eqben_acc.py.
def eqben(root, score, file="eqben/eqben_subset_10percent_final.json"):
    parts = defaultdict(list)
    for record in json.loads((root / file).read_text()):
        parts[record["image0"].split("/")[0]].append(
            [record[f"{key}{n}"] for key in ("image", "caption") for n in (0, 1)]
        )
    return by_part(parts, score)


# linzhiqiu/t2v_metrics, dataset.py, EqBen_Mini.evaluate_scores (get_winoground_acc of all and of each data set).
def eqben_mini(root, score):
    return eqben(root, score, "eqben_mini/all_select.json")


# rabiulcste/vismin, vismin-bench/metric.py, compute_contrastive_accuracy, without its rounding.
def vismin(root, score):
    parts = defaultdict(list)
    for record in map(json.loads, (root / "vismin/test.jsonl").read_text().splitlines()):
        parts[record["category"]].append([record[f"{key}_{n}"] for key in ("image", "text") for n in (0, 1)])
    return by_part(parts, score)


# Baiqi-Li/NaturalBench, naturalbench_retrieval.py, get_retrieval_acc.
def naturalbench(root, score):
    records = json.loads((root / "naturalbench/metadata.json").read_text())
    return winoground_scores(
        [[r[f"{key}_{n}"] for key in ("image", "caption") for n in (0, 1)] for r in records], score
    )


# wjpoom/SPEC, spec/models/clip_wrapper.py, i2t_evaluate and t2i_evaluate; the means of spec/eval.py.
def spec(root, score):
    right = {}
    for name in text_to_image.SETS:
        for record in json.loads((root / f"spec/{name}/image2text.json").read_text()):
            scores = [score[f"{name}/{record['query']}", text] for text in record["keys"]]
            right.setdefault(f"{name} I2T", []).append(int(np.argmax(scores)) == record["label"])
        for record in json.loads((root / f"spec/{name}/text2image.json").read_text()):
            scores = [score[f"{name}/{image}", record["query"]] for image in record["keys"]]
            right.setdefault(f"{name} T2I", []).append(int(np.argmax(scores)) == record["label"])
    tasks = {name: mean(values) for name, values in right.items()}
    return tasks | {
        f"macro {way}": mean(tasks[f"{name} {way}"] for name in text_to_image.SETS) for way in ("I2T", "T2I")
    }


# e-bug/fine-grained-evals, notebooks/SVO.ipynb (score of p above that of n; by kind, and overall), of the records that
# google-deepmind/svo_probes, probing_image_text_models.ipynb, keeps (one of three columns is True).
def svo_probes(root, score):
    right = defaultdict(list)
    for row in rows_of(root / text_to_image.SVO):
        kinds = [kind for column, kind in text_to_image.KINDS.items() if row[column] == "True"]
        if len(kinds) == 1:
            true, false = (score[f"{row[column]}.jpg", row["sentence"]] for column in ("pos_image_id", "neg_image_id"))
            right[kinds[0]].append(true > false)
    right["all"] = [value for its in right.values() for value in its]
    return {kind: mean(its) for kind, its in right.items()}


def ranks_first(row, column, score):
    """Whether a caption has rank 0. RAIVNLab/CREPE, crepe_eval_utils.py, get_one2many_rank: `argsort` descending, here
    a stable one, and the position of index 0."""
    texts = [row["caption"], *ast.literal_eval(row[column])]
    logits = np.array([score[f"{row['image_id']}.jpg", text] for text in texts])
    return int(np.flatnonzero(np.argsort(-logits, kind="stable") == 0)[0]) < 1


# RAIVNLab/CREPE, crepe_compo_eval_open_clip.py, gather_params; crepe_eval_utils.py, get_one2many_metrics, R@1.
def crepe_systematicity(root, score):
    return {
        f"{part} {kind}": mean(ranks_first(row, f"valid_hard_negs_{kind}", score) for row in rows_of(root / file))
        for part, file in crepe.SYSTEMATICITY.items()
        for kind in ("atom", "comp", "combined")
    }


def crepe_productivity(root, score):
    tasks = {
        f"{kind} {n}": mean(
            ranks_first(row, "hard_negs", score)
            for row in rows_of(root / f"crepe/prod_hard_negatives/{kind}/prod_vg_hard_negs_{kind}_complexity_{n}.csv")
        )
        for kind in ("atom", "negate", "swap")
        for n in range(4, 13)
    }
    return tasks | {"macro over files": mean(tasks.values())}


EVALUATORS = {
    "eqben": eqben,
    "eqben-mini": eqben_mini,
    "vismin": vismin,
    "naturalbench-retrieval": naturalbench,
    "spec": spec,
    "svo-probes": svo_probes,
    "crepe-systematicity": crepe_systematicity,
    "crepe-productivity": crepe_productivity,
}


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("name", EVALUATORS)
def test_accuracies_are_those_of_the_official_evaluator(name, levels, tmp_path):
    bench = make(name, tmp_path)
    for seed in range(DRAWS):
        score = RandomScores(seed, LEVELS[levels])
        ours = found(bench, score)
        assert EVALUATORS[name](tmp_path, score) == pytest.approx(ours, abs=1e-6)


# LAION-AI/CLIP_benchmark, clip_benchmark/metrics/zeroshot_retrieval.py, recall_at_k above 0; `topk` leaves the order of
# equal scores open: here the first wins.
@pytest.mark.parametrize("levels", LEVELS)
def test_recalls_of_flickr8k_are_those_of_clip_benchmark(levels, tmp_path):
    bench = make("retrieval-flickr8k", tmp_path)
    captions = [
        (number, sentence["raw"])
        for number, image in enumerate(
            image
            for image in json.loads((tmp_path / "flickr8k/dataset_flickr8k.json").read_text())["images"]
            if image["split"] == "test"
        )
        for sentence in image["sentences"]
    ]
    positive = np.array([[image == owner for owner, _ in captions] for image in range(len(bench.records))])
    (pool,) = bench.pools
    assert [text[0].text for text in pool.texts] == [text.strip() for _, text in captions]
    for seed in range(DRAWS):
        scores = np.random.default_rng(seed).integers(LEVELS[levels], size=positive.shape).astype(np.float32)
        results = list(bench.results(pool, scores))
        ours = {name: mean(r.outcome.official for r in results if r.item.task == name) for name in bench.tasks}
        for way, rows, pairs in (("I2T", scores, positive), ("T2I", scores.T, positive.T)):
            order = np.argsort(-rows, axis=1, kind="stable")
            for k in (1, 5):
                recall = mean(np.take_along_axis(pairs, order[:, :k], 1).any(1))
                assert ours[f"{way} R@{k}"] == pytest.approx(recall, abs=1e-6)


def test_an_array_of_eqben_has_its_channels_in_opencvs_order(tmp_path):
    bench = make("eqben", tmp_path)
    name = "eqbenyoucook2/20.npy"
    stored = np.load(tmp_path / "eqben/image_subset" / name)
    assert (bench.picture(bench.files.names.index(name)) == stored[:, :, ::-1]).all()
    for wrong in (stored.astype(float), stored[0], np.array([{}])):
        np.save(tmp_path / "eqben/image_subset" / name, wrong)
        with pytest.raises(UserError, match=f"the image '{name}' in .* can't be read"):
            build("eqben", tmp_path).images([4])


def test_an_address_of_flickr_is_its_photograph_and_others_are_none(tmp_path):
    MAKERS["svo-probes"](tmp_path)
    file = tmp_path / text_to_image.SVO
    file.write_text(file.read_text().replace("https://live.staticflickr.com/65/1_ab.jpg", "https://example.com/1.jpg"))
    found = load_benchmark("svo-probes").photographs(file)
    assert set(found) == {PhotographId(FLICKR, number) for number in (0, 2, 3)}
    file.write_text(file.read_text().replace("True", "maybe"))
    with pytest.raises(UserError, match="record 1 has a 'subj_neg' that is neither True nor False: 'maybe'"):
        build("svo-probes", tmp_path)


def test_a_caption_of_crepe_without_negatives_ranks_first(tmp_path):
    MAKERS["crepe-productivity"](tmp_path)
    file = tmp_path / crepe.PRODUCTIVITY["swap 5"]
    file.write_text(file.read_text().replace("\"['swap 5 dog 0', 'swap 5 dog 1']\"", "[]"))
    bench = build("crepe-productivity", tmp_path)
    (item,) = (item for item in bench.items if item.task == "swap 5" and len(item.texts) == 1)
    assert bench.outcome(item, np.zeros((1, 1))) == Outcome(1.0, 1.0, False)
