"""The parts from which a study is built: `from menagerie.studies.frame import Axis, Lines, SplitStudy, Table, grid,
main`.

The names are those of `__init__.pyi`, which type checkers read too. They are imported at their first use, so that
`--help` loads neither torch, matplotlib, pandas nor Optuna.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
