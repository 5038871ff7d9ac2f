"""Texts that are longer than a model reads: every reader knows them, and notebooks are warned."""

import pytest
import torch

from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer
from menagerie.models.texts import RegraphedReader
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.tokenizers import OpenCLIPTokenizer, cut_texts
from menagerie.studies.scoring.piece import cut_record
from menagerie.studies.scoring.splits import texts_of_tests
from tests.helpers.scorers import OPTIONS

CONTEXT = 8
BYTES = TowerConfig("nano", resolution=32, tokenizer="open_clip")
READERS = ("clip", "flair", "dcsm", "oc-clip", "clip-phrases", "filip-phrases", "labclip")


def text(words, last):
    """Some words of a token each, and a last one."""
    return " ".join(["red"] * (words - 1) + [last])


def alike(one, other):
    """Whether a reader made the same of two texts."""
    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


def tensors(read):
    return [read] if isinstance(read, torch.Tensor) else [t for part in read if part is not None for t in tensors(part)]


@pytest.mark.parametrize("name", READERS)
def test_readers_report_as_cut_the_texts_whose_last_word_changes_nothing(name):
    model = build_scorer(name, BYTES, TextSpace((), CONTEXT), OPTIONS[name])
    seen = set()
    for words in range(CONTEXT - 4, CONTEXT + 5):
        pair = [text(words, "cat"), text(words, "dog")]
        graphs = [SceneGraph((its,)) for its in pair]
        cut = model.cut_texts(pair, graphs)
        same = alike(*(model.read([its], [graph]) for its, graph in zip(pair, graphs, strict=True)))
        assert cut == [same, same], words
        seen.add(same)
    assert seen == {True, False}


@pytest.mark.parametrize("name", ["oc-clip", "clip-phrases"])
def test_long_relations_of_graphs_are_reported_as_cut(name):
    model = build_scorer(name, BYTES, TextSpace((), CONTEXT), OPTIONS[name])
    graphs = [SceneGraph(("cat", "dog"), (Edge(text(words, "of"), 0, 1),)) for words in (1, CONTEXT + 1)]
    assert model.cut_texts(["", ""], graphs) == [False, True]
    model.reader = RegraphedReader(model.reader, lambda caption, graph: graphs[1])
    assert model.cut_texts([""], graphs[:1]) == [True]


def test_short_texts_of_many_tokens_are_reported_as_cut():
    """Signs of several tokens, which are counted by their bytes before they are counted."""
    tokenizer = OpenCLIPTokenizer()
    for sign in ("İ", "😀", "ŉ", "ﬃ", "中", "a", "1"):
        for count in range(1, 40):
            assert cut_texts(tokenizer, [sign * count], 20) == [tokenizer.length(sign * count) > 20]


def test_cut_texts_of_splits_are_counted(data):
    test = SplitTests(SplitDataset(data.split, "unseen_pairs"))
    texts = texts_of_tests({"one": test, "same": test})
    short, long = (build_scorer("clip", BYTES, TextSpace((), context), OPTIONS["clip"]) for context in (5, 77))
    assert cut_record(short, texts)["texts"] == cut_record(short, texts)["of"] == len(texts) > 0
    assert cut_record(long, texts) == {"texts": 0, "of": len(texts), "context": 77, "first": ""}
