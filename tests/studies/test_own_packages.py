"""In a repository that has packages `models`, `envs`, `generators` and `studies` of its own."""

import subprocess
import sys

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.plugins import own_module, own_sources
from menagerie.studies.runs.cell import own_files
from tests.command import QUICK, WAIT_SECONDS
from tests.forked import run_forked
from tests.helpers.splits import lend_atlas

LAYERS = """
from torch import nn

class Wider(nn.Linear):
    pass
"""
MINE = """
from menagerie.models.networks.clip import CLIPScorer
from models.layers import Wider

class Mine(CLIPScorer):
    def __init__(self, towers, texts, config):
        super().__init__(towers, texts, config)
        self.wider = Wider(2, 2)
"""
PROGRAM = """
import sys
from pathlib import Path
import menagerie, envs, generators, models, studies

assert not {"torch", "numba", "numpy"} & {*sys.modules}
from menagerie import SplitDataset, load_scorer
from torch.utils.data import DataLoader

if __name__ == "__main__":
    (file,) = Path("store").rglob("binding-*.h5")
    data = SplitDataset(file, "train")
    loader = DataLoader(data, 4, num_workers=1, collate_fn=list, multiprocessing_context="spawn")
    assert sum(len(batch) for batch in loader) == len(data)
    scorer = load_scorer("run", model="mine.py:Mine")
    print(*scorer.score(data[0].image[None], [data[0].caption]).shape, type(scorer.scorer.wider).__module__)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("repository")
    for name in ("models", "envs", "generators", "studies"):
        (place / name).mkdir()
        (place / name / "__init__.py").write_text(f"NAME = 'my own {name}'\n")
    (place / "models/layers.py").write_text(LAYERS)
    (place / "mine.py").write_text(MINE)
    lend_atlas(place)
    (place / "program.py").write_text(PROGRAM)
    return place


def test_files_in_a_package_import_what_lies_beside_them(folder):
    options = [*QUICK, "--steps", "2", "--models", "mine.py:Mine", "--loaders", "1", "--out", "run"]
    trained = run_forked([sys.executable, "-m", "menagerie", "binding-grid", *options], folder)
    assert trained.returncode == 0, trained.stderr
    assert (folder / "run" / "report.html").stat().st_size
    program = [sys.executable, "program.py"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "1", "models.layers"]


def test_a_module_of_another_folder_is_not_taken_for_the_files_own(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "my_layers_of_two.py").write_text(f"NAME = {name!r}")
        (tmp_path / name / "mine.py").write_text("from my_layers_of_two import NAME")
    assert own_module(tmp_path / "one/mine.py").NAME == "one"
    with pytest.raises(UserError, match=r"my_layers_of_two lies in .*other"):
        own_module(tmp_path / "other/mine.py")


def test_what_a_file_imports_from_its_folder_decides_its_name(folder):
    file = folder / "mine.py"
    assert own_sources(file) == [file, folder / "models/__init__.py", folder / "models/layers.py"]
    before = own_files(f"{file}:Mine")
    (folder / "models/layers.py").write_text(LAYERS + "\n# other\n")
    assert own_files(f"{file}:Mine") != before
    (folder / "broken.py").write_text("from models import (")
    with pytest.raises(UserError, match=r"broken\.py can't be read"):
        own_files(f"{folder / 'broken.py'}:Mine")
