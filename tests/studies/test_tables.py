"""Tables as LaTeX."""

import pandas as pd

from menagerie.studies.analysis.tables import escape, to_latex


def test_latex_is_escaped_and_aligned():
    text = to_latex(pd.DataFrame([("oc-clip", "95.0"), ("clip & co", "–")], columns=["model", "a_b"]), "100 % sure")
    assert r"clip \& co & – \\" in text
    assert r"model & a\_b \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"\caption{100 \% sure}" in text
    assert [text.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [1, 1, 1]
    assert escape("{~^\\}") == r"\{\textasciitilde{}\^{}\textbackslash{}\}"
