"""Words of reports: what they mean, what models and rows are, of how many records numbers are, where they were made."""

import re

import pandas as pd
import pytest

from menagerie.envs.core.records import write_record
from menagerie.models.registry import specs
from menagerie.studies.analysis.papers import ABLATIONS
from menagerie.studies.analysis.tables import FLAG, accuracy_style, meaning_of_flags
from menagerie.studies.analysis.words import TERMS, explain_model
from menagerie.studies.frame.rows import explain_rows
from menagerie.studies.runs.folder import machines_of_runs
from menagerie.studies.runs.machine import describe_processor, processor
from tests.command import ROOT


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
    assert machines_of_runs(tmp_path, [])["commit"] == "aaa", "before any run is finished"
    results = []
    for name, commit in (("1", "aaa"), ("2", "bbb"), ("3", "aaa")):
        origin = {**then, "commit": commit, "started": f"2001-01-0{name}"}
        result = {"id": name, "model": "clip", "subsets": {}, "provenance": origin}
        results.append(result)
    found = machines_of_runs(tmp_path, results)
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


GLOSSARY = ROOT / "docs" / "glossary.md"


def test_reports_explain_words_as_the_glossary_does():
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    known = {name: meaning for names, meaning in rows for name in names.split(", ")}
    assert {term: known.get(term) for term in TERMS} == TERMS


@pytest.mark.parametrize("name", specs())
def test_every_model_has_a_line_with_its_paper(name):
    spec = specs()[name]
    assert re.search(r"\b(19|20)\d\d\b", spec.source), "the paper's year"
    assert explain_model(name) == f"{spec.title}: {spec.about} ({spec.source})"
    assert spec.about


@pytest.mark.parametrize("name", list(ABLATIONS))
def test_every_row_of_an_ablation_is_said_in_words(name):
    lines = ABLATIONS[name].lines
    of_a_study = {"objects and attributes left out": "mentioned=0.7 attributes=0.8", "dim=3": "dim=3"}
    explained = explain_rows(specs()[name], {"as it is": ""} | lines | of_a_study)
    assert set(explained) == {*lines, *of_a_study}
    assert all(line in explained[row] and len(explained[row]) > len(line) for row, line in lines.items())
    assert {row: explained[row] for row in of_a_study} == of_a_study
