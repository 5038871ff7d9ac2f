"""CLIP with global average pooling: the image's vector is a mean over all tokens, in place of the CLS token's.

As in SPARO's tables (Vani et al. 2024; their fork of open_clip): the mean over CLS and patches, then the tower's own
LayerNorm and projection. open_clip's `pool_type: avg` is another one: LayerNorm first, and patches alone.
"""

from typing import TYPE_CHECKING

from models.scorers.clip.spec import SPEC as CLIP
from models.spec import ScorerSpec

if TYPE_CHECKING:
    from jaxtyping import Float
    from open_clip.transformer import VisionTransformer
    from torch import Tensor


def average(tokens: "Float[Tensor, 'n tokens width']", visual: "VisionTransformer") -> "Float[Tensor, 'n d']":
    """The mean of the last block's tokens, normalised and projected by the tower's own layers."""
    return visual.ln_post(tokens.mean(dim=1)) @ visual.proj


SPEC = ScorerSpec(
    name="clip-gap",
    title="CLIP, average pooling",
    source="Vani et al. 2024 (SPARO), baseline GAP",
    implementation=CLIP.implementation,
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    fixed={"image_read_out": average},
)
