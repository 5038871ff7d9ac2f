"""Read-outs of towers' tokens: against loops over single numbers, padding, and parameter counts of the papers."""

import json
import math
from typing import get_args

import numpy as np
import open_clip
import pytest
import torch
import torch.nn.functional as F

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer
from menagerie.models.networks.read_outs import ATTENTIONAL_POOLING, HeadReadOut, Sizes, sparsemax
from menagerie.models.scorers.read_outs import Attention, SPAROConfig
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.towers import ends_of
from tests.helpers.scorers import OPTIONS, TEXTS, TOWERS, WORDS, caption, graph, images, scorer

READ_OUTS = ("clip-attpool", "clip-linear", "fdt", "sparo")
RNG = np.random.default_rng(0)
GRAPHS = [graph(RNG, n) for n in (1, 2, 3)]
CAPTIONS = [caption(one) for one in GRAPHS]
CLOSE = {"rtol": 1e-6, "atol": 1e-12}


def double(name, **options):
    """A scorer in float64 whose every weight was drawn: biases and norms don't hide at 0 and 1."""
    model = scorer(name, **options).double()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def ids(model):
    return model.reader(Texts(CAPTIONS, GRAPHS))


def tokens_of(model):
    """Lists of the tokens of each image and of each caption up to its end, from open_clip's own passes; FDT's images
    before the last LayerNorm, which it hasn't."""
    visual = model.model.visual
    with torch.no_grad():
        pixels, texts = images(2).double(), ids(model)
        layers = visual.transformer(visual._embeds(pixels))
        words = model.model.transformer(
            model.model.token_embedding(texts) + model.model.positional_embedding, attn_mask=model.model.attn_mask
        )
        lengths = [len(text.split()) + 1 for text in CAPTIONS]
        return (
            [list(image) for image in visual.ln_post(layers)],
            [list(row[:n]) for row, n in zip(model.model.ln_final(words), lengths, strict=True)],
        )


def softmax(logits):
    largest = max(logits)
    shares = [math.exp(logit - largest) for logit in logits]
    return [share / sum(shares) for share in shares]


def affine(weight, bias, vector):
    return weight @ vector + bias


def unit(vector):
    return vector / (vector @ vector).sqrt()


def sparo_loop(read_out, tokens, config):
    """Equation 1, slot by slot and token by token."""
    slots = []
    for slot in range(config.slots):
        own = slot // config.group * config.key_dim
        weight = read_out.keys.weight[own : own + config.key_dim]
        bias = read_out.keys.bias[own : own + config.key_dim]
        query = read_out.queries[slot // config.group, slot % config.group]
        keys = [affine(weight, bias, token) for token in tokens]
        shares = softmax([float(key @ query) / math.sqrt(config.key_dim) for key in keys])
        attended = sum(share * key for share, key in zip(shares, keys, strict=True))
        slots.append(unit(affine(read_out.values.weight, read_out.values.bias, attended)))
    return torch.cat(slots) / math.sqrt(config.slots)


def layer_norm(norm, vector):
    mean = vector.mean()
    return (vector - mean) / torch.sqrt(((vector - mean) ** 2).mean() + norm.eps) * norm.weight + norm.bias


def heads_loop(read_out, tokens, config):
    """A row of table 6, head by head and token by token."""
    queries = layer_norm(read_out.query_norm, read_out.queries).split(config.key_dim)
    heads = []
    for slot in range(config.slots):
        own = slice(slot * config.key_dim, (slot + 1) * config.key_dim)
        keys = [affine(read_out.keys.weight[own], read_out.keys.bias[own], token) for token in tokens]
        shares = softmax([float(key @ queries[slot]) / math.sqrt(config.key_dim) for key in keys])
        own = slice(slot * config.dim, (slot + 1) * config.dim)
        values = [affine(read_out.values.weight[own], read_out.values.bias[own], token) for token in tokens]
        heads.append(sum(share * value for share, value in zip(shares, values, strict=True)))
    if config.attention == "multi":
        heads = list(affine(read_out.mix.weight, read_out.mix.bias, torch.cat(heads)).split(config.dim))
    if config.slot_norm:
        heads = [layer_norm(read_out.norm, head) for head in heads]
    else:
        heads = list(layer_norm(read_out.norm, torch.cat(heads)).split(config.dim))
    weight = read_out.projection.weight
    if config.slot_projection:
        bias = read_out.projection.bias
        return torch.cat([unit(affine(weight, bias, head)) for head in heads]) / math.sqrt(config.slots)
    assert read_out.projection.bias is None
    return unit(weight @ torch.cat(heads))


def sparsemax_loop(scores):
    """The threshold by bisection."""
    low, high = min(scores) - 1, max(scores)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(s - middle, 0) for s in scores) > 1 else (low, middle)
    return [max(score - low, 0) for score in scores]


def fdt_loop(read_out, tokens, codes, temperature):
    """The best score that any token gives each code, sparsemax, and the mean of the codes."""
    first, hidden, _, second, last = read_out.to_query
    best = [-math.inf] * len(codes)
    for token in tokens:
        inner = affine(hidden.weight, hidden.bias, layer_norm(first, token))
        inner = torch.tensor([0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in inner.tolist()], dtype=torch.float64)
        query = affine(last.weight, last.bias, layer_norm(second, inner))
        best = [max(b, float(query @ code) / math.sqrt(len(code))) for b, code in zip(best, codes, strict=True)]
    weights = sparsemax_loop([score / temperature for score in best])
    return unit(sum(weight * code for weight, code in zip(weights, codes, strict=True)))


def encoded(model):
    with torch.no_grad():
        return model.encode_images(images(2).double()), model.encode_texts(ids(model))


def check(model, loop, tokens):
    """Both towers' vectors, and the scores of all pairs."""
    with torch.no_grad():
        vectors = encoded(model)
        read_outs = model.image_read_out, model.text_read_out
        expected = [torch.stack([loop(r, one) for one in its]) for r, its in zip(read_outs, tokens, strict=True)]
        for its, wanted in zip(vectors, expected, strict=True):
            torch.testing.assert_close(its, wanted, **CLOSE)
        torch.testing.assert_close(model.similarity(*vectors), expected[0] @ expected[1].T, **CLOSE)


@pytest.mark.parametrize("group", [1, 2])
def test_sparo_is_equation_1(group):
    model = double("sparo", group=group, dim=6)
    check(model, lambda read_out, tokens: sparo_loop(read_out, tokens, model.config), tokens_of(model))


def test_the_score_is_the_mean_of_slot_cosines():
    """Equation 2."""
    model = double("sparo")
    image, text = encoded(model)
    slots = [vectors.unflatten(1, (8, 8)) for vectors in (image, text)]
    cosines = F.cosine_similarity(slots[0][:, None], slots[1][None], dim=-1)
    torch.testing.assert_close(model.similarity(image, text), cosines.mean(-1), **CLOSE)


@pytest.mark.parametrize("attention", get_args(Attention)[1:])
@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("projection", [True, False])
def test_variants_of_table_6_are_loops(attention, norm, projection):
    model = double("sparo", attention=attention, slot_norm=norm, slot_projection=projection, dim=6)
    check(model, lambda read_out, tokens: heads_loop(read_out, tokens, model.config), tokens_of(model))


def test_attentional_pooling_is_a_variant_of_table_6():
    model = double("clip-attpool", heads=2, head_dim=4)
    config = SPAROConfig(slots=2, dim=4, key_dim=4, attention="multi", slot_norm=False, slot_projection=False)
    check(model, lambda read_out, tokens: heads_loop(read_out, tokens, config), tokens_of(model))


@pytest.mark.parametrize("temperature", [100.0, 1.0, 0.2])
def test_fdt_is_a_sparse_mean_of_codes(temperature):
    model = double("fdt", temperature=temperature, codes=12)
    of_images, of_texts = tokens_of(model)
    patches = [tokens[1:] for tokens in of_images]
    check(model, lambda r, tokens: fdt_loop(r, tokens, model.codes, temperature), (patches, of_texts))


def test_fdt_reads_images_before_the_last_norm_and_words_after_it():
    model = double("fdt")
    before = encoded(model)
    for owner, name in ((model.model.visual, "ln_post"), (model.model, "ln_final")):
        norm = torch.nn.LayerNorm(32).double()
        torch.nn.init.normal_(norm.weight)
        setattr(owner, name, norm)
    after = encoded(model)
    assert torch.equal(after[0], before[0])
    assert not torch.allclose(after[1], before[1], atol=1e-3)


def test_a_linear_bottleneck_is_two_maps():
    model = double("clip-linear", narrow=5)
    of_images, of_texts = tokens_of(model)
    vectors = encoded(model)
    with torch.no_grad():
        for read_out, its, found in zip(
            (model.image_read_out, model.text_read_out),
            ([t[0] for t in of_images], [t[-1] for t in of_texts]),
            vectors,
            strict=True,
        ):
            whole = read_out.narrow @ read_out.wide.weight.T
            expected = torch.stack(its) @ whole + read_out.wide.bias
            torch.testing.assert_close(found, F.normalize(expected, dim=-1), **CLOSE)
    assert torch.linalg.matrix_rank(whole) == 5


def test_a_bottleneck_as_wide_as_the_towers_keeps_their_projections():
    """What pretrained towers bring."""
    plain, linear = scorer("clip"), scorer("clip-linear", narrow=32)
    assert torch.equal(linear.image_read_out.narrow, plain.model.visual.proj)
    assert torch.equal(linear.text_read_out.narrow, plain.model.text_projection)


def test_end_token_is_found_by_id_or_as_the_largest():
    ids = torch.tensor([[4, 9, 2, 0], [4, 1, 1, 9]])
    assert ends_of(ids, None).tolist() == [1, 3]
    assert ends_of(ids, 2).tolist()[0] == 2
    towers = scorer("clip").towers
    towers.model.text_pool_type, towers.model.text_eos_id = "eos", 2
    assert towers.text.end_token == 2
    towers.require_tokens("sparo")
    towers.model.text_pool_type = "last"
    with pytest.raises(UserError, match=r"where a text ends, which 'nano' doesn't say \(it pools 'last'\)"):
        towers.require_tokens("sparo")


def test_tokens_are_those_that_the_towers_pool_and_project():
    """CLS and the end of the text are those that CLIP reads, patches those of `patches`."""
    model, texts = scorer("clip"), ids(scorer("clip"))
    with torch.no_grad():
        of_images, of_texts = model.towers.image.tokens(images(2)), model.towers.text.tokens(texts)
        expected = model.model.encode_image(images(2)), model.model.encode_text(texts)
        torch.testing.assert_close(of_images.pooled @ model.model.visual.proj, expected[0])
        torch.testing.assert_close(of_texts.pooled @ model.model.text_projection, expected[1])
        torch.testing.assert_close(of_images.states[:, 1:], model.towers.image.patches(images(2)))
    assert of_texts.present.sum(1).tolist() == [len(text.split()) + 1 for text in CAPTIONS]


@pytest.mark.parametrize("name", READ_OUTS)
def test_read_outs_ignore_padding(name):
    """Neither other ids behind the end of a text, nor a longer context."""
    model, longer = scorer(name), build_scorer(name, TOWERS, TextSpace(WORDS, 28), OPTIONS[name])
    places = model.model.positional_embedding
    weights = model.state_dict() | {"model.positional_embedding": torch.cat([places, torch.randn(8, 32)]).detach()}
    longer.load_state_dict(weights)
    padded = ids(model).clone()
    for row in padded:
        end = int(row.argmax())
        row[end + 1 :] = torch.randint(1, int(row[end]), row[end + 1 :].shape)
    with torch.no_grad():
        expected = model.encode_texts(ids(model))
        assert torch.equal(model.encode_texts(padded), expected)
        torch.testing.assert_close(longer.eval().encode_texts(ids(longer)), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "replace", "left"), [("mini", True, 1), ("mini", False, 2), ("nano", True, 1)]
)
def test_sparo_replaces_the_last_block_unless_it_is_the_only_one(architecture, replace, left):
    """But the only one stays."""
    options = OPTIONS["sparo"] | {"replace_block": replace}
    model = build_scorer("sparo", TowerConfig(architecture, resolution=32), TEXTS, options)
    assert [len(tower.transformer.resblocks) for tower in (model.model.visual, model.model)] == [left, left]


@pytest.mark.parametrize(("architecture", "width", "left"), [("nano", 32, 1), ("mini", 64, 1), ("small", 128, 2)])
def test_text_blocks_are_rescaled_when_one_is_dropped(architecture, width, left):
    """At a deviation of width^-1/2 (2 blocks)^-1/2 where they add to the stream."""
    torch.manual_seed(0)
    model = build_scorer("sparo", TowerConfig(architecture, resolution=32), TEXTS, OPTIONS["sparo"]).model
    assert len(model.transformer.resblocks) == left
    for block in model.transformer.resblocks:
        for weight in (block.attn.out_proj.weight, block.mlp.c_proj.weight):
            assert weight.std().item() == pytest.approx((width * 2 * left) ** -0.5, rel=0.08)
        assert block.mlp.c_fc.weight.std().item() == pytest.approx((2 * width) ** -0.5, rel=0.08)


def test_pretrained_blocks_are_not_rescaled(tmp_path):
    text = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    vision = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 16}
    (tmp_path / "two-blocks-of-tests.json").write_text(
        json.dumps({"embed_dim": 32, "vision_cfg": vision, "text_cfg": text})
    )
    open_clip.add_model_config(tmp_path)
    state = open_clip.create_model("two-blocks-of-tests").state_dict()
    torch.save(state, tmp_path / "weights.pt")
    towers = TowerConfig("two-blocks-of-tests", str(tmp_path / "weights.pt"), resolution=32)
    model = build_scorer("sparo", towers, TextSpace(), OPTIONS["sparo"]).model
    kept = model.transformer.state_dict()
    assert not any(name.startswith("resblocks.1") for name in kept)
    assert all(torch.equal(weight, state[f"transformer.{name}"]) for name, weight in kept.items())


@pytest.mark.parametrize("width", [32, 48])
def test_attentional_pooling_starts_as_multi_head_attention_and_clips_projection_do(width):
    torch.manual_seed(0)
    read_out = HeadReadOut(width, Sizes(4, 16, 16), ATTENTIONAL_POOLING)
    theirs = torch.nn.MultiheadAttention(64, 4, kdim=width, vdim=width)
    for ours, weight in ((read_out.keys, theirs.k_proj_weight), (read_out.values, theirs.v_proj_weight)):
        assert ours.weight.shape == weight.shape
        assert ours.weight.abs().max().item() == pytest.approx(weight.abs().max().item(), rel=0.01)
        assert ours.weight.std().item() == pytest.approx(weight.std().item(), rel=0.05)
    assert not any(part.bias.any() for part in (read_out.keys, read_out.values, read_out.mix, theirs.out_proj))
    assert read_out.projection.bias is None
    assert read_out.projection.weight.std().item() == pytest.approx(width**-0.5, rel=0.05)


@pytest.mark.parametrize("attention", ["sparo", "multi"])
def test_attention_of_sparo_sums_to_one_over_present_tokens(attention):
    """They sum to 1 over the tokens that there are."""
    model = scorer("sparo", attention=attention)
    with torch.no_grad():
        of_images, of_texts = model.image_attention(images(2)), model.text_attention(ids(model))
    assert of_images.shape == (2, 8, 17)
    torch.testing.assert_close(of_images.sum(-1), torch.ones(2, 8))
    for shares, text in zip(of_texts, CAPTIONS, strict=True):
        length = len(text.split()) + 1
        torch.testing.assert_close(shares[:, :length].sum(-1), torch.ones(8))
        assert (shares[:, length:] == 0).all()


def test_sparsemax_is_the_projection_onto_the_simplex():
    generator = torch.Generator().manual_seed(0)
    for spread in (0.01, 0.3, 1.0, 20.0):
        scores = spread * torch.randn(5, 40, generator=generator, dtype=torch.float64)
        weights = sparsemax(scores)
        expected = torch.tensor([sparsemax_loop(row) for row in scores.tolist()], dtype=torch.float64)
        torch.testing.assert_close(weights, expected, rtol=1e-9, atol=1e-12)
    assert sparsemax(torch.zeros(1, 4)).tolist() == [[0.25] * 4]
    assert sparsemax(torch.tensor([[9.0, 0.0]])).tolist() == [[1.0, 0.0]]
    assert torch.autograd.gradcheck(sparsemax, torch.randn(3, 6, dtype=torch.float64, requires_grad=True))


def test_temperature_decides_how_many_codes_an_input_starts_with():
    """With the authors' nearly all of a small codebook, and then all inputs start with nearly the same vector."""
    alike, used = [], []
    for temperature in (1.0, 100.0, 1000.0):
        torch.manual_seed(0)
        model = build_scorer("fdt", TOWERS, TEXTS, {"codes": 256, "dim": 64, "temperature": temperature})
        with torch.no_grad():
            vectors = model.encode_texts(ids(model))
            weights = model.text_read_out.weights(model.towers.text.tokens(ids(model)), model.codes)
        alike.append(float((vectors @ vectors.T)[~torch.eye(3, dtype=torch.bool)].mean()))
        used.append(float((weights > 0).sum(1).double().mean()))
    assert alike[0] < alike[1] < 0.98 < alike[2]
    assert used[0] < 20 < used[1] < 250 < used[2]


@pytest.fixture
def vit(monkeypatch):
    """The trained parameters of a scorer on ViT-B/32, counted without any memory for them."""
    monkeypatch.setattr(open_clip, "create_model", lambda name, **_: open_clip.CLIP(**open_clip.get_model_config(name)))

    def count(name, **options):
        with torch.device("meta"):
            model = build_scorer(name, TowerConfig("ViT-B-32", resolution=224), TextSpace(), options)
        return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    return count


def test_parameters_of_sparo_are_the_papers(vit):
    assert vit("clip") == vit("clip-gap") == 151_277_313
    assert vit("sparo") == 145_649_281
    assert vit("sparo", slots=128) == 150_908_545
    assert vit("sparo", slots=128, replace_block=False) == 161_148_801
    # Pairs of slots share keys: half of K, in both towers.
    assert vit("sparo") - vit("sparo", group=2) == 32 * 64 * (768 + 1 + 512 + 1)


def test_parameters_of_table_6(vit):
    """In millions, as printed."""
    rows = {
        ("multi", False, False): 440,
        ("multi", False, True): 306,
        ("multi", True, False): 440,
        ("multi", True, True): 306,
        ("separate", False, False): 306,
        ("separate", False, True): 172,
        ("separate", True, False): 306,
        ("separate", True, True): 172,
    }
    for (attention, norm, projection), millions in rows.items():
        options = {"attention": attention, "slot_norm": norm, "slot_projection": projection}
        count = vit("sparo", slots=128, replace_block=False, **options)
        assert round(count / 1e6) == millions
    assert vit("clip-attpool") == vit(
        "sparo", slots=128, replace_block=False, attention="multi", slot_norm=False, slot_projection=False
    )
