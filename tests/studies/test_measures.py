"""Measures of finished cells: made once, in other processes, also those that stand in a user's study file."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import own_module
from menagerie.envs.worlds import load_world
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.cells import cell_of
from menagerie.studies.frame.measure import FOLDER, Measure, read_measured, write_measured
from menagerie.studies.runs.cell import CHECKPOINT, Execution, Job
from menagerie.studies.runs.data import SplitData
from menagerie.studies.runs.executor import run_jobs
from menagerie.studies.runs.slurm import Cluster
from menagerie.studies.runs.train import run_cell
from tests.command import run_here
from tests.grid_cells import chosen_alone, splits
from tests.studies.stored import stored_grid

STUDY = """
import sys
from dataclasses import dataclass
from pathlib import Path
from menagerie.studies.frame.command import main
from menagerie.studies.frame.measure import Measure

with Path(__file__).with_name("run as").open("a") as file:
    print(__name__, file=file)


@dataclass(frozen=True)
class Norm(Measure):
    "The norm of all weights"

    power: int = 2

    def rows(self, scorer, material, seed):
        total = sum((weight.detach() ** self.power).sum() for weight in scorer.parameters())
        yield {"norm": total, "tests": len(material.tests), "seed": seed}


if __name__ != "__main__":
    main({})  # as in a file without a guard: it isn't started by those who only read the class
else:
    from menagerie.studies.frame.measure import Measuring
    from tests.studies.test_measures import CELLS, run

    run(Measuring(CELLS[0], (Norm(), Norm(3)), (None, 0, 2, 99)), sys.argv[1])
"""


CELLS: list[Job] = []  # for studies that run in this process


def run(job, engine="none"):
    """Run one job; returns how often it ended."""
    ended = []
    run_jobs([job], Cluster(engine), 1, job.of.out, ended.append)
    return len(ended)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """A finished cell of the smoke preset, of two steps, with the states before and after them."""
    folder = tmp_path_factory.mktemp("measured")
    grid = replace(chosen_alone(PRESETS["smoke"]), recipe=Recipe(steps=2, batch=4), test_scenes=4, models=("clip",))
    store = SplitFolder(folder / "store", load_world(grid.world), grid.resolution)
    recipe = splits(grid)[0]
    made = cell_of(grid, "clip", SplitData(recipe, store.identity), recipe.seed)
    job = Job(made, store.make(recipe), folder / "run", execution=Execution(keep_states=(0, 2, 99)))
    run_cell(job, lambda step, text: None)
    return job


@pytest.mark.parametrize("engine", ["none", "local"])
def test_a_measure_of_a_users_file_is_taken(cell, engine, tmp_path):
    """It is run as a study once, and as a module wherever something is measured; on the cell's own weights."""
    (tmp_path / "my_study.py").write_text(STUDY)
    CELLS[:] = [replace(cell, out=tmp_path)]
    (tmp_path / "cells").symlink_to(cell.out / "cells")
    written = []
    for _ in range(2):
        result = run_here([sys.executable, str(tmp_path / "my_study.py"), engine], tmp_path, page=False)
        assert result.returncode == 0, result.stderr
        written.append({file: file.stat().st_mtime_ns for file in (cell.folder / FOLDER).iterdir()})
    assert written[0] == written[1], "the second time nothing is left to do"
    names = (tmp_path / "run as").read_text().split()
    assert names.count("__main__") == 2
    assert {name.rpartition("_")[0] for name in names} - {"__main_", "__mp_main_"} == {"menagerie_own_my_study"}
    assert len(written[0]) == 6, "two measures of three states; there is none after step 99"
    norm = own_module(tmp_path / "my_study.py").Norm
    assert read_measured(cell.folder, norm(7)) is None
    (row,) = read_measured(cell.folder, norm())
    assert row.keys() == {"norm", "tests", "seed"}
    scorer = load_checkpoint(cell.folder / CHECKPOINT, "clip")
    total = sum(float((weight.detach() ** 2).sum()) for weight in scorer.parameters())
    assert row["norm"] == pytest.approx(total, rel=1e-6)
    first, last = read_measured(cell.folder, norm(), (0, 2))
    assert (first["step"], last["step"]) == (0, 2)
    assert last["norm"] == row["norm"] != first["norm"]
    for file in written[0]:
        file.unlink()


@dataclass(frozen=True)
class Given(Measure):
    """Rows as they are given."""

    row: tuple = ()

    def rows(self, scorer, material, seed):
        return [dict(self.row)]


def test_rows_of_measures_hold_numbers_texts_and_lists_of_them(tmp_path):
    folder = tmp_path / "cells" / "abc"
    row = {"a": np.float32(0.5), "b": torch.tensor(2), "c": float("nan"), "d": np.arange(2), "e": "é", "f": None}
    file = write_measured(folder, Given(), None, [row])
    assert read_measured(folder, Given()) == [{"a": 0.5, "b": 2, "c": None, "d": [0, 1], "e": "é", "f": None}]
    write_measured(folder, Given(), None, [])
    assert read_measured(folder, Given()) == []
    for bad, reason in (
        ({"a": float("inf")}, "can't be written"),
        ({"a": object()}, "can't be written"),
        ({"step": 1}, "rename it"),
    ):
        with pytest.raises(UserError, match=f"the measure Given .*{reason}"):
            write_measured(folder, Given(), None, [bad])
    other = tmp_path / "cells" / "def" / FOLDER / file.name
    other.parent.mkdir(parents=True)
    file.rename(other)
    with pytest.raises(UserError, match=r"is damaged .*of another cell.*delete it and run again"):
        read_measured(other.parents[1], Given())


def test_rows_stand_beside_the_labels_of_their_runs(tmp_path):
    records = stored_grid(tmp_path, seeds=1, models=("clip",))
    for number, arm in enumerate(records.arms):
        for step in (None, 0, 5)[: 3 - number]:  # the second run was shorter
            write_measured(records.folder(arm), Given(), step, [{"a": number}, {"a": step}])
    assert records.rows_of(Given())[["pairs", "a"]].values.tolist()[0::2] == [[0.2, 0], [0.8, 1]]
    assert records.rows_of(Given(), (0, 5))[["pairs", "step", "a"]].values.tolist() == [
        *([0.2, 0, 0], [0.2, 0, 0], [0.2, 5, 0], [0.2, 5, 5], [0.8, 0, 1], [0.8, 0, 0])
    ]
    assert records.rows_of(Given((("b", 1),))).empty
    write_measured(records.folder(records.arms[0]), Given(), None, [{"pairs": 1}])
    with pytest.raises(UserError, match="the measure Given has a column 'pairs', which is a label of runs; rename it"):
        records.rows_of(Given())


def test_settings_and_the_text_of_a_class_name_its_file(tmp_path):
    names = {Given().file(), Given((("a", 1),)).file(), Given().file(3)}
    for number in (1, 2, 2):
        path = tmp_path / f"mine{len(names)}.py"
        path.write_text(STUDY.replace("total,", f"total * {number},"))
        names.add(own_module(path).Norm().file())
    assert len(names) == 3 + 2, "where it stands decides nothing"
