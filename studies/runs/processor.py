"""The processor that a run was made on, as its provenance names it."""

import contextlib
import platform
from pathlib import Path

VECTORS = ("avx512f", "avx2", "avx")  # the widest first
NUMBERS = ("cpu family", "model")


def processor() -> str:
    """Its name, family, model and widest vectors, as the system has them.

    Clouds have one name for several, which need not sum in the same order.
    """
    with contextlib.suppress(OSError):
        if known := described(Path("/proc/cpuinfo").read_text("utf-8")):
            return known
    return platform.processor() or platform.machine()


def described(cpuinfo: str) -> str:
    """What Linux says of the first processor, in a line; empty where it has no name there."""
    lines = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    its = {key.strip(): value.strip() for key, _, value in lines}
    if "model name" not in its:
        return ""
    numbers = [f"{name.removeprefix('cpu ')} {its[name]}" for name in NUMBERS if name in its]
    flags = its.get("flags", "").split()
    return ", ".join([its["model name"], *numbers, *[name for name in VECTORS if name in flags][:1]])
