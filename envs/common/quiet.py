"""Silences what libraries log while they fetch or build a model: an error that matters is raised as well."""

import contextlib
import logging
from collections.abc import Iterator

# The hub's client tells of each of its five attempts, twice; the root logger is open_clip's.
LOGGERS = ("", "huggingface_hub")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep these loggers silent up to errors; a function may be decorated with it."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
