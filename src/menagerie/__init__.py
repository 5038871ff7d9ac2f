"""Menagerie: scenes, splits, scorers and studies for the binding problem in vision-language models.

Beside this file lie links to the four floors: the folders `envs`, `generators`, `models` and `studies`. The public
names are those of `__init__.pyi`, imported at their first use: `import menagerie` alone loads neither torch nor numba.
"""

from lazy_loader import attach_stub

load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Return a public name, or the version of the installed package."""
    if name != "__version__":
        return load(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("binding-menagerie")
    except PackageNotFoundError:  # run from a clone that isn't installed
        return "unknown"
