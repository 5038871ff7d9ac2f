"""Reuses a trained scorer's weights in a new scorer of the same kind that reads other texts.

A closed vocabulary has a row for each word and a row for each position in a text. The new scorer keeps every word and
every position of the old one, and may add some, which start fresh. All other weights are copied from the checkpoint.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import (
    CheckpointConfig,
    check_known_options,
    check_model_name,
    describe_foreign_weights,
    read_weights,
    scorer_config,
)
from menagerie.models.registry import spec_of
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.preparation import towers_to_record

WORDS, POSITIONS, IMAGES = "token_embedding.weight", "positional_embedding", "visual."  # names of weights


class Carried(NamedTuple):
    """Words and positions that a new scorer took over from an old one, and those that it added."""

    words: int
    """Number of words in the old vocabulary; 0 for byte pairs, where all tokens are shared."""
    new_words: tuple[str, ...]
    positions: int
    """Number of positions in a text that the old scorer had."""
    new_positions: int

    @classmethod
    def from_record(cls, result: Mapping[str, Any]) -> "Carried":
        """Read the numbers recorded in a cell's result."""
        return cls(*(result[name] for name in cls._fields))

    @property
    def text(self) -> str:
        """The numbers of words and positions, in one line."""
        words = f"{self.words} words carried over and {len(self.new_words)} new" if self.words else "byte pairs"
        return f"{words}; {self.positions} positions carried over and {self.new_positions} new; nothing dropped"


def widen(texts: TextSpace, before: TextSpace) -> TextSpace:
    """A text space large enough for the new texts and for the checkpoint's."""
    return TextSpace(tuple(sorted({*texts.words, *before.words})), max(texts.context, before.context))


def check_carry_over(folder: Path, model: str, towers: TowerConfig, options: dict[str, Any]) -> CheckpointConfig:
    """Return a checkpoint's description; raise unless its scorer is a `model` with these towers and these options.
    Options that decide only scores may differ."""
    config = scorer_config(folder)
    check_model_name(folder, config.model, model)
    check_known_options(folder, model, config)
    wanted = {**asdict(replace(towers_to_record(towers), load=False)), **weight_options(model, options)}
    there = {**asdict(towers_to_record(config.towers)), **weight_options(model, config.options)}
    if others := [name for name in wanted if wanted[name] != there.get(name)]:
        listed = ", ".join(f"{name} is {there.get(name)!r} there and {wanted[name]!r} here" for name in others)
        raise UserError(f"the weights in {folder} can't be carried over: {listed}; give the same, or leave out --from")
    return config


def weight_options(model: str, options: dict[str, Any]) -> dict[str, Any]:
    """All options of a model that decide its weights, including defaults, by their names on command lines."""
    spec = spec_of(model)
    every = asdict(spec.make_config(options))
    return {f"{spec.name}.{name}": value for name, value in every.items() if name not in spec.scored}


def carry_over(scorer: Scorer, model: str, folder: Path) -> Carried:
    """Copy the weights of the checkpoint in `folder` into a fresh `scorer`. The scorer's text space must include the
    checkpoint's: make it with `widen`.

    Raises if the checkpoint has another model, other towers or other options than those that decide only scores. Also
    raises if the shape of a weight depends on the texts, unless the weight belongs to words or positions.
    """
    config = check_carry_over(folder, model, scorer.towers_config, asdict(scorer.config))
    weights, state = read_weights(folder), scorer.state_dict()
    if odd := sorted(state.keys() ^ weights.keys()):
        raise UserError(f"{describe_foreign_weights(folder, model)}; the first odd one is {odd[0]}")
    rows = word_rows(config.texts.words, scorer.texts.words)
    for name, fresh in state.items():
        if name.endswith(WORDS) and scorer.texts.words:
            take_rows(fresh, weights[name], rows)
        elif name.endswith(POSITIONS) and IMAGES not in name:
            take_rows(fresh, weights[name], {row: row for row in range(len(weights[name]))})
        elif fresh.shape == weights[name].shape:
            fresh.copy_(weights[name])
        else:
            raise UserError(
                f"the weights in {folder} can't be carried over: {name} of {model!r} depends on the words of texts or "
                "the length of the longest, which differ here; leave this model out of --from"
            )
    known = set(config.texts.words)
    new = tuple(word for word in scorer.texts.words if word not in known)
    positions = config.texts.context
    return Carried(len(config.texts.words), new, positions, scorer.texts.context - positions)


def word_rows(before: tuple[str, ...], now: tuple[str, ...]) -> dict[int, int]:
    """Map rows of the old table of words to rows of the new one. In both, row 0 is padding and the last is the end."""
    new_rows = {word: row for row, word in enumerate(now, start=1)}
    kept = {row: new_rows[word] for row, word in enumerate(before, start=1)}
    return {0: 0, **kept, len(before) + 1: len(now) + 1}


@torch.no_grad()
def take_rows(fresh: Tensor, given: Tensor, rows: dict[int, int]) -> None:
    """Copy rows of `given` to the mapped rows of `fresh`, in place."""
    fresh[torch.tensor(list(rows.values()))] = given[torch.tensor(list(rows))].to(fresh)
