"""Measures how the time for a study's report grows with its runs (`studies/throughput.py growth --parts report`)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from menagerie.studies.analysis.growth_parts import RUNS_OF_A_PLACE, Growth, seconds
from menagerie.studies.frame.grids import Grid
from menagerie.studies.frame.rehearsal import write_invented
from menagerie.studies.frame.run import Running


def report_growth(config: Growth, folder: Path, amount: int) -> Iterator[tuple[str, float]]:
    """Time what a grid does after each run: look for the next run, write tables and page. The finished runs are
    invented."""
    places = amount // RUNS_OF_A_PLACE
    pairs = tuple(np.linspace(0.05, 1, places).round(4).tolist())
    study = Grid(world=config.world, pairs=pairs, hard_negatives=(0.0,), seeds=5)
    running = Running(study, folder)
    for arm in running.arms():
        write_invented(folder, arm)
    yield "look for the next run, s", seconds(running.waiting)[0]
    yield "write the tables, s", seconds(lambda: study.tables(running.records()))[0]
    yield "write the report, s", seconds(running.publish)[0]
