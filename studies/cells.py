"""A cell is one training run with its evaluation; it is identified by the hash of its settings."""

import csv
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envs.errors import UserError
from envs.files import whole_file, write_text
from generators.binding import BindingRecipe, pair_roles
from models.configs import TowerConfig
from models.recipes import Recipe
from studies.run_folder import provenance

Report = Callable[[int], None]
RESULT = "result.json"


@dataclass(frozen=True)
class Cell:
    """Everything that decides the result of one training run."""

    model: str
    seed: int
    split: BindingRecipe
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
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]

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


def finished(folder: Path) -> dict[str, Any] | None:
    """The result in a cell's folder, or None where the cell isn't finished."""
    file = folder / RESULT
    try:
        return json.loads(file.read_text()) if file.exists() else None
    except ValueError as error:
        raise UserError(f"{file} is damaged; delete it and run again: only this cell is made anew") from error


def run_cell(job: Job, report: Report) -> None:
    """Train and evaluate; ends with the result file, whole or not at all.

    `report` is told each finished step. A run that was stopped goes on from its last state.
    """
    import torch

    from generators.dataset import SplitDataset
    from models.checkpoint import build_scorer, save_checkpoint
    from models.training import train

    cell = job.cell
    torch.set_num_threads(cell.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    started = time.perf_counter()
    data = SplitDataset(job.split_file, "train")
    torch.manual_seed(cell.seed)
    scorer = build_scorer(cell.model, cell.towers, vocabulary(data.split), cell.options).to(cell.device)
    state = job.folder / "state.pt"
    train(scorer, data, cell.recipe, cell.seed, state, report=lambda progress: report(progress.step))
    save_checkpoint(job.folder / "checkpoint", cell.model, scorer)
    subsets = evaluate(job.folder, data.split, scorer)
    roles = pair_roles(cell.split)
    result = {
        "id": cell.id,
        **{"model": cell.model, "seed": cell.seed, "pairs": cell.split.pairs},
        **{"hard_negatives": cell.split.hard_negatives, "settings": asdict(cell)},
        **{"train_images": len(data), "images_seen": cell.recipe.steps * cell.recipe.batch},
        **{"training_pairs": len(roles.train), "swapped_pairs": len(roles.swapped), "all_pairs": roles.trainable},
        **{"parameters": sum(p.numel() for p in scorer.parameters()), "subsets": subsets},
        "seconds": round(time.perf_counter() - started, 1),  # of this process: less where it resumed
        "provenance": provenance(),
    }
    write_text(job.folder / RESULT, json.dumps(result))
    state.unlink(missing_ok=True)


def vocabulary(split: Any) -> tuple[str, ...]:
    """All words of a split's captions and graphs, sorted: the closed vocabulary of its world."""
    from models.text import WordTokenizer

    texts = [text for r in split.subsets.values() for text in (*r.captions, *r.negatives)]
    graphs = [graph for r in split.subsets.values() for graph in r.graphs]
    nodes = [node for graph in graphs for node in graph.nodes]
    return WordTokenizer.from_texts([*texts, *nodes, *(edge.predicate for g in graphs for edge in g.edges)]).words


def evaluate(folder: Path, split: Any, scorer: Any) -> dict[str, dict[str, float | int | None]]:
    """Accuracy, ties and number of every subset but train; writes `predictions.csv`."""
    from generators.dataset import SplitDataset
    from models.evaluation import score_negatives

    subsets = {}
    with whole_file(folder / "predictions.csv") as temporary, temporary.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["subset", "scene", "caption", "negative", "score_caption", "score_negative"])
        for subset in sorted(split.subsets.keys() - {"train"}):
            data = SplitDataset(split, subset)
            scores, r = score_negatives(scorer, data), data.records
            for i, scene in enumerate(r.scenes):
                numbers = (f"{scores.true[i]:.9g}", f"{scores.negative[i]:.9g}")
                rows.writerow([subset, scene.key, r.captions[i], r.negatives[i], *numbers])
            defined = {"accuracy": scores.accuracy, "tie_rate": scores.tie_rate} if scores.n else {}
            subsets[subset] = {"accuracy": None, "tie_rate": None, **defined, "n": scores.n}
    return subsets
