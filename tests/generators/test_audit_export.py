"""The audit of exports names files that were changed, removed or added, and another split."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.run import audit
from menagerie.generators.export import formats
from menagerie.generators.export.formats import FORMATS
from menagerie.generators.export.write import SUMS, export_split
from menagerie.generators.splits.binding import BindingRecipe
from tests.command import run_here
from tests.helpers.splits import RECIPE, make_split

CHANGED, MISSING, ADDED, OTHER = (
    "files are as they were written",
    "no file is missing",
    "no file was added",
    "the export is of the split",
)


@pytest.fixture(scope="module", params=FORMATS)
def exported(request, split, tmp_path_factory):
    """An export that nobody may change."""
    out = tmp_path_factory.mktemp("exports") / request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "SHARD_SAMPLES", 50)
        export_split(split, request.param, out, ("validation", "unseen_pairs"))
    return out


@pytest.fixture
def coco(split, tmp_path):
    """An export to be damaged."""
    export_split(split, "coco", tmp_path / "coco", ("train", "unseen_pairs"))
    return tmp_path / "coco"


def faults(folder, split):
    """The details of the claims that fail, by claim."""
    return {its.claim: its.detail for its in audit(folder, exported=split) if not its.holds}


def test_an_untouched_export_passes(exported, split):
    assert faults(exported, split) == {}
    assert not any(its.skipped for its in audit(exported, exported=split))
    assert [its.claim for its in audit(exported) if its.skipped] == [OTHER]


def test_sha256sum_reads_the_digests(exported):
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", SUMS], cwd=exported, check=True)


def test_tests_of_several_rules_are_exported_too(tmp_path):
    rules = ("animal=rabbit & texture=red", "animal=penguin & texture=white")
    recipe = BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10, hold_out=rules)
    made = make_split(tmp_path, recipe, 16)
    export_split(made, "coco", tmp_path / "out")
    assert (tmp_path / "out/held_out-1.json").exists()
    assert faults(tmp_path / "out", made) == {}


def test_two_exchanged_pictures_are_named(coco, split):
    first, second = (coco / f"images/train/00000000{n}.png" for n in (0, 1))
    content = first.read_bytes()
    shutil.copy(second, first)
    second.write_bytes(content)
    (detail,) = faults(coco, split).values()
    assert detail.startswith("images/train/000000000.png, images/train/000000001.png; ")


def test_one_changed_pixel_is_named(coco, split):
    path = coco / "images/unseen_pairs/000000003.png"
    pixels = np.array(Image.open(path))
    pixels[0, 0] ^= 1
    Image.fromarray(pixels).save(path)
    assert faults(coco, split) == {
        CHANGED: "images/unseen_pairs/000000003.png; export the split again with 'menagerie export'"
    }


def test_files_that_were_added_are_named(coco, split):
    """A tested picture among those of train, also as a link or a hidden file."""
    tested = coco / "images/unseen_pairs/000000000.png"
    shutil.copy(tested, coco / "images/train/999999999.png")
    shutil.copy(tested, coco / "images/train/.a.b-1.tmp.png")
    (coco / "images/more").symlink_to(tested.parent, target_is_directory=True)
    added = "images/more, images/train/.a.b-1.tmp.png, images/train/999999999.png"
    assert faults(coco, split) == {ADDED: f"{added}; export the split again with 'menagerie export'"}


def test_a_missing_file_is_named_and_many_are_counted(coco, split):
    (coco / "unseen_pairs.json").unlink()
    assert faults(coco, split)[MISSING].startswith("unseen_pairs.json; ")
    shutil.rmtree(coco / "images/train")
    assert re.match(r"(images/train/00000000[0-4]\.png, ){4}\S+ and \d+ more; ", faults(coco, split)[MISSING])


def test_an_export_of_another_split_is_said(coco, split, tmp_path):
    other = make_split(tmp_path, replace(RECIPE, seed=1))
    export_split(other, "coco", tmp_path / "other", ("train", "unseen_pairs"))
    assert faults(tmp_path / "other", other) == {}
    assert list(faults(tmp_path / "other", split)) == [OTHER]


def test_an_unfinished_export_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"is no finished export: .* export the split again"):
        audit(tmp_path)


def test_the_command_exits_with_1_and_names_a_changed_file(coco, split, tmp_path):
    call = [sys.executable, "-m", "menagerie", "audit", str(coco), "--split", str(split)]
    assert run_here(call, tmp_path).returncode == 0
    (coco / "train.json").write_text("{}")
    found = run_here(call, tmp_path)
    assert found.returncode == 1
    assert "train.json" in found.stdout
