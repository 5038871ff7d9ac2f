"""A class of one's own before any training."""

import torch

from menagerie.generators.parsers.any_caption import vocabulary_of, words_of_captions
from menagerie.models.checkpoint import build_scorer
from menagerie.models.contract import attempt
from menagerie.models.scorer import Scorer
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import text_space

LONGEST = 32  # words of a caption


def fresh_scorer(name: str, towers: TowerConfig, world: str = "") -> Scorer:
    """The scorer `file.py:Class` on towers from scratch, or with the weights that it loads itself.

    A closed vocabulary has the words of all captions of `world`, or of everything that ships.
    """
    words = words_of_captions(vocabulary_of(world))
    texts = text_space(towers, [*words, " ".join([words[0]] * LONGEST)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return attempt(name, "can't be built", lambda: build_scorer(name, towers, texts)).eval()
