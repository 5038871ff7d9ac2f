"""The audit holds on what we make and fails on every planted fault."""

import multiprocessing
import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from menagerie.envs.scene import Scene, Thing
from menagerie.generators.audit.rendered import mean_colors
from menagerie.generators.audit.rows import Sound
from menagerie.generators.audit.run import audit, audit_each
from tests.command import run_here
from tests.helpers.splits import RECIPE, failed, make_split, overwrite


def test_holds_on_a_sound_split(split):
    assert failed(split) == []


@pytest.mark.parametrize(("pairs", "hard_negatives"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.25, 1.0)])
def test_holds_on_corner_cells(tmp_path, pairs, hard_negatives):
    from dataclasses import replace

    assert failed(make_split(tmp_path, replace(RECIPE, pairs=pairs, hard_negatives=hard_negatives))) == []


def leaked_pair(file):
    overwrite(file, "subsets/train/factors", -1, file["subsets/unseen_pairs/factors"][0])


def run(*arguments):
    return run_here([sys.executable, "-m", "menagerie", *map(str, arguments)], Path.cwd())


def test_command_line(copied):
    sound = run("audit", copied)
    assert sound.returncode == 0, sound.stderr
    assert "0 fail" in sound.stdout
    with h5py.File(copied, "r+") as file:
        leaked_pair(file)
    assert run("audit", copied).returncode == 1
    missing = run("audit", copied.parent / "none.h5")
    assert missing.returncode == 2
    assert missing.stderr.startswith("error: there is no file")
    assert len(missing.stderr.splitlines()) == 1


@pytest.mark.parametrize("side", [16, 300])
def test_mean_colours_are_those_of_each_thing_alone(side):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (3, side, side, 3), np.uint8)
    masks = random.integers(0, 3, (3, side, side), np.uint8)
    masks[2][masks[2] == 2] = 0
    masks[2, 0, :4] = 2
    means = mean_colors(images, masks, 2, fewest=5)
    for n, k in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]:
        assert (means[n, k] == images[n][masks[n] == k + 1].mean(0)).all()
    assert np.isnan(means[2, 1]).all()


def test_several_files_by_the_command_line(copied, tmp_path):
    """Each has its findings; one that can't be read or fails stops none of the others."""
    missing, broken = tmp_path / "none.h5", copied.with_name("broken.h5")
    shutil.copy(copied, broken)
    with h5py.File(broken, "r+") as file:
        leaked_pair(file)
    done = run("audit", missing, broken, copied)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no file")
    assert len(done.stderr.splitlines()) == 1
    first, second = re.findall(r"checks hold, (\d+) fail", done.stdout)
    assert int(first) > 0 == int(second)


def test_one_process_finds_what_two_do(copied):
    ((_, findings),) = audit_each([copied], "sample", lambda *its: None)
    assert findings == audit(copied)


def test_a_row_that_is_wrong_is_named_for_each_split_that_shows_it(copied):
    """Only rows that were sound in one split aren't compared again for the next."""
    other = copied.with_name("other.h5")
    shutil.copy(copied, other)
    with h5py.File(copied.parent / "shard-00000.h5", "r+") as shard:
        overwrite(shard, "images", 3, shard["images"][3] ^ 8)
    (_, first), (_, second) = audit_each([copied, other], "all", lambda *its: None)
    assert [finding for finding in first if not finding.holds]
    assert first == audit(copied, "all")
    of_names = "the recipe is the one that the file is named by"  # which "other" says nothing of
    assert [its for its in first if its.claim != of_names] == [its for its in second if its.claim != of_names]


def test_a_row_that_was_sound_as_another_scene_says_nothing():
    sound, shard = Sound(), (Path("shard"), "/")
    one, other = (Scene("desert", (Thing("cat", "red", "left"),), view) for view in (0, 1))
    sound.add(shard, 3, one, b"picture")
    sound.add_again(shard, 3, one)
    assert sound.picture(shard, 3, one) == b"picture"
    assert sound.again(shard, 3, one)
    assert sound.picture(shard, 3, other) is sound.picture(shard, 4, one) is None
    assert not sound.again(shard, 3, other)


def test_an_audit_that_is_left_ends_its_process(copied):
    before = multiprocessing.active_children()
    each = audit_each([copied, copied.parent / "none.h5"], "sample", lambda *its: None)
    next(each)
    assert len(multiprocessing.active_children()) > len(before)
    each.close()
    assert multiprocessing.active_children() == before


def test_make_then_audit(tmp_path):
    arguments = ("--world", "tiny", "--resolution", "16", "--views", "1", "--test-views", "1", "--store", tmp_path)
    made = run("make", *arguments)
    assert made.returncode == 0, made.stderr
    assert run("audit", made.stdout.splitlines()[-1]).returncode == 0
    typo = run("make", *arguments, "--pairs", "1.5")
    assert typo.returncode == 2
    assert "pairs must be at" in typo.stderr
