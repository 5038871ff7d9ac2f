"""The parts from which a study is built: `from menagerie.studies.frame import Axis, Lines, SplitStudy, Table, grid,
main`.

Names are imported at their first use, so that `--help` loads neither torch, matplotlib, pandas nor Optuna.
"""

from importlib import import_module

PARTS = (
    *("Bars", "Cases", "Curves", "Facts", "Front", "Heading", "HeatMap", "Lines", "OwnFigure", "Paragraph", "Part"),
    *("Picture", "Pictures", "Rows", "Scatter", "Sentence", "Table"),
)
MODULES = {
    **dict.fromkeys(PARTS, "parts"),
    **dict.fromkeys(("Arm", "Known"), "arm"),
    "Axis": "options",
    "Estimate": "estimate",
    "Measure": "measure",
    "Search": "search",
    **dict.fromkeys(("Records", "read"), "records"),
    **dict.fromkeys(("SplitStudy", "Study", "grid"), "study"),
    "main": "command",
    **dict.fromkeys(("halved", "until_flat"), "adaptive"),
    **dict.fromkeys(("EIGHT", "PAPER", "SMOKE"), "grids"),
}
__all__ = sorted(MODULES)


def __getattr__(name: str) -> object:
    """Import a name from the module that has it."""
    if name in MODULES:
        return getattr(import_module(f"menagerie.studies.frame.{MODULES[name]}"), name)
    raise AttributeError(f"module 'menagerie.studies.frame' has no attribute {name!r}")
