"""Every planted fault is found, with a message that says what, where and the way out; what is untouched passes."""

import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.findings import Finding
from menagerie.generators.audit.pixels import check_pixels
from menagerie.generators.audit.regeneration import check_regeneration
from menagerie.generators.audit.run import CHECKS, CHECKS_OF, audit, check_file, check_records, done, with_way_out
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import REMEDY, read_split
from tests.faults.split_faults import SPLIT_FAULTS
from tests.faults.store_faults import STORE_FAULTS
from tests.helpers.planting import plant_in_split, plant_in_store, rewrite

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


@pytest.mark.parametrize("fault", SPLIT_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_a_split_is_found(damaged, fault):
    """Without making the split again, but where nothing else can know: another seed, say, is as good."""
    plant_in_split(damaged, fault.plant)
    split = read_split(damaged)
    again = [check_regeneration] if "what the recipe makes" in fault.claim else []
    checks = (*again, *CHECKS, *CHECKS_OF["binding"])
    failed = (with_way_out(its) for check in checks for its in done(check, split) if not its.holds)
    detail = next((its.detail for its in failed if fault.claim in its.claim), "")
    assert len(detail) > len(REMEDY) + 10  # what and where, too
    assert detail.endswith(REMEDY)


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
