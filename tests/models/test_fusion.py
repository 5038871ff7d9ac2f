"""Early fusion, in float64: the logit, the draws of negatives and both losses are loops over pairs."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from menagerie.models.networks.pairs import draw_wrong_images, draw_wrong_texts, info_nce
from menagerie.models.objectives import Targets, contrastive_loss
from tests.helpers import scorers
from tests.helpers.fused_loops import CAT, DOG, END, batch, drawn_model, image_tokens, pixels, states
from tests.helpers.loss_loops import assert_same_gradients

N = 5
# The fourth image's caption is the first's; two false captions follow, of the second image and of the fourth.
TEXTS = [[CAT, END], [DOG, CAT, END], [CAT, CAT, END], [CAT, END], [DOG, END], [CAT, DOG, END], [DOG, DOG, END]]
OWNER = torch.tensor([1, 3])


def targets(matched=N, masked=()):
    same = torch.eye(N, matched, dtype=torch.bool)
    same[0, 3] = same[3, 0] = True
    left_out = torch.zeros(N, matched, dtype=torch.bool)
    for pair in masked:
        left_out[pair] = True
    return Targets(same, left_out if masked else None, N, OWNER if matched > N else None)


def logit(model, image, text):
    """The score of one image and one text."""
    inputs = model.model.token_embedding.weight[torch.tensor(text)]
    end = states(model, inputs, image_tokens(model, image))[-1]
    return model.head(model.model.ln_final(end))[0]


@torch.no_grad()
@pytest.mark.parametrize(("fusion", "tokens"), [("early", "patches"), ("early", "pooled"), ("prefix", "patches")])
def test_fusion_score_is_a_loop(fusion, tokens):
    model = drawn_model("fusion", fusion=fusion, tokens=tokens)
    found = model.similarity(model.encode_images(pixels(2)), model.encode_texts(batch(model, TEXTS, padding=DOG)))
    for i, image in enumerate(pixels(2)):
        for j, text in enumerate(TEXTS):
            assert found[i, j].item() == pytest.approx(logit(model, image, text).item(), abs=1e-9)


def cosines(model):
    """Of CLIP's vectors: CLS, and the text tower without the image."""
    images = normalize(model.towers.image.pool(pixels(N)), dim=-1)
    return images @ normalize(model.towers.text.pool(batch(model, TEXTS).ids), dim=-1).T


@pytest.mark.parametrize(
    ("objective", "hard", "negatives"),
    [*(("matching", *its) for its in ((True, 1), (False, 2), (False, 0), (True, 6))), ("infonce", True, 2)],
)
def test_fusion_loss_is_a_loop_over_drawn_pairs(objective, hard, negatives):
    model = drawn_model("fusion", towers="nano", objective=objective, hard=hard, negatives=negatives)
    given = targets(len(TEXTS), masked=[(2, 0)])
    images, texts = model.encode_images(pixels(N)), model.encode_texts(batch(model, TEXTS))
    torch.manual_seed(7)
    found = model.loss(images, texts, given)
    likeness = (model.logit_scale() * cosines(model)).detach() if hard else None
    torch.manual_seed(7)
    of_images, of_texts = (draw(given, negatives or 9, likeness) for draw in (draw_wrong_texts, draw_wrong_images))
    table = torch.stack([torch.stack([logit(model, image, text) for text in TEXTS]) for image in pixels(N)])
    by_image, by_text = (
        [numbers[usable].tolist() for numbers, usable in zip(*drawn, strict=True)] for drawn in (of_images, of_texts)
    )
    assert all(len(row) == len(set(row)) for row in by_image + by_text)
    if objective == "matching":
        pairs = [(i, j) for i in range(N) for j in by_image[i]] + [(i, j) for j in range(N) for i in by_text[j]]
        if negatives in (0, 6):  # all pairs of the batch, each once
            pairs = list(dict.fromkeys(pairs))
        own = [-torch.sigmoid(table[i, i]).log() for i in range(N)]
        losses = own + [-torch.sigmoid(-table[pair]).log() for pair in pairs]
        expected = sum(losses) / len(losses)
    else:
        rows = [torch.stack([table[i, i], *(table[i, j] for j in by_image[i])]) for i in range(N)]
        rows += [torch.stack([table[j, j], *(table[i, j] for i in by_text[j])]) for j in range(N)]
        expected = -sum(row.log_softmax(0)[0] for row in rows) / (2 * N)
    if hard:
        expected = expected + contrastive_loss(cosines(model), model.logit_scale(), given)
    assert_same_gradients(found, expected, model.parameters())


def test_true_texts_are_never_drawn_as_negatives():
    given = targets(len(TEXTS), masked=[(2, 0), (1, 4)])
    seen = [set(), set()]
    for seed in range(200):
        torch.manual_seed(seed)
        for pairs, drawn in zip(seen, (draw_wrong_texts(given, 2), draw_wrong_images(given, 2)), strict=True):
            assert drawn.usable.all()
            pairs |= {(row, int(k)) for row, numbers in enumerate(drawn.number) for k in numbers}
    wrong = ~(given.same | given.masked)
    mine = {(1, 5), (3, 6)}  # an image's own false caption comes first
    assert mine <= seen[0]
    assert seen[0] <= {tuple(pair) for pair in wrong.nonzero().tolist()}
    assert seen[1] == {tuple(pair) for pair in wrong[:, :N].T.nonzero().tolist()}


def test_own_false_captions_are_drawn_first():
    for seed in range(50):
        torch.manual_seed(seed)
        drawn = draw_wrong_texts(targets(len(TEXTS)), 1)
        assert (drawn.number[1].item(), drawn.number[3].item()) == (5, 6)


def test_missing_negatives_are_marked_and_left_out_of_infonce():
    drawn = draw_wrong_texts(Targets(torch.tensor([[True, True, False], [True, True, True]]), None, 2), 2)
    assert drawn.usable.sum(1).tolist() == [1, 0]
    logits = torch.tensor([1.0, 2.0], dtype=torch.float64)
    others = torch.tensor([[3.0, 9.0], [9.0, 9.0]], dtype=torch.float64)
    usable = torch.tensor([[True, False], [False, False]])
    assert info_nce(logits, others, usable).item() == pytest.approx(math.log1p(math.e**2) / 2)


def test_hard_negatives_are_drawn_by_softmax_without_replacement():
    """As often as softmax says, and the second among what is left."""
    same = Targets(torch.eye(1, 4, dtype=torch.bool), None, 1)
    likeness = torch.tensor([[5.0, 0.0, 1.0, 2.0]])
    same.same[0, 0] = True
    weights = likeness[0, 1:].exp() / likeness[0, 1:].exp().sum()
    torch.manual_seed(0)
    draws = torch.stack([draw_wrong_texts(same, 2, likeness).number[0] for _ in range(4000)])
    counts = torch.stack([(draws[:, 0] == k).double().mean() for k in (1, 2, 3)])
    torch.testing.assert_close(counts, weights.double(), atol=0.03, rtol=0)
    second = sum(weights[k] * weights[2] / (1 - weights[k]) for k in (0, 1))
    assert (draws[:, 1] == 3).double().mean().item() == pytest.approx(second.item(), abs=0.03)


def test_only_scores_that_were_trained_to_say_what_matches_have_a_level():
    assert scorers.scorer("fusion", objective="matching").match_level == 0
    assert scorers.scorer("fusion", objective="infonce").match_level is None
    assert scorers.scorer("clip").match_level is None
