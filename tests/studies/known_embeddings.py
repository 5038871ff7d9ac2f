"""Constructed embeddings, of which it is known whether and how they bind."""

from itertools import permutations

import numpy as np

from menagerie.studies.measures.probe_set import ProbeAxes

WIDTH, NOISE = 64, 0.1


def axes(animals=20, textures=4, views=2, backgrounds=5, seed=0):
    """All ordered pairs; a scene, its swap and its mirror share a background in a view."""
    p, q = (np.array(list(permutations(range(n), 2))) for n in (animals, textures))
    drawn = np.random.default_rng(seed).integers(backgrounds, size=(views, animals, animals, textures, textures))
    low = [(pairs.min(1), pairs.max(1)) for pairs in (p, q)]
    (a, b), (t, u) = low
    return ProbeAxes(p, q, drawn[:, a[:, None], b[:, None], t, u])


def embedding(kind, made, noise=NOISE, width=WIDTH):
    """Embeddings of a kind, such as "object", which has a vector of its own for each composition."""
    random = np.random.default_rng(1)
    animals, textures = made.kinds
    animal, texture = random.normal(size=(animals, 1, width)), random.normal(size=(textures, width))
    whole = random.normal(size=(animals, textures, width))
    random.normal(size=(2, width))
    factors = [random.normal(size=(n, 3)) for n in (animals, textures, width)]
    factors[2] = factors[2].reshape(3, width)
    alone = animal + texture
    objects = {
        "concept": alone,
        "object": whole,
        "product": alone + (factors[0][:, None] * factors[1]) @ factors[2],
        "scene": alone,
    }
    if kind == "place":
        left = np.arange(width) % 2 == 0
        embeddings = shown(made, np.where(left, alone, 0), np.where(left, 0, alone))
    else:
        embeddings = shown(made, objects[kind], objects[kind])
    if kind == "scene":
        embeddings = embeddings + signs(made, random, width)
    return embeddings + noise * random.normal(size=(len(made.backgrounds), *embeddings.shape))


def shown(made, left, right):
    """The sum of the embeddings of the left and of the right composition."""
    (a, b), (t, u) = made.animals.T, made.textures.T
    return left[a[:, None], t] + right[b[:, None], u]


def of_share(made, share, random, width=WIDTH):
    """The same embedding in all views, of concepts and of vectors for each scene, which have this share of its
    variance."""
    alone = random.normal(size=(made.kinds[0], 1, width)) + random.normal(size=(made.kinds[1], width))
    parts = {1 - share: shown(made, alone, alone), share: signs(made, random, width)}
    centred = {part: z - z.mean((0, 1)) for part, z in parts.items()}
    z = sum(z * np.sqrt(part / (z**2).sum(-1).mean()) for part, z in centred.items())
    return np.stack([z] * len(made.backgrounds))


def signs(made, random, width):
    """For each scene a random vector, and minus that for its swap: no rule carries over between pairs."""
    drawn, vectors = {}, np.zeros((len(made.animals), len(made.textures), width))
    for p, (a, b) in enumerate(made.animals):
        for q, (t, u) in enumerate(made.textures):
            bag, order = (made.groups[p], min(t, u), max(t, u)), (a < b) == (t < u)
            if bag not in drawn:
                drawn[bag] = random.normal(size=width) * (1 if order else -1)
            vectors[p, q] = drawn[bag] * (1 if order else -1)
    return vectors
