"""Runs all trials of a study of sample efficiency, and writes its report."""

from dataclasses import replace
from pathlib import Path

from menagerie.studies.grids.grid import cores, workers
from menagerie.studies.grids.run import render
from menagerie.studies.sample_search.budget import SampleStudy, everything
from menagerie.studies.sample_search.study import Worker, identity, run_worker, searches


def run(config: SampleStudy, study: str, out: Path) -> None:
    """Run all trials that still wait, and write the report."""
    from menagerie.studies.runs.shared import clear_shared
    from menagerie.studies.sample_search.report import write_all
    from menagerie.studies.trials.launch import Resources, run_trials
    from menagerie.studies.trials.queue import Trials

    config = replace(config, storage=config.storage or str(out / "journal.log"))
    trials, both = Trials(config.storage), searches(config, study)
    for search in both:
        trials.open(search, identity(config))
    fill_store(config)
    resources = Resources(workers(config), config.threads, config.device, config.cluster)
    run_trials(trials, [both], run_worker, Worker(config, study, out), resources, out)
    clear_shared(out)
    by_name = {search.name.removeprefix(f"{study} "): trials.all(search) for search in both}
    print(f"report: {write_all(out, config, by_name)}")


def fill_store(config: SampleStudy) -> None:
    """Render what most settings show, with all cores; workers render the rest of theirs."""
    most = everything(config)
    # As many workers as there are tasks on a cluster are no measure for this machine.
    here = cores(config if config.cluster.engine == "none" else replace(config, workers=0))
    render(replace(config, pairs=(most.pairs,), hard_negatives=(most.hard_negatives,)), here)
