"""DCSM's score against one by loops, what its maps hold, and what its batches show."""

import math

import pytest
import torch
from open_clip import SimpleTokenizer
from torch.nn.functional import conv2d

from menagerie.generators.captions.graph import SceneGraph
from menagerie.models import texts as chunks
from menagerie.models.networks.staged import FunctionalReader, WordTokens, map_network
from menagerie.models.scorers.staged import PUBLISHED, DCSMConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.tokenizers import OpenCLIPTokenizer, WordTokenizer, distinct_words
from tests.helpers import scorers

TEXTS = ["a red cat to the left of a white dog in the city", "left of left", "a crow", "a pig in the circus"]
GRAPHS = [SceneGraph(("crow",))] * len(TEXTS)  # which aren't read


def exact(**options):
    """A DCSM in double precision whose biases are not 0."""
    scorer = scorers.scorer("dcsm", **options).double()
    for name, parameter in scorer.network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return scorer


def embedded(scorer, n=4):
    """Pixels, and the embeddings of as many images and of all texts."""
    pixels = scorers.images(n).double()
    read = scorer.reader(Texts(TEXTS, GRAPHS))
    return pixels, scorer.encode_images(pixels), scorer.encode_texts(read)


def slow_score(scorer, pixels, text):
    """One number by loops, from what the towers give for one image and one text."""
    clip, weights, words = scorer.base.model, scorer.state_dict(), text.split()
    kept = []
    hook = clip.ln_final.register_forward_hook(lambda module, given, result: kept.append(result[0]))
    clip.encode_text(scorer.reader.tokenizer([text], scorer.texts.context))
    hook.remove()
    patches = scorer.base.towers.image.patches(pixels[None])[0] @ clip.visual.proj
    rows = torch.cat([clip.encode_image(pixels[None]), patches]).tolist()
    columns = (kept[0] @ clip.text_projection).tolist()
    cells = [[0.0] * scorer.columns for _ in rows]
    present = range(min(len(words) + 1, scorer.columns))  # the words and the end
    for i, row in enumerate(rows):
        for t in present:
            if t < len(words) and words[t] in scorer.config.functional_words:
                cells[i][t] = float(weights["functional"][scorer.config.functional_words.index(words[t]), i])
            else:
                length = math.hypot(*row) * math.hypot(*columns[t])
                cells[i][t] = sum(a * b for a, b in zip(row, columns[t], strict=True)) / length
    values = [line[t] for line in cells for t in present]
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    for line in cells:
        for t in present:
            line[t] = (line[t] - mean) / deviation
    maps = torch.tensor([cells], dtype=torch.float64)
    for layer in (0, 2):
        maps = conv2d(maps, weights[f"network.{layer}.weight"], weights[f"network.{layer}.bias"], padding=1).relu()
    hidden = (weights["network.5.weight"] @ maps.flatten() + weights["network.5.bias"]).relu()
    return (weights["network.7.weight"][0] @ hidden + weights["network.7.bias"]).item()


@pytest.mark.parametrize("options", [{}, {"tokens": 6}, {"tokens": 30, "functional_words": ("red", "left")}])
@torch.no_grad()
def test_dcsm_score_is_a_loop_over_patches_and_words(options):
    scorer = exact(**options)
    pixels, images, texts = embedded(scorer, 2)
    scores = scorer.similarity(images, texts)
    for i, image in enumerate(pixels):
        for j, text in enumerate(TEXTS):
            assert scores[i, j].item() == pytest.approx(slow_score(scorer, image, text), rel=1e-6)


def test_dcsm_has_the_published_sizes():
    config = DCSMConfig()
    network = map_network(197, config.tokens, config.channels, config.hidden)
    assert sum(parameter.numel() for parameter in network.parameters()) == 3_026_365
    assert config.functional_words == PUBLISHED
    assert len(PUBLISHED) == 11


def test_functional_vectors_are_trained_only_if_requested():
    fixed, trained = scorers.scorer("dcsm"), scorers.scorer("dcsm", functional="trained")
    assert torch.equal(fixed.functional, trained.functional)
    torch.testing.assert_close((3 * fixed.functional - 1).norm(dim=1), torch.ones(len(fixed.functional)))
    assert "functional" in fixed.state_dict()
    assert {name for name, _ in trained.named_parameters()} - {name for name, _ in fixed.named_parameters()} == {
        "functional"
    }


def test_functional_words_are_found_among_byte_pairs():
    """Sub-words, the start token, punctuation, capitals; other words that begin alike are not among them."""
    reader = FunctionalReader(OpenCLIPTokenizer(), 24, ("left", "zooplankton", "no"))
    ids, words = (
        rows[0] for rows in reader(Texts(["Left of zooplankton, no cat; nothing leftover left."], GRAPHS[:1]))
    )
    marked = [SimpleTokenizer().decode(ids[words == number].tolist()).split() for number in (1, 2, 3)]
    assert marked == [["left", "left"], ["zooplankton"], ["no"]]
    assert (words == 2).sum() > 1
    assert words[0] == 0
    assert words[ids.argmax() :].sum() == 0


def test_functional_words_are_found_in_a_closed_vocabulary():
    tokenizer = WordTokenizer(distinct_words(["the cat left of another"]))
    reader = FunctionalReader(tokenizer, 8, ("under", "left"))
    assert reader(Texts(["the cat - left of, Left", "the cat"], GRAPHS[:2])).words.tolist() == [
        [0, 0, 2, 0, 2, 0, 0, 0],
        [0] * 8,
    ]
    assert not FunctionalReader(tokenizer, 8, ())(Texts(["left of"], GRAPHS[:1])).words.any()
    named = FunctionalReader(tokenizer, 8, ("under", "left"), end=tokenizer(["the"], 8)[0, 0].item())
    assert named(Texts(["left the cat"], GRAPHS[:1])).words.tolist() == [[0] * 8]
    cut = FunctionalReader(OpenCLIPTokenizer(), 5, ("left",))(Texts(["a cat and a dog left", "a left"], GRAPHS[:2]))
    assert cut.words.tolist() == [[0] * 5, [0, 0, 1, 0, 0]]


@torch.no_grad()
def test_dcsm_ignores_tokens_after_the_end():
    scorer = exact()
    _, images, texts = embedded(scorer)
    read = scorer.reader(Texts(TEXTS, GRAPHS))
    behind = torch.arange(read.ids.shape[1]) > read.ids.argmax(1, keepdim=True)
    assert behind.any()
    other = scorer.encode_texts(WordTokens(read.ids.masked_fill(behind, 3), read.words))
    assert not torch.equal(other.vectors, texts.vectors)
    assert torch.equal(scorer.similarity(images, other), scorer.similarity(images, texts))


def test_blocks_of_maps_give_the_same_scores_and_gradients(monkeypatch):
    scorer = exact(functional="trained").train()
    weights = torch.randn(3, len(TEXTS), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sizes = []
    scorer.network.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))

    def results(most):
        monkeypatch.setattr(chunks, "MOST_BYTES", 0)
        monkeypatch.setattr(chunks, "rows_in_chunk", lambda size: most)
        scorer.zero_grad()
        sizes.clear()
        _, images, texts = embedded(scorer, 3)
        scores = scorer.similarity(images, texts)
        (scores * weights).sum().backward()
        assert max(sizes) <= most * len(TEXTS)
        return [scores.detach(), *(p.grad.clone() for p in scorer.parameters() if p.grad is not None)]

    whole = results(3)
    assert len(whole) == 1 + 9
    for most in (1, 2):
        for one, other in zip(whole, results(most), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
