"""Architectures of ours in open_clip's format: an image tower of timm beside the text tower of an open_clip
architecture. OC-CLIP's larger model has DINOv2's ViT-B/14 and the text tower of a ViT-B/16 (section 4.2).

Weights are named TEXT+IMAGE. TEXT is open_clip's tag or a file (FILE@TAG: images are prepared as for TAG); IMAGE is
timm's tag or a file. Without +IMAGE timm's default weights are taken.
"""

import copy
from pathlib import Path

import open_clip
import timm
from torch import nn

from menagerie.envs.core.errors import UserError, choose
from menagerie.models.towers.config import file_and_tag
from menagerie.models.towers.weight_file import TIMM, check_weight_file, readable_weights

FOLDER = Path(__file__).parent / "architectures"
# Architecture -> the architecture whose text tower it has.
TEXTS_OF = {"ViT-B-14-DINOv2": "ViT-B-16"}
USUAL = "lvd142m"
SEPARATOR = "+"

open_clip.add_model_config(FOLDER)


def weights_of(pretrained: str) -> tuple[str, str]:
    """Split "TEXT+IMAGE" into the weights of the text tower and those of the image tower."""
    text, _, image = pretrained.partition(SEPARATOR)
    return text, image or USUAL


def image_model(architecture: str) -> str:
    """timm's name of the image tower."""
    return open_clip.get_model_config(architecture)["vision_cfg"]["timm_model_name"]


def check_pair_weights(architecture: str, pretrained: str) -> None:
    """Raise unless the weights of each tower are a file of tensors or a known tag."""
    text, image = weights_of(pretrained)
    if (file := Path(file_and_tag(text)[0])).is_file():
        check_weight_file(file)
    else:
        theirs = TEXTS_OF[architecture]
        choose(f"pretrained text weights (of {theirs})", text, open_clip.list_pretrained_tags_by_model(theirs))
    if Path(image).is_file():
        check_weight_file(Path(image), TIMM)
    else:
        name = image_model(architecture)
        known = [tag.rpartition(".")[2] for tag in timm.list_pretrained(f"{name}.*")]
        choose(f"pretrained image weights (of {name})", image, known)


def image_preparation(architecture: str) -> dict[str, object]:
    """Return the mean, std and interpolation with which pictures are prepared for the image tower's default weights."""
    known = timm.get_pretrained_cfg(f"{image_model(architecture)}.{USUAL}")
    return {"mean": known.mean, "std": known.std, "interpolation": known.interpolation}


def load_pair(model: nn.Module, architecture: str, pretrained: str, resolution: int) -> None:
    """Load weights into `model`: the text tower's from the architecture in `TEXTS_OF`, the image tower's from timm.

    Raises if either source lacks a weight or has one too many. The projection of images keeps its initial weights.
    """
    text, image = weights_of(pretrained)
    with readable_weights(file_and_tag(text)[0]) as weights:
        theirs = open_clip.create_model(TEXTS_OF[architecture], pretrained=weights)
    texts = {name: value for name, value in theirs.state_dict().items() if not name.startswith("visual.")}
    wanted = {name for name in model.state_dict() if not name.startswith("visual.")}
    if odd := sorted(wanted ^ texts.keys()):
        raise UserError(
            f"the text weights {text!r} are not those of {TEXTS_OF[architecture]}; the first odd one is {odd[0]}"
        )
    model.load_state_dict(texts, strict=False)  # the image tower's weights are loaded next
    given = {"pretrained_cfg_overlay": {"file": image}} if Path(image).is_file() else {}
    name = image_model(architecture) + ("" if given else f".{image}")
    trunk = timm.create_model(name, pretrained=True, num_classes=0, img_size=resolution, **given)
    model.visual.trunk.load_state_dict(copy.deepcopy(trunk.state_dict()))
