"""What all reports say of their numbers: whether a run is a smoke run, of how many records they are, where it ran."""

import ast

import pandas as pd
import pytest

from menagerie.envs.core.records import write_record
from menagerie.studies.analysis.tables import FLAG, meaning_of_flags
from menagerie.studies.analysis.words import records_in
from menagerie.studies.report.pages import accuracy_style
from menagerie.studies.runs.folder import where_it_ran
from menagerie.studies.runs.machine import describe_processor, processor
from tests.command import ROOT


def test_records_of_results_are_those_of_all_their_tests():
    tasks = {"swap": {"accuracy": 0.5, "n": 16}, "one animal": {"accuracy": None, "n": 0}}
    assert records_in([{"subsets": {"seen_pairs": tasks, "validation": {"swap": {"n": 8}}}}]) == [16, 0, 8]


def test_every_report_of_a_study_says_whether_it_is_of_a_smoke_run_and_where_it_ran():
    pages = [
        (path, {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords})
        for path in (ROOT / "studies").rglob("*.py")
        if path.parent.name != "commands"  # whose pages are of split files
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "write_page"
    ]
    assert pages
    for path, values in pages:
        assert "smoke" in values, path
        assert "where_it_ran" in values["notes"], path


def test_a_caption_that_is_liked_whatever_the_image_is_no_skill():
    """Flagged in words, and without the colour of skill."""
    assert "same caption" in meaning_of_flags(pd.DataFrame({"swap": [f"100.0{FLAG}", "40.0"]}))
    assert meaning_of_flags(pd.DataFrame({"swap": ["100.0", "40.0"]})) == ""
    assert accuracy_style(f"100.0{FLAG}") == ""
    assert "background" in accuracy_style("100.0")
    assert "background" in accuracy_style("100.0 ± 0.5")


def test_a_page_drawn_again_keeps_where_its_runs_were_made(tmp_path):
    """A page that is drawn again, by other code and later, keeps their start, commits and machine."""
    then = {"command": "python studies/x.py", "started": "2001-01-01", "commit": "aaa", "processor": "old", "cores": 2}
    write_record(tmp_path / "config.json", {"config": {}, **then})
    assert where_it_ran(tmp_path)["commit"] == "aaa", "before any run is finished"
    for name, commit in (("1", "aaa"), ("2", "bbb"), ("3", "aaa")):
        (tmp_path / "cells" / name).mkdir(parents=True)
        origin = {**then, "commit": commit, "started": f"2001-01-0{name}"}
        result = {"id": name, "model": "clip", "subsets": {}, "provenance": origin}
        write_record(tmp_path / "cells" / name / "result.json", result)
    found = where_it_ran(tmp_path)
    assert (found["command"], found["started"]) == ("python studies/x.py", "2001-01-01")
    assert found["commit"] == "aaa (2 runs); bbb (1 run)"
    assert (found["processor"], found["cores"]) == ("old", "2")
    assert "2001" not in found["this page was drawn"]


CLOUD = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: {}\nmodel name\t: Some CPU\nflags\t\t: fpu {}\n\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("cpuinfo", "text"),
    [
        (CLOUD.format(1, "avx avx2"), "Some CPU, family 25, model 1, avx2"),
        (CLOUD.format(17, "avx avx2 avx512f"), "Some CPU, family 25, model 17, avx512f"),
        ("model name : Some CPU\n", "Some CPU"),
        ("processor : 0\nCPU implementer : 0x41\n", ""),
        ("", ""),
    ],
    ids=["older", "newer", "name alone", "no name", "nothing"],
)
def test_processors_that_sum_differently_have_other_names(cpuinfo, text):
    assert describe_processor(cpuinfo) == text
    assert processor(), "this one has a name"
