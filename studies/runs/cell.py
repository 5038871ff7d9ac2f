"""A cell is one training run with its evaluation; it is identified by the hash of its settings."""

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envs.common.errors import UserError
from envs.common.files import whole_file, write_text
from generators.splits.recipe import VERSION, SplitRecipe
from models.recipe import Recipe
from models.towers.config import TowerConfig
from studies.runs.folder import provenance

Report = Callable[[int], None]
# Told each finished step, and what gives the accuracy on validation at that step.
Watch = Callable[[int, Callable[[], float]], None]
RESULT = "result.json"
QUADS = ("text", "image", "group")
PREDICTIONS = (
    *("subset", "task", "scene", "animals", "caption", "negative"),
    *("score_caption", "score_negative", "partner_caption", "partner_negative"),
)


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one training run."""

    model: str
    seed: int
    split: SplitRecipe
    store: str  # identity of the image store
    towers: TowerConfig
    recipe: Recipe
    options: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    threads: int = 1
    files: str = ""  # hash of a model file of the user's own and of local weights

    @property
    def id(self) -> str:
        """Hash of all settings."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def settings(self) -> dict[str, Any]:
        """All fields, and the kind and version of the split, which are none of the recipe's fields."""
        return {"kind": self.split.kind, "version": VERSION, **asdict(self)}

    @property
    def name(self) -> str:
        """Short text for progress bars."""
        return f"{self.model} {self.split.pairs:.0%} pairs {self.split.hard_negatives:.0%} negatives seed {self.seed}"


@dataclass(frozen=True)
class Job:
    """A cell, the split file that it trains on, and the folder for what it makes."""

    cell: Cell
    split_file: Path
    folder: Path
    what: str = ""
    """What a study calls it, beside the name of the cell."""

    @property
    def name(self) -> str:
        """Short text for progress bars."""
        return f"{self.what}: {self.cell.name}" if self.what else self.cell.name


def own_files(*paths: str) -> str:
    """Hash of the contents of what is a user's own file: a model's (file.py:Class), pretrained weights."""
    files = [Path(path.rpartition(":")[0] if ".py:" in path else path) for path in paths]
    contents = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12] if contents else ""


def finished(folder: Path) -> dict[str, Any] | None:
    """The result in a cell's folder, or None where the cell isn't finished."""
    file = folder / RESULT
    try:
        return json.loads(file.read_text()) if file.exists() else None
    except ValueError as error:
        raise UserError(f"{file} is damaged; delete it and run again: only this cell is made anew") from error


def run_cell(job: Job, report: Report, watch: Watch | None = None) -> None:
    """Train and evaluate; ends with the result file, whole or not at all.

    `report` is told each finished step; so is `watch`, which may stop the run by raising. A run
    that was stopped goes on from its last state.
    """
    import torch

    from generators.storage.dataset import SplitDataset
    from models.checkpoint import build_scorer, save_checkpoint
    from models.evaluation.caption_choice import swap_accuracy
    from models.training.loop import train

    cell = job.cell
    torch.set_num_threads(cell.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    started = time.perf_counter()
    data = SplitDataset(job.split_file, "train")
    torch.manual_seed(cell.seed)
    scorer = build_scorer(cell.model, cell.towers, vocabulary(data.split), cell.options).to(cell.device)
    state = job.folder / "state.pt"
    validation = SplitDataset(data.split, "validation") if watch else None

    def told(progress: Any) -> None:
        report(progress.step)
        if watch:
            watch(progress.step, lambda: swap_accuracy(scorer, validation))

    train(scorer, data, cell.recipe, cell.seed, state, report=told)
    save_checkpoint(job.folder / "checkpoint", cell.model, scorer)
    subsets = evaluate(job.folder, data.split, scorer)
    counts = cell.split.counts()
    result = {
        "id": cell.id,
        **{"model": cell.model, "seed": cell.seed, "pairs": cell.split.pairs},
        **{"hard_negatives": cell.split.hard_negatives, "settings": cell.settings},
        **{"train_images": len(data), "images_seen": cell.recipe.steps * cell.recipe.batch},
        **{"training_pairs": counts.train, "swapped_pairs": counts.swapped, "all_pairs": counts.trainable},
        **{"parameters": sum(p.numel() for p in scorer.parameters()), "subsets": subsets},
        "seconds": round(time.perf_counter() - started, 1),  # of this process: less where it resumed
        "provenance": provenance(),
    }
    write_text(job.folder / RESULT, json.dumps(result))
    state.unlink(missing_ok=True)


def vocabulary(split: Any) -> tuple[str, ...]:
    """All words of a split's captions, graphs and names, sorted: the closed vocabulary of its world.

    Tests may ask for names that captions of few words leave out, and for animals without their textures ("an orca").
    """
    from generators.captions.templates import with_article
    from models.towers.tokenizers import WordTokenizer

    texts = [text for r in split.subsets.values() for text in (*r.captions, *r.negatives)]
    graphs = [graph for r in split.subsets.values() for graph in r.graphs]
    nodes = [node for graph in graphs for node in graph.nodes]
    predicates = [edge.predicate for graph in graphs for edge in graph.edges]
    v = split.vocabulary
    names = [*map(with_article, v.animals), *v.textures, *v.backgrounds, *v.sizes]
    return WordTokenizer.from_texts([*texts, *nodes, *predicates, *names]).words


def evaluate(folder: Path, split: Any, scorer: Any) -> dict[str, dict[str, Any]]:
    """Accuracy, ties and number by subset (all but train) and task; writes `predictions.csv`."""
    from generators.storage.dataset import SplitDataset
    from models.evaluation.caption_choice import score_tasks, subset_choices

    subsets = {}
    with whole_file(folder / "predictions.csv") as temporary, temporary.open("w", newline="") as file:
        rows = csv.DictWriter(file, PREDICTIONS, lineterminator="\n", restval="")
        rows.writeheader()
        for subset in sorted(split.subsets.keys() - {"train"}):
            data = SplitDataset(split, subset)
            asked = subset_choices(data)
            scores, quads = score_tasks(scorer, data, asked)
            subsets[subset] = {task: summary(found) for task, found in scores.items()}
            subsets[subset] |= {f"quad {part}": quad_summary(getattr(quads, part)) for part in QUADS}
            rows.writerows(predictions(subset, data, asked, scores, quads))
    return subsets


def summary(scores: Any) -> dict[str, float | int | None]:
    """The numbers of one task; None where the subset is empty."""
    defined = {"accuracy": scores.accuracy, "tie_rate": scores.tie_rate} if scores.n else {}
    return {"accuracy": None, "tie_rate": None, **defined, "n": scores.n}


def quad_summary(right: Any) -> dict[str, float | int | None]:
    """Share of the quads that are right; a tie is wrong."""
    return {"accuracy": float(right.mean()) if len(right) else None, "tie_rate": None, "n": len(right)}


def predictions(
    subset: str, data: Any, asked: dict[str, Any], scores: dict[str, Any], quads: Any
) -> Iterator[dict[str, Any]]:
    """One row for each task and record that it suits; the swap also tells the partner's scores."""
    for task, found in scores.items():
        suited = [pair for pair in zip(data.records.scenes, asked[task], strict=True) if pair[1]]
        for i, (scene, choice) in enumerate(suited):
            true, false = (caption.text for caption in choice)
            row = {"subset": subset, "task": task, "scene": scene.key, "caption": true, "negative": false}
            row["animals"] = " + ".join(sorted(thing.animal for thing in scene.things))
            numbers = {"score_caption": found.true[i], "score_negative": found.negative[i]}
            if task == "swap":
                numbers |= {"partner_caption": quads.partner.true[i], "partner_negative": quads.partner.negative[i]}
            yield row | {name: f"{number:.9g}" for name, number in numbers.items()}
