"""Files of weights of open_clip's architectures: their names without prefixes, and the image size that they are of."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isqrt
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from menagerie.envs.core.files import scratch_folder
from menagerie.models.towers.weight_file import NUMPY, OPEN_CLIP, read_torch_file

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
