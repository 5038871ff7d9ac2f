"""Types in signatures, enforced: shapes of arrays by jaxtyping, all else by beartype alone.

jaxtyping's import hook binds the arguments of every call in Python, which is slow. Most functions name no shapes, and
those that make captions and splits are called a million times in the tests.
"""

import inspect
import marshal
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source, source_hash
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, get_type_hints

import jaxtyping
from jaxtyping._import_hook import _JaxtypingLoader

with_shapes = jaxtyping.jaxtyped
KEPT = "enforced" + jaxtyping.__version__.replace(".", "")


def install(packages: Sequence[str]) -> None:
    """Enforce types in all modules of some packages that are imported from now on."""
    jaxtyping.jaxtyped = enforced  # what the hook decorates every function and class with
    _JaxtypingLoader.exec_module = SourceFileLoader.exec_module
    _JaxtypingLoader.get_code = code_of
    jaxtyping.install_import_hook(packages, "beartype.beartype")


def code_of(loader: Any, name: str) -> CodeType:
    """The code of a module, decorated, which is kept beside its bytecode. jaxtyping would also read what the module
    imports under its own name, so that each process would compile torch again."""
    source = loader.get_data(loader.path)
    key = source_hash(loader.path.encode() + source)
    kept = Path(cache_from_source(loader.path, optimization=KEPT))
    if kept.exists() and (found := kept.read_bytes()).startswith(key):
        return marshal.loads(found[len(key) :])
    code = loader.source_to_code(source, loader.path)
    loader.set_data(str(kept), key + marshal.dumps(code))  # whole or not at all
    return code


def enforced(decorated: Any = None, *, typechecker: Callable) -> Any:
    """In the place of `jaxtyping.jaxtyped`."""
    if decorated is None:
        return partial(enforced, typechecker=typechecker)
    if not inspect.isclass(decorated):
        return checked(decorated, typechecker)
    if is_dataclass(decorated) and "__init__" in vars(decorated):
        # One that is inherited is wrapped in its own class.
        decorated.__init__ = checked(decorated.__init__, typechecker)
    return decorated


def checked(function: Callable, typechecker: Callable) -> Callable:
    """A function that refuses arguments and results of other types."""
    hints = {name: resolved(hint, function) for name, hint in function.__annotations__.items()}
    if any("jaxtyping" in repr(hint) for hint in hints.values()):
        return with_shapes(function, typechecker=typechecker)
    function.__annotations__ = hints
    return typechecker(function)


def resolved(hint: Any, function: Callable) -> Any:
    """A hint without strings; Any if it names what only type checkers import, or the class that it is part of."""
    holder = SimpleNamespace(__annotations__={"it": hint})
    try:
        return get_type_hints(holder, function.__globals__, include_extras=True)["it"]
    except (NameError, TypeError):
        return Any
