"""A study that ships, copied to a folder of one's own, as users begin theirs."""

import runpy
import shutil

import pytest

from menagerie.studies.frame.adaptive import all_arms
from menagerie.studies.frame.rehearsal import check_page
from tests.command import ROOT

STUDIES = [path for path in sorted((ROOT / "studies").glob("[!_]*.py")) if "main(PRESETS" in path.read_text()]


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_the_page_of_a_copy_is_no_mistake(study, tmp_path):
    presets = runpy.run_path(shutil.copy(study, tmp_path / "mine.py"))["PRESETS"]
    its = presets["smoke"] if "smoke" in presets else next(iter(presets.values()))
    check_page(its, all_arms(its))
