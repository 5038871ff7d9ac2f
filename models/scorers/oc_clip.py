"""The spec of OC-CLIP; free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.validation import RATE, Several, validate
from menagerie.models.spec import ScorerSpec

Altered = Literal["swapped", "shuffled"]
ALTERED: tuple[Altered, ...] = get_args(Altered)


@dataclass(frozen=True)
class OCCLIPConfig:
    """Sizes and choices of OC-CLIP; defaults are table 11's."""

    dim: int = 256
    """Width of patches, queries and slots in the binding module."""
    relation_dim: int = 128
    """Width of relation embeddings."""
    relation: Literal["additive", "joint"] = "additive"
    """How a relation is combined with subject and object: additive (equation 3), or joint, one MLP (table 7)."""
    alpha: float = 1.5
    """Initial weight of the nodes in equation 2."""
    beta: float = 0.5
    """Initial weight of the edges in equation 2."""
    layers: int = 2
    """Self-attention layers over the patches."""
    heads: int = 4
    """Heads of the self-attention layers."""
    competitive: bool = True
    """Queries compete for each patch (equation 1). If false, each query has a softmax of its own over the patches,
    without default tokens: the regular cross-attention of the paper's ablation."""
    focus: bool = False
    """With competition, also weigh each query's patches by their similarity to it, as in regular cross-attention, so
    that no query absorbs an object that the text doesn't name. Not in the paper."""
    default_tokens: int = 4
    """Number of default tokens: learned queries that take the patches that no phrase describes."""
    query_norm: bool = True
    """Normalise the queries (table 11 does, figure 9 doesn't)."""
    position_scale: float = 0.02
    """Standard deviation of position embeddings at the start; figure 9 has 1, which drowns patches from scratch."""
    logit_scale: float = 1 / 0.07
    """Initial value of the learned inverse temperature, also with pretrained towers, whose own value belongs to another
    similarity. Equation 5 has none; but similarities between -1 and 1 alone can't single out one text of a batch."""
    local_weight: Annotated[float, RATE] = 1.0
    """Weight of the local loss, which compares graphs that state relations with altered ones; 0 leaves it out."""
    local_negatives: Annotated[tuple[Altered, ...], Several(1)] = ALTERED
    """Altered graphs with which the local loss compares the true one: swapped, shuffled, or both (equation 6)."""
    local_mean: bool = False
    """Take the local loss as a mean over the k texts with relations. If false, its sum is divided by 2B for B texts, as
    InfoNCE's is (equations 4 to 6). So the mean has 2B / k times the weight."""

    def __post_init__(self) -> None:
        validate(self, prefix="oc-clip.")
        if self.focus and not self.competitive:
            raise UserError("--oc-clip.focus weighs shares of the competition; leave out --oc-clip.no-competitive")


OC_CLIP = ScorerSpec(
    name="oc-clip",
    title="OC-CLIP",
    source="Assouel et al. 2025, Object-centric binding in contrastive language-image pre-training",
    about="reads a caption as a graph of objects and relations; each object finds its own patches of the image, and "
    "is compared with them",
    implementation="menagerie.models.networks.oc_clip:OCCLIPScorer",
    config=OCCLIPConfig,
    # Table 11's sizes are wider, with two layers of self-attention over the patches. Small towers bind as well without
    # these layers, and their queries attend to the animals that they name.
    small={"dim": 64, "relation_dim": 32, "layers": 0},
    smoke={"dim": 32, "relation_dim": 16, "layers": 1, "heads": 2},
    scratch={"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 1000},  # section 4.3.1
    pretrained={  # appendix A.8
        "learning_rate": 2e-4,
        "text_learning_rate": 2e-5,
        "vision_learning_rate": 1e-6,
        "warmup": 0,
        "text_warmup": 1000,
        "vision_warmup": 5000,
        "weight_decay": 0.2,
        "betas": (0.9, 0.95),
    },
    reads=("graphs",),
    local_loss=("local_weight", "local_negatives", "local_mean"),
)

SPECS = (OC_CLIP,)
