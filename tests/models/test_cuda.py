"""What only a GPU can show: that a step repeats, waits for nothing, and that bf16 stays close to float32.

Skipped without one. `CUBLAS_WORKSPACE_CONFIG` is set by `settle_torch`, as in a run.
"""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from menagerie.models.ranks import Ranks, Share
from menagerie.models.registry import spec_of, specs
from menagerie.models.scorer import to_device
from menagerie.models.training.loaders import free_memory_share
from menagerie.models.training.loop import build_optimizer, feed_of, train_scorer, train_step
from menagerie.studies.runs.machine import settle_torch
from tests.models.test_precision import RECIPE, built, cosine, gradient

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
# Their negatives are drawn with random numbers of the device.
DRAWS = {"fusion"}
# Their gradient goes through the best of several patches, which may be nearly equal.
JUMPS = {"filip", "filip-phrases"}


@pytest.fixture(autouse=True)
def settled():
    settle_torch(threads=1)
    yield
    torch.use_deterministic_algorithms(False)


def there(name, data):
    scorer, batch = built(name, data)
    return scorer.cuda(), to_device(batch, "cuda")


@pytest.mark.parametrize("name", specs())
def test_a_gpu_computes_what_a_cpu_computes(name, spatial):
    here, (scorer, batch) = gradient(*built(name, spatial), RECIPE), there(name, spatial)
    loss, grads = gradient(scorer, batch, RECIPE)
    low_loss, low = gradient(scorer, batch, replace(RECIPE, precision="bf16"))
    assert low_loss.item() == pytest.approx(loss.item(), rel=0.01)
    assert cosine(low, grads) > (0.97 if name in JUMPS else 0.99)
    if name not in DRAWS:
        assert loss.item() == pytest.approx(here[0].item(), rel=1e-3)
        assert cosine(grads.cpu(), here[1]) > (0.99 if name in JUMPS else 0.9999)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("name", specs())
def test_steps_repeat_bit_for_bit_and_wait_for_nothing(name, precision, spatial):
    recipe = replace(RECIPE, precision=precision)
    one, other = steps(name, spatial, recipe), steps(name, spatial, recipe)
    assert torch.equal(one, other)


def steps(name, data, recipe):
    """The losses of two steps, then the weights. The second waits for nothing; the first made AdamW's states."""
    scorer, batch = there(name, data)
    optimizer = build_optimizer(scorer, recipe)
    losses = [train_step(scorer, optimizer, batch, recipe, 0, 0)]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses.append(train_step(scorer, optimizer, batch, recipe, 0, 1))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return torch.cat([torch.stack(losses), *(p.detach().flatten() for p in scorer.parameters())])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["clip", "oc-clip"])
def test_images_that_stay_on_the_gpu_change_no_bit(name, workers, spatial):
    recipe, found = replace(RECIPE, steps=-(-len(spatial) // RECIPE.batch)), []
    for share in (0.0, 0.1):
        scorer, _ = there(name, spatial)
        train_scorer(scorer, spatial, recipe, 0, workers=workers, room=free_memory_share(scorer.device, share))
        found.append(torch.cat([p.detach().flatten() for p in scorer.parameters()]))
    assert torch.equal(*found)


@pytest.fixture(scope="module")
def lone(tmp_path_factory):
    """All exchanges of several processes, made by one with NCCL, which gives each process a GPU of its own."""
    torch.cuda.set_device(0)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path_factory.mktemp('lone')}/met", rank=0, world_size=1)
    yield Ranks(Share(0, 1), dist.new_group(backend="nccl"), dist.new_group(backend="gloo"))
    dist.destroy_process_group()


@pytest.mark.parametrize("name", specs())
def test_nccl_exchanges_what_one_process_computes(name, lone, spatial):
    alone, exchanged = shared_steps(name, spatial, None), shared_steps(name, spatial, lone)
    assert torch.allclose(exchanged[:2], alone[:2], rtol=1e-5)
    assert (exchanged - alone).norm() < 1e-4 * alone.norm()


def shared_steps(name, data, ranks):
    """The losses of two steps, then the weights, with the batches that a process among `ranks` takes."""
    scorer, _ = there(name, data)
    feed = feed_of(scorer, data, RECIPE, 0, spec_of(name).negatives, ranks)
    optimizer = build_optimizer(scorer, RECIPE)
    losses = [train_step(scorer, optimizer, to_device(feed[n], "cuda"), RECIPE, 0, n, ranks).detach() for n in range(2)]
    return torch.cat([torch.stack(losses), *(p.detach().flatten() for p in scorer.parameters())])
