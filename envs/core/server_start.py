"""Imported by the server of workers, and loads what they need.

multiprocessing's server passes over what it can't import. Workers would then try it again, and torch says only that it
can't be loaded twice; so the first error is kept for them.
"""

import importlib
import os

MODULES = "MENAGERIE_MODULES"  # in the environment: what to load, with commas between
failure: Exception | None = None

try:
    for name in filter(None, os.environ.pop(MODULES, "").split(",")):
        importlib.import_module(name)
except Exception as error:  # of any library: whoever needs it raises it
    failure = error
