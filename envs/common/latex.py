"""Tables for papers: plain LaTeX with booktabs rules."""

from collections.abc import Sequence

ESCAPES = {"\\": r"\textbackslash{}", **{c: "\\" + c for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\^{}"}


def escape(text: str) -> str:
    """`text` as LaTeX shows it."""
    return "".join(ESCAPES.get(character, character) for character in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table environment; columns that hold words are aligned left, numbers right."""
    columns = "".join("l" if any(not number(row[k]) for row in rows) else "r" for k in range(len(header)))
    lines = [" & ".join(map(escape, row)) + r" \\" for row in (header, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escape(caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def number(text: str) -> bool:
    """Whether a cell holds a number, an interval or a dash."""
    return not any(character.isalpha() for character in text)
