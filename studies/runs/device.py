"""Where models compute: what `--device` may be, and whether that is here."""

from menagerie.envs.core.errors import UserError, choose


def check_device(device: str) -> None:
    """Raise unless a name is cpu, cuda or cuda:NUMBER. Free of torch."""
    kind, colon, number = device.partition(":")
    choose("--device", kind, ("cpu", "cuda"))
    if colon and (kind == "cpu" or not number.isdecimal()):
        raise UserError(f"--device {device!r} is none; write cpu, cuda, or cuda:0 for the first of several")


def check_device_here(device: str) -> None:
    """Raise unless torch sees such a device on this machine."""
    import torch

    check_device(device)
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return
    if not torch.cuda.is_available():
        raise UserError(f"--device {device}: torch sees no CUDA device here; use --device cpu")
    if int(number or 0) >= (count := torch.cuda.device_count()):
        raise UserError(f"--device {device}: torch sees {count} of them here, cuda:0 to cuda:{count - 1}")
