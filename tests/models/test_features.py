"""Features by name: the layers of every scorer, against the libraries' own intermediates and the scorers' own
embeddings."""

import pytest
import torch
from torch import nn

from menagerie import load_scorer
from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer
from menagerie.models.contract import CAPTIONS, GRAPHS, build_for_contract, check_contract
from menagerie.models.layers import grid_of, image_features, image_layer_names, slots, text_features, text_layer_names
from menagerie.models.library.loaded import NO_GRAPH, LoadedScorer
from menagerie.models.registry import spec_of, specs
from menagerie.models.texts import Texts
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.features import Features, Layer, concatenate_features
from tests.helpers.hugging_face import CAPTIONS as WORDS
from tests.helpers.hugging_face import make_folder

NANO = TowerConfig("nano", resolution=32)
MINI = TowerConfig("mini", resolution=32)
TEXTS = Texts(CAPTIONS, GRAPHS)
TOWER = ["stem", "block 1", "tokens"]


def scorer(name, towers=NANO, **options):
    torch.manual_seed(0)
    return build_for_contract(name, towers, dict(spec_of(name).smoke) | options)


def images(n=3, side=32):
    return torch.randint(0, 256, (n, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def same(one, other):
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


@pytest.fixture(params=specs())
def any_scorer(request):
    return scorer(request.param)


def test_features_list_the_towers_layers_first_and_the_vector_last(any_scorer):
    features = image_features(any_scorer, images())
    assert list(features)[:3] == TOWER
    assert {tuple(features[name].shape) for name in TOWER} == {(3, 17, 32)}
    assert grid_of(any_scorer) == (4, 4)
    with torch.no_grad():
        embedding = any_scorer.eval().encode_images(any_scorer.pixel_scale(images()))
    assert ("embedding" in features) == (isinstance(embedding, torch.Tensor) and embedding.ndim == 2)
    if "embedding" in features:
        assert list(features)[-1] == "embedding"
        assert torch.equal(features["embedding"][:, 0], embedding)
    assert image_layer_names(any_scorer) == tuple(features)
    assert text_layer_names(any_scorer) == tuple(text_features(any_scorer, TEXTS))


def test_features_restore_the_mode_and_keep_no_gradients_or_hooks(any_scorer):
    any_scorer.train()
    frozen = next(module for module in any_scorer.modules() if isinstance(module, nn.LayerNorm))
    frozen.eval()
    modes = [module.training for module in any_scorer.modules()]
    features = image_features(any_scorer, images(), ["tokens"]), text_features(any_scorer, TEXTS)
    with pytest.raises(UserError):
        image_features(any_scorer, images(), "no such")
    assert [module.training for module in any_scorer.modules()] == modes
    assert not any(states.requires_grad for part in features for states in part.values())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in any_scorer.modules())
    assert image_features(any_scorer, images(), "block 1", gradients=True)["block 1"].requires_grad or all(
        not parameter.requires_grad for parameter in any_scorer.backbones()["vision"]
    )


def test_features_are_computed_without_dropout():
    model = scorer("clip").train()
    model.model.visual.transformer.resblocks[0].attn.dropout = 0.5
    assert torch.equal(image_features(model, images())["embedding"], image_features(model, images())["embedding"])


def test_image_layers_are_open_clips():
    """Two blocks. The tokens are those that CLS and the end token are taken from."""
    model = scorer("clip", MINI).eval()
    seen = image_features(model, images())
    assert list(seen) == ["stem", "block 1", "block 2", "tokens", "embedding"]
    pixels = model.pixel_scale(images())
    with torch.no_grad():
        given = model.model.visual.forward_intermediates(pixels, output_fmt="NLC", output_extra_tokens=True)
        for k in range(2):
            parts = given["image_intermediates_prefix"][k], given["image_intermediates"][k]
            same(seen[f"block {k + 1}"], torch.cat(parts, dim=1))
        stem = model.model.visual.transformer.resblocks[0](seen["stem"])
        same(seen["block 1"], stem)
        same(seen["tokens"], model.towers.image.tokens(pixels).states)
        same(nn.functional.normalize(seen["tokens"][:, 0] @ model.model.visual.proj, dim=-1), seen["embedding"][:, 0])


def test_text_layers_are_open_clips_with_zero_padding():
    model = scorer("clip", MINI).eval()
    seen, ids = text_features(model, TEXTS), model.read(CAPTIONS, GRAPHS)
    with torch.no_grad():
        given, tokens = model.model.forward_intermediates(text=ids), model.towers.text.tokens(ids)
    lengths = [len(caption.split()) + 1 for caption in CAPTIONS]
    assert seen.present["block 2"].sum(1).tolist() == lengths
    for k in range(2):
        states = given["text_intermediates"][k]
        assert not seen[f"block {k + 1}"][~tokens.present].any()
        same(seen[f"block {k + 1}"][tokens.present], states[tokens.present])
    ends = seen["tokens"][range(4), [length - 1 for length in lengths]]
    same(ends, tokens.pooled)
    same(nn.functional.normalize(ends @ model.model.text_projection, dim=-1), seen["embedding"][:, 0])
    same(seen.mean("stem")[2], seen["stem"][2, : lengths[2]].mean(0))


def test_layer_tokens_is_what_gap_and_fdt_read():
    for name in ("clip-gap", "fdt"):
        seen = image_features(scorer(name), images())
        assert torch.equal(seen["tokens"], seen["block 1"])
    model = scorer("clip-gap").eval()
    mean = model.towers.image.norm(image_features(model, images())["tokens"].mean(1))
    same(
        nn.functional.normalize(model.towers.image.project(mean), dim=-1),
        image_features(model, images())["embedding"][:, 0],
    )


def test_layers_of_fdt_sparo_and_classifier_make_up_their_embeddings():
    model = scorer("fdt").eval()
    for seen in (image_features(model, images()), text_features(model, TEXTS)):
        same(seen["weights"].sum(-1), torch.ones(len(seen["weights"]), 1))
        same(nn.functional.normalize(seen["weights"] @ model.codes, dim=-1), seen["embedding"])
    sparo = image_features(scorer("sparo"), images())
    same(sparo["slots"].flatten(1), sparo["embedding"][:, 0])
    mixed = scorer("sparo", attention="separate", slot_projection=False)
    assert "slots" not in image_layer_names(mixed)
    assert "slots" in image_layer_names(scorer("sparo", attention="separate"))
    names = text_features(scorer("classifier"), TEXTS)
    assert list(names) == ["classes"]
    assert names["classes"].sum(-1).max() == 1


def test_layers_of_oc_clip_are_its_keys_values_and_slots():
    model = scorer("oc-clip").eval()
    pixels = images(4)
    embedding, read = model.encode_images(model.pixel_scale(pixels)), model.read(CAPTIONS, GRAPHS)
    seen, texts = image_features(model, pixels), model.encode_texts(read)
    same(seen["keys"], embedding.keys.detach())
    same(seen["values"], embedding.values.detach())
    same(seen["tokens"][:, 1:], model.towers.image.patches(model.pixel_scale(pixels)).detach())
    taken = slots(model, pixels, TEXTS)
    assert taken.present["slots"].sum(1).tolist() == [len(graph.nodes) for graph in GRAPHS]
    phrases = text_features(model, TEXTS)["phrases"]
    cosines = nn.functional.cosine_similarity(taken["slots"], phrases, dim=-1)
    nodes = [graph for graph in range(4) if not GRAPHS[graph].edges]  # whose score is the mean of its nodes' cosines
    means = cosines.sum(1) / taken.present["slots"].sum(1)
    torch.testing.assert_close(means[nodes], model.pair_similarity(embedding, texts).detach()[nodes], atol=1e-5, rtol=0)


def test_tokens_of_a_graph_are_those_of_its_phrases_in_order():
    """OC-CLIP reads the predicates in a second pass, which a batch without edges doesn't have."""
    for name, phrases in (("oc-clip", ["red cat", "dog", "city", "to the left of"]), ("clip-phrases", ["dog"])):
        model = scorer(name).eval()
        row = 1 if name == "oc-clip" else 2
        seen = text_features(model, TEXTS, "tokens")
        tokenizer = model.reader.tokenizer
        alone = model.towers.text.tokens(tokenizer(phrases, model.reader.context))
        same(seen["tokens"][row][seen.present["tokens"][row]], alone.states[alone.present].detach())
    without = text_features(scorer("oc-clip"), Texts(CAPTIONS[2:], GRAPHS[2:]))
    assert without["predicates"].shape[:2] == (2, 0)


@pytest.mark.parametrize(("name", "layer"), [("filip", "words"), ("filip-phrases", "phrases"), ("flair", "whole")])
def test_scores_are_cosines_of_slots_with_text_layers(name, layer):
    model = scorer(name, **({"symmetric": False} if name == "filip" else {})).eval()
    taken, texts = slots(model, images(4), TEXTS), text_features(model, TEXTS)
    cosines = nn.functional.cosine_similarity(taken["slots"], texts[layer], dim=-1) * taken.present["slots"]
    embedding = model.encode_images(model.pixel_scale(images(4)))
    scores = model.pair_similarity(embedding, model.encode_texts(model.read(CAPTIONS, GRAPHS))).detach()
    torch.testing.assert_close(cosines.sum(1) / taken.present["slots"].sum(1), scores, atol=1e-5, rtol=0)


def test_tower_without_blocks_has_no_layer_but_its_vector():
    torch.manual_seed(0)
    model = build_scorer("clip", TowerConfig("RN50", resolution=32), TextSpace(context=20))
    assert image_layer_names(model) == ("embedding",)
    assert grid_of(model) is None
    assert len(text_layer_names(model)) == 15
    with pytest.raises(UserError, match="unknown image layer of CLIPScorer 'block 1'; known: embedding"):
        image_features(model, images(1), "block 1")


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_layers_of_hugging_face_models_are_their_hidden_states(kind, tmp_path):
    make_folder(kind, tmp_path)
    loaded = load_scorer(tmp_path)
    model, pixels = loaded.scorer.model, loaded.scorer.pixel_scale(images())
    seen, texts = loaded.features(images()), loaded.text_features(WORDS)
    assert list(seen) == list(texts) == ["stem", "block 1", "tokens", "embedding"]
    assert loaded.grid == (4, 4)
    read = loaded.scorer.read(WORDS, [NO_GRAPH] * 2)
    with torch.no_grad():
        vision = model.vision_model(pixels, output_hidden_states=True)
        text = model.text_model(read.ids, attention_mask=read.mask, output_hidden_states=True)
    for features, output, mask in ((seen, vision, None), (texts, text, read.mask)):
        there = slice(None) if mask is None else mask.bool()
        same(features["stem"][there], output.hidden_states[0][there])
        same(features["block 1"][there], output.hidden_states[1][there])
    same(texts["tokens"][texts.present["tokens"]], text.last_hidden_state[texts.present["tokens"]])
    assert texts.present["tokens"].sum(1).tolist() == ([7, 4] if kind == "clip" else [12, 12])
    if kind == "clip":  # it normalises CLS alone
        same(seen["tokens"], model.vision_model.post_layernorm(vision.last_hidden_state))
        same(seen["tokens"][:, 0], vision.pooler_output)
    else:
        same(seen["tokens"], vision.last_hidden_state)
    same(seen["embedding"][:, 0], loaded.embed(images()))
    same(texts["embedding"][:, 0], loaded.embed(captions=WORDS))


OWN = """
import torch
import torch.nn.functional as F
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.towers.features import Layer

class Mine(CLIPScorer):
    def image_parts(self, embedding, tokens):
        return {"squares": Layer(tokens.states.square())}

class Twice(CLIPScorer):
    def encode_images(self, pixels):
        return F.normalize(super().encode_images(pixels) + super().encode_images(pixels.flip(3)), dim=-1)
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    return lambda name: f"{tmp_path}/mine.py:{name}"


def test_users_class_adds_layers(own):
    check_contract(own("Mine"), NANO, {})
    seen = image_features(build_for_contract(own("Mine"), NANO, {}), images(), ["block 1", "squares", "tokens"])
    assert list(seen) == ["block 1", "squares", "tokens"]
    same(seen["squares"], seen["tokens"].square())


def test_tower_that_encodes_other_rows_gives_no_layers(own):
    """They can't be told to be those of the images; its vector can."""
    check_contract(own("Twice"), NANO, {})
    model = build_for_contract(own("Twice"), NANO, {})
    assert image_layer_names(model) == ("embedding",)
    with pytest.raises(UserError, match="unknown image layer of Twice 'block 1'; known: embedding"):
        image_features(model, images(), "block 1")


def test_features_of_blocks_of_other_lengths_are_concatenated():
    short = Features({"a": Layer(torch.ones(1, 2, 3), torch.tensor([[True, False]]))})
    both = concatenate_features([short, Features({"a": Layer(torch.full((2, 4, 3), 2.0))})])
    assert both["a"].shape == (3, 4, 3)
    assert both.present["a"].sum(1).tolist() == [1, 4, 4]
    assert both["a"][0].sum() == 3
    assert both.mean("a")[:, 0].tolist() == [1, 2, 2]


def test_loaded_scorer_gives_features_of_any_number_of_images(monkeypatch):
    monkeypatch.setattr("menagerie.models.library.loaded.BLOCK", 3)
    model = scorer("oc-clip")
    loaded = LoadedScorer("it", model, ("graphs",))
    assert (loaded.layers, loaded.text_layers, loaded.grid) == (
        image_layer_names(model),
        text_layer_names(model),
        (4, 4),
    )
    torch.testing.assert_close(
        loaded.features(images(4), "values")["values"], image_features(model, images(4))["values"]
    )
    for made, given in (
        (loaded.text_features(CAPTIONS, "tokens", GRAPHS), text_features(model, TEXTS, "tokens")),
        (loaded.slots(images(4), CAPTIONS, GRAPHS), slots(model, images(4), TEXTS)),
    ):
        (name,) = made
        torch.testing.assert_close(made[name], given[name])
        assert torch.equal(made.present[name], given.present[name])
    with pytest.raises(UserError, match="3 images and 4 captions"):
        loaded.slots(images(3), CAPTIONS, GRAPHS)
