"""Captions that somebody typed, to scene graphs."""

import subprocess
import sys

import pytest

import menagerie
from menagerie.envs.core.errors import UserError
from menagerie.envs.world import WORLDS
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.phrases import plain_text
from menagerie.generators.storage.dataset import SplitDataset


@pytest.mark.parametrize(
    ("caption", "nodes", "edges"),
    [
        ("a red cat and a white giant tortoise in the desert", ("red cat", "white giant tortoise", "desert"), ()),
        ("A Red Cat, and a white lion -- in the desert!", ("red cat", "white lion", "desert"), ()),
        ("a cat above an asphalt orca at the circus", ("cat", "asphalt orca", "circus"), (Edge("above", 0, 1),)),
        ("a red cat", ("red cat",), ()),
        ("three grass pigs on the ocean floor", ("three grass pigs", "ocean floor"), ()),
        ("a small red cat and a white lion in the city", ("small red cat", "white lion", "city"), ()),
        ("in the city the cat is red and the lion is white", ("red cat", "white lion", "city"), ()),
        ("a red cat as well as a white lion at the circus", ("red cat", "white lion", "circus"), ()),
        ("a big cat and no white lion", ("big cat", "no white lion"), ()),
    ],
)
def test_captions_are_parsed(caption, nodes, edges):
    assert menagerie.parse(caption) == SceneGraph(nodes, edges)


@pytest.mark.parametrize(
    ("caption", "reason"),
    [
        ("a red cta in the desert", "unknown word 'cta'; did you mean 'cat'"),
        ("a red cat in the kitchen", "unknown word 'kitchen'"),
        ("a red cat and a dog in the city", "unknown word 'dog'"),
        ("a red unicorn", "unknown word 'unicorn'"),
        ("red cat desert the", "doesn't follow the grammar"),
        ("a red cat and and a white lion in the city", "doesn't follow the grammar"),
        ("", "an empty caption"),
        (" ?! ", "an empty caption"),
    ],
)
def test_other_captions_are_refused_with_the_reason(caption, reason):
    with pytest.raises(UserError, match=reason):
        menagerie.parse(caption)


def test_a_world_limits_the_words():
    assert menagerie.parse("a red rabbit in the city", "tiny").nodes == ("red rabbit", "city")
    assert menagerie.parse("a red rabbit in the city", WORLDS["tiny"]).nodes == ("red rabbit", "city")
    with pytest.raises(UserError, match="unknown word 'cat'"):
        menagerie.parse("a red cat in the city", "tiny")
    with pytest.raises(UserError, match="did you mean 'tiny'"):
        menagerie.parse("a red cat in the city", "tinny")


def test_every_caption_of_a_split_gives_its_graph(split):
    for subset in ("train", "unseen_pairs"):
        records = SplitDataset(split, subset, preload=False).records
        assert [menagerie.parse(caption) for caption in records.captions] == records.graphs


def test_capitals_spaces_and_commas_are_dropped_from_plain_text():
    assert plain_text("  A red cat, and a Dog.  ") == "a red cat and a dog"


def test_importing_generators_stays_light():
    program = "import sys, generators; assert 'torch' not in sys.modules and 'h5py' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
