"""Losses over vectors by loops over images and texts, and the comparison with ours."""

import torch


def unit(generator, *shape):
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def surprise(logits, right):
    """The cross-entropy of one row, whose target is shared among the right ones."""
    norm = torch.stack(list(logits.values())).logsumexp(0)
    return norm - sum(logits[j] for j in right) / len(right)


def info_nce(scale, images, texts, right, masked):
    """Images among the texts, and the first texts, one for each image, among images."""
    n, total = len(images), 0.0
    for i in range(n):
        row = {j: scale * images[i] @ texts[j] for j in range(len(texts)) if not masked[i][j]}
        column = {k: scale * images[k] @ texts[i] for k in range(n) if not masked[k][i]}
        total = total + surprise(row, [j for j in range(len(texts)) if right[i][j]])
        total = total + surprise(column, [k for k in range(n) if right[k][i]])
    return total / (2 * n)


def same_gradients(found, expected, leaves):
    """The values and the gradients of two losses."""
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-11)
    pairs = (torch.autograd.grad(loss, leaves, allow_unused=True) for loss in (found, expected))
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=1e-9)
