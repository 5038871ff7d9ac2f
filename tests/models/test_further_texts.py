"""C2LIP, CS-CLIP and READ-CLIP in float64: their losses and gradients are loops over images and texts. Which phrases,
parts and false versions their batches have."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.relations import claims
from menagerie.generators.captions.templates import Caption
from menagerie.models.networks.further_texts import PhraseEmbedding
from menagerie.models.networks.own_negatives import ImageEmbedding
from menagerie.models.objectives import Targets
from menagerie.models.recipe import Recipe
from menagerie.models.training.encoding import batch_loss
from menagerie.models.training.feed import Feed
from menagerie.models.training.targets import Claims, phrases_in, targets_of, with_phrases
from tests.helpers.fused_loops import CAT, DOG, END, START, batch, drawn_model, early, pixels
from tests.helpers.loss_loops import assert_same_gradients, info_nce, surprise, unit
from tests.helpers.scorers import for_data, scorer

N, D, P = 4, 6, 5
RECIPE = Recipe(steps=1, batch=N)


def table(width, *pairs):
    """Which images and texts are pairs."""
    found = torch.zeros(N, width, dtype=torch.bool)
    for i, j in pairs:
        found[i, j] = True
    return found


def test_c2lip_loss_is_a_loop():
    """Five captions, a false one of the second image, and six phrases, of which the third is also the fifth."""
    generator = torch.Generator().manual_seed(0)
    images, patches, texts, phrases = (unit(generator, *shape) for shape in ((N, D), (N, P, D), (N + 1, D), (5, D)))
    leaves = [part.requires_grad_() for part in (images, patches, texts, phrases)]
    number, owner = torch.tensor([0, 1, 2, 3, 2, 4]), torch.tensor([1, 0, 0, 1, 2, 3, 3])
    same = table(11, *((i, i) for i in range(N)), *((i, 5 + k) for k, i in enumerate(owner[1:].tolist())))
    masked = table(11, (0, 2), (3, 7), (1, 9))  # a caption true of the first image; the phrases' last two
    model = scorer("c2lip", phrase_weight=0.7, patch_weight=0.3).double()
    embedding = PhraseEmbedding(texts, phrases, number)
    found = model.loss(ImageEmbedding(images, patches), embedding, Targets(same, masked, N, owner, 6))
    scale, bias = model.logit_scale(), model.bias

    def judged(cosine, right):
        return -torch.nn.functional.logsigmoid((1 if right else -1) * (scale * cosine + bias))

    expected = 0.0
    for i in range(N):
        for j in range(5):
            if not masked[i, j]:
                expected = expected + judged(images[i] @ texts[j], i == j) / N
        for k, row in enumerate(number.tolist()):
            if masked[i, 5 + k]:
                continue
            weights = torch.stack([phrases[row] @ patch for patch in patches[i]]).exp()
            pooled = sum(w * patch for w, patch in zip(weights, patches[i], strict=True)) / weights.sum()
            right, fit = owner[1 + k] == i, pooled @ phrases[row] / pooled.norm()
            expected = expected + (0.7 * judged(images[i] @ phrases[row], right) + 0.3 * judged(fit, right)) / 6
    assert_same_gradients(found, expected, (*leaves, model.log_scale, model.bias))


def further_targets():
    """Three captions of each of four images: the caption of the fourth is a part of that of the first, the first parts
    of the second and third mean the same, and the second part of the third is true of the first. Four false texts: of
    the captions of the first and third, of the first image's first part and of the fourth's second."""
    own = [(i, i + k * N) for i in range(N) for k in range(3)]
    same = table(16, *own, (0, 3), (1, 6), (2, 5))
    return Targets(same, table(16, (0, 10), (1, 12), (2, 14)), 12, torch.tensor([0, 2, 4, 11]))


def test_cs_clip_loss_is_a_loop():
    generator = torch.Generator().manual_seed(1)
    images, texts = (unit(generator, n, D).requires_grad_() for n in (N, 16))
    given, model = further_targets(), scorer("cs-clip", parts=2, part_weight=0.4).double()
    found, scale = model.loss(images, texts, given), model.logit_scale()
    false = {0: [12, 13], 1: [14], 2: [15]}
    losses = []
    for k in range(3):
        columns = [*range(k * N, (k + 1) * N), *false[k]]
        right, masked = given.same[:, columns].clone(), given.masked[:, columns].clone()
        if k == 0:  # the fourth caption is true of the first image, and isn't its caption
            right[0, 3], masked[0, 3] = False, True
        else:  # the false version of a part is a column of its own image alone
            masked[:, N] = torch.arange(N) != {1: 0, 2: 3}[k]
        losses.append(info_nce(scale, images, texts[columns], right, masked))
    assert_same_gradients(found, losses[0] + 0.4 * (losses[1] + losses[2]) / 2, (images, texts, model.log_scale))


CAPTIONS = [[CAT, END], [DOG, CAT, END], [CAT, DOG, END], [DOG, END]]
OTHERS = [[CAT, END], [CAT, DOG, CAT, END], [DOG, END], [END]]
FALSE = [[DOG, END], [CAT, CAT, END]]


def test_read_clip_loss_is_a_loop():
    """The third image's other caption is the fourth's caption, and true of the second image."""
    model = drawn_model("read-clip", towers="micro", decoder_layers=2, decode_weight=0.6, paraphrase_weight=0.3)
    same = table(10, *((i, i) for i in range(N)), *((i, N + i) for i in range(N)), (2, 3), (3, 6))
    given = Targets(same, table(10, (1, 6), (3, 8)), 8, torch.tensor([0, 2]))
    embedding = model.encode_texts(batch(model, CAPTIONS + OTHERS + FALSE, padding=CAT))
    found = model.loss(model.encode_images(pixels(N)), embedding, given)
    images, scale, tower = model.encode_images(pixels(N)), model.logit_scale(), model.towers.text
    ids = batch(model, CAPTIONS + OTHERS + FALSE).ids
    texts, ends = normalize(tower.pool(ids), dim=-1), tower.tokens(ids).pooled
    right, masked = (torch.cat([part[:, :N], part[:, 8:]], dim=1) for part in (given.same, given.masked))
    right[2, 3], masked[2, 3] = False, True
    whole = info_nce(scale, images, torch.cat([texts[:N], texts[8:]]), right, masked)
    paraphrase, decoding, tokens = 0.0, 0.0, 0
    for j in range(N):
        row = {i: scale * texts[N + j] @ texts[i] for i in range(N) if not given.masked[i, N + j]}
        paraphrase = paraphrase + surprise(row, [i for i in range(N) if same[i, N + j]]) / N
        inputs = model.model.token_embedding.weight[[START, *OTHERS[j][:-1]]]
        words = (inputs + model.model.positional_embedding[: len(inputs)]).detach()
        decoder = model.decoder
        states = decoder.norm(early(decoder.blocks, decoder.fused.cross, words, ends[j][None]))
        logs = [decoder.head(state).log_softmax(-1)[word] for state, word in zip(states, OTHERS[j], strict=True)]
        decoding, tokens = decoding - sum(logs), tokens + len(logs)
    assert_same_gradients(found, whole + 0.6 * decoding / tokens + 0.3 * paraphrase, model.parameters())


def test_read_clips_decoder_starts_at_chance_and_trains_the_text_vector_alone():
    model = scorer("read-clip").double().train()
    embedding = model.encode_texts(batch(model, [[1, 2], [3, 2]]))
    ends = embedding.ends.detach().requires_grad_()
    loss = model.decoding_loss(ends, embedding.tokens)
    assert loss.item() == pytest.approx(math.log(model.decoder.head.out_features))
    torch.nn.init.normal_(model.decoder.head.weight)
    model.decoding_loss(ends, embedding.tokens).backward()
    assert ends.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in model.model.parameters())


def fed(name, data, items, **options):
    model = for_data(name, data, **options)
    return model, Feed(data, model.reader, Recipe(steps=4, batch=len(items)), 0, ("captions",)).batch(items, 3)


@pytest.fixture(scope="module")
def items(data):
    """Two lone animals and some pairs."""
    single = data.strata["single_object"]
    return np.concatenate([np.flatnonzero(single)[:2], np.flatnonzero(~single)[:6]])


def words_of(model, ids):
    words = ("", *model.texts.words, "")
    return [" ".join(filter(None, (words[k] for k in row))) for row in ids.tolist()]


def test_phrases_are_no_negatives_of_images_that_have_them(data, items):
    model, given = fed("c2lip", data, items)
    graphs, (captions, distinct, number), targets = data.records.graphs, given.texts, given.targets
    phrases = [words_of(model, distinct)[k] for k in number.tolist()]
    assert phrases == [node for item in items for node in graphs[item].nodes]
    assert len(distinct) == len(set(phrases)) < targets.phrases == len(phrases)
    assert len(captions) + len(phrases) == targets.same.shape[1] == targets.matched + len(targets.owner)
    for i, item in enumerate(items):
        for j, phrase in enumerate(phrases, start=len(captions)):
            assert targets.same[i, j] == (targets.owner[j - targets.matched] == i)
            true = phrase in claims(graphs[item], data.names)
            assert targets.masked[i, j] == (true and not targets.same[i, j])


def test_phrases_of_incomplete_captions_are_compared_word_by_word():
    """Ice cream isn't known to be a cream; what a caption denies isn't one of its phrases."""
    graphs = [("ice cream", "dog"), ("cream", "no cat"), ("dog",)]
    captions = [Caption(" and ".join(nodes), SceneGraph(nodes)) for nodes in graphs]
    named = phrases_in(captions)
    assert [(k, text.text) for k, text in named] == [(0, "ice cream"), (0, "dog"), (1, "cream"), (2, "dog")]
    texts = [*captions, *(text for _, text in named)]
    targets = targets_of(texts, 3, complete=False, mask=False, known=Claims())
    owner = torch.tensor([k for k, _ in named])
    targets = with_phrases(targets._replace(owner=owner, matched=3), [text for _, text in named])
    assert targets.same[:, 3:].nonzero().tolist() == [[0, 0], [0, 1], [1, 2], [2, 3]]
    assert targets.masked.nonzero().tolist() == [[0, 6], [2, 4]]


def test_parts_of_captions_get_false_versions(data, items):
    model, given = fed("cs-clip", data, items, parts=2)
    n, texts, owner = len(items), words_of(model, given.texts), given.targets.owner.tolist()
    assert given.targets.matched == 3 * n
    assert [k for k in owner if k < n] == list(range(2, n)), "lone animals have no swap"
    assert [k for k in owner if k >= n] == list(range(n, 3 * n))
    for k, text in zip(owner, texts[3 * n :], strict=True):
        assert len(text.split()) == len(texts[k].split())
        if k >= n:
            assert sum(map(str.__ne__, text.split(), texts[k].split())) >= 1
    scenes, again = data.records.scenes, data.several(items, [7] * n, 2)[1]
    for item, false in zip(items, data.false_of(items, [7] * n, again, "replace"), strict=True):
        assert not claims(false.graph, data.names) <= data.false_captions.truth(scenes[item])


@pytest.mark.parametrize("name", ["c2lip", "cs-clip", "read-clip"])
def test_every_term_of_the_loss_counts_in_training(name, data, items):
    """With each weight at 0 the loss is another."""
    model, given = fed(name, data, items)
    model.train()
    losses = [batch_loss(model, given, RECIPE).item()]
    for weight in (field for field in vars(model.config) if field.endswith("_weight")):
        whole = model.config
        model.config = type(whole)(**vars(whole) | {weight: 0.0})
        losses.append(batch_loss(model, given, RECIPE).item())
        model.config = whole
    assert all(math.isfinite(loss) for loss in losses)
    assert len(set(losses)) == len(losses) > 1
