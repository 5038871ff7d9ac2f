"""Runs all trials of a study of sample efficiency, and writes its report."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from generators.cluster.worker import Interruption
from studies.grids.grid import cores, render, workers
from studies.sample_search.budget import everything
from studies.sample_search.study import identity, run_worker, searches


def run(config: Any, study: str, out: Path) -> None:
    """Run all trials that still wait, and write the report."""
    from studies.sample_search.cluster_workers import Worker, run_on_cluster
    from studies.sample_search.report import write_all
    from studies.sample_search.storage import Trials
    from studies.sample_search.workers import run_workers

    config = replace(config, storage=config.storage or str(out / "journal.log"))
    trials = Trials(config.storage)
    for search in searches(config, study):
        trials.open(search, identity(config))
    fill_store(config)
    if config.cluster.engine == "none":
        run_workers(workers(config), config.threads, run_worker, config, study, out, Interruption())
    else:
        run_on_cluster(Worker(config, study, out), trials)
    found = {search.name.removeprefix(f"{study} "): trials.all(search) for search in searches(config, study)}
    print(f"report: {write_all(out, config, found)}")


def fill_store(config: Any) -> None:
    """Render what most settings show, with all cores; workers render the rest of theirs."""
    most = everything(config)
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = cores(config if config.cluster.engine == "none" else replace(config, workers=0))
    render(replace(config, pairs=(most.pairs,), hard_negatives=(most.hard_negatives,)), here)
