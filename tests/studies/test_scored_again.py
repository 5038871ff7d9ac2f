"""Options of scores alone: another value scores trained weights again; and who takes no false captions is left out."""

import shutil
from dataclasses import replace

import pytest
from safetensors.numpy import load_file

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import load_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.cell import CHECKPOINT, DIVERGED, Job, Start
from menagerie.studies.runs.results import read_result
from menagerie.studies.runs.train import run_with_needs
from tests.grid_cells import cells, render

SMOKE = replace(
    PRESETS["smoke"],
    models=("captioner",),
    hard_negatives=(0.0,),
    views=1,
    test_scenes=12,
    recipe=Recipe(steps=3, batch=8, warmup=1),
)


def cell_with(study=SMOKE, **options):
    return study.make_arm("captioner", *cells_data(study), options)


def cells_data(study):
    (cell,) = cells(study, "")
    return cell.data, cell.seed


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A job for each weight of the prior, in one folder; the steps that each reported. The first isn't the default."""
    folder = tmp_path_factory.mktemp("scored")
    study = replace(SMOKE, store=folder / "store")
    identity, files = render(study, 1)
    (plain,) = cells(study, identity)
    jobs, steps = {}, {}
    for alpha in (0.5, 1.0, 0.0):
        cell = study.make_arm("captioner", plain.data, plain.seed, {"alpha": alpha, "prior": "images"})
        jobs[alpha] = Job(cell, files[plain.data], folder / "run")
        steps[alpha] = []
        run_with_needs(jobs[alpha], lambda step, text, seen=steps[alpha]: seen.append(step))
    return jobs, steps


def test_cells_that_differ_in_scores_alone_are_trained_as_one():
    one, other = cell_with(alpha=1.0), cell_with(alpha=0.5, per_token=False)
    assert one.id != other.id
    assert one.trained_as == other.trained_as == cell_with(alpha=0.0, prior="images")
    assert cell_with(parallel=0.7, alpha=1.0).trained_as.options == {"parallel": 0.7}


def test_other_weights_of_the_prior_take_no_steps(ran):
    jobs, steps = ran
    taken = {alpha: [step for step in seen if step] for alpha, seen in steps.items()}
    assert taken == {0.5: [1, 2, 3], 1.0: [], 0.0: []}
    assert len({job.folder for job in jobs.values()}) == 3


def test_cells_scored_in_another_way_have_the_same_weights_and_other_scores(ran):
    jobs, _ = ran
    weights = [load_file(job.folder / CHECKPOINT / "model.safetensors") for job in jobs.values()]
    for other in weights[1:]:
        assert other.keys() == weights[0].keys()
        assert all((other[name] == weights[0][name]).all() for name in other)
    assert len({(job.folder / "predictions.csv").read_text() for job in jobs.values()}) == 3
    assert {alpha: load_checkpoint(job.folder / CHECKPOINT).config.alpha for alpha, job in jobs.items()} == {
        alpha: alpha for alpha in jobs
    }
    rows = [(job.folder / "training.csv").read_text() for job in jobs.values()]
    assert rows[0] == rows[1] == rows[2] != ""


def test_a_failed_training_leaves_out_all_cells_that_score_it(ran, tmp_path):
    """Without training it again; the reason stands in both folders."""
    job = replace(ran[0][1.0], out=tmp_path)
    other = replace(job, cell=job.cell.trained_as)
    other.folder.mkdir(parents=True)
    (other.folder / DIVERGED).write_text("the loss was no number")
    with pytest.raises(UserError, match="the loss was no number"):
        run_with_needs(job, lambda step, text: None)
    assert job.problem == other.problem


def elsewhere(ran, folder, **options):
    """A copy of the finished runs, and in it a job with further options."""
    job = ran[0][1.0]
    shutil.copytree(job.out, folder, dirs_exist_ok=True)
    return replace(job, out=folder, cell=replace(job.cell, options={**job.cell.options, **options}))


def run(job):
    """The steps that a job takes."""
    steps = []
    run_with_needs(job, lambda step, text: steps.append(step))
    return [step for step in steps if step]


def test_scored_options_of_the_starting_weights_do_not_matter(ran, tmp_path):
    """Weights that were scored with one prior start a run that is scored with another, or with the same."""
    job = elsewhere(ran, tmp_path)
    start = Start("of alpha 1", job.folder / CHECKPOINT, "before", 24)
    jobs = [replace(job, cell=replace(elsewhere(ran, tmp_path, alpha=a).cell, start=start)) for a in (1.0, 0.5)]
    assert [run(each) for each in jobs] == [[1, 2, 3], []]
    carried = [read_result(each.folder)["carried"] for each in jobs]
    assert carried[0] == carried[1]
    assert carried[0]["words"] > 0
    assert carried[0]["new_words"] == []
