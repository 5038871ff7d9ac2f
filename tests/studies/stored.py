"""Folders of finished runs without training: predictions drawn from a seed, in the files that runs write."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.records import Records, StoredCell
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.results import write_result

TESTS = ("seen_pairs", "unseen_pairs")
TASKS = ("swap", "replace animal")


def stored_run(
    out: Path,
    model: str,
    seed: int,
    labels: dict[str, Any],
    skill: float,
    pairs: int = 6,
    name: str = "",
    tests: tuple[str, ...] = TESTS,
    drawn_by: str = "",
    ending: Callable[[int], str] = lambda scene: "",
    animals: Callable[[int], str] = "pair {}".format,
) -> Arm:
    """A finished run whose records are right about as often as `skill` says; some are ties, and pairs differ in size.

    Records are the same for all models of a seed. Four-way items have accuracies and no records. The seed and the name
    decide which records are right, or `drawn_by` where the name is an identity, which other versions change. Keys of
    scenes have an `ending`, such as their view."""
    name = name or "-".join(map(str, [model, seed, *labels.values()])).replace("/", "_")
    arm = Arm(StoredCell(name, model, seed, tests), labels)
    folder, scenes = out / "cells" / arm.id, np.random.default_rng(seed)
    folder.mkdir(parents=True)
    drawn_by = drawn_by or name
    rng = np.random.default_rng([seed, len(drawn_by), sum(map(ord, drawn_by))])
    rows, subsets = [], {}
    for subset in ("validation", *tests):
        counts = scenes.integers(2, 6, pairs)
        for task in TASKS:
            margins = [
                (pair, scene, float(rng.choice([1, 0, -1], p=[skill * 0.95, 0.05, 0.95 * (1 - skill)])))
                for pair, count in enumerate(counts)
                for scene in range(count)
            ]
            for pair, scene, margin in margins:
                key = f"{subset} {pair} {scene}{ending(scene)}"
                texts = {"scene": key, "animals": animals(pair), "caption": f"a {key}", "negative": f"no {key}"}
                scores = {"score_caption": 0.5 + margin, "score_negative": 0.5}
                rows.append({"subset": subset, "task": task, **texts, **scores})
            values = [0.5 + margin / 2 for *_, margin in margins]
            numbers = {"accuracy": float(np.mean(values)), "tie_rate": 0.05, "n": len(values)}
            subsets.setdefault(subset, {})[task] = numbers
        subsets[subset]["text score"] = {"accuracy": skill / 2, "tie_rate": None, "n": 7}
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.DictWriter(file, PREDICTIONS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)
    numbers = {"images_seen": 640, "train_images": 10, "parameters": 1000, "loss_negatives": [], "seconds": 1.0}
    result = {"id": arm.id, "model": model, "seed": seed, **labels, "axes": list(labels), "subsets": subsets, **numbers}
    write_result(folder, result | {"provenance": {"step_cpu_seconds": 0.01}}, (FILE,))
    return arm


def stored_grid(out: Path, seeds: int = 3, models: tuple[str, ...] = ("clip", "oc-clip", "negclip")) -> Records:
    """Runs of several models at two shares of pairs."""
    arms = [
        stored_run(out, model, seed, {"pairs": share, "hard_negatives": 0.0}, 0.5 + 0.1 * k + 0.3 * share)
        for seed in range(seeds)
        for share in (0.2, 0.8)
        for k, model in enumerate(models)
    ]
    return Records(tuple(arms), out)
