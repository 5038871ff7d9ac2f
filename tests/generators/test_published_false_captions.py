"""False captions of photographs from files in their authors' forms, and how photographs draw them."""

import json
import os
import re
from collections import Counter

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Captioned
from menagerie.generators.captions.templates import Caption
from menagerie.generators.false_captions.gather import gather, read_given
from menagerie.generators.false_captions.loaded import LOADED, make_loaded
from menagerie.generators.false_captions.photographs import FalselyCaptioned
from menagerie.generators.false_captions.pickled_lists import read_pickled_list
from menagerie.generators.false_captions.published import read_published
from menagerie.generators.false_captions.record import PART, FalseCaption
from menagerie.generators.sources.mixture import CaptionedSubset, Mixture
from menagerie.generators.sources.place import Place, one_node
from menagerie.generators.sources.registry import load_source
from tests.helpers.false_caption_files import Row, write_ce_clip, write_cs_clip, write_negclip, write_triplet_clip
from tests.helpers.source_files import make_coco, make_visual_genome

NUMBERS = (9, 16, 23, 30)  # of `make_coco`
ROWS = [Row(n, f"A cat on {n} mats.", f"A mat on {n} cats.", f"A dog on {n} mats.") for n in (*NUMBERS[:3], 77)]
WRITERS = {"negclip": write_negclip, "ce-clip": write_ce_clip, "cs-clip": write_cs_clip}


def tag(text):
    """Tags by endings, one for a word."""
    known = {"cat": "NN", "mat": "NN", "mats": "NNS", "red": "JJ", "big": "JJ"}
    return [(word, known.get(word, "IN")) for word in re.findall(r"\w+|[^\w\s]", text)]


@pytest.fixture
def place(tmp_path):
    make_coco(tmp_path)
    return Place(tmp_path, resolution=16)


@pytest.mark.parametrize(
    ("name", "counts", "refused"),
    [
        ("negclip", {"swap": 3}, {("negclip", "the same words as the caption"): 4}),
        ("ce-clip", {"swap": 3, "replace": 3}, {("ce-clip adj", "no word of the caption"): 4}),
        ("cs-clip", {"swap": 3, "part": 6}, {}),
    ],
)
def test_published_files_give_the_captions_of_their_photographs(place, tmp_path, name, counts, refused):
    WRITERS[name](tmp_path, ROWS)
    told = {}
    data = gather(load_source("coco").open(place), (name,), place, tmp_path, told.__setitem__)
    assert data.counts_false() == counts
    assert told[name].refused == refused
    assert data.unused == sum(one.image == "COCO 77" for one in told[name].captions) > 0
    false = {
        text
        for kind in data.text_negatives
        for draw in range(9)
        for k in range(4)
        for text in data.false_of([k], [draw], [whole_caption(k)], kind)
        if text
    }
    wanted = {row.swapped for row in ROWS[:3]} | ({row.replaced for row in ROWS[:3]} if name == "ce-clip" else set())
    assert {text.text for text in false} == wanted
    assert {text.graph.nodes for text in false} == {(text,) for text in wanted}
    assert wanted <= set(data.texts())


def whole_caption(k):
    text = f"a CAT on {NUMBERS[k]} mats"  # capitals and full stops don't matter
    return Caption(text, one_node(text))


def test_cs_clips_older_keys_give_the_same(place, tmp_path):
    write_cs_clip(tmp_path, ROWS)
    new = read_published("cs-clip", place)
    write_cs_clip(tmp_path, ROWS, older=True)
    assert read_published("cs-clip", place) == new
    parts = {(one.caption, one.text) for one in new.captions if one.how.startswith(PART)}
    assert parts == {("cat", "dog"), ("cat in room", "cat out of room")}


def test_entries_without_a_false_caption_are_counted(tmp_path):
    rows = [{"image_path": "1.jpg", "original_caption": "a red cat", "swap_negatives": ["a cat red", 3, {}, " "]}]
    (tmp_path / "cs-clip").mkdir()
    (tmp_path / "cs-clip/units.json").write_text(json.dumps(rows))
    made = read_published("cs-clip", Place(tmp_path, resolution=16))
    assert [one.text for one in made.captions] == ["a cat red"]
    assert made.refused == {("cs-clip", "no caption, or no false one"): 3}


def test_triplet_clips_shards_have_captions_and_their_negatives(tmp_path):
    write_triplet_clip(tmp_path, ROWS)
    place = Place(tmp_path, resolution=16)
    shards = load_source("tar shards").open(place)
    data = gather(shards, ("triplet-clip",), place, tmp_path)
    assert data.counts_false() == {"replace": 4}
    every = range(4)
    assert [text.text for text in data.captions(every, every)] == [row.caption for row in ROWS]
    assert [text.text for text in data.negatives(every, every, "replace")] == [row.replaced for row in ROWS]
    assert data.images([0]).shape == (1, 3, 16, 16)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("content", [[Evil()], [{"a": Evil()}], [np.float64(1)]])
def test_nothing_in_a_pickle_runs(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "a.npy", np.array(content, object), allow_pickle=True)
    with pytest.raises(UserError, match=r"a\.npy.*JSON lines"):
        read_pickled_list(tmp_path / "a.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00\x10\x00{'descr': '|O', '", b"\x80\x04cposix\nsystem\n."])
def test_damaged_pickles_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(UserError, match="is no list of plain values"):
        read_pickled_list(tmp_path / "a.npy")


def test_missing_files_and_unknown_names_are_errors(place, tmp_path):
    with pytest.raises(UserError, match=r"negclip/train_neg_clip\.tsv.*vision-language-models-are-bows"):
        read_published("negclip", place)
    with pytest.raises(UserError, match="did you mean 'negclip'"):
        read_given("negclipp")
    with pytest.raises(UserError, match="did you mean 'shuffle pairs'"):
        read_given("made:shuffle pair")


def test_ways_while_loading_keep_the_words_and_depend_on_the_draw(place):
    text = "A red cat on a big mat near mats."
    for name in LOADED:
        made = [make_loaded(name, text, tag, np.random.default_rng(k)) for k in range(20)]
        assert made == [make_loaded(name, text, tag, np.random.default_rng(k)) for k in range(20)]
        assert text not in made
        assert len(set(made)) > 1
        for other in made:
            assert sorted(re.findall(r"\w+", other.lower())) == sorted(re.findall(r"\w+", text.lower()))
    swapped = {make_loaded("exchange words", text, tag, np.random.default_rng(k)) for k in range(20)}
    assert swapped == {"A red mat on a big cat near mats.", "A big cat on a red mat near mats."}
    assert make_loaded("exchange words", "Off we go.", tag, np.random.default_rng(0)) == ""


def test_draws_decide_false_captions_parts_and_other_captions(place):
    coco = load_source("coco").open(place)
    records = [FalseCaption("COCO 9", "A cat on 9 mats.", "swap", "mine", f"9 cats on {k} mats") for k in range(3)]
    records += [FalseCaption("COCO 9", text, "replace", f"{PART}mine", f"no {text}") for text in ("cat", "mats", "dog")]
    data = FalselyCaptioned(coco, records, ("shuffle pairs",))
    assert data.text_negatives == ("swap", "replace", "shuffle")
    items, draws = [0] * 60, range(60)
    captions = data.captions(items, draws)
    assert captions == coco.captions(items, draws)
    false = data.negatives(items, draws)
    assert false == data.negatives(items, draws)
    assert {(a.text == "A cat on 9 mats.", b is not None) for a, b in zip(captions, false, strict=True)} == {
        (True, True),
        (False, False),
    }
    assert len({text.text for text in false if text}) == 3
    assert all(data.negatives(items, draws, "shuffle"))
    first, second, _ = data.several(items, draws, 3)
    assert first == captions
    assert all(a.text != b.text for a, b in zip(first, second, strict=True))  # of the two that there are
    whole, one, other = data.parts_of_captions(items, draws, 3)
    assert whole == captions
    assert {frozenset((a.text, b.text)) for a, b in zip(one, other, strict=True)} == {frozenset(("cat", "mats"))}
    assert {text.text for text in data.false_of(items, draws, one, "replace")} == {"no cat", "no mats"}
    assert [text.text for text in data.parts_of_captions([1], [0], 2)[1]] == [data.captions([1], [0])[0].text]
    subset = CaptionedSubset(Mixture([data, coco], [0.5, 0.5]), [0, 4])
    assert subset.parts_of_captions([0], [5], 3) == data.parts_of_captions([0], [5], 3)
    assert subset.negatives([0, 1], [5, 5]) == [*data.negatives([0], [5]), None]


def test_identities_differ_by_false_captions_and_ways_alone(place):
    coco = load_source("coco").open(place)
    one = FalseCaption("COCO 9", "A cat on 9 mats.", "swap", "mine", "9 cats")
    every = [coco, *(FalselyCaptioned(coco, *its) for its in (([one],), ([],), ([one], ("shuffle pairs",))))]
    assert len({data.identity for data in every}) == 4
    assert FalselyCaptioned(coco, [one]).identity == every[1].identity


def test_captions_made_anew_have_false_ones_while_loading_alone(tmp_path):
    make_visual_genome(tmp_path)
    place = Place(tmp_path, resolution=16)
    data = gather(load_source("visual genome").open(place), ("made:swap attribute,shuffle pairs",), place, tmp_path)
    assert data.counts_false() == {"shuffle": len(data)}
    assert isinstance(data, Captioned)
    assert Counter(map(type, data.negatives(range(2), range(2), "swap"))) == {type(None): 2}
