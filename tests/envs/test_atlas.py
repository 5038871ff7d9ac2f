"""The atlas: one file that processes append to at once, and of which only what is damaged is built again."""

import multiprocessing
import os
import pickle
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.render.atlas import SLOT, Atlas
from menagerie.envs.render.renderer import Renderer, build_record
from menagerie.envs.worlds import load_world
from tests.disks import mounted, read_only, with_largest_file
from tests.helpers.judge import outcome

KEYS = [("desert", n) for n in range(6)]
RECORD = 7 * SLOT  # bytes of a record: header, key and 300 bytes
WORLD = load_world("tiny")
SCENES = list(WORLD.singles())[:6]


def filled(path, keys=KEYS, length: int = 300) -> Atlas:
    atlas = Atlas(path)
    for key in keys:
        atlas.append(key, np.full(length, key[1], np.uint8))
    return atlas


def sound(path) -> list[tuple]:
    """The keys whose bodies are whole, for a process that has just opened the file."""
    atlas = Atlas(path)
    atlas.refresh()
    atlas.check(list(atlas.index))
    for (_, number), place in atlas.checked.items():
        assert (atlas.views[0][place : place + 300] == number).all()
    return sorted(atlas.checked)


def flip(path, place: int) -> None:
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([content[place] ^ 1]))


def test_reader_sees_records_appended_since_it_opened(tmp_path):
    path, reader = tmp_path / "a/atlas.bin", Atlas(tmp_path / "a/atlas.bin")
    for end in (2, 2, 3):
        filled(path, KEYS[:end])
        reader.refresh()
        assert list(reader.index) == KEYS[:end] == sound(path)
    assert path.stat().st_size == 3 * RECORD + SLOT, "no record is there twice"


def test_processes_append_at_once_without_loss(tmp_path):
    keys, path = [("desert", n) for n in range(200)], tmp_path / "atlas.bin"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=filled, args=(path, order)) for order in (keys, keys[::-1], keys[50:])]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert sound(path) == keys
    assert path.stat().st_size == filled(tmp_path / "one.bin", keys).path.stat().st_size


def test_killed_writer_loses_no_whole_record(tmp_path):
    path, done, keys = tmp_path / "atlas.bin", 0, [("desert", n) for n in range(256)]
    for turn in range(8):
        child = os.fork()
        if not child:
            filled(path, keys)
            os._exit(0)
        time.sleep(0.002 * turn)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = sound(path)
        assert found == keys[: len(found)]
        assert len(found) >= done
        done = len(found)
    filled(path)
    assert set(sound(path)) >= set(KEYS)


def test_leftovers_of_a_killed_writer_are_overwritten(tmp_path):
    path = filled(tmp_path / "atlas.bin", KEYS[:2]).path
    with path.open("ab") as file:
        file.write(b"x" * 5000)  # of a body that is longer than the next ones
    inode = path.stat().st_ino
    for end in range(3, 7):
        filled(path, KEYS[:end])
        assert sound(path) == KEYS[:end]
    assert path.stat().st_ino == inode


@pytest.mark.parametrize(
    ("damage", "left", "grows"),
    [
        (lambda path: os.truncate(path, 6 * RECORD - 1), KEYS[:5], 0),
        (lambda path: os.truncate(path, 5 * RECORD + 8), KEYS[:5], 0),
        (lambda path: flip(path, 2 * RECORD + 3 * SLOT), [*KEYS[:2], *KEYS[3:]], 1),  # of a body
        (lambda path: flip(path, 2 * RECORD + 8), KEYS[:2], 0),  # of a header
        (lambda path: path.write_bytes(b"PK\3\4" * 99), [], 0),
        (lambda path: path.write_bytes(bytes(10)), [], 0),
        (lambda path: filled(path.with_name("other.bin")).path.replace(path), [], 0),
    ],
)
def test_damaged_records_are_built_again_without_cutting_maps(damage, left, grows, tmp_path):
    path = filled(tmp_path / "atlas.bin").path
    reader = Atlas(path)
    reader.refresh()
    damage(path)
    assert sound(path) == left
    writer = Atlas(path)
    writer.refresh()
    writer.check(KEYS)
    for key in KEYS:
        if key not in writer.checked:
            writer.append(key, np.full(300, key[1], np.uint8))
    assert sound(path) == KEYS
    assert path.stat().st_size == (6 + grows) * RECORD + SLOT
    if left:
        assert (reader.views[0][-320:-20] == 5).all(), "the map has what it had"
    reader.refresh()
    assert sorted(reader.index) == KEYS


def test_records_stay_in_memory_where_the_folder_cannot_be_written(tmp_path):
    path = filled(tmp_path / "atlas.bin", KEYS[:2]).path
    with read_only(tmp_path):
        for one in (path, tmp_path / "not_there/atlas.bin"):
            atlas = filled(one)
            assert [atlas.views[0][atlas.index[key]] for key in KEYS] == [0, 1, 2, 3, 4, 5]
        assert sound(path) == KEYS[:2]


def test_full_disk_and_limit_on_file_size_are_one_error(tmp_path):
    what, said = with_largest_file(2000, lambda: filled(tmp_path / "atlas.bin"), tmp_path)
    assert (what, "atlas.bin can't be written (File too large" in said) == ("error", True), said
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        what, said = outcome(lambda path: filled(path, KEYS, 30_000), tmp_path / "disk/atlas.bin")
        assert (what, "atlas.bin can't be written (No space left" in said) == ("error", True), said
        assert outcome(sound, tmp_path / "disk/atlas.bin") == outcome(lambda _: KEYS[:2], tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with an atlas of scenes, and their images."""
    folder = tmp_path_factory.mktemp("built")
    return folder, Renderer(WORLD, 16, folder).render(SCENES).images


def test_images_are_the_same_from_file_memory_and_copied_renderer(built):
    folder, images = built
    here = Renderer(WORLD, 16, folder)
    assert here.areas(SCENES) == Renderer(WORLD, 16).areas(SCENES)
    for renderer in (Renderer(WORLD, 16), here, pickle.loads(pickle.dumps(here))):
        assert (renderer.render(SCENES).images == images).all()
    assert outcome(lambda _: here.render(SCENES).images, folder) == outcome(lambda _: images, folder)  # in a fork


@pytest.mark.parametrize("length", [2, 4])
def test_only_the_damaged_record_is_built_again(built, length):
    folder, images = built
    renderer, jobs = Renderer(WORLD, 16, folder), []
    renderer.areas(SCENES)
    key = next(key for key in renderer.atlas.index if len(key) == length)
    flip(renderer.atlas.path, renderer.atlas.index[key] + 700)
    other = Renderer(WORLD, 16, folder)
    other.build = lambda key: jobs.append(key) or build_record(key, **renderer.build.keywords)
    for _ in range(2):
        assert (other.render(SCENES).images == images).all()
    assert jobs == [key]


def test_scenes_are_rendered_with_a_folder_that_cannot_be_written(built):
    folder, images = built
    with read_only(folder):
        again = Renderer(WORLD, 16, folder).render([*SCENES, replace(SCENES[0], view=1)]).images
    assert (again[:-1] == images).all()
