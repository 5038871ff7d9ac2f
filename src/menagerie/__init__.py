"""Menagerie: scenes, splits, scorers and studies for the binding problem in vision-language models.

Beside this file lie links to the four floors: the folders `envs`, `generators`, `models` and `studies`.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from menagerie.envs.core.errors import UserError
    from menagerie.generators.parsers.any_caption import parse
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.generators.storage.image_store import ImageStore
    from menagerie.models.library.load import load_scorer
    from menagerie.models.scorer import Scorer
    from menagerie.models.spec import ScorerSpec
    from menagerie.studies.frame.run import train

MODULES = {
    "ImageStore": "generators.storage.image_store",
    "Scorer": "models.scorer",
    "ScorerSpec": "models.spec",
    "SplitDataset": "generators.storage.dataset",
    "UserError": "envs.core.errors",
    "load_scorer": "models.library.load",
    "parse": "generators.parsers.any_caption",
    "train": "studies.frame.run",
}
__all__ = ["ImageStore", "Scorer", "ScorerSpec", "SplitDataset", "UserError", "load_scorer", "parse", "train"]


def __getattr__(name: str) -> object:
    """Import a public name at its first use: `import menagerie` alone loads neither torch nor numba."""
    if name == "__version__":
        try:
            return version("binding-menagerie")
        except PackageNotFoundError:  # run from a clone that isn't installed
            return "unknown"
    if name in MODULES:
        return getattr(import_module(f"menagerie.{MODULES[name]}"), name)
    raise AttributeError(f"module 'menagerie' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, for completion in notebooks."""
    return [*__all__, "__version__"]
