"""Words of reports: one place says what they mean, and models, rows, subsets and tasks have a line each."""

import re
from pathlib import Path

import pytest

from menagerie.models.registry import specs
from menagerie.studies.analysis.ablation_rows import explain_rows
from menagerie.studies.analysis.papers import ABLATIONS
from menagerie.studies.analysis.words import TERMS, explain_models

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_reports_explain_words_as_the_glossary_does():
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    known = {name: meaning for names, meaning in rows for name in names.split(", ")}
    assert {term: known.get(term) for term in TERMS} == TERMS


@pytest.mark.parametrize("name", specs())
def test_every_model_has_a_line_with_its_paper(name):
    spec = specs()[name]
    assert re.search(r"\b(19|20)\d\d\b", spec.source), "the paper's year"
    assert explain_models([name]) == {name: f"{spec.title}: {spec.about} ({spec.source})"}
    assert spec.about


@pytest.mark.parametrize("name", list(ABLATIONS))
def test_every_row_of_an_ablation_is_said_in_words(name):
    ablations = ABLATIONS[name]
    assert set(ablations.says) == set(ablations.rows)
    of_a_study = "objects and attributes left out"
    explained = explain_rows(specs()[name], [*ablations.rows, of_a_study, "dim=3"])
    assert set(explained) == {*ablations.rows, of_a_study, "dim=3"}
    assert explained[of_a_study] == "mentioned=0.7 attributes=0.8"
    assert all(line in explained[row] for row, line in ablations.rows.items())
