"""Losses and their gradients, in float64, against the authors' code. What it gave for fixed inputs is in
data/authors_losses.json, with the commits."""

import json
import math
from pathlib import Path

import pytest
import torch
from open_clip.loss import CoCaLoss

from menagerie.models.checkpoint import build_scorer
from menagerie.models.networks.captioners import ImageEmbedding as CoCaImages
from menagerie.models.networks.captioners import LikelihoodScorer, WordEmbedding
from menagerie.models.networks.captioners import TextEmbedding as CoCaTexts
from menagerie.models.networks.own_negatives import ImageEmbedding, TextEmbedding
from menagerie.models.networks.pairs import TokenBatch
from menagerie.models.objectives import Targets
from menagerie.models.registry import spec_of
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from tests.helpers.scorers import images as drawn_images
from tests.helpers.scorers import scorer

AUTHORS = json.loads((Path(__file__).parents[1] / "data" / "authors_losses.json").read_text())
N = 3
BYTE_PAIRS = TowerConfig("nano", resolution=32, tokenizer="open_clip")


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def tensors(case, *names):
    return [leaf(case[name]) for name in names]


def scaled(name, case, monkeypatch, **options):
    """A scorer with the inverse temperature of a case, which is a leaf."""
    model, scale = scorer(name, **options).double().train(), leaf(case["scale"])
    monkeypatch.setattr(model, "logit_scale", lambda: scale)
    return model, scale


def assert_theirs(loss, leaves, theirs):
    """The loss and its gradients are the authors'."""
    assert loss.item() == pytest.approx(theirs["loss"], rel=1e-6)
    for found, expected in zip(torch.autograd.grad(loss, leaves), theirs["gradients"], strict=True):
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-9)


def targets(texts, owner):
    return Targets(torch.eye(N, texts, dtype=torch.bool), None, N, torch.tensor(owner))


@pytest.mark.parametrize("case", AUTHORS["ce-clip"]["cases"], ids=["above 10", "below 0", "between"])
def test_ce_clip_has_the_authors_loss_and_limits_its_threshold(case, monkeypatch):
    model, scale = scaled("ce-clip", case, monkeypatch)
    images, captions, false = tensors(case, "images", "captions", "false")
    for theirs in case["steps"]:
        texts = torch.cat([captions, false])
        loss = model.loss(images, texts, targets(len(texts), case["owner"]))
        assert_theirs(loss, (images, captions, false, scale), theirs)
        assert model.threshold.item() == pytest.approx(theirs["threshold"])


@pytest.mark.parametrize("case", AUTHORS["fsc-clip"]["cases"])
def test_fsc_clip_has_the_authors_loss_without_the_start_token(case, monkeypatch):
    model, scale = scaled("fsc-clip", case, monkeypatch)
    monkeypatch.setattr(model, "starts", 1)
    images, captions, false, patches, words = tensors(case, "images", "captions", "false", "patches", "words")
    present = torch.arange(words.shape[1]) < torch.tensor(case["lengths"])[:, None]
    texts = TextEmbedding(torch.cat([captions, false]), words, present)
    loss = model.loss(ImageEmbedding(images, patches), texts, targets(len(words), case["owner"]))
    assert_theirs(loss, (images, captions, false, patches, words, scale), case)


@pytest.mark.parametrize("case", AUTHORS["cs-clip"]["cases"])
def test_cs_clip_has_the_authors_loss(case, monkeypatch):
    """Text 3i + k of theirs is the k-th of image i, ours is i + 3k; likewise its false version."""
    model, scale = scaled("cs-clip", case, monkeypatch, parts=2)
    images, texts, false = tensors(case, "images", "texts", "false")
    same = torch.eye(N, dtype=torch.bool).repeat(1, 6)
    same[:, 3 * N :] = False
    both = torch.cat([part.transpose(0, 1).flatten(0, 1) for part in (texts, false)])
    loss = model.loss(images, both, Targets(same, None, 3 * N, torch.arange(3 * N)))
    assert_theirs(loss, (images, texts, false, scale), case)


def from_logits(name, monkeypatch, **options):
    """A scorer by likelihood whose states of words are the logits themselves."""
    model = scorer(name, **options, alpha=0.0, null_share=0.0).double()
    monkeypatch.setattr(model.fused, "after", lambda states, *_: states)
    monkeypatch.setattr(model, "last_norm", lambda states: states)
    model.head = torch.nn.Identity()
    return model


def words_of(case, logits):
    ids = torch.tensor(case["ids"])
    tokens = TokenBatch(ids, (ids > 0).sum(1), torch.ones(len(ids), 2))
    return WordEmbedding(tokens, logits, torch.zeros(len(ids), dtype=torch.float64))


@pytest.mark.parametrize("case", AUTHORS["captioner"]["cases"])
def test_captioner_has_cappas_loss_and_score(case, monkeypatch):
    model = from_logits("captioner", monkeypatch, parallel=0.0, average="captions", per_token=False)
    logits = leaf(case["logits"])
    seen = model.encode_images(drawn_images(N).double())
    assert_theirs(model.loss(seen, words_of(case, logits), targets(N, [])), (logits,), case)
    scores = model.pair_similarity(seen, words_of(case, logits))
    torch.testing.assert_close(scores, torch.tensor(case["scores"], dtype=torch.float64), rtol=1e-6, atol=0)


def test_coca_has_the_loss_of_open_clip(monkeypatch):
    """Both of its terms, with the paper's weights."""
    case = AUTHORS["captioner"]["cases"][0]
    model = from_logits("coca", monkeypatch)
    images, texts = tensors(AUTHORS["ce-clip"]["cases"][0], "images", "captions")
    logits = leaf(case["logits"])
    seen = model.encode_images(drawn_images(N).double()).seen
    found = model.loss(CoCaImages(images, seen), CoCaTexts(texts, words_of(case, logits)), targets(N, []))
    theirs = CoCaLoss(caption_loss_weight=2.0, clip_loss_weight=1.0)
    expected = sum(theirs(images, texts, logits, torch.tensor(case["ids"]), model.logit_scale()))
    pairs = (torch.autograd.grad(loss, (images, texts, logits, model.log_scale)) for loss in (found, expected))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(*pairs, rtol=1e-6, atol=1e-9)


def read(name, captions, **options):
    """A scorer on byte pairs, and the training embedding of some captions."""
    torch.manual_seed(0)
    model = build_scorer(name, BYTE_PAIRS, TextSpace(context=8), options).train()
    return model, model.encode_texts(model.reader(Texts(captions, []), torch.Generator().manual_seed(0)))


def test_fsc_clip_reads_no_start_token_on_patches():
    """Only there: InfoNCE reads the end token."""
    model, embedding = read("fsc-clip", ["red cat", "white dog", "red dog", "white cat"])
    embedding = TextEmbedding(embedding.vectors, embedding.words.detach().requires_grad_(), embedding.present)
    given = Targets(torch.eye(2, 4, dtype=torch.bool), None, 2, torch.tensor([0, 1]))
    loss = model.loss(model.encode_images(drawn_images(2)), embedding, given)
    (slopes,) = torch.autograd.grad(loss, embedding.words)
    assert slopes.abs().sum(-1).bool().tolist() == [[False, True, True, True, *[False] * 4]] * 4


@pytest.mark.parametrize("name", ["captioner", "coca", "read-clip"])
def test_decoders_do_not_predict_the_start_token(name):
    """Among equally likely words a token's loss is the logarithm of their number, however unlikely the start is."""
    options = {} if name == "captioner" else {"decoder_layers": 1}
    model, embedding = read(name, ["red cat", "a white dog", "cat"], **options)
    decoder = model.decoder if name == "read-clip" else model
    with torch.no_grad():
        decoder.head.bias[model.reader.tokenizer([""], 2)[0, 0]] = -30
    if name == "read-clip":
        loss = model.decoding_loss(embedding.ends, embedding.tokens)
    else:
        seen = model.encode_images(drawn_images(N))
        parts = (seen, embedding) if name == "captioner" else (seen.seen, embedding.words)
        loss = model.caption_loss(*parts, targets(N, []))
        scores = LikelihoodScorer.pair_similarity(model, *parts)
        assert scores.tolist() == pytest.approx([-loss.item()] * N, rel=1e-5)
    assert loss.item() == pytest.approx(math.log(model.reader.tokenizer.vocab_size - 1), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "kind", "rate", "decay", "warmup", "betas"),
    [
        ("ce-clip", "pretrained", 5e-6, 0.1, 50, (0.9, 0.98)),  # scripts/run_multiple_nodes.sh
        ("fsc-clip", "pretrained", 5e-6, 0.1, 50, (0.9, 0.98)),  # README.md
        ("read-clip", "pretrained", 1e-5, 0.1, 50, (0.9, 0.999)),  # config/train_read_clip.yaml, Hugging Face's trainer
        ("c2lip", "pretrained", 1e-5, 0.1, 50, (0.9, 0.98)),  # scripts/train_full_model_wds_data.sh
        ("fusion", "scratch", 1e-4, 0.02, 2000, (0.9, 0.999)),  # configs/Pretrain.yaml
        ("fdt", "scratch", 1e-3, 0.1, 2500, (0.9, 0.98)),  # example/clip_fdt/config_cc3m.yaml
        ("flair", "scratch", 5e-4, 0.5, 2000, (0.9, 0.98)),  # src/train_cc3m_slurm.sh
        ("captioner", "scratch", 1e-3, 0.1, 1000, (0.9, 0.999)),  # configs/proj/cappa/pretrain.py, but for the warm-up
    ],
)
def test_recipes_are_those_of_the_authors_scripts(name, kind, rate, decay, warmup, betas):
    expected = {"learning_rate": rate, "weight_decay": decay, "warmup": warmup, "betas": betas}
    assert dict(getattr(spec_of(name), kind)) == expected
