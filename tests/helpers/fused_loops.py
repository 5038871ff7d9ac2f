"""Fused scorers by loops: one image and one text at a time, without padding, by open_clip's own attention."""

import math

import torch

from menagerie.models.checkpoint import build_scorer
from menagerie.models.towers.config import TextSpace, TowerConfig

WORDS = ("cat", "dog")
START, CAT, DOG, END = range(4)
TEXTS = [[CAT, END], [DOG, CAT, END], [CAT, DOG, CAT, END], [END]]


def drawn_model(name, seed=0, towers="mini", **options):
    """A scorer in float64 with random weights, so that no bias is 0 and no scale is 1."""
    torch.manual_seed(seed)
    model = build_scorer(name, TowerConfig(towers, resolution=32), TextSpace(WORDS, 4), options).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim:
                parameter.add_(0.15 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def batch(model, texts, chance=1.0, padding=0):
    """Token ids with any padding."""
    from menagerie.models.networks.pairs import TokenBatch

    longest = model.texts.context
    ids = torch.tensor([[*text, *[padding] * (longest - len(text))] for text in texts])
    return TokenBatch(ids, torch.tensor([len(text) for text in texts]), torch.full((len(texts), 2), chance).double())


def pixels(n, seed=0):
    return torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attend(cross, words, image):
    """Cross-attention head by head and word by word."""
    taken = []
    for word in words:
        query, parts = cross.query(cross.norm(word)), []
        keys, values = cross.keys_values(image).chunk(2, -1)
        size = len(query) // cross.heads
        for k in range(cross.heads):
            part = slice(k * size, (k + 1) * size)
            logits = torch.stack([query[part] @ key[part] / math.sqrt(size) for key in keys])
            weights = logits.exp() / logits.exp().sum()
            parts.append(sum(weight * value[part] for weight, value in zip(weights, values, strict=True)))
        taken.append(cross.out(torch.cat(parts)))
    return torch.stack(taken)


def causal(length, free=False):
    mask = torch.zeros(length, length, dtype=torch.float64)
    return mask if free else mask.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)


def early(blocks, crosses, words, image, free=False):
    """Self-attention, cross-attention and MLP, block by block."""
    for block, cross in zip(blocks, crosses, strict=True):
        words = words + block.attention(block.ln_1(words)[None], attn_mask=causal(len(words), free))[0]
        words = words + attend(cross, words, image)
        words = words + block.mlp(block.ln_2(words))
    return words


def states(model, inputs, image, free=False):
    """The states of words after the last block; `inputs` are embedded words without positions."""
    tower, fused = model.model, model.fused
    words, blocks = inputs + tower.positional_embedding[: len(inputs)], tower.transformer.resblocks
    if fused.fusion == "early":
        return early(blocks, fused.cross, words, image, free)
    if fused.fusion == "late":
        for block in blocks:
            words = block(words[None], attn_mask=causal(len(words), free))[0]
        return words + attend(fused.cross[0], words, image)
    whole, p = torch.cat([fused.bring(image), words]), len(image)
    mask = causal(len(whole), free)
    mask[:p, :p], mask[:p, p:] = 0, -math.inf
    for block in blocks:
        whole = block(whole[None], attn_mask=mask)[0]
    return whole[p:]


def image_tokens(model, one):
    """The tokens that words see of one image."""
    tokens = model.towers.image.tokens(one[None]).states[0]
    return tokens[:1] if model.config.tokens == "pooled" else tokens[1:]


def log_likelihood(model, image, text, hidden=False):
    """The log-likelihood of a text given image tokens; with `hidden` all inputs are the mask token."""
    embedding = model.model.token_embedding.weight
    inputs = torch.stack([model.mask if hidden else embedding[k] for k in [START, *text[:-1]]])
    found = model.model.ln_final(states(model, inputs, image, hidden))
    return sum(model.head(state).log_softmax(-1)[word] for state, word in zip(found, text, strict=True))
