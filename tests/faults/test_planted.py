"""Every planted fault is found, with a message that says what, where and the way out; what is untouched passes."""

import re
import shutil
from dataclasses import replace

import h5py
import msgspec
import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.render.atlas import Atlas
from menagerie.envs.render.compositor import COLORS, SHADOWS
from menagerie.envs.worlds import load_world
from menagerie.generators.audit import pixels
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.run import CHECKS, audit, audit_records, run_check, with_way_out
from menagerie.generators.captions.spec import draw_denied, draw_mentions
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import PICTURED, REMEDY, Split, read_split
from tests.faults.split_faults import SPLIT_FAULTS
from tests.helpers.planting import claimed, light_file, plant_in_pictures, with_columns
from tests.helpers.splits import RECIPE, in_memory, lend, make_split

WRITTEN = "pictures and texts are as they were written"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A packed split file, which no test may change."""
    path = make_split(tmp_path_factory.mktemp("store"), RECIPE)
    pack(path)
    return path


@pytest.fixture
def damaged(sound, tmp_path):
    """A copy of the split, to be damaged; composing finds what is wrong, not the sample that is drawn directly."""
    lend(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, "SAMPLE", 0)
        yield shutil.copytree(sound.parent, tmp_path / sound.parent.name) / sound.name


def failures(findings) -> dict[str, Finding]:
    return {finding.claim: finding for finding in findings if not finding.holds}


def failed_without_regeneration(split: Split) -> dict[str, str]:
    return {its.claim: with_way_out(its).detail for check in CHECKS for its in run_check(check, split) if not its.holds}


def test_an_untouched_packed_split_passes(sound):
    findings = audit(sound)
    assert failures(findings) == {}
    assert not any(finding.skipped for finding in findings)


@pytest.mark.parametrize("fault", SPLIT_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_a_split_is_found(tmp_path, fault):
    """Without making the split again, and with what and where and the way out."""
    split = in_memory(fault.recipe)
    found = failed_without_regeneration(light_file(tmp_path, split, fault.plant(split)))
    detail = next((its for claim, its in found.items() if fault.claim in claim), "")
    assert len(detail) > len(REMEDY) + 10
    assert detail.endswith(REMEDY)


@pytest.mark.parametrize("recipe", dict.fromkeys(fault.recipe for fault in SPLIT_FAULTS), ids=lambda its: its.kind)
def test_a_split_without_faults_passes_the_audit(tmp_path, recipe):
    split = light_file(tmp_path, in_memory(recipe))
    assert failed_without_regeneration(split) == {}
    assert not failures(audit_records(split))


def beside_one_answer(scene, spec):
    """An object is denied only where the first animal in the alphabet has the first texture."""
    one, other = sorted(scene.objects)[0], sorted(scene.objects)[-1]
    return draw_denied(scene, spec) if one.texture < other.texture else ()


def of_unseen_pairs(scene, spec):
    """What is denied would make an unseen pair with an object that is shown."""
    shown = {obj.animal for obj in scene.objects}
    apart = {obj.animal for s in UNSEEN for obj in s.objects if shown & {t.animal for t in s.objects}} - shown
    denied = draw_denied(scene, spec)
    return tuple(obj._replace(animal=min(apart)) for obj in denied) if apart else denied


def first_in_the_alphabet(scene, spec):
    """What is left out is always the later in the alphabet."""
    slots, draw = draw_mentions(scene, spec)
    return slots if len(slots) > 1 else [min(scene.objects).slot], draw


PARTIAL = BindingRecipe(world="eight", pairs=0.4, views=1, test_views=1, test_scenes=40, mentioned=0.6, negated=0.5)
UNSEEN = PARTIAL.subsets()["unseen_pairs"]
SHORTCUTS = {
    beside_one_answer: "menagerie.generators.captions.spec.draw_denied",
    of_unseen_pairs: "menagerie.generators.captions.spec.draw_denied",
    first_in_the_alphabet: "menagerie.generators.captions.spec.draw_mentions",
}


@pytest.mark.parametrize(("shortcut", "replaced"), SHORTCUTS.items())
def test_a_shortcut_in_captions_is_found_by_regeneration(shortcut, replaced, monkeypatch, tmp_path):
    """Everything in the file is true: a generator with a fault would have made it."""
    with monkeypatch.context() as patch:
        patch.setattr(replaced, shortcut)
        split = light_file(tmp_path, in_memory.__wrapped__(PARTIAL))
    assert failed_without_regeneration(split) == {}
    found = failures(audit_records(split))
    assert list(found) == ["train is what the recipe makes"]
    assert "caption of record" in found["train is what the recipe makes"].detail


@pytest.mark.parametrize("other", [{"seed": 1}, {"pairs": 0.5}, {"template": "statement-conjunction"}])
def test_another_recipe_is_found_by_regeneration(other, tmp_path):
    split = in_memory(RECIPE)
    found = failures(audit_records(light_file(tmp_path, split, claimed(**other)(split))))
    assert "train is what the recipe makes" in found


def test_what_a_counterfactual_says_is_compared_with_what_is_made_again(tmp_path):
    split = in_memory(RECIPE)
    mentioned = split.subsets["validation"].columns["mentioned"].copy()
    mentioned[-1] = mentioned[-1][::-1]
    found = failures(audit_records(light_file(tmp_path, split, with_columns(split, "validation", mentioned=mentioned))))
    assert "its columns mentioned are others" in found["validation is what the recipe makes"].detail


# What a bug of the packing code does to pictures and texts that HDF5 can read, by table.
PICTURE_FAULTS = {
    "images rolled by a row": {"images": lambda its: np.roll(its, 1, 0)},
    "mirrored with masks": dict.fromkeys(PICTURED[:2], lambda its: its[:, :, ::-1]),
    "red for blue": {"images": lambda its: its[..., ::-1]},
    "one bit": {"images": lambda its: its ^ (np.arange(its.size).reshape(its.shape) == 999)},
    "ids exchanged": {"masks": lambda its: np.array([0, 2, 1], np.uint8)[its]},
    "a letter": {"caption": lambda its: np.char.replace(its, b"a", b"o", 1).astype(its.dtype)},
    "no false captions": {"false_caption": np.zeros_like},
}
INCOMPLETE = {
    "no masks": {"masks": None},
    "no pictures and texts": dict.fromkeys(PICTURED),
    "a row less": dict.fromkeys(PICTURED, lambda its: its[:-1]),
}


@pytest.mark.parametrize("name", [*PICTURE_FAULTS, *INCOMPLETE])
@pytest.mark.parametrize("sign", [False, True], ids=["digest kept", "digest again"])
def test_a_fault_of_pictures_is_found(damaged, name, sign):
    plant_in_pictures(damaged, (PICTURE_FAULTS | INCOMPLETE)[name], sign)
    found = failures(map(with_way_out, pixels.check_pictures(read_split(damaged))))
    if name in INCOMPLETE:
        (finding,) = found.values()
        assert "train" in finding.detail
        assert finding.detail.endswith(REMEDY)
        assert finding.detail.count(REMEDY) == 1
        return
    assert (WRITTEN in found) != sign
    claims = found.keys() - {WRITTEN}
    assert claims == {pixels.TEXTS if "caption" in min(PICTURE_FAULTS[name]) else pixels.AGAIN}
    assert all(re.search(r"of row \d+ of train", found[claim].detail) for claim in claims)


def test_a_wrong_atlas_is_found_by_drawing_directly(tmp_path):
    """Each animal has another texture. Checksums are those of what is there, and whatever is composed is wrong."""
    path = SplitFolder(tmp_path, load_world("tiny"), 16).make(replace(RECIPE, test_scenes=4))
    (file,) = (tmp_path / "atlas").glob("atlas-*.bin")
    atlas = Atlas(file)
    atlas.refresh()
    for key, start in list(atlas.index.items()):
        if len(key) > 2:  # no backdrop
            body = atlas.views[0][start : start + atlas._checksums[start][0]].copy()
            numbers = body.view(np.int64)
            colors = body[numbers[COLORS] : numbers[SHADOWS + 4]]
            colors[:] = np.roll(colors.reshape(3, -1), 1, axis=0).ravel()
            atlas._write(msgspec.json.encode(key), body.tobytes())
            atlas.refresh()
    pack(path)
    found = failures(pixels.check_pictures(read_split(path)))
    assert list(found) == [pixels.DIRECT]
    assert re.search(r"of 1\d images are others, first row \d+ of \w+, .* dB", found[pixels.DIRECT].detail)


@pytest.mark.parametrize(("name", "index"), [("images", (3, 4, 5, 0)), ("caption", 2)])
def test_a_value_that_changes_on_disk_is_found(damaged, name, index):
    with h5py.File(damaged, "r+") as file:
        value = file["train"][name][index]
        file["train"][name][index] = value[1:] if isinstance(value, bytes) else value ^ 1
    assert WRITTEN in failures(audit(damaged))


def test_a_split_of_another_recipe_version_says_so(tmp_path):
    split = in_memory(RECIPE)
    (finding,) = (its for its in audit_records(replace(split, recipe_version="1.1")) if its.skipped)
    assert "its recipe is of version 1.1, this code of 1.3" in finding.detail


def test_a_missing_subset_is_one_line(tmp_path):
    split = in_memory(RECIPE)
    fewer = {name: records for name, records in split.subsets.items() if name != "unseen_pairs"}
    with pytest.raises(UserError, match="has no subset unseen_pairs; make it again"):
        audit(light_file(tmp_path, replace(split, subsets=fewer)).path)
