"""Every planted fault is found, with a message that says what, where and the way out; what is untouched passes."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import h5py
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit import regeneration
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.pixels import check_pixels
from menagerie.generators.audit.run import CHECKS, CHECKS_OF, audit, check_file, check_records, done, with_way_out
from menagerie.generators.captions.incomplete import denied_things, mentioned_slots
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import REMEDY, read_split
from tests.faults.split_faults import SPLIT_FAULTS
from tests.faults.store_faults import STORE_FAULTS
from tests.helpers.planting import light_file, plant_in_split, plant_in_store, rewrite
from tests.helpers.splits import in_memory

RENDERED = "every image and mask is the one that was rendered"


def failures(findings) -> dict[str, Finding]:
    return {finding.claim: finding for finding in findings if not finding.holds}


def all_but_pixels(path: Path) -> list[Finding]:
    split = read_split(path)
    return [*check_file(split), *check_records(split)]


def test_an_untouched_split_passes(sound):
    findings = audit(sound)
    assert failures(findings) == {}
    assert not any(finding.skipped for finding in findings)


def test_an_untouched_packed_split_passes(sound, tmp_path):
    pack(sound, tmp_path / "packed.h5")
    findings = audit(tmp_path / "packed.h5")
    assert failures(findings) == {}
    assert not any(finding.skipped for finding in findings)


@pytest.fixture(scope="session")
def light(tmp_path_factory):
    """Split files without pixels, one a recipe, that nobody may change."""
    folder = tmp_path_factory.mktemp("light")
    return cache(lambda recipe: light_file(folder, in_memory(recipe)))


def failed_without_regeneration(path: Path) -> dict[str, str]:
    split = read_split(path)  # its checksum is right
    checks = (regeneration.check_name, *CHECKS, *CHECKS_OF[split.recipe["kind"]])
    return {its.claim: with_way_out(its).detail for check in checks for its in done(check, split) if not its.holds}


@pytest.mark.parametrize("fault", SPLIT_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_a_split_is_found(light, tmp_path, fault):
    """Without making the split again, and with what and where and the way out."""
    path = Path(shutil.copy(light(fault.recipe), tmp_path))
    plant_in_split(path, fault.plant)
    detail = next((its for claim, its in failed_without_regeneration(path).items() if fault.claim in claim), "")
    assert len(detail) > len(REMEDY) + 10
    assert detail.endswith(REMEDY)


@pytest.mark.parametrize("recipe", dict.fromkeys(fault.recipe for fault in SPLIT_FAULTS), ids=lambda its: its.kind)
def test_sound_splits_pass(light, recipe):
    path = light(recipe)
    assert failed_without_regeneration(path) == {}
    assert not failures(check_records(read_split(path)))


def beside_one_answer(scene, *its):
    """A thing is denied only where the first animal in the alphabet has the first texture."""
    one, other = sorted(scene.things)[0], sorted(scene.things)[-1]
    return denied_things(scene, *its) if one.texture < other.texture else ()


def of_unseen_pairs(scene, seed, world, rules, chance):
    """What is denied would make an unseen pair with a thing that is shown."""
    shown = {thing.animal for thing in scene.things}
    apart = {thing.animal for s in UNSEEN for thing in s.things if shown & {t.animal for t in s.things}} - shown
    denied = denied_things(scene, seed, world, rules, chance)
    return tuple(thing._replace(animal=min(apart)) for thing in denied) if apart else denied


def first_in_the_alphabet(scene, *its):
    """What is left out is always the later in the alphabet."""
    slots = mentioned_slots(scene, *its)
    return slots if len(slots) > 1 else {min(scene.things).slot}


PARTIAL = BindingRecipe(world="eight", pairs=0.4, views=1, test_views=1, test_scenes=40, mentioned=0.6, negated=0.5)
UNSEEN = PARTIAL.subsets()["unseen_pairs"]
SHORTCUTS = {
    beside_one_answer: "menagerie.generators.splits.binding.denied_things",
    of_unseen_pairs: "menagerie.generators.splits.binding.denied_things",
    first_in_the_alphabet: "menagerie.generators.captions.incomplete.mentioned_slots",
}


@pytest.mark.parametrize("shortcut", SHORTCUTS, ids=lambda its: its.__name__)
def test_a_shortcut_in_captions_is_found_by_regeneration(monkeypatch, tmp_path, shortcut):
    """Everything in the file is true: a generator with a fault would have made it."""
    with monkeypatch.context() as patch:
        patch.setattr(SHORTCUTS[shortcut], shortcut)
        path = light_file(tmp_path, in_memory.__wrapped__(PARTIAL))
    assert failed_without_regeneration(path) == {}
    found = failures(check_records(read_split(path)))
    assert list(found) == ["train is what the recipe makes"]
    assert "caption of record" in found["train is what the recipe makes"].detail


@pytest.mark.parametrize("fault", STORE_FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("digests", [False, True], ids=["digests kept", "digests again"])
def test_a_fault_of_a_store_is_found(damaged, fault, digests):
    plant_in_store(damaged, fault.plant, digests)
    found = failures(check_pixels(read_split(damaged), "sample"))
    claim = fault.claim if digests else RENDERED
    assert claim in found, sorted(found)
    assert "shard-00000.h5" in found[claim].detail
    assert "delete shard-0" in found[claim].detail
    assert digests == (RENDERED not in found)


def test_two_scenes_exchanged_are_found_by_rendering_all(damaged):
    """Whichever two: nothing but the picture itself says which of two views of one thing it is."""

    def exchanged(scenes, images, masks):
        images[[2, 3]], masks[[2, 3]] = images[[3, 2]], masks[[3, 2]]

    plant_in_store(damaged, exchanged, digests=True)
    found = failures(check_pixels(read_split(damaged), "all"))
    assert "images and masks are the same when rendered again" in found


@pytest.mark.parametrize("table", ["images", "masks"])
def test_a_flipped_bit_on_disk_is_found(damaged, table):
    shard = damaged.parent / "shard-00001.h5"
    with h5py.File(shard) as file:
        offset = file[table].id.get_chunk_info(7).byte_offset
    content = bytearray(shard.read_bytes())
    content[offset + 5] ^= 4
    shard.write_bytes(content)
    finding = failures(check_pixels(read_split(damaged), "sample"))["every image and mask can be read"]
    assert "row 263 (7 of shard-00001.h5)" in finding.detail
    assert "delete shard-00001.h5 and run again" in finding.detail


def test_a_link_to_another_shard_is_found(damaged):
    rewrite(read_split(damaged), links={0: "shard-00001.h5"})
    finding = failures(all_but_pixels(damaged))["every link leads to its own shard"]
    assert "shards/0 leads to shard-00001.h5:/, not to shard-00000.h5; make it again" in finding.detail


def test_a_shard_without_digests_is_damaged(damaged):
    with h5py.File(damaged.parent / "shard-00000.h5", "r+") as file:
        del file["digests"]
    with pytest.raises(UserError, match=r"shard-00000\.h5 is damaged .*'digests' doesn't exist.*; delete it and run"):
        list(check_pixels(read_split(damaged), "sample"))


def test_a_split_of_another_recipe_version_says_so(damaged):
    with h5py.File(damaged, "r+") as file:
        file.attrs["recipe_version"] = "1.1"
    (finding,) = (its for its in all_but_pixels(damaged) if its.skipped)
    assert "its recipe is of version 1.1, this code of 1.3" in finding.detail


def test_a_missing_subset_is_one_line(damaged):
    with h5py.File(damaged, "r+") as file:
        del file["subsets/unseen_pairs"]
    with pytest.raises(UserError, match="has no subset unseen_pairs; make it again"):
        audit(damaged)


def test_all_images_by_the_command_line(sound):
    call = [sys.executable, "-m", "menagerie", "audit", str(sound), "--pixels", "all"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "checks hold, 0 fail" in done.stdout
    assert "548 of 548 rows" in done.stdout


def test_another_choice_of_pixels_is_one_line(sound):
    with pytest.raises(UserError, match="unknown pixels 'some'; did you mean 'sample'"):
        audit(sound, "some")
