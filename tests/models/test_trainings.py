"""What the training of a run's cell had, by the records in its folder alone."""

from dataclasses import replace

import pytest

from menagerie.envs.core.records import write_record
from menagerie.envs.core.validation import build_dataclass
from menagerie.envs.render import image_identity
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.trained_on import FileScenes, RecipeScenes, Training
from menagerie.models.checkpoint import save_checkpoint
from menagerie.models.library.cells import find_training
from menagerie.models.library.load import load_scorer
from menagerie.models.library.sources import Checkpoint, HuggingFace, OpenCLIP
from menagerie.studies.runs.data import SplitData
from menagerie.studies.sources.transfer_data import TransferData
from tests.helpers.scorers import scorer

TINY = BindingRecipe(world="tiny", pairs=0.5, seed=3)


def data_of(recipe, resolution=64):
    return SplitData(recipe, image_identity(load_world(recipe.world), resolution)).settings


def cell_in(run, data, name="0", result=None, **settings):
    """A finished cell without weights; returns the source of its checkpoint."""
    folder = run / "cells" / name
    settings = {"model": "clip", "data": data, **settings}
    write_record(folder / "result.json", {"id": name, "model": "clip", "settings": settings, **(result or {})})
    return Checkpoint(name, folder / "checkpoint", "clip")


def test_training_data_of_a_cell_are_its_recipe(tmp_path):
    assert find_training(cell_in(tmp_path, data_of(TINY))) == Training((RecipeScenes(TINY),))
    small = cell_in(tmp_path, data_of(TINY, 32), "1", towers={"resolution": 32})
    assert find_training(small).parts == (RecipeScenes(TINY),)
    state = replace(small, folder=small.folder.parent / "states" / "100")
    assert find_training(state).parts == (RecipeScenes(TINY),), "a state that was kept during training"


def test_base_scorers_and_mixed_data_belong_to_the_training(tmp_path):
    base = {"model": "clip", "data": data_of(replace(TINY, seed=4))}
    source = cell_in(tmp_path, data_of(TINY), base=base, towers={"pretrained": "laion2b"})
    found = find_training(source)
    assert {part.recipe.seed for part in found.parts} == {3, 4}
    assert found.unknown == ("the training of the weights laion2b",)
    mixed = {"photographs": "1f", "version": 1, "mix": 0.5, "synthetic": data_of(TINY)}
    found = find_training(cell_in(tmp_path, mixed, "1"))
    assert found == Training((RecipeScenes(TINY),), (tmp_path / "cells/1",))
    assert found.gaps == ("what its photographs show",)


def test_data_of_carried_over_weights_belong_to_the_training(tmp_path):
    first = cell_in(tmp_path / "run", data_of(TINY), "first")
    save_checkpoint(first.folder, "clip", scorer("clip"))
    moved = {"carried": {"from": str(tmp_path / "elsewhere" / "cells" / "first" / "checkpoint")}}
    for result in ({"carried": {"from": str(first.folder)}}, moved):
        source = cell_in(tmp_path / "run", data_of(replace(TINY, seed=4)), "0", result, start=first.identity())
        assert {part.recipe.seed for part in find_training(source).parts} == {3, 4}
    lost = find_training(cell_in(tmp_path / "run", data_of(TINY), "0", moved, start="another"))
    assert len(lost.parts) == len(lost.unknown) == 1


def test_training_data_of_a_split_file_are_read_from_it(tmp_path, data):
    content = data.split.content
    write_record(tmp_path / "config.json", {"config": {"split": [str(data.split.path)]}})
    given = {"kind": "binding", "split_file": content, "store": "any"}
    assert find_training(cell_in(tmp_path, given)).parts == (FileScenes(data.split.path, content),)
    (why,) = find_training(cell_in(tmp_path, given | {"split_file": "another"}, "1")).unknown
    assert "its split file isn't where it was" in why


def test_world_written_by_a_run_is_found_by_its_images(tmp_path):
    for name in ("a", "b"):
        world = tmp_path / "worlds" / f"{name}.toml"
        world.parent.mkdir(exist_ok=True)
        world.write_text(f'name = "{name}"\nextends = "tiny"\n')
    recipe = replace(TINY, world=str(world))
    train = SplitData(recipe, image_identity(load_world(recipe.world), 64))
    data = TransferData(train, "synthetic", (), images=5)
    assert "world" not in data.settings["split"]
    assert find_training(cell_in(tmp_path, data.settings)).parts == (RecipeScenes(recipe, 5),)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"store": "another"}, "the world tiny, or how this program draws it"),
        ({"version": 0}, "its recipe is of another version"),
        ({"defaults": 1}, "its recipe is of another version"),
        ({"split": {"world": "gone.toml"}}, "the world gone, or how this program draws it"),
    ],
)
def test_recipes_that_cannot_be_made_again_are_unknown(tmp_path, change, why):
    found = find_training(cell_in(tmp_path, data_of(TINY) | change))
    assert not found.parts
    assert why in found.unknown[0]


def test_trainings_of_other_models_are_unknown(tmp_path):
    lone = Checkpoint("lone", tmp_path / "checkpoint", "clip")
    for source in (lone, HuggingFace("it", "it"), OpenCLIP("ViT-B-32/openai", "ViT-B-32", "openai")):
        found = find_training(source)
        assert not found.parts
        assert found.unknown


def test_loaded_scorer_counts_what_its_training_had(tmp_path, data):
    test = SplitDataset(data.split, "unseen_pairs", preload=False)
    recipe = build_dataclass(BindingRecipe, {name: its for name, its in data.split.recipe.items() if name != "kind"})
    source = cell_in(tmp_path, data_of(recipe))
    save_checkpoint(source.folder, "clip", scorer("clip"))
    found = load_scorer(source.folder.parent).trained_on(test)
    assert found.counts["pairs"][0] == 0 < found.counts["pairs"][1]
    assert found.counts["images"] == (0, len(test))
    save_checkpoint(tmp_path / "lone", "clip", scorer("clip"))
    assert load_scorer(tmp_path / "lone").trained_on(test).training == "unknown"
