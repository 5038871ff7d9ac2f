"""Numbers of official code beside the main one, each against an evaluator with the semantics of that code, on the same
random scores of few levels, so that many tie."""

import csv
import json
import random
from itertools import product
from statistics import mean

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from menagerie.generators.benchmarks import caption_pairs, pug
from menagerie.generators.benchmarks.benchmark import ScoredItem
from menagerie.generators.benchmarks.cola_single import average_precision
from tests.helpers.benchmark_files import build, make, write_csv, write_images, write_json_lines

CLOSE = {"abs": 1e-6}


def drawn(bench, seed=0):
    """Every item of a benchmark with random scores of few levels; items of a record share theirs."""
    rng, known = np.random.default_rng(seed), {}
    found = []
    for item in bench.items:
        shape = len(item.images), len(item.texts)
        scores = known.setdefault((item.cluster, item.images), rng.integers(-2, 3, shape).astype(float))
        found.append(ScoredItem(item, scores, bench.outcome(item, scores)))
    return found


def further_of(bench, results, **how):
    """The further headlines of results."""
    more = list(bench.further(results, **how))
    return bench.further_headlines([one.item for one in more], [one.outcome for one in more])


def percent(summaries):
    return {name: 100 * its.official for name, its in summaries.items()}


def make_bivlc(root, count=60):
    """BiVLC as the hub has it, an object on each line."""
    rows = [
        {
            **{"image": f"{k}.jpg", "caption": f"a cat {k}", "negative_caption": f"a dog {k}"},
            **{"negative_image": f"n{k}.jpg", "type": ("replace", "swap", "add")[k % 3], "subtype": "obj"},
        }
        for k in range(count)
    ]
    write_json_lines(root / "bivlc/test.jsonl", rows)
    write_images(root / "bivlc/images", [f"{sign}{k}.jpg" for k in range(count) for sign in ("", "n")])
    return build("bivlc", root), [row["type"] for row in rows]


def test_bivlc_has_the_four_comparisons_of_its_authors(tmp_path):
    """github.com/IMirandaM/BiVLC: evaluate_BiVLC in src/CLIP_fine_tuning/CLIP_utils.py, means in
    main_evaluation_BiVLC.py."""
    bench, types = make_bivlc(tmp_path)
    results = [one for one in drawn(bench) if one.item.task == "text"]
    official = {}
    for kind in ("", *set(types)):
        parts = {"Ipos_2T": [], "Ineg_2T": [], "Tpos_2I": [], "Tneg_2I": []}
        for ((c0_i0, c1_i0), (c0_i1, c1_i1)), its in zip((one.scores for one in results), types, strict=True):
            if kind in ("", its):
                parts["Ipos_2T"].append(c0_i0 > c1_i0)
                parts["Ineg_2T"].append(c1_i1 > c0_i1)
                parts["Tpos_2I"].append(c0_i0 > c0_i1)
                parts["Tneg_2I"].append(c1_i1 > c1_i0)
        official |= {f"{kind}: {name}".removeprefix(": "): 100 * mean(map(float, its)) for name, its in parts.items()}
    assert percent(further_of(bench, drawn(bench))) == pytest.approx(official, **CLOSE)


def test_valse_has_acc_p_c_and_p_f_of_scorers_that_say_what_is_true(tmp_path):
    """github.com/Heidelberg-NLP/VALSE: lxmert_valse_eval.py; `cross_score` of a sentence is [0, our score]."""
    bench = make("valse", tmp_path)
    results = drawn(bench)
    assert not list(bench.further(results))
    official = {}
    for task in bench.tasks:
        foil_accuracy = capt_fits = foil_detected = count = 0
        for cross in [[[0, s] for s in one.scores[0]] for one in results if one.item.task == task]:
            if cross[1][0] == cross[1][1]:
                continue
            foil_accuracy += (cross[0][0] < cross[0][1]) + (cross[1][0] >= cross[1][1])
            capt_fits += cross[0][0] < cross[0][1]
            foil_detected += cross[1][0] >= cross[1][1]
            count += 1
        if count:
            official[f"{task}: acc"] = foil_accuracy / count * 50
            official[f"{task}: p_c"] = capt_fits / count * 100
            official[f"{task}: p_f"] = foil_detected / count * 100
    found = percent(further_of(bench, results, level=0.0))
    assert {name: value for name, value in found.items() if ":" in name} == pytest.approx(official, **CLOSE)
    for name in ("acc", "p_c", "p_f"):
        its = [value for key, value in official.items() if key.endswith(f": {name}")]
        assert found[name] == pytest.approx(mean(its), **CLOSE)
    silent = [one._replace(scores=np.full((1, 2), np.nan)) for one in results]
    assert set(percent(further_of(bench, silent, level=0.0)).values()) == {50}


def test_sugarcrepe_pp_compares_texts_with_each_other(tmp_path):
    """github.com/Sri-Harsha/scpp: `correct_text` in VLMs/test_Variants_CLIP.py."""
    bench = make("sugarcrepe-pp", tmp_path)
    rng = np.random.default_rng(1)
    vectors = {text: rng.choice(np.eye(3)) for text in bench.texts}
    official = {}
    for part in caption_pairs.SUGARCREPE_PP:
        right = []
        for line in json.loads((tmp_path / f"sugarcrepe_pp/{part}.json").read_text()):
            names = {text.text: vector for text, vector in vectors.items()}
            p1, p2, neg = (names[line[key]] for key in ("caption", "caption2", "negative_caption"))
            right.append(p1 @ p2 > p1 @ neg and p1 @ p2 > p2 @ neg)
        official[f"{part}: text only"] = 100 * mean(map(float, right))
    official["text only"] = mean(official.values())
    found = percent(further_of(bench, drawn(bench), vectors=lambda texts: {text: vectors[text] for text in texts}))
    assert found == pytest.approx(official, **CLOSE)
    assert not further_of(bench, drawn(bench), vectors=lambda texts: {})


def official_single(scores, labels, hard):
    """ColaSingleObjAP of scripts/eval.py, github.com/arijitray1993/COLA, with the average precision of torchmetrics:
    the sum over thresholds of the rise in recall times the precision."""
    values = []
    for row, true, among in zip(scores.T, labels.T, hard.T, strict=True):
        some, own = row[among == 1], true[among == 1]
        if true.sum() and len(some) and own.sum():
            value = before = 0.0
            for threshold in sorted(set(some), reverse=True):
                kept = own[some >= threshold]
                value += (kept.sum() / own.sum() - before) * kept.mean()
                before = kept.sum() / own.sum()
            values.append(value)
    return mean(values)


def test_cola_has_the_single_object_map(tmp_path):
    bench = make("cola-single", tmp_path)
    labels, rows = json.loads((tmp_path / "cola/COLA_singleobjects_benchmark_GQA.json").read_text())
    true, hard = (np.array([row[k] for row in rows]) for k in (2, 3))
    for seed in range(20):
        scores = np.random.default_rng(seed).integers(0, 3, true.shape).astype(float)
        columns, lines = {label: k for k, label in enumerate(labels)}, {row[0][7:]: k for k, row in enumerate(rows)}
        files = {number: photo.file for photo, number in bench.numbers.items()}
        outcomes = {"GQA": [], "CLEVR": []}
        for item in bench.items:
            own = [[scores[lines[files[k].removeprefix("CLEVR_")], columns[item.texts[0].text]]] for k in item.images]
            outcomes[item.task].append(bench.outcome(item, np.array(own)))
        for its in outcomes.values():
            assert mean(one.official for one in its) == pytest.approx(official_single(scores, true, hard), **CLOSE)


def test_average_precision_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores, true = rng.integers(0, 4, 9).astype(float), rng.random(9) < 0.4
        true[0] = True
        assert average_precision(scores, true) == pytest.approx(average_precision_score(true, scores), **CLOSE)


def official_spare(rows, seed=42):
    """The indices of test rows: train_val_test_split and extend_test_indices in alignment/pug_alignment_utils.py of
    github.com/jayn2u/CLIP-not-BoW-unimodally, a copy of the authors' repository."""
    animals = list(dict.fromkeys(row["character_name"] for row in rows))
    textures = list(dict.fromkeys(row["character_texture"] for row in rows))
    unique = []
    for attr1, obj1, attr2, obj2 in product(textures, animals, textures, animals):
        if obj1 == obj2 or attr1 == attr2:
            continue
        if (attr1, obj2, attr2, obj1) in unique or (attr2, obj1, attr1, obj2) in unique:
            continue
        unique.append((attr1, obj1, attr2, obj2))
    random.seed(seed)
    keys = [
        (row["character_texture"], row["character_name"], row["character2_texture"], row["character2_name"])
        for row in rows
    ]
    found = []
    for t1, a1, t2, a2 in random.sample(unique, int(0.1 * len(unique))):
        for alike in ((t1, a1, t2, a2), (t2, a2, t1, a1), (t2, a1, t1, a2), (t1, a2, t2, a1)):
            found += [k for k, key in enumerate(keys) if key == alike]
    return found


def test_pug_spare_has_the_test_of_its_authors(tmp_path):
    """A table of all pairs of six animals in five textures, in an order that isn't sorted."""
    animals, textures = ("Pig", "Bear", "Cat", "Dodo", "Asp", "Emu"), ("Red", "Gold", "Blue", "Ice", "Mud")
    columns = ("filename", "world_name", "character_name", "character2_name", "character_texture", "character2_texture")
    every = [(a, b, s, t) for a, b, s, t in product(animals, animals, textures, textures) if a != b and s != t]
    random.Random(3).shuffle(every)
    table = [(f"{k}.png", "Desert", *its) for k, its in enumerate(every)]
    write_csv(tmp_path / pug.SPARE, columns, table)
    write_images(tmp_path / pug.SPARE_FOLDER, [f"Desert/{row[0]}" for row in table], (8, 8))
    bench, rows = build("pug-spare", tmp_path), [dict(zip(columns, row, strict=True)) for row in table]
    results = drawn(bench)
    right = {one.item.record: one.scores[0, 0] > one.scores[0, 1] for one in results}
    chosen = official_spare(rows)
    assert len(set(chosen)) < len(chosen) < len(rows)
    found = bench.headlines([one.item for one in results], [one.outcome for one in results])
    official = mean(float(right[f"Desert/{rows[k]['filename']}"]) for k in chosen)
    assert found[pug.TEST][0] == pytest.approx(official, **CLOSE)
    assert found[pug.TEST].n == len(chosen)


def official_worlds(path, score):
    """Accuracies of scenes and single animals: run_eval_vlms_on_spar.py of github.com/facebookresearch/PUG. `score` is
    of a file with a caption; as there, the first of the best captions is chosen."""
    with path.open() as file:
        table = list(csv.DictReader(file))
    alone = [row for row in table if row["character_name"] == "blank" != row["character2_name"]]
    alone += [row for row in table if row["character2_name"] == "blank" != row["character_name"]]
    empty = [row for row in table if row["character_name"] == row["character2_name"] == "blank"][:10]
    photo = "This is a photo"

    def accuracy(rows, labels, captions):
        best = [int(np.argmax([score(row["filename"], text) for text in captions])) for row in rows]
        return mean(float(captions.index(label) == k) for label, k in zip(labels, best, strict=True))

    worlds = list(dict.fromkeys(f"{photo} in a {row['world_name']} environment" for row in empty))
    found = {"scene acc1": accuracy(empty, [f"{photo} in a {row['world_name']} environment" for row in empty], worlds)}
    for world in ("", *dict.fromkeys(row["world_name"] for row in table)):
        here = [row for row in alone if world in ("", row["world_name"])]
        start = f"{world}: one animal, ".removeprefix(": ")
        for texture in ("Default", "Blue", "Grass"):
            rows = [row for row in here if row["character_texture"] == texture]
            captions = [f"{photo} of a {name}" for name in dict.fromkeys(row["character_name"] for row in rows)]
            names = [
                row["character2_name"] if row["character_name"] == "blank" else row["character_name"] for row in rows
            ]
            labels = [f"{photo} of a {name}" for name in names]
            found[f"{start}{texture.lower()} acc1"] = accuracy(rows, labels, captions)
        for r1, r2 in (("left", "right"), ("bottom", "top")):
            rows = [row for row in here if row["character_texture"] == "Default" and row["character1_pos"] == r1]
            names = list(dict.fromkeys(row["character_name"] for row in rows))[1:]
            captions = [f"{photo} of a {name} on the {r} of the picture" for name in names for r in (r1, r2)]
            labels = [
                f"{photo} of a {row['character2_name']} on the {r2} of the picture"
                if row["character_name"] == "blank"
                else f"{photo} of a {row['character_name']} on the {r1} of the picture"
                for row in rows
            ]
            found[f"{start}{r1}/{r2} acc1"] = accuracy(rows, labels, captions)
    return found


def test_pug_spar_has_scenes_and_single_animals_by_world(tmp_path):
    bench = make("pug-spar-scenes", tmp_path)
    files = {number: photo.file for photo, number in bench.numbers.items()}

    def score(file, text):
        return float(np.random.default_rng([*file.encode(), *text.encode()]).integers(0, 3))

    results = [
        one
        for pool in bench.pools
        for one in bench.results(
            pool, np.array([[score(files[k], text[0].text) for text in pool.texts] for k in pool.images], np.float32)
        )
    ]
    found = bench.headlines([one.item for one in results], [one.outcome for one in results])
    official = official_worlds(tmp_path / "pug_spar/labels.csv", score)
    assert {name: its.official for name, its in found.items() if name in official} == pytest.approx(official, **CLOSE)
    assert found.keys() - official.keys() == {"Desert: scene acc1", "Island: scene acc1"}


def test_a_single_animal_s_other_place_is_the_false_caption(tmp_path):
    bench = make("pug-spar-places", tmp_path)
    texts = {tuple(text.text.split(" on the ")[1].split()[0] for text in item.texts) for item in bench.items}
    assert texts == {("left", "right"), ("right", "left"), ("bottom", "top"), ("top", "bottom")}
    assert all("blank" not in text.text for item in bench.items for text in item.texts)
