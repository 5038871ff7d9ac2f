"""What the processes of one training exchange within a step: embeddings of texts and, for some scorers, of images; a
number for each text; and gradients.

Each of W ranks has n/W images of the batch, and encodes 1/W of the texts. Embeddings of texts are gathered with their
gradient, so that a rank has the whole rows of its images in the matrix of logits l. All ranks know, for each column j,

    lse_j = log sum_i exp l_ij,     d lse_j / d l_ij = exp(l_ij - lse_j),

where i runs over the images of all ranks. A rank's loss is its share of the batch's: the sum of the shares is the
loss, and the sum of their gradients is its gradient. Collectives are those of torch.distributed. Every rank calls the
same ones in the same order, because all ranks know all texts.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Float, Int64
from torch import Tensor, nn


class Share(NamedTuple):
    """Which part of a batch a process has."""

    rank: int = 0
    count: int = 1

    def of(self, n: int) -> slice:
        """Return the process's rows out of n. If `count` doesn't divide n, the last processes have fewer or none."""
        each = -(-n // self.count)
        return slice(min(n, self.rank * each), min(n, (self.rank + 1) * each))


@dataclass(frozen=True)
class Ranks:
    """The processes of a training, as one of them sees them."""

    share: Share
    group: Any = None
    """torch's group for tensors on the device of the training; None is the default group."""
    control: Any = None
    """torch's group for tensors on the CPU. In it a process may wait for others as long as it takes."""

    def gather(self, part: Tensor) -> Tensor:
        """Return the rows of all ranks, equally many of each, in the order of ranks. No gradient passes through."""
        every = part.new_empty(self.share.count * len(part), *part.shape[1:])
        dist.all_gather_into_tensor(every, part.contiguous(), group=self.group)
        return every

    def own_rows(self, rows: Tensor) -> Tensor:
        """Return this rank's share of rows that all know; short shares are filled up with the last row."""
        each = -(-len(rows) // self.share.count)
        number = torch.arange(self.share.rank * each, (self.share.rank + 1) * each, device=rows.device)
        return rows[number.clamp_max(len(rows) - 1)]

    def gather_rows(self, part: Tensor, n: int) -> Tensor:
        """Return all n rows of a result, of which `part` has those that this rank computed from its `own_rows`.

        A row's gradient is the sum of the gradients that all ranks have for it. Rows that only fill up a share are
        dropped, and have none.
        """
        return (GatherRows.apply(part, self) if part.is_floating_point() else self.gather(part))[:n]

    def column_entropies(self, logits: Float[Tensor, "n m"], targets: Float[Tensor, "n m"]) -> Float[Tensor, ""]:
        """Return this rank's share of the sum of all columns' cross-entropies, each over the images of all ranks.

        The targets of a column sum to 1 over all ranks. A masked entry (logit -inf) has target 0 and adds nothing.
        """
        own = (targets * logits.masked_fill(targets == 0, 0)).sum()
        return ColumnLogSumExp.apply(logits, self).sum() - own

    def add_up(self, parameters: Iterable[nn.Parameter], loss: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Replace gradients by their sums over all ranks, as far as any rank has one; returns the sum of the losses."""
        every = [parameter for parameter in parameters if parameter.requires_grad]
        some = torch.tensor([parameter.grad is not None for parameter in every], dtype=torch.uint8)
        dist.all_reduce(some, dist.ReduceOp.MAX, group=self.control)
        used = [parameter for parameter, there in zip(every, some.tolist(), strict=True) if there]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        whole = torch.cat([loss.detach().reshape(1), *(parameter.grad.flatten() for parameter in used)])
        dist.all_reduce(whole, group=self.group)
        total, *sums = whole.split([1, *map(torch.numel, used)])
        for parameter, part in zip(used, sums, strict=True):
            parameter.grad.copy_(part.view_as(parameter))  # in its memory format, which fused AdamW needs
        return total[0]

    def send(self, content: bytes | None = b"") -> None:
        """Send bytes, or None, from rank 0 to the others, which must call `receive`."""
        dist.broadcast_object_list([content], 0, group=self.control)

    def receive(self) -> bytes | None:
        """Wait for what rank 0 sends by `send`, and return it."""
        content: list[bytes | None] = [None]
        dist.broadcast_object_list(content, 0, group=self.control)
        return content[0]


class GatherRows(torch.autograd.Function):
    """The autograd function behind `Ranks.gather_rows`."""

    @staticmethod
    def forward(ctx, part, ranks):
        ctx.ranks, ctx.rows = ranks, len(part)
        return ranks.gather(part)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient, group=ctx.ranks.group)
        first = ctx.ranks.share.rank * ctx.rows
        return gradient[first : first + ctx.rows], None


class ColumnLogSumExp(torch.autograd.Function):
    """Computes lse_j / W for each column j, but its backward pass gives the gradient of the whole lse_j: no other rank
    has this rank's logits."""

    @staticmethod
    def forward(ctx, logits, ranks):
        # A column may be masked for all images of a rank, so its own sum may be 0, but never that of all.
        whole = ranks.gather(logits.logsumexp(0)[None]).logsumexp(0)
        ctx.save_for_backward(logits, whole)
        return whole / ranks.share.count

    @staticmethod
    def backward(ctx, gradient):
        logits, whole = ctx.saved_tensors
        return gradient * (logits - whole).exp(), None


_of_step: Ranks | None = None  # within a step, the processes that take it together
_sharing: Ranks | None = None  # while each of them encodes a share of the text tower's rows


@contextmanager
def taking_part(ranks: Ranks | None) -> Iterator[None]:
    """Compute the steps inside this context together with the other ranks; with None, alone."""
    global _of_step
    _of_step = ranks
    try:
        yield
    finally:
        _of_step = None


def ranks_of_step() -> Ranks | None:
    """Return the ranks that take the current step together; None outside of steps, or if this process trains alone."""
    return _of_step


@contextmanager
def sharing_texts() -> Iterator[None]:
    """Let each rank encode a share of the texts that go through `encode_shared`."""
    global _sharing
    _sharing = _of_step
    try:
        yield
    finally:
        _sharing = None


def encode_shared(encode: Callable[[Tensor], Tensor], rows: Int64[Tensor, "m context"]) -> Tensor:
    """Return `encode(rows)`. Inside `sharing_texts`, each rank encodes a share of the rows, and gets all results."""
    if _sharing is None or not len(rows):
        return encode(rows)
    some = encode(_sharing.own_rows(rows))
    # Sums of gradients would lose digits in half precision.
    whole = _sharing.gather_rows(some.to(torch.promote_types(some.dtype, torch.float32)), len(rows))
    return whole.to(some.dtype)
