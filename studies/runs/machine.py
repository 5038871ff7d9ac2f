"""The machine of a run: its processor, its devices, and the server process from which all others are forked."""

import contextlib
import os
import platform
import re
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.processes import serve

VECTORS = ("avx512f", "avx2", "avx")  # the widest first


def processor() -> str:
    """Return the processor's name, family, model and widest vectors, as one name may stand for several processors."""
    with contextlib.suppress(OSError):
        if known := describe_processor(Path("/proc/cpuinfo").read_text("utf-8")):
            return known
    return platform.processor() or platform.machine()


def describe_processor(cpuinfo: str) -> str:
    """Describe the first processor in Linux's `cpuinfo` in a line; empty if it has no name there."""
    facts = dict(re.findall(r"^(.*?)[ \t]*:[ \t]*(.*?)[ \t]*$", cpuinfo.partition("\n\n")[0], re.MULTILINE))
    numbers = [f"{name.removeprefix('cpu ')} {facts[name]}" for name in ("cpu family", "model") if name in facts]
    widest = [name for name in VECTORS if name in facts.get("flags", "").split()][:1]
    return ", ".join([facts["model name"], *numbers, *widest]) if "model name" in facts else ""


def check_device(device: str) -> None:
    """Raise unless `device` is cpu, cuda or cuda:NUMBER. Doesn't import torch."""
    kind, colon, number = device.partition(":")
    choose("--device", kind, ("cpu", "cuda"))
    if colon and (kind == "cpu" or not number.isdecimal()):
        raise UserError(f"--device {device!r} is not a device; write cpu, cuda, or cuda:0 for the first of several")


def check_device_here(device: str, processes: int = 1) -> None:
    """Raise unless torch finds the device on this machine, and a GPU for each of `processes` that train on one."""
    import torch

    check_device(device)
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return
    if not torch.cuda.is_available():
        raise UserError(f"--device {device}: torch sees no CUDA device here; use --device cpu")
    if int(number or 0) >= (count := torch.cuda.device_count()):
        raise UserError(f"--device {device}: torch sees {count} CUDA devices here, cuda:0 to cuda:{count - 1}")
    if processes > count:
        raise UserError(f"--device {device}: torchrun starts {processes} processes here, but there are {count} GPUs")


def check_precision(precision: str, device: str) -> None:
    """Raise for a precision that the device doesn't have."""
    if precision == "tf32" and device == "cpu":
        raise UserError("--precision tf32 needs a GPU; give --device cuda too, or --precision bf16 or float32")


# By default glibc returns large blocks of memory to the system after every step, so that new ones cause page faults.
# With these settings workers keep them, in huge pages if possible. glibc reads them when a process starts.
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": 32 << 20,
    "MALLOC_TRIM_THRESHOLD_": 1 << 30,
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
# Modules that load slowly and that every run needs.
MODULES = (
    "menagerie.envs.render.renderer",
    "menagerie.generators.benchmarks.split_tests",
    "menagerie.models.contract",
    "menagerie.models.evaluation.scoring",
    "menagerie.models.training.feed",
    "menagerie.models.training.loop",
    "menagerie.studies.runs.train",
)


def start_server(threads: int) -> None:
    """Start the server process for runs with `threads` threads each; 0 lets torch choose."""
    for name, size in MALLOC.items():
        os.environ.setdefault(name, str(size))
    if threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read when numpy and torch are loaded
    serve(MODULES)


def settle_torch(threads: int) -> None:
    """Make torch compute the same every time, with `threads` threads."""
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, products on a GPU may not repeat
    torch.backends.cudnn.allow_tf32 = False  # torch rounds the factors of convolutions on a GPU unless told
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # otherwise every new tensor is written twice
