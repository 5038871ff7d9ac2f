"""Pooling of an image's patches for a text (FLAIR)."""

from jaxtyping import Float
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError


class TextConditionedPooling(nn.Module):
    """Attention of a text to patches, with a zero token beside them for texts that none of them fits.

    Query, keys and values have a LayerNorm each; there is no residual path, else the text would reach the image's
    vector by itself.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise UserError(f"--flair.heads {heads} doesn't divide the towers' width {width}; choose one that does")
        self.query_norm, self.key_norm, self.value_norm = (nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, heads, add_zero_attn=True, batch_first=True)

    def forward(self, texts: Float[Tensor, "n c d"], patches: Float[Tensor, "n p d"]) -> Float[Tensor, "n c d"]:
        """Image i as each of its c texts sees it."""
        keys, values = self.key_norm(patches), self.value_norm(patches)
        return self.attention(self.query_norm(texts), keys, values, need_weights=False)[0]
