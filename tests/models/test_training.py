"""Training: deterministic, resumable, and it learns."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import Stopped, UserError
from menagerie.generators.benchmarks.benchmark import FOUR_WAY_RULES
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.sources.mixture import CaptionedSubset
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.checkpoint import build_scorer
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.models.scorer import Diverged
from menagerie.models.texts import leaves
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.encoding import batch_loss
from menagerie.models.training.feed import Feed, augment, draw_variation
from menagerie.models.training.loop import build_optimizer, rate_factor, set_rates, train_scorer
from menagerie.models.training.sampling import by_shares
from menagerie.models.training.state import History, StateFile, copy_state, read_state, save_state
from menagerie.studies.runs.data import split_texts
from menagerie.studies.runs.evaluation import predictions, summaries
from tests.disks import with_largest_file
from tests.helpers.scorers import OPTIONS, TOWERS, scorer
from tests.helpers.splits import make_split

RECIPE = Recipe(steps=6, batch=8, warmup=2)


def fresh(name, data):
    """A scorer that knows all words of a split, those of its tests too."""
    torch.manual_seed(3)
    return build_scorer(name, TOWERS, text_space(TOWERS, split_texts(data.split)), OPTIONS[name])


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(scope="module")
def undisturbed(data):
    """Gives the weights of a run of RECIPE that nothing disturbs, with seed 0; each model is trained once."""

    @cache
    def ended(name):
        model = fresh(name, data)
        train_scorer(model, data, RECIPE, 0)
        return weights(model)

    return ended


def test_another_seed_gives_other_weights(data, undisturbed):
    """The same seed gives the same: so do runs that are resumed, below."""
    model = fresh("clip", data)
    train_scorer(model, data, RECIPE, 1)
    assert not torch.equal(weights(model), undisturbed("clip"))


@pytest.mark.parametrize(
    ("name", "error", "left"), [*((name, RuntimeError, [5, 6]) for name in OPTIONS), ("oc-clip", Stopped, [6])]
)
def test_resumed_run_ends_with_the_same_weights(name, error, left, data, undisturbed, tmp_path):
    """From the last saved state; one that is signalled to end saves the very step."""

    def stop(progress):
        if progress.step == 5:
            raise error

    state, model = StateFile(tmp_path / "state.pt"), fresh(name, data)
    with pytest.raises(error):
        train_scorer(model, data, RECIPE, 0, state, save_every=2, report=stop)
    resumed = fresh(name, data)
    torch.manual_seed(99)  # nothing may depend on the global generator
    steps = []
    train_scorer(resumed, data, RECIPE, 0, state, save_every=2, report=lambda progress: steps.append(progress.step))
    assert steps == left
    assert torch.equal(weights(resumed), undisturbed(name))


def test_workers_change_no_weight(data, undisturbed):
    """Nor do they change a batch of other readers: tests/models/test_step.py."""
    model = fresh("oc-clip", data)
    train_scorer(model, data, RECIPE, 0, workers=2)
    assert torch.equal(weights(model), undisturbed("oc-clip"))


@pytest.mark.parametrize(("workers", "images"), [(0, 1.0), (2, 1.0), (0, 0.999)])
def test_images_kept_on_the_device_change_no_weight(workers, images, data, undisturbed, capsys):
    """In a run of many steps, in which each image is seen; if they need more than they may take, that is said once."""
    room = int(images * len(data) * data[0].image.nbytes)
    recipe = replace(RECIPE, batch=-(-len(data) // RECIPE.steps))
    weights_of = {}
    for given in (0, room, room):
        model = fresh("clip", data)
        train_scorer(model, data, recipe, 0, workers=workers, room=given)
        weights_of[given] = weights(model)
    assert torch.equal(weights_of[room], weights_of[0])
    assert capsys.readouterr().out.count("--images-on-gpu") == (images < 1)


def test_local_loss_has_the_requested_altered_graphs(spatial):
    pairs = np.flatnonzero(~spatial.strata["single_object"])[:8]
    model = fresh("oc-clip", spatial)
    choices = [{"local_negatives": names} for names in (("swapped",), ("shuffled",), ("swapped", "shuffled"))]
    losses = []
    for options in (*choices, {"local_weight": 0.0}):
        model.config = replace(model.config, **options)
        losses.append(batch_loss(model, Feed(spatial, model.reader, RECIPE, 0).batch(pairs, 0), RECIPE).item())
    swapped, shuffled, both, none = losses
    assert none < min(swapped, shuffled) <= max(swapped, shuffled) < both  # each altered graph adds to the loss
    assert swapped != shuffled


def test_damaged_state_is_named_and_training_starts_over(data, tmp_path, capsys):
    state, recipe = tmp_path / "state.pt", replace(RECIPE, steps=4)
    undisturbed, other = fresh("clip", data), fresh("clip", data)
    train_scorer(undisturbed, data, recipe, 0, StateFile(state), save_every=2)
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 4
    state.write_bytes(content)
    train_scorer(other, data, recipe, 0, StateFile(state))
    assert "state.pt is damaged" in capsys.readouterr().out
    assert all(torch.equal(a, b) for a, b in zip(undisturbed.parameters(), other.parameters(), strict=True))


def test_state_of_another_run_is_refused(data, tmp_path):
    recipe, path = replace(RECIPE, steps=2), tmp_path / "state.pt"
    train_scorer(fresh("clip", data), data, recipe, 0, StateFile(path, "one"), save_every=2)
    with pytest.raises(UserError, match=r"state\.pt is a state of another run, one; put it back there"):
        train_scorer(fresh("clip", data), data, recipe, 0, StateFile(path, "two"))
    with pytest.raises(UserError, match="is a state of another run"):
        copy_state(StateFile(path, "two"), StateFile(tmp_path / "b.pt", "three"))
    copy_state(StateFile(path, "one"), StateFile(tmp_path / "b.pt", "two"))
    assert read_state(StateFile(tmp_path / "b.pt", "two"))["step"] == 2


def test_full_disk_keeps_the_last_state(data, tmp_path):
    """Torch says of it that it is at an unexpected place."""
    state, model = tmp_path / "state.pt", fresh("clip", data)
    optimizer = build_optimizer(model, RECIPE)
    save_state(StateFile(state), model, optimizer, 1, History(8))
    before = state.read_bytes()
    save = partial(save_state, StateFile(state), model, optimizer, 2, History(8))
    what, said = with_largest_file(50_000, save, tmp_path)
    assert (what, "state.pt can't be written (File too large)" in said) == ("error", True), said
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]
    assert state.read_bytes() == before


# Learning rates at which so few steps are enough; all others take 4e-3.
RATES = {"c2lip": 2e-3, "dcsm": 8e-3, "labclip": 5e-2}


@pytest.mark.parametrize("name", OPTIONS)
def test_training_lowers_the_loss_of_every_scorer(name, data):
    """Far down; that of a map on frozen, untrained towers a bit."""
    steps, losses = 30 if name in ("dcsm", "labclip", "siglip") else 20, []
    recipe = replace(RECIPE, steps=steps, warmup=steps // 5, augment=False, learning_rate=RATES.get(name, 4e-3))
    train_scorer(fresh(name, data), data, recipe, 0, report=lambda progress: losses.append(progress.loss))
    assert np.mean(losses[-5:]) < (0.99 if name == "labclip" else 0.8) * np.mean(losses[:5])


def test_data_without_images_are_refused(data):
    with pytest.raises(UserError, match=r"'train' of .* has no images to train on; choose another subset"):
        Feed(CaptionedSubset(data, []), scorer("clip").reader, Recipe(), 0)
    strata = {"coco": np.ones(9, bool), "own": np.zeros(9, bool)}
    with pytest.raises(
        UserError, match=r"own has a share of 25\.00% of each batch and no images; give it a share of 0"
    ):
        by_shares(strata, {"coco": 0.75, "own": 0.25}, batch=8, seed=0)
    assert by_shares(strata, {"coco": 1.0, "own": 0.0}, batch=8, seed=0).indices(0).size == 8


def test_augmentation_is_bounded_and_never_mirrors():
    """A bright dot on the right stays on the right."""
    pixels = torch.zeros(200, 3, 32, 32)
    pixels[:, :, 14:18, 24:28] = 1
    varied = augment(pixels, draw_variation(200, torch.Generator().manual_seed(0)))
    columns = (varied.sum((1, 2)) * torch.arange(32)).sum(1) / varied.sum((1, 2, 3))
    assert columns.min() > 17
    assert columns.std() > 1
    assert varied.max() <= 1.16


def test_towers_have_their_own_learning_rates_and_warmups():
    """Appendix A.8: three rates, two warm-ups."""
    model = scorer("oc-clip")
    optimizer = build_optimizer(model, Recipe(steps=20_000, **spec_of("oc-clip").pretrained))
    peaks = {id(p): group["peak"] for group in optimizer.param_groups for p in group["params"]}
    assert peaks[id(model.binding.default_tokens)] == 2e-4
    assert peaks[id(model.model.token_embedding.weight)] == 2e-5
    assert peaks[id(model.model.visual.class_embedding)] == 1e-6
    assert id(model.model.logit_scale) not in peaks
    set_rates(optimizer, 499, 20_000)
    rates = {group["peak"]: group["lr"] for group in optimizer.param_groups}
    assert rates[2e-5] == pytest.approx(1e-5)
    assert rates[1e-6] == pytest.approx(1e-7)
    assert rates[2e-4] > 1.99e-4


def test_learning_rate_is_a_cosine_or_decays_at_the_end():
    """A cosine; or a constant rate, with which runs of any length begin alike, then 1 - sqrt."""
    assert [rate_factor(step, 10, 100) for step in (0, 9, 55)] == pytest.approx([0.1, 1, 0.5])
    assert rate_factor(99, 10, 100) < 0.001
    short, long = Recipe(steps=100, decay=0.2), Recipe(steps=400, decay=0.2)
    assert (short.stable_steps, long.stable_steps, Recipe().stable_steps) == (80, 320, None)
    first = [[rate_factor(step, 10, r.steps, r.stable_steps) for step in range(80)] for r in (short, long)]
    assert first[0] == first[1]
    assert first[0][10:] == [1] * 70
    assert rate_factor(80, 10, 100, 80) == 1
    assert rate_factor(85, 10, 100, 80) == pytest.approx(0.5)
    assert 0 < rate_factor(99, 10, 100, 80) < 0.03
    with pytest.raises(UserError, match="decay must be at"):
        Recipe(decay=0.0)


def test_weight_decay_applies_to_matrices_alone():
    optimizer = build_optimizer(scorer("clip"), RECIPE)
    for group in optimizer.param_groups:
        assert all((p.ndim >= 2) == (group["weight_decay"] > 0) for p in group["params"])


def score_subset(model, data):
    """The numbers of every task, and the scores of every item."""
    test = SplitTests(data)
    scores = score_items(model, test)
    return summaries(test, scores), dict(zip(test.items, scores, strict=True))


@pytest.mark.parametrize("name", ["clip", "oc-clip"])
def test_constant_scores_show_as_ties(name, data, monkeypatch):
    """A constant scorer gets one half by ties alone, and the tie rate says so."""
    model = fresh(name, data)

    def constant(embedding, texts):
        return torch.zeros(len(next(leaves(embedding))))

    monkeypatch.setattr(model, "pair_similarity", constant)
    tasks, _ = score_subset(model, SplitDataset(data.split, "unseen_pairs"))
    four_way_items = {name: tasks.pop(f"{name} score") for name in FOUR_WAY_RULES}
    assert {(task["accuracy"], task["tie_rate"]) for task in tasks.values()} == {(0.5, 1.0)}
    assert {(task["accuracy"], task["n"]) for task in four_way_items.values()} == {(0.0, 20)}


def test_diverged_loss_weights_and_scores_are_errors(data, tmp_path):
    """Noticed at the end at the latest, and before a state is saved."""
    model = fresh("clip", data)
    with torch.no_grad():
        model.log_scale.fill_(torch.nan)
    with pytest.raises(UserError, match="the loss of CLIPScorer is no finite number by step 6"):
        train_scorer(model, data, RECIPE, 0)
    with pytest.raises(UserError, match="the loss of CLIPScorer is no finite number by step 2"):
        train_scorer(model, data, RECIPE, 0, StateFile(tmp_path / "state.pt"), save_every=2)
    with pytest.raises(UserError, match="the loss of CLIPScorer is no finite number by step 20"):
        train_scorer(model, data, replace(RECIPE, steps=30), 0)
    assert not list(tmp_path.iterdir())
    with torch.no_grad():
        model.model.visual.proj.fill_(torch.inf)
    with pytest.raises(UserError, match="not finite"):
        score_subset(model, SplitDataset(data.split, "unseen_pairs"))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_bad_gradient_of_the_last_step_is_an_error(bad, data, tmp_path):
    """No loss comes behind it, and no state is saved."""
    model, calls = fresh("clip", data), []

    def spoil(gradient):
        calls.append(gradient)
        return gradient.fill_(bad) if len(calls) == RECIPE.steps else gradient

    model.model.text_projection.register_hook(spoil)
    with pytest.raises(Diverged, match="a weight of CLIPScorer is no finite number by step 6"):
        train_scorer(model, data, RECIPE, 0, StateFile(tmp_path / "state.pt"), save_every=3)
    assert len(calls) == 6
    assert torch.load(tmp_path / "state.pt")["step"] == 3


def test_texts_of_swap_items_are_those_of_the_split_file(data):
    subset = SplitDataset(data.split, "unseen_pairs")
    test = SplitTests(subset)
    swaps = test.choices["swap"]
    assert [choice[0].text for choice in swaps] == subset.records.captions
    assert [choice[1].graph for choice in swaps] == subset.records.negative_graphs
    for group in ("swap", "four-way"):
        items = [item for item in test.items if item.task == group]
        assert [item.texts[0].text for item in items] == subset.records.captions
        assert [item.texts[1].graph for item in items] == subset.records.negative_graphs
    assert torch.equal(
        test.images([item.images[1] for item in items]), subset.counterfactual_images(range(len(subset)))
    )


def test_scenes_without_a_task_are_left_out_of_its_accuracy(tmp_path):
    path = make_split(tmp_path, BindingRecipe(world="tiny-sizes", views=1, test_views=1, test_scenes=30), resolution=32)
    data = SplitDataset(path, "unseen_pairs")
    model, test = fresh("clip", data), SplitTests(data)
    scores = score_items(model, test)
    tasks = summaries(test, scores)
    differ = [i for i, scene in enumerate(data.records.scenes) if len({obj.size for obj in scene.objects}) == 2]
    assert 0 < len(differ) == tasks["swap size"]["n"] < len(data) == tasks["swap"]["n"] == tasks["replace size"]["n"]
    choices = [test.choices["swap size"][i] for i in differ]
    mine = [matrix for item, matrix in zip(test.items, scores, strict=True) if item.task == "swap size"]
    assert np.allclose(np.concatenate(mine)[:, 0], direct(model, data, differ, [c[0] for c in choices]), atol=1e-5)
    assert np.allclose(np.concatenate(mine)[:, 1], direct(model, data, differ, [c[1] for c in choices]), atol=1e-5)
    rows = [row for row in predictions("", test.items, scores) if row["task"] == "swap size"]
    assert [row["scene"] for row in rows] == [data.records.scenes[i].key for i in differ]
    assert [row["caption"] for row in rows] == [choice[0].text for choice in choices]


@torch.no_grad()
def direct(model, data, indices, captions):
    """Scores of images and captions, straight from the scorer: the diagonal of all pairs."""
    texts, graphs = zip(*captions, strict=True)
    embedding = model.encode_images(model.pixel_scale(data.images(indices)))
    return model.similarity(embedding, model.encode_texts(model.read(texts, graphs))).diagonal().numpy()
