"""Several processes take the steps that one takes: the same losses and gradients, of every scorer."""

import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.ranks import Share, encode_shared, sharing_texts, taking_part
from menagerie.models.recipe import Recipe
from menagerie.models.registry import scorer_class, spec_of, specs
from menagerie.models.training.encoding import check_batch, check_declared, check_together
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import (
    build_optimizer,
    feed_of,
    join_training,
    reference_items,
    train_scorer,
    train_step,
)
from menagerie.models.training.state import History, StateFile
from menagerie.studies.runs.torchrun import lost_process
from tests.helpers.ranks import together
from tests.helpers.scorers import for_data

RECIPE = Recipe(steps=2, batch=12, warmup=2, learning_rate=1e-3)
LONG = replace(RECIPE, steps=20, batch=6)
# A training: a scorer, options that differ from those of smoke runs, and its recipe.
CASES = {
    **{name: (name, {}, RECIPE) for name in specs()},
    "drawn negatives": ("filip", {"negatives": 2}, RECIPE),
    "mean of the local loss": ("oc-clip", {"local_mean": True}, RECIPE),
    "false captions": ("oc-clip", {}, replace(RECIPE, text_negatives=("swap", "replace"))),
    "in parts": ("clip", {}, replace(RECIPE, accumulate=2)),
    "long, clip": ("clip", {}, LONG),
    "long, oc-clip": ("oc-clip", {}, LONG),
}


@pytest.fixture
def split(spatial) -> Path:
    """The file of a split with relations."""
    return spatial.split.path


@contextlib.contextmanager
def double():
    """In float64 rounding is 1e-16, and what remains are mistakes."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def built(name, data, options):
    scorer = for_data(name, data, **options)
    if torch.get_default_dtype() == torch.float64:
        scorer.double().pixel_scale.register_forward_hook(lambda module, given, pixels: pixels.double())
    return scorer.train()


def steps(ranks, data, name, options, recipe):
    """The losses of all steps, and the gradient of the first."""
    scorer = built(name, data, options)
    if scorer.references:
        scorer.keep_references(data.images(reference_items(len(data), scorer.references, 0)))
    feed = feed_of(scorer, data, recipe, 0, spec_of(name).negatives, ranks)
    optimizer, losses, first = build_optimizer(scorer, recipe), [], {}
    for step in range(recipe.steps):
        losses.append(train_step(scorer, optimizer, feed[step], recipe, 0, step, ranks).detach())
        first = first or {key: p.grad.clone() for key, p in scorer.named_parameters() if p.grad is not None}
    return torch.stack(losses), first


def all_steps(ranks, file):
    """Every case in float64, two of them in float32, whose rounding is that of a real step, and `half_precision`."""
    data = SplitDataset(file, "train")
    with double():
        found = {case: steps(ranks, data, *what) for case, what in CASES.items()}
    rounded = {case: steps(ranks, data, *CASES[case]) for case in ("clip", "oc-clip")}
    return found, rounded, half_precision(ranks)


def half_precision(ranks):
    """Of eleven texts, in the precision of `--precision bf16`."""
    with taking_part(ranks), sharing_texts():
        return encode_shared(lambda rows: rows.bfloat16() / 3, torch.arange(11)[:, None])


@pytest.fixture(scope="module")
def expected(spatial):
    """What one process finds."""
    return all_steps(None, spatial.split.path)


@pytest.fixture(scope="module")
def several(spatial, tmp_path_factory):
    """What the first of three processes has found, and the others."""
    return together(tmp_path_factory.mktemp("ranks") / "here", 3, all_steps, spatial.split.path)


def relative(found, expected):
    """The norm of the difference of two gradients, relative to that of one."""
    assert found.keys() == expected.keys()
    every = [torch.cat([each[key].flatten() for key in expected]) for each in (found, expected)]
    return ((every[0] - every[1]).norm() / every[1].norm()).item()


def test_several_processes_have_the_losses_and_gradients_of_one(several, expected):
    """In steps after the first, weights differ by what gradients of earlier ones did."""
    in_float64, in_float32, _ = expected
    apart = {}
    for found, rounded, _ in several:
        for case, (losses, first) in found.items():
            formats = [{key: part.stride() for key, part in each.items()} for each in (first, in_float64[case][1])]
            assert formats[0] == formats[1], case
            loss = ((losses - in_float64[case][0]).abs() / in_float64[case][0].abs().clamp_min(1)).max().item()
            apart[case] = max(apart.get(case, 0), loss, relative(first, in_float64[case][1]))
        for case, (_, first) in rounded.items():
            assert relative(first, in_float32[case][1]) < 1e-6
    assert len(apart) == len(CASES)
    assert {case: far for case, far in apart.items() if far > 1e-9} == {}


def test_shared_embeddings_keep_half_precision(several, expected):
    assert expected[-1].dtype == torch.bfloat16
    for *_, found in several:
        assert found.dtype == torch.bfloat16
        assert torch.equal(found, expected[-1])


SHORT = replace(RECIPE, steps=9, batch=18)


def training(ranks, file, folder, until=None, kill=False, room=0):
    """Train CLIP from its last state; with `kill`, the second process is killed after the sixth step.

    Returns the weights and the losses of all steps, or what the first process is told.
    """
    data, pid = SplitDataset(file, "train"), folder / "second"
    assert SHORT.steps * SHORT.batch >= len(data)  # else no images would stay on the device
    with double():
        scorer = built("clip", data, {})
        if ranks and ranks.share.rank:
            pid.write_text(str(os.getpid()))
            join_training(scorer, data, SHORT, 0, ranks, room=room)
            return None

        def report(progress):
            if kill and progress.step == 6:
                os.kill(int(pid.read_text()), signal.SIGKILL)

        history, state = History(SHORT.batch), StateFile(folder / "state.pt", "clip")
        try:
            with lost_process():
                train_scorer(
                    scorer, data, SHORT, 0, state, 4, report, until=until, history=history, ranks=ranks, room=room
                )
                if ranks:
                    ranks.send(None)
        except UserError as error:
            return str(error)
        return scorer.state_dict(), [row.loss for row in history.rows]


def test_run_resumes_after_a_killed_process_with_other_processes(split, tmp_path):
    """The first process notices it in the next step; one process goes on from its state, then three, whose
    images stay on the device."""
    (tmp_path / "expected").mkdir()
    weights, losses = training(None, split, tmp_path / "expected")
    said, code = together(tmp_path / "killed", 2, training, split, tmp_path, None, True)
    assert "another process of this training has ended" in said
    assert code == -signal.SIGKILL
    training(None, split, tmp_path, 7)
    (found, every), *others = together(tmp_path / "more", 3, training, split, tmp_path, None, False, 1 << 30)
    assert others == [None, None]
    assert len(every) == len(losses) == SHORT.steps
    assert max(abs(one - other) for one, other in zip(every, losses, strict=True)) < 1e-9
    assert max((found[key] - weights[key]).abs().max().item() for key in weights) < 1e-9


def test_a_share_of_a_batch_is_its_images_with_all_texts(split):
    data = SplitDataset(split, "train")
    reader = built("clip", data, {}).reader
    whole = Feed(data, reader, RECIPE, 3)[1]
    parts = [Feed(data, reader, RECIPE, 3, share=Share(k, 3))[1] for k in range(3)]
    assert torch.equal(torch.cat([part.images for part in parts]), whole.images)
    assert torch.equal(torch.cat([part.variation.affine for part in parts]), whole.variation.affine)
    assert torch.equal(torch.cat([part.targets.same for part in parts]), whole.targets.same)
    for part in parts:
        assert torch.equal(part.texts, whole.texts)
        assert torch.equal(part.targets.block.right, whole.targets.same.sum(0))
        assert part.targets.images == RECIPE.batch


OWN = """
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.scorer import Sharing

class Mine(CLIPScorer):
    def loss(self, images, texts, targets):
        return (images - texts[: len(images)]).square().mean()

class Declared(Mine):
    sharing = Sharing(images="gathered")
"""


def test_settings_that_several_processes_cannot_share_are_refused(split, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    with pytest.raises(UserError, match="Mine doesn't say how several processes share its steps"):
        check_declared(scorer_class(f"{tmp_path}/mine.py:Mine"))
    check_declared(scorer_class(f"{tmp_path}/mine.py:Declared"))
    with pytest.raises(UserError, match="batch 12 can't be shared by 5 processes"):
        check_batch(RECIPE, 5)
    with pytest.raises(UserError, match="accumulate 5 is more than the 4 images of each of 3 processes"):
        check_batch(replace(RECIPE, accumulate=5), 3)
    scorer = built("clip", SplitDataset(split, "train"), {})
    check_together(scorer, RECIPE, 2)
    with pytest.raises(UserError, match="without --compile"):
        check_together(scorer, replace(RECIPE, compile=True), 2)
    scorer.model.visual.drop = torch.nn.Dropout(0.1)
    with pytest.raises(UserError, match=r"model.visual.drop \(Dropout\) drops at random"):
        check_together(scorer, RECIPE, 2)
    scorer.model.visual.drop = torch.nn.BatchNorm1d(3)
    with pytest.raises(UserError, match="batch normalisation"):
        check_together(scorer, RECIPE, 2)


def test_dropout_of_a_frozen_base_is_allowed_in_several_processes(split):
    """Whatever mode it is in meanwhile: training leaves it in evaluation mode."""
    data = SplitDataset(split, "train")
    scorer = built("dcsm", data, {})
    scorer.base.model.visual.drop = torch.nn.Dropout(0.1)
    scorer.base.requires_grad_(False)
    modes = [module.training for module in scorer.modules()]
    check_together(scorer, RECIPE, 2)
    assert modes == [module.training for module in scorer.modules()]
    scorer.base.log_scale.requires_grad_(True)
    with pytest.raises(UserError, match=r"base.model.visual.drop \(Dropout\) drops at random"):
        check_together(scorer, RECIPE, 2)
