"""Files of weights from elsewhere: checked before they are loaded (tensors by name, and nothing that runs code), read
without prefixes of names, and asked for the image size that they are of."""

import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isqrt
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.progress import silence_loggers
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
    named = next((content[name] for name in under if content.get(name) is not None), content)
    if not isinstance(named, Mapping) or not any(isinstance(value, Tensor) for value in named.values()):
        raise UserError(
            f"the weights {path} hold no tensors by name, but {', '.join(map(str, list(content)[:4]))}; save the "
            "weights alone, which mostly lie under 'model' or 'state_dict'"
        )
    check_names_of_no_adapter(path, named)


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


@contextmanager
def loading_from_transformers(name: str) -> Iterator[Any]:
    """Yield the library transformers, without its logs. What it raises for a missing file, another kind or version, or
    without a network becomes a `UserError`."""
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"{name} needs transformers: pip install 'binding-menagerie[huggingface]'") from error
    try:
        with silence_loggers():
            yield transformers
    except UserError:
        raise
    except Exception as error:  # each reason raises its own type
        raise UserError(f"{name} can't be loaded by transformers: {without_advice(error)}") from error


def check_loaded(name: str, missing: Collection[str], unknown: Collection[str]) -> None:
    """Raise if weights of a model are `missing` from its file. Transformers gives such weights random values;
    `unknown` are the names in the file that the model doesn't have."""
    if missing:
        instead = f" and {min(unknown)!r} instead" if unknown else ""
        raise UserError(
            f"{name} lacks {len(missing)} of the model's weights: it has no {min(missing)!r}{instead}; save the whole "
            "model again, without a prefix of torch.compile's or DDP's"
        )


COMPILED = "_orig_mod."  # torch.compile writes it before the names of a compiled module, DDP writes "module."
PARALLEL = "module."
# The position embeddings of image towers, with the side of a patch: that of a kernel, or a number of pixels.
POSITIONS: dict[str, str | int] = {
    "visual.positional_embedding": "visual.conv1.weight",
    "visual.trunk.pos_embed": "visual.trunk.patch_embed.proj.weight",
    "visual.attnpool.positional_embedding": 32,
}


def tensors_in(path: Path) -> dict[str, Tensor]:
    """The tensors in a file of weights, where open_clip looks for them; empty for NumPy's files. They are read when
    they are used, except from old files of torch."""
    if path.suffix in NUMPY:
        return {}
    content = load_file(path) if path.suffix == ".safetensors" else read_torch_file(path)
    found = next((content[name] for name in OPEN_CLIP if content.get(name) is not None), content)
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def strip_prefixes(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by their names without what torch.compile and DDP add, in any order."""
    named = {name.replace(COMPILED, ""): value for name, value in weights.items()}  # also where a part was compiled
    while named and all(name.startswith(PARALLEL) for name in named):
        named = {name.removeprefix(PARALLEL): value for name, value in named.items()}
    return named


@contextmanager
def readable_weights(pretrained: str) -> Iterator[str]:
    """Yield weights as open_clip reads them: a tag, a file, or a temporary copy of a file that has prefixes in its
    names which open_clip doesn't know."""
    weights = tensors_in(Path(pretrained)) if Path(pretrained).is_file() else {}
    named = strip_prefixes(weights)
    if named.keys() in (weights.keys(), {name.removeprefix(PARALLEL) for name in weights}):
        yield pretrained
        return
    with scratch_folder() as folder:
        torch.save(named, folder / "weights.pt")
        yield str(folder / "weights.pt")


def image_side(path: Path, usual: int) -> int:
    """The side of the images, in pixels, for which the weights in a file have position embeddings; `usual` if they have
    none, or as many as for that."""
    weights = strip_prefixes(tensors_in(path))
    for name, patches in POSITIONS.items():
        if name in weights and weights[name].ndim > 1 and (isinstance(patches, int) or patches in weights):
            across = isqrt(weights[name].shape[-2])  # beside patches there is a token or a few
            patch = patches if isinstance(patches, int) else weights[patches].shape[-1]
            return usual if across == usual // patch else across * patch
    return usual
