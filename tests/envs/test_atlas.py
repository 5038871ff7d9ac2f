"""The atlas: one file that processes append to at once, and of which only what is damaged is built again."""

import multiprocessing
import os
import pickle
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.render import renderer as renderer_module
from menagerie.envs.render.atlas import SLOT, Atlas
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.worlds import load_world
from tests.disks import mounted, read_only, with_largest_file
from tests.helpers.judge import outcome

KEYS = [("desert", n) for n in range(6)]
WORLD = load_world("tiny")
SCENES = list(WORLD.singles())[:6]


def body(key, length: int = 300) -> np.ndarray:
    return np.full(length, key[1], np.uint8)


def filled(path, keys=KEYS, length: int = 300) -> Atlas:
    atlas = Atlas(path)
    for key in keys:
        atlas.append(key, body(key, length))
    return atlas


def sound(path) -> list[tuple]:
    """The keys whose bodies are whole, by a process that has just opened the file."""
    atlas = Atlas(path)
    atlas.refresh()
    atlas.check(list(atlas.index))
    for key, place in atlas.checked.items():
        assert (atlas.views[0][place : place + 300] == key[1]).all()
        assert place % SLOT == 0
    return sorted(atlas.checked)


def damage(path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def test_a_reader_sees_what_was_appended_since_it_opened(tmp_path):
    path = tmp_path / "a/atlas.bin"
    writer = filled(path, KEYS[:2])
    reader = Atlas(path)
    reader.refresh()
    assert list(reader.index) == KEYS[:2]
    before = reader.views[0]
    writer.append(KEYS[2], body(KEYS[2]))
    writer.append(KEYS[2], body(KEYS[3]))  # there already
    reader.refresh()
    assert list(reader.index) == KEYS[:3] == sound(path)
    assert before.tobytes() == reader.views[0][: len(before)].tobytes()


def append_all(path, keys) -> None:
    atlas = Atlas(path)
    for key in keys:
        atlas.append(key, body(key))


def test_processes_append_at_once(tmp_path):
    keys, path = [("desert", n % 200) for n in range(200)], tmp_path / "atlas.bin"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append_all, args=(path, order)) for order in (keys, keys[::-1], keys[50:])]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert sound(path) == sorted(keys)
    once = filled(tmp_path / "one.bin", keys)
    assert path.stat().st_size == once.path.stat().st_size, "no record is there twice"


def test_a_writer_may_be_killed_at_any_moment(tmp_path):
    path, done = tmp_path / "atlas.bin", 0
    for turn in range(8):
        child = os.fork()
        if not child:
            append_all(path, [("desert", n) for n in range(done, 256)])
            os._exit(0)
        time.sleep(0.002 * turn)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = sound(path)
        assert found == [("desert", n) for n in range(len(found))]
        assert len(found) >= done
        done = len(found)
    filled(path, KEYS)
    assert set(sound(path)) >= set(KEYS)


def test_what_a_killed_writer_left_is_overwritten(tmp_path):
    path = filled(tmp_path / "atlas.bin", KEYS[:2]).path
    with path.open("ab") as file:
        file.write(b"x" * 5000)  # of a body that is longer than the next ones
    inode = path.stat().st_ino
    for key in KEYS:
        filled(path, [key])
        assert key in sound(path)
    assert sound(path) == KEYS
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("cut", [1, 200, 380, 440])
def test_a_truncated_last_record_is_built_again(tmp_path, cut):
    path = filled(tmp_path / "atlas.bin").path
    os.truncate(path, path.stat().st_size - SLOT - cut)
    assert sound(path) == KEYS[:-1]
    filled(path)
    assert sound(path) == KEYS


def test_a_damaged_body_is_built_again_alone(tmp_path):
    path = tmp_path / "atlas.bin"
    atlas = filled(path)
    damage(path, atlas.index[KEYS[2]] + 7)
    assert sound(path) == [*KEYS[:2], *KEYS[3:]]
    other = Atlas(path)
    other.refresh()
    other.check(KEYS)
    other.append(KEYS[2], body(KEYS[2]))
    assert sound(path) == KEYS
    assert path.stat().st_size == filled(tmp_path / "b.bin", [*KEYS, ("city", 2)]).path.stat().st_size


def test_a_damaged_header_costs_what_lies_behind_it_and_no_readers_map(tmp_path):
    path = tmp_path / "atlas.bin"
    reader = filled(path)
    before = reader.views[0].tobytes()
    damage(path, reader.index[KEYS[2]] - SLOT - 40)
    assert sound(path) == KEYS[:2]
    filled(path, KEYS[4:])
    assert sound(path) == [*KEYS[:2], *KEYS[4:]]
    assert reader.views[0].tobytes()[1000:] == before[1000:]
    reader.refresh()
    assert sorted(reader.index) == [*KEYS[:2], *KEYS[4:]]
    assert reader.checked == {}


@pytest.mark.parametrize("content", [b"PK\3\4" * 99, b"x", bytes(9999)])
def test_a_foreign_file_is_replaced(tmp_path, content):
    path = tmp_path / "atlas.bin"
    path.write_bytes(content)
    assert sound(path) == []
    filled(path)
    assert sound(path) == KEYS


def test_a_file_under_another_ones_name_is_none_of_ours(tmp_path):
    path = filled(tmp_path / "atlas.bin").path.rename(tmp_path / "other.bin")
    assert sound(path) == []


def test_where_nothing_can_be_written_records_stay_in_memory(tmp_path):
    path = filled(tmp_path / "atlas.bin", KEYS[:2]).path
    with read_only(tmp_path):
        atlas = filled(path)
        assert atlas.views[0][atlas.index[KEYS[1]]] == 1
        assert atlas.views[0][atlas.index[KEYS[5]]] == 5
        assert sound(path) == KEYS[:2]
        assert list(filled(tmp_path / "not_there/atlas.bin").index) == KEYS


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        path = tmp_path / "disk/atlas.bin"
        assert outcome(lambda path: filled(path, KEYS[:2]).checked, path)[0] == "value"
        what, said = outcome(lambda path: filled(path, KEYS[2:], 30_000), path)
        assert what == "error", said
        assert "atlas.bin can't be written (No space left" in said
        assert outcome(lambda path: sound(path)[:2] == KEYS[:2], path) == ("value", True)


def test_a_limit_on_files_is_one_line(tmp_path):
    what, said = with_largest_file(2000, lambda: filled(tmp_path / "atlas.bin"), tmp_path)
    assert what == "error", said
    assert "atlas.bin can't be written (File too large" in said


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with an atlas of scenes, and their pictures."""
    folder = tmp_path_factory.mktemp("built")
    return folder, Renderer(WORLD, 16, folder).render(SCENES)


def test_pictures_are_the_same_from_a_file_from_memory_and_in_a_copy_of_the_renderer(built):
    folder, pictures = built
    here = Renderer(WORLD, 16, folder)
    assert here.areas(SCENES) == Renderer(WORLD, 16).areas(SCENES)
    for renderer in (Renderer(WORLD, 16), here, pickle.loads(pickle.dumps(here))):
        assert (renderer.render(SCENES).images == pictures.images).all()
    what, said = outcome(lambda _: here.render(SCENES).images, folder)  # in a fork
    assert (what, said) == outcome(lambda _: pictures.images, folder)


@pytest.mark.parametrize("kind", [4, 2])
def test_a_flipped_bit_rebuilds_one_record(built, kind):
    folder, pictures = built
    renderer, jobs = Renderer(WORLD, 16, folder), []
    renderer.render(SCENES)
    key = next(key for key in renderer.atlas.index if len(key) == kind)  # of an entry, of a backdrop
    damage(renderer.atlas.path, renderer.atlas.index[key] + 700)
    size = renderer.atlas.path.stat().st_size
    other, build = Renderer(WORLD, 16, folder), renderer_module.build_records
    other.build = lambda keys: jobs.append(keys) or build(keys, **renderer.build.keywords)
    assert (other.render(SCENES).images == pictures.images).all()
    assert jobs == [[key]]
    assert Renderer(WORLD, 16, folder).atlas.path.stat().st_size > size


def test_a_read_only_folder_is_no_mistake(built):
    folder, pictures = built
    with read_only(folder):
        assert (Renderer(WORLD, 16, folder / "lacking").render(SCENES[:2]).images == pictures.images[:2]).all()
        more = Renderer(WORLD, 16, folder).render([*SCENES, replace(SCENES[0], view=1)])
    assert (more.images[:-1] == pictures.images).all()
