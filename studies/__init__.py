"""Studies, each of which is a set of options, a plan of runs, and a page.

`menagerie.studies.read(FOLDER)` gives the records of finished runs; it is loaded at its first use.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
