"""Losses of vectors by loops over images and texts, and how they are compared with ours."""

import torch


def unit(generator, *shape):
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def surprise(logits, right):
    """The cross-entropy of one row, whose target is divided among the right columns."""
    norm = torch.stack(list(logits.values())).logsumexp(0)
    return norm - sum(logits[j] for j in right) / len(right)


def info_nce(scale, images, texts, right, masked):
    """InfoNCE of images among all texts, and of the first texts, one for each image, among images."""
    n, total = len(images), 0.0
    for i in range(n):
        row = {j: scale * images[i] @ texts[j] for j in range(len(texts)) if not masked[i][j]}
        column = {k: scale * images[k] @ texts[i] for k in range(n) if not masked[k][i]}
        total = total + surprise(row, [j for j in range(len(texts)) if right[i][j]])
        total = total + surprise(column, [k for k in range(n) if right[k][i]])
    return total / (2 * n)


def assert_same_gradients(found, expected, leaves):
    """Assert that two losses have the same value and the same gradients."""
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    both = [torch.autograd.grad(loss, leaves, allow_unused=True) for loss in (found, expected)]
    assert sum(gradient is not None for gradient in both[0]) > len(leaves) / 2
    for one, other, leaf in zip(*both, leaves, strict=True):
        one, other = (torch.zeros_like(leaf) if gradient is None else gradient for gradient in (one, other))
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-7)
