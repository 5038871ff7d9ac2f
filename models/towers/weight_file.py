"""Checks a file of weights from elsewhere before it is loaded: it must hold tensors by name, and nothing that runs
code."""

import re
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import check_regular

# Keys under which open_clip and timm look for weights.
OPEN_CLIP, TIMM = ("state_dict",), ("state_dict_ema", "model_ema", "state_dict", "model")
NUMPY = (".npz", ".npy")  # big_vision's format, which open_clip reads without pickle
# What torch says of a pickle with anything but tensors: the name of a function or class, or a step that it won't take.
OBJECT = re.compile(r"GLOBAL (?P<name>[\w.]+)|Unsupported operand")
ADAPTER = "adapter_config.json"


def check_weight_file(path: Path, under: Sequence[str] = OPEN_CLIP) -> None:
    """Raise unless a file maps names to tensors, at its top level or under the first existing key of `under`.

    Of safetensors files and zip archives no tensor is read; of NumPy's files only the path is checked. Errors leave out
    torch's advice for pickles, which would let the file run code.
    """
    check_regular(path)
    if path.suffix in NUMPY:
        return
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, "pt") as content:
                check_names_of_no_adapter(path, content.keys())
                return
        except (OSError, SafetensorError) as error:
            raise UserError(f"the weights {path} are no whole safetensors file ({error})") from error
    content = read_torch_file(path)
    above = next((name for name in under if content.get(name) is not None), "")
    check_tensors(path, content[above] if above else content, above)


def read_torch_file(path: Path) -> Mapping[str, Any]:
    """Read a torch file as a mapping from names to values; tensors in a zip archive aren't read yet."""
    try:
        archive = zipfile.is_zipfile(path)
        if archive and holds_code(path):
            raise UserError(
                f"the weights {path} are a TorchScript archive; save them alone, torch.jit.load(FILE).state_dict() "
                "(OpenAI's own have the tag openai)"
            )
        content = torch.load(path, weights_only=True, map_location="cpu", mmap=archive)
    except UserError:
        raise
    except Exception as error:  # no pickle, a truncated one, one with other objects: each raises its own type
        other = OBJECT.search(str(error)) and (archive or begins_as_pickle(path))
        problem = without_advice(error) if other else "this is no file of torch's, or not a whole one"
        raise UserError(f"the weights {path} can't be read: {problem}") from error
    if not isinstance(content, Mapping):
        raise UserError(f"the weights {path} are a {type(content).__name__}, not tensors by name (a `state_dict()`)")
    return content


def begins_as_pickle(path: Path) -> bool:
    """Whether a file has the first byte of pickles; of other files torch says that it won't take a step of theirs."""
    with path.open("rb") as file:
        return file.read(1) == b"\x80"


def holds_code(archive: Path) -> bool:
    """Whether a torch archive is TorchScript, which has a file of constants beside the tensors."""
    with zipfile.ZipFile(archive) as content:
        return any(name.endswith("/constants.pkl") for name in content.namelist())


def without_advice(error: Exception) -> str:
    """Return a library's error about weights as one line, without torch's advice to let the file run code."""
    if found := OBJECT.search(str(error)):
        return (
            f"beside tensors they hold code or other objects ({found['name'] or 'a pickle of its own'}), which aren't "
            "run or read; where you trust the file, save its weights alone, which mostly lie under 'model' or "
            "'state_dict', as safetensors"
        )
    if "weights_only" in str(error):
        return "torch reads no tensors from them without running code that they bring"
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return "; ".join(line if len(line) <= 120 else f"{line:.120}…" for line in lines[:3]) or type(error).__name__


def check_tensors(path: Path, content: Any, above: str) -> None:
    """Raise if no value of `content` is a tensor, or if a value is a mapping that has tensors. `content` lies under the
    key `above` of the file; if `above` is empty, it is the whole file."""
    named = content if isinstance(content, Mapping) else {}
    inner = {name: part for name, part in named.items() if isinstance(part, Mapping) and any_tensor(part)}
    if inner:
        name = max(inner, key=lambda name: len(inner[name]))
        place = "".join(f"[{key!r}]" for key in (above, name) if key)
        raise UserError(
            f"the weights {path} lie under {name!r}; save them alone: "
            f"torch.save(torch.load(FILE, weights_only=True){place}, NEW)"
        )
    if not any_tensor(named):
        raise UserError(f"the weights {path} hold no tensors by name")
    check_names_of_no_adapter(path, named)


def any_tensor(named: Mapping[str, Any]) -> bool:
    """Whether a mapping has a tensor among its values."""
    return any(isinstance(value, Tensor) for value in named.values())


def adapter_error(path: Path) -> UserError:
    """Make the error for a file or folder of an adapter, such as LoRA."""
    return UserError(
        f"{path} is an adapter (LoRA), which only changes the weights of another model; merge it into that "
        "(peft's merge_and_unload), save the result, and name that"
    )


def check_names_of_no_adapter(path: Path, names: Iterable[object]) -> None:
    """Raise if some weights are called as an adapter's are."""
    if any(".lora_" in str(name) for name in names):
        raise adapter_error(path)


def check_no_adapter(folder: Path) -> None:
    """Raise for a folder that holds an adapter."""
    if (folder / ADAPTER).is_file():
        raise adapter_error(folder)


def check_loaded(name: str, missing: Collection[str], unknown: Collection[str]) -> None:
    """Raise if weights of a model are `missing` from its file. Transformers gives such weights random values;
    `unknown` are the names in the file that the model doesn't have."""
    if missing:
        instead = f" and {min(unknown)!r} instead" if unknown else ""
        raise UserError(
            f"{name} lacks {len(missing)} of the model's weights: it has no {min(missing)!r}{instead}; save the whole "
            "model again, without a prefix of torch.compile's or DDP's"
        )
