"""Which models saw which negatives: in a run's record, in the table of models, and refused where there are none."""

from dataclasses import replace

import pytest

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.recipe import Recipe
from menagerie.studies import binding_grid, spatial_grid
from menagerie.studies.frame.page import model_table
from menagerie.studies.runs.graphs import kind_of_further_negatives, loss_negatives
from menagerie.studies.runs.shared import has_false_captions
from tests.grid_cells import cells, chosen_alone
from tests.helpers.scorers import scorer
from tests.helpers.splits import RECIPE, make_split

MODELS = ("clip", "negclip", "labclip", "oc-clip")


def cells_of(grid, **recipe):
    grid = replace(grid, models=MODELS, recipe=replace(grid.recipe, **recipe))
    return {cell.model: cell for cell in cells(grid, "store")}


@pytest.fixture(scope="module")
def trains(tmp_path_factory):
    """Training data with counterfactuals and without."""
    recipes = RECIPE, BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=5)
    return [SplitDataset(make_split(tmp_path_factory.mktemp("split"), recipe), "train") for recipe in recipes]


def test_a_record_says_what_a_loss_compared_with(trains):
    with_counterfactuals, without = trains
    binding, spatial = cells_of(binding_grid.PRESETS["smoke"]), cells_of(spatial_grid.PRESETS["smoke"])
    assert [loss_negatives(binding[model], with_counterfactuals) for model in MODELS] == [
        [],
        ["swapped captions", "counterfactual images"],
        ["swapped captions"],
        [],
    ]
    assert loss_negatives(binding["negclip"], without) == ["swapped captions"]
    assert loss_negatives(spatial["oc-clip"], without) == ["graphs swapped and shuffled"]
    alone = replace(spatial["oc-clip"], options=spatial["oc-clip"].options | {"local_weight": 0.0})
    assert not loss_negatives(alone, without)
    parts = loss_negatives(binding["negclip"], without, "replace")
    assert parts == ["swapped captions", "of further captions: captions with a part replaced"]
    shared = cells_of(binding_grid.PRESETS["smoke"], text_negatives=("replace", "swap"), image_negatives=True)
    words = ["captions with a part replaced", "swapped captions", "counterfactual images"]
    assert all(loss_negatives(shared[model], with_counterfactuals) == words for model in MODELS)


def test_negatives_requested_of_all_models_decide_a_cell():
    """Left at their defaults the new fields change no identity; set, they change every one."""
    plain, swaps = (cells_of(binding_grid.PRESETS["smoke"], text_negatives=kinds) for kinds in ((), ("swap",)))
    for model in MODELS:
        assert plain[model].id != swaps[model].id
        assert "text_negatives" not in plain[model].settings["recipe"]
    assert plain["negclip"].id != replace(plain["negclip"], negatives=()).id
    # A model that starts from another needs not that one among the models; it is trained once where both are.
    grid = replace(binding_grid.PRESETS["smoke"], hard_negatives=(0.0,))
    (cell,) = cells(chosen_alone(replace(grid, models=("labclip",))), "store")
    assert cell.base.id == cells_of(grid)["clip"].id


def test_the_phase_of_single_objects_is_shared_only_without_false_captions(trains):
    train = trains[0]
    singles = [i for i, single in enumerate(train.strata["single_object"]) if single]
    plain = cells_of(binding_grid.PRESETS["smoke"])["negclip"]
    assert not has_false_captions(plain, train, singles)  # lone animals have no swap
    assert has_false_captions(replace(plain, recipe=Recipe(text_negatives=("replace",))), train, singles)
    kinds = [kind_of_further_negatives(scorer(model)) for model in ("negclip", "read-clip", "cs-clip")]
    assert kinds == ["", "", "replace"]
    assert has_false_captions(plain, train, singles, kinds[-1])


def test_the_table_of_models_names_the_negatives_of_losses():
    runs = [
        ("clip", 10, [], 0.0123),
        ("negclip", 10, ["swapped captions"], None),
        ("negclip", 12, ["swapped captions", "counterfactual images"], None),
    ]
    names = ("model", "parameters", "loss_negatives")
    results = [
        dict(zip(names, run, strict=True)) | {"images_seen": 640, "provenance": {"step_cpu_seconds": seconds}}
        for *run, seconds in runs
    ]
    table = model_table(("clip", "negclip", "unfinished"), results)
    assert table["model"].tolist() == ["clip", "negclip"]
    assert table["CPU ms a step"].tolist() == ["12", "–"]
    assert table["parameters"].tolist() == ["10", "10 to 12"]
    assert table["negatives in its loss"].tolist() == [
        "none",
        "swapped captions, counterfactual images (where training has them)",
    ]
    assert "graphs of a parser" not in table
    results[0]["parsed"] = "4 captions: 1 parsed, 3 fell back to one node (3 not of our worlds); 0 were known before"
    parsed = model_table(("clip", "negclip"), results)["graphs of a parser"].tolist()
    assert parsed == [results[0]["parsed"], "–"]
