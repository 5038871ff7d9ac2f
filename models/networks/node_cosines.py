"""Cosines of the nodes of all graphs with their slots in all images (OC-CLIP, equations 1 and 2), in little memory.

The plain way keeps tensors of images x graphs x nodes x patches, and others of images x phrases x patches. Here both
exist for a chunk of images at a time, and the backward pass computes them again. With queries q, keys k, values v of
patches p, default tokens t, and nodes m of a graph whose phrases have the unit vectors N:

    L_mp = q_m k_p     Z_p = log sum_t exp(q_t k_p)     A_mp = exp(L_mp) / (exp(Z_p) + sum_m' exp(L_m'p))
    S_m = sum_p (A_mp + eps) v_p     cos_m = N_m S_m / |S_m|

Figure 9 also scales shares to sum to one. That multiplies S_m by a positive number, which doesn't change the cosine, so
it is left out. If g is the gradient of cos_m, the others are

    gS = g (N - cos S / |S|) / |S|     gV = (A + eps)' gS     gA = gS V'     T_p = sum_m A_mp gA_mp
    gL = A (gA - T)     gZ = -T (1 - sum_m A)     gN = g S / |S|
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from menagerie.models.networks.binding import EPSILON

# Of a slot's norm: shares are at least EPSILON, so that only values near zero come below it.
LEAST_NORM = 1e-30


class Shares(NamedTuple):
    """The competition for the patches of some images."""

    of_nodes: Float[Tensor, "i c m p"]
    """A: each node's share of each patch; 0 for padding."""
    of_defaults: Float[Tensor, "i t p"]
    """Each default token's share of what all default tokens together have."""


def node_cosines(
    queries: Float[Tensor, "u d"],
    defaults: Float[Tensor, "t d"],
    keys: Float[Tensor, "n p d"],
    values: Float[Tensor, "n p d"],
    phrases: Float[Tensor, "u d"],
    nodes: Int64[Tensor, "c m"],
    present: Bool[Tensor, "c m"],
    chunk: int,
) -> Float[Tensor, "n c m"]:
    """The cosine of each node of c graphs with its slot in each of n images, `chunk` images at a time.

    `queries` and `defaults` are scaled; `phrases` are unit vectors; `nodes` are the rows of `queries` and `phrases` for
    each graph's nodes. Numbers for absent nodes are finite, and mean nothing.
    """
    return NodeCosines.apply(queries, defaults, keys, values, phrases, nodes, present, chunk)


class NodeCosines(torch.autograd.Function):
    """`node_cosines` with its backward pass."""

    @staticmethod
    def forward(ctx, queries, defaults, keys, values, phrases, nodes, present, chunk):
        ctx.save_for_backward(queries, defaults, keys, values, phrases, nodes, present)
        ctx.chunk = chunk
        wanted = phrases[nodes.flatten()]
        cosines = keys.new_empty(len(keys), *nodes.shape)
        for some, k, v in zip(*(part.split(chunk) for part in (cosines, keys, values)), strict=True):
            slots, _ = unit_slots(compete_for_patches(queries, defaults, k, nodes, present).of_nodes, v)
            some.copy_(torch.einsum("ijd,jd->ij", slots, wanted).view_as(some))
        return cosines

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        queries, defaults, keys, values, phrases, nodes, present = ctx.saved_tensors
        grads = tuple(torch.zeros_like(part) for part in (queries, defaults, keys, values, phrases))
        of_queries, of_defaults, of_keys, of_values, of_phrases = grads
        rows, wanted = nodes.flatten(), phrases[nodes.flatten()]
        for g, k, v, gk, gv in zip(
            *(part.split(ctx.chunk) for part in (gradient, keys, values, of_keys, of_values)), strict=True
        ):
            share = compete_for_patches(queries, defaults, k, nodes, present)
            slots, norm = unit_slots(share.of_nodes, v)
            g = g.flatten(1)[..., None]
            of_phrases.index_add_(0, rows, (g * slots).sum(0))
            cosines = (slots * wanted).sum(-1, keepdim=True)
            of_slots = slots.mul_(-cosines).add_(wanted).mul_(g / norm)
            flat = share.of_nodes.flatten(1, 2)
            gv.copy_(torch.bmm(flat.transpose(1, 2), of_slots).add_(EPSILON * of_slots.sum(1, keepdim=True)))
            of_logits = torch.bmm(of_slots, v.transpose(1, 2)).view_as(share.of_nodes).mul_(share.of_nodes)
            total = of_logits.sum(2, keepdim=True)
            of_rest = -(total * (1 - share.of_nodes.sum(2, keepdim=True))).sum(1) * share.of_defaults
            of_logits.sub_(share.of_nodes.mul_(total))
            of_phrase = k.new_zeros(len(k), len(queries), k.shape[1]).index_add_(1, rows, of_logits.flatten(1, 2))
            of_queries += torch.einsum("iup,ipd->ud", of_phrase, k)
            of_defaults += torch.einsum("itp,ipd->td", of_rest, k)
            gk.copy_(torch.einsum("iup,ud->ipd", of_phrase, queries) + torch.einsum("itp,td->ipd", of_rest, defaults))
        return *grads, None, None, None


def compete_for_patches(
    queries: Float[Tensor, "u d"],
    defaults: Float[Tensor, "t d"],
    keys: Float[Tensor, "i p d"],
    nodes: Int64[Tensor, "c m"],
    present: Bool[Tensor, "c m"],
) -> Shares:
    """Return the shares that queries and default tokens have of the patches of some images (equation 1)."""
    rest = torch.einsum("td,ipd->itp", defaults, keys)
    together = rest.logsumexp(1, keepdim=True)[:, None]
    logits = torch.einsum("ud,ipd->iup", queries, keys).index_select(1, nodes.flatten()).unflatten(1, nodes.shape)
    logits.masked_fill_(~present[..., None], -torch.inf)
    # Of each graph by itself: by the largest of all graphs, one whose phrases fit nowhere would be 0/0.
    top = torch.maximum(logits.amax(2, keepdim=True), together)
    logits.sub_(top).exp_()
    logits.div_(logits.sum(2, keepdim=True).add_((together - top).exp_()))
    return Shares(logits, rest.softmax(1))


def unit_slots(
    share: Float[Tensor, "i c m p"], values: Float[Tensor, "i p d"]
) -> tuple[Float[Tensor, "i cm d"], Float[Tensor, "i cm 1"]]:
    """Return the slots of all nodes, scaled to length 1, and their lengths before."""
    slots = torch.bmm(share.flatten(1, 2), values).add_(EPSILON * values.sum(1, keepdim=True))
    norm = slots.norm(dim=-1, keepdim=True).clamp_min_(LEAST_NORM)
    return slots.div_(norm), norm
