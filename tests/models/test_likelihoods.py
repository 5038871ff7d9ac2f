"""Scorers by likelihood, in float64: the likelihoods, the priors and the losses are loops over words."""

from itertools import product

import pytest
import torch

from menagerie.models.checkpoint import load_checkpoint, save_checkpoint
from menagerie.models.objectives import Targets
from menagerie.models.recipe import Recipe
from menagerie.models.texts import map_tensors
from menagerie.models.training.loop import reference_items, train_scorer
from tests.helpers.fused_loops import (
    CAT,
    END,
    TEXTS,
    batch,
    drawn_model,
    early,
    image_tokens,
    log_likelihood,
    pixels,
    states,
)
from tests.helpers.loss_loops import assert_same_gradients
from tests.helpers.scorers import for_data, scorer

EYE = Targets(torch.eye(len(TEXTS), dtype=torch.bool), None, len(TEXTS))
FUSIONS = ("early", "late", "prefix")


def embeddings(model, n=2, texts=TEXTS, **given):
    return model.encode_images(pixels(n)), model.encode_texts(batch(model, texts, **given))


@torch.no_grad()
@pytest.mark.parametrize("tokens", ["patches", "pooled"])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_likelihoods_are_loops_over_words(fusion, tokens):
    """Padding of any id, and other texts, have no part in them."""
    model = drawn_model("captioner", fusion=fusion, tokens=tokens, per_token=False)
    found = model.similarity(*embeddings(model, padding=CAT))
    for i, image in enumerate(pixels(2)):
        for j, text in enumerate(TEXTS):
            expected = log_likelihood(model, image_tokens(model, image), text)
            assert found[i, j].item() == pytest.approx(expected.item(), abs=1e-9)
    model.config = type(model.config)(fusion=fusion, tokens=tokens)
    lengths = torch.tensor([len(text) for text in TEXTS])
    torch.testing.assert_close(model.similarity(*embeddings(model)), found / lengths, atol=1e-10, rtol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "options"), [*(("captioner", {"fusion": its}) for its in FUSIONS), ("coca", {"decoder_layers": 1})]
)
def test_the_likelihoods_of_all_captions_sum_to_one(name, options):
    """All that end within four tokens, and all beginnings of four tokens that don't; so no word sees a later one. So do
    the priors, which are means of likelihoods."""
    model = drawn_model(name, prior="noise", **options)
    texts = [[*body, END] for length in range(4) for body in product(range(END), repeat=length)]
    texts += [list(body) for body in product(range(END), repeat=4)]
    images, embedding = embeddings(model, 2, texts)
    seen, words = (images.seen, embedding.words) if name == "coca" else (images, embedding)
    words = map_tensors(words, lambda part: part.expand(2, *part.shape))
    one = torch.ones(2, dtype=torch.float64)
    torch.testing.assert_close(model.log_likelihood(seen, words).exp().sum(1), one, atol=1e-10, rtol=0)
    prior = model.log_prior(map_tensors(words, lambda part: part[0])).exp().sum()
    torch.testing.assert_close(prior, one[0], atol=1e-10, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize(
    ("prior", "fusion"), [("null", "early"), ("null", "prefix"), ("noise", "early"), ("images", "early")]
)
def test_the_prior_is_a_mean_of_probabilities(prior, fusion):
    """Of whole texts, over the images that it names."""
    model = drawn_model("captioner", towers="nano", fusion=fusion, prior=prior, alpha=0.7, per_token=False)
    kept = torch.randint(0, 256, model.kept_images.shape, generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    model.keep_references(kept)
    seen = {"noise": model.noise, "images": model.pixel_scale(kept[:]).double()}.get(prior)
    of_prior = [model.null.expand(16, -1)] if seen is None else [image_tokens(model, image) for image in seen]
    found = model.similarity(*embeddings(model))
    for j, text in enumerate(TEXTS[:2]):
        blind = torch.stack([log_likelihood(model, image, text) for image in of_prior]).exp().mean().log()
        for i, image in enumerate(pixels(2)):
            expected = log_likelihood(model, image_tokens(model, image), text) - 0.7 * blind
            assert found[i, j].item() == pytest.approx(expected.item(), abs=1e-8)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_captioning_loss_is_a_loop(fusion):
    """One caption without its image, one predicted at once, one as both, one as it is; the fifth is nobody's."""
    model = drawn_model("captioner", towers="nano", fusion=fusion, parallel=0.5, null_share=0.2).train()
    given = batch(model, [*TEXTS, [CAT, END]])
    given.chance.copy_(torch.tensor([[0.1, 0.9], [0.9, 0.1], [0.1, 0.1], [0.9, 0.9], [0.1, 0.1]]))
    found = model.loss(model.encode_images(pixels(4)), model.encode_texts(given), EYE)
    total = 0.0
    for image, text, (nothing, hidden) in zip(pixels(4), TEXTS, given.chance.tolist(), strict=False):
        tokens = image_tokens(model, image)
        if nothing < 0.2:
            tokens = model.null.expand(len(tokens), -1)
        total = total - padded_likelihood(model, tokens, text, hidden < 0.5)
    assert_same_gradients(found, total / sum(map(len, TEXTS)), model.parameters())


def padded_likelihood(model, tokens, text, hidden):
    """Where words are hidden, their text is as long as the longest of the batch: its length isn't told either."""
    if not hidden:
        return log_likelihood(model, tokens, text)
    whole = [*text, *[0] * (4 - len(text))]
    return log_likelihood(model, tokens, whole, True) - behind(model, tokens, whole, len(text))


def behind(model, tokens, whole, length):
    found = model.model.ln_final(states(model, torch.stack([model.mask] * 4), tokens, True))
    logs = [model.head(state).log_softmax(-1)[word] for state, word in zip(found, whole, strict=True)]
    return sum(logs[length:], torch.zeros((), dtype=torch.float64))


def test_captioner_starts_at_chance():
    model = scorer("captioner").double()
    loss = model.loss(*embeddings(model, 4), EYE).item()
    assert loss == pytest.approx(torch.tensor(float(model.head.out_features)).log().item())


def coca_likelihood(model, tokens, text):
    """log P of a text by CoCa's decoder on the text tower's states, each moved behind the word that it predicts."""
    whole = torch.tensor([[*text, *[0] * (4 - len(text))]])
    read = model.model.forward_intermediates(text=whole, text_indices=1, normalize_intermediates=True)
    words = torch.cat([model.start[None], read["text_intermediates"][-1][0][: len(text) - 1]])
    found = model.norm(early(model.decoder, model.fused.cross, words, tokens))
    return sum(model.head(state).log_softmax(-1)[word] for state, word in zip(found, text, strict=True))


def test_coca_has_both_scores_and_the_weighted_sum_of_both_losses():
    model = drawn_model("coca", decoder_layers=2, contrast_weight=0.7, caption_weight=1.3, null_share=0.0)
    model.config = type(model.config)(**vars(model.config) | {"score": "likelihood", "per_token": False})
    images, texts = embeddings(model, 4)
    likelihoods = [[coca_likelihood(model, image_tokens(model, image), text) for text in TEXTS] for image in pixels(4)]
    expected = torch.stack([torch.stack(row) for row in likelihoods])
    torch.testing.assert_close(model.similarity(images, texts), expected, atol=1e-9, rtol=1e-9)
    model.config = type(model.config)(**vars(model.config) | {"score": "contrast"})
    vectors = [torch.nn.functional.normalize(model.towers.image.pool(pixels(4)), dim=-1)]
    vectors += [torch.nn.functional.normalize(model.towers.text.pool(batch(model, TEXTS).ids), dim=-1)]
    cosines = vectors[0] @ vectors[1].T
    torch.testing.assert_close(model.similarity(images, texts), cosines, atol=1e-10, rtol=1e-10)
    logits, own = model.logit_scale() * cosines, range(4)
    contrast = -(logits.log_softmax(1)[own, own].mean() + logits.log_softmax(0)[own, own].mean()) / 2
    caption = -expected.diagonal().sum() / sum(map(len, TEXTS))
    found = model.loss(images, texts, EYE)
    assert_same_gradients(found, 0.7 * contrast + 1.3 * caption, model.parameters())


def test_training_keeps_images_for_the_prior(data, tmp_path):
    """Of the training data, drawn by the seed; they are saved with the weights."""
    model = for_data("captioner", data, alpha=1.0, prior="images", parallel=0.0)
    train_scorer(model, data, Recipe(steps=2, batch=4, warmup=1), 5)
    chosen = reference_items(len(data), 32, 5)
    assert len(set(chosen.tolist())) == min(32, len(data))
    assert torch.equal(model.kept_images, data.images(chosen))
    save_checkpoint(tmp_path, "captioner", model)
    back = load_checkpoint(tmp_path, options={"alpha": 0.5})
    assert torch.equal(back.kept_images, model.kept_images)
    assert back.config.alpha == 0.5


def test_a_prior_is_computed_once_for_each_text(monkeypatch):
    model, seen = scorer("captioner"), []
    plain = model.log_prior
    monkeypatch.setattr(model, "log_prior", lambda embedding: seen.append(len(embedding.states)) or plain(embedding))
    with torch.no_grad():
        texts = model.encode_texts(
            map_tensors(batch(model, TEXTS), lambda part: part.float() if part.is_floating_point() else part)
        )
        model.similarity(model.encode_images(pixels(6).float()), texts)
    assert seen == [len(TEXTS)]
