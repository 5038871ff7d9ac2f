"""`menagerie.train`: the cell of a command, trained in this process, read back, and refused in one line."""

from dataclasses import replace

import pytest
import torch

import menagerie
from menagerie.envs.core.errors import UserError
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.frame.records import Records

SMOKE = PRESETS["smoke"]
RECIPE = {"steps": 4, "batch": 8, "warmup": 1, "single_object_phase": 0.0, "singles_share": 0.5}
HERE = {"world": "tiny", "resolution": 32, "views": 1, "test_views": 1, "test_scenes": 12, "architecture": "nano"}
SPLIT = BindingRecipe(pairs=0.5, hard_negatives=1.0)


def test_train_in_python_makes_the_cell_that_a_command_makes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = SMOKE.scorers.of("oc-clip")
    trained = menagerie.train("oc-clip", SPLIT, seed=1, options=options, **HERE, **RECIPE)
    grid = replace(
        SMOKE,
        **HERE,
        **{"models": ("oc-clip",), "seeds": 2, "hard_negatives": (1.0,)},
        recipe=replace(SMOKE.recipe, **RECIPE),
    )
    (arm,) = trained.records.arms
    assert arm.id in {other.id for other in grid.plan(Records((), tmp_path))}
    assert set(trained.records.scores["subset"]) >= {"validation", "unseen_pairs"}
    assert not trained.scorer.scorer.training
    result = trained.records.folder(arm) / "result.json"
    stamp, threads = result.stat().st_mtime_ns, torch.get_num_threads()
    again = menagerie.train("oc-clip", SPLIT, seed=1, options=options, **HERE, **RECIPE)
    assert (result.stat().st_mtime_ns, torch.get_num_threads()) == (stamp, threads)
    first, second = (list(side.scorer.scorer.state_dict().values()) for side in (trained, again))
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    of_file = menagerie.train("clip", trained.split, architecture="nano", **RECIPE)
    assert of_file.records.labels("hard_negatives") == [1.0]
    image, caption, *_ = menagerie.SplitDataset(of_file.split, "unseen_pairs")[0]
    ours = menagerie.load_scorer("runs/train", model="clip")  # a folder of two cells by now
    assert torch.equal(of_file.scorer.score(image, caption), ours.score(image, caption))


@pytest.mark.parametrize(
    ("model", "split", "settings", "said"),
    [("clip", "none.h5", {}, "none.h5"), ("clip", "binding", {"stps": 5}, "did you mean 'steps'")],
)
def test_a_mistake_is_one_clear_error_and_makes_nothing(model, split, settings, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        menagerie.train(model, split, **settings)
    assert not list(tmp_path.iterdir())
