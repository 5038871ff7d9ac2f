"""A study in a file of a user's own: the one that `menagerie new` writes, that of the docs, and mistakes in one."""

import re
import runpy
import shutil
import sys

import pytest

from menagerie.studies import frame
from menagerie.studies.frame.dry_run import check_page
from menagerie.studies.frame.study import all_arms
from tests.command import ROOT, read_rows, run_here, succeed
from tests.studies.browser import plain

MENAGERIE = [sys.executable, "-m", "menagerie"]
SHORT = ["--preset", "smoke", "--steps", "4", "--batch", "8", "--test-scenes", "12", "--models", "clip"]
SCORER = """
from menagerie.models.networks.clip import CLIPScorer

class Mine(CLIPScorer):
    \"\"\"CLIP by another name.

    Nothing else.
    \"\"\"
"""


MULTI_OBJECT = """
from dataclasses import dataclass

from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.studies.frame import SMOKE, Axis, Sentence, SplitStudy, Table, grid, main


@dataclass(frozen=True)
class Coverage(SplitStudy):
    \"\"\"More combinations\"\"\"

    plain_recipe = MultiObjectRecipe(objects=(1, 2), test_objects=(2, 3), train_scenes=96)
    coverage: Axis[float] = (0.25, 0.75)

    def plan(self, known):
        for arm in grid(self, coverage=self.coverage, objects=[(1, 2)]):
            yield arm._replace(labels={**arm.labels, "data": "mine"})

    def page(self, records):
        unseen = records.where(task="swap", subset="unseen_2", data="mine", objects=(1, 2))
        gains = unseen.estimates(("model", "coverage"), against={"coverage": self.coverage[0]})
        for (model, coverage), gain in gains.items():
            yield Sentence(f"{model}: {coverage} gives {gain} points.")
        yield Table("levels", unseen, ("model", "coverage"), intervals=True)


PRESETS = {"smoke": Coverage(**SMOKE | {"world": "eight-textures"})}

if __name__ == "__main__":
    main(PRESETS)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the study that `menagerie new` writes, and its run with one value of an axis."""
    folder = tmp_path_factory.mktemp("own")
    assert run_here([*MENAGERIE, "new", "views.py"], folder).returncode == 0
    (folder / "mine.py").write_text(SCORER)
    succeed([*MENAGERIE, "run", str(folder / "views.py"), *SHORT, "--pairs", "1"], folder, figures=False)
    return folder


def rows(folder):
    return read_rows(folder / "runs/views-smoke/results.csv")


def test_a_new_study_runs_and_has_a_page(folder):
    assert {(row["pairs"], row["views"]) for row in rows(folder)} == {("1.0", "1"), ("1.0", "4")}
    page = (folder / "runs/views-smoke/report.html").read_text()
    assert "views give" in page
    words = re.sub(r"<.*?>|\s+", " ", plain(folder / "runs/views-smoke/report.html")).split()
    assert "kind of split binding" in " ".join(words)
    assert "hard_negatives 0.0" in " ".join(words), "what the study doesn't name is on it too"


def test_other_values_leave_finished_runs_out_and_say_so(folder):
    done = succeed(
        [*MENAGERIE, "run", str(folder / "views.py"), *SHORT, "--pairs", "0.5", "--views", "1"], folder, page=False
    )
    assert "2 finished runs in this folder" in done.stdout
    assert {row["pairs"] for row in rows(folder)} == {"0.5"}
    done = run_here(
        [*MENAGERIE, "run", str(folder / "views.py"), *SHORT, "--pairs", "0.5", "1", "--views", "1"], folder, page=False
    )
    assert "2 runs, 2 of them finished before" in done.stdout
    assert {row["pairs"] for row in rows(folder)} == {"0.5", "1.0"}


def test_the_study_of_the_docs_can_be_planned(tmp_path):
    text = (ROOT / "docs/extending.md").read_text().partition("## A study of your own")[2]
    (tmp_path / "views.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1])
    done = succeed([sys.executable, str(tmp_path / "views.py"), "--preset", "smoke", "--dry-run"], tmp_path)
    assert "clip, nano, batch 32: 4 runs" in done.stdout
    # Importing a module puts it in place of a name that the package gives.
    assert not {*frame.__all__} & {file.stem for file in (ROOT / "studies/frame").glob("*.py")}


def test_a_study_of_multi_object_scenes(tmp_path):
    """Another kind of split, an axis of one of its fields, a label that is a tuple, and a label of one's own."""
    (tmp_path / "several.py").write_text(MULTI_OBJECT)
    short = [*SHORT, "--steps", "2", "--views", "1"]
    succeed([sys.executable, str(tmp_path / "several.py"), *short], tmp_path, figures=False)
    run = tmp_path / "runs/several-smoke"
    rows = read_rows(run / "results.csv")
    assert {tuple(row[name] for name in ("coverage", "objects", "data")) for row in rows} == {
        ("0.25", "1+2", "mine"),
        ("0.75", "1+2", "mine"),
    }
    assert "clip: 0.75 gives" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("views: Axis[int]", "steps: Axis[int]", "Views has two options --steps"),
        ("views=self.views)", "veiws=self.views)", "'veiws'; did you mean 'views'"),
        ('("model", "views"), against', '"vews", against', "no run has a label 'vews'; labels are model, pairs"),
        ('against={"views": self', 'against={"view": self', "against={'view': 1}: view must be among `by`"),
        ('panels=("model",)', 'panels=("mode",)', "the part 'views' of the page: no run has a label 'mode'"),
    ],
)
def test_a_mistake_is_one_line_of_a_dry_run(old, new, said, folder):
    done = dry_run(folder, old, new)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def dry_run(folder, old, new):
    """A dry run of the study with a mistake in it."""
    text = (folder / "views.py").read_text()
    assert old in text
    (folder / "mistaken.py").write_text(text.replace(old, new).replace("self.steps", "self.views"))
    return run_here([*MENAGERIE, "run", str(folder / "mistaken.py"), *SHORT, "--dry-run"], folder)


def test_an_error_of_the_page_has_its_traceback(folder):
    with pytest.raises(AttributeError, match="'Views' object has no attribute 'paris'") as caught:
        dry_run(folder, "self.pairs[-1]", "self.paris[-1]")
    assert any(str(entry.path).endswith("mistaken.py") and entry.lineno + 1 == 26 for entry in caught.traceback)


STUDIES = [path for path in sorted((ROOT / "studies").glob("[!_]*.py")) if "main(PRESETS" in path.read_text()]


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_the_page_of_a_copy_is_no_mistake(study, tmp_path):
    presets = runpy.run_path(shutil.copy(study, tmp_path / "mine.py"))["PRESETS"]
    its = presets["smoke"] if "smoke" in presets else next(iter(presets.values()))
    check_page(its, all_arms(its))
