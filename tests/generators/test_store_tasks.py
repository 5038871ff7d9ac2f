"""Rendering in tasks of a cluster ends with the very files that one process writes."""

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.image_store import ImageStore
from menagerie.studies.cluster.jobs import Cluster
from menagerie.studies.cluster.render_tasks import RenderTask, add_with_tasks, plan, render_parts
from menagerie.studies.cluster.worker import Interruption

SCENES = BindingRecipe(world="tiny", views=1, test_views=1, test_scenes=24).scenes_to_render()


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", 32)
    monkeypatch.setattr("menagerie.studies.cluster.render_tasks.SHARD_ROWS", 32)


def contents(store):
    return {path.name: path.read_bytes() for path in store.folder.glob("*.h5")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The files of one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("menagerie.generators.storage.image_store.SHARD_ROWS", 32)
        store = ImageStore(tmp_path_factory.mktemp("alone"), load_world("tiny"), 32)
        store.add(SCENES)
    return contents(store)


@pytest.mark.parametrize("engine", ["local", "slurm"])
def test_tasks_write_the_same_store(engine, tmp_path, alone, request, capsys):
    if engine == "slurm":
        request.getfixturevalue("slurm")
    assert len(alone) > 3
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    add_with_tasks(store, "tiny", SCENES, Cluster(engine), tasks=2)
    assert "2 running" in capsys.readouterr().out
    assert contents(store) == alone
    assert not list(store.folder.glob("parts/*"))
    add_with_tasks(store, "tiny", SCENES, Cluster(engine), tasks=2)  # finds nothing to do
    assert contents(store) == alone


def task(store, parts):
    return RenderTask("tiny", 32, store.identity, store.root, "none", tuple(parts))


def test_finished_parts_are_kept_and_others_writers_scenes_are_not_listed_twice(tmp_path):
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    parts = plan(store, SCENES, "none")
    render_parts(task(store, parts), Interruption())
    stamp = parts[0].file.stat().st_mtime_ns
    render_parts(task(store, parts), Interruption())
    assert parts[0].file.stat().st_mtime_ns == stamp
    store.add(parts[1].scenes)  # another writer was faster with these
    add_with_tasks(store, "tiny", SCENES, Cluster("slurm"), tasks=2)  # all parts are there: nothing is submitted
    _, table = store.index()
    assert len(table) == len(set(SCENES)) == len(store.rows(sorted(set(SCENES))))


def test_a_task_of_another_renderer_is_refused(tmp_path):
    store = ImageStore(tmp_path, load_world("tiny"), 32)
    other = RenderTask("tiny", 32, "another", tmp_path, "none", tuple(plan(store, SCENES, "none")))
    with pytest.raises(UserError, match="changed since the task was submitted"):
        render_parts(other, Interruption())
