"""The specs of CLIP with other read-outs of its towers' tokens; free of torch."""

from dataclasses import dataclass
from typing import Literal

from menagerie.envs.core.errors import UserError
from menagerie.models.scorers.clip import CLIPConfig
from menagerie.models.spec import Range, ScorerSpec

# The recipe of all models in SPARO's paper, baselines included (table 0.C.3), but for FDT, which has its own authors'.
# What differs is common to all our models (docs/training.md): AdamW's epsilon is 1e-8, not 1e-6, gradients are clipped,
# and the inverse temperature may fall below 1.
SCRATCH = {"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 3600, "betas": (0.9, 0.98)}
# No paper puts these read-outs on pretrained towers: towers use CLIP's fine-tuning rates, the new read-out OC-CLIP's
# for its new module.
PRETRAINED = {
    "learning_rate": 2e-4,
    "vision_learning_rate": 4e-6,
    "text_learning_rate": 4e-6,
    "weight_decay": 0.2,
    "warmup": 50,
    "betas": (0.9, 0.95),
}


@dataclass(frozen=True)
class AttPoolConfig(CLIPConfig):
    """Sizes of the pooling; defaults are those of SPARO's table 6 (440M parameters with ViT-B/32)."""

    heads: int = 128
    """Number of heads of the attention, which has one learned query."""
    head_dim: int = 64
    """Width of a head's query, keys and values; a vector has heads x head_dim numbers."""


ATTPOOL = ScorerSpec(
    name="clip-attpool",
    title="CLIP with attentional pooling",
    source="Vani et al. 2024 (SPARO), baseline AttPool; Yu et al. 2022",
    about="CLIP whose vectors are read out by one learned query that attends to patches or words",
    implementation="menagerie.models.networks.read_outs:AttPoolScorer",
    config=AttPoolConfig,
    small={"heads": 4, "head_dim": 16},  # vectors as wide as CLIP's with small towers
    smoke={"heads": 2, "head_dim": 16},
    scratch=SCRATCH,
    pretrained=PRETRAINED,
    space={"heads": (2, 4, 8), "head_dim": (8, 16, 32)},
)


@dataclass(frozen=True)
class LinearConfig(CLIPConfig):
    """Sizes of the bottleneck; defaults are the narrower of the paper's two (the other is 512 to 4096)."""

    narrow: int = 64
    """Width of the bottleneck."""
    wide: int = 512
    """Width of the vectors after the bottleneck, which are compared."""


LINEAR = ScorerSpec(
    name="clip-linear",
    title="CLIP with a linear bottleneck",
    source="Vani et al. 2024 (SPARO), baseline of table 0.B.2",
    about="CLIP whose vectors pass through a few numbers, by a linear map",
    implementation="menagerie.models.networks.read_outs:LinearScorer",
    config=LinearConfig,
    small={"narrow": 8, "wide": 64},  # the paper's ratio; vectors as wide as CLIP's with small towers
    smoke={"narrow": 8, "wide": 32},
    scratch=SCRATCH,
    pretrained=PRETRAINED,
    space={"narrow": (4, 8, 16, 32), "wide": (64, 128, 256)},
)


@dataclass(frozen=True)
class FDTConfig(CLIPConfig):
    """Sizes of the codebook; defaults are the authors'."""

    codes: int = 16384
    """Number of codes, which images and texts share. Weight decay applies to them, as in the authors' runs: codes that
    no input uses shrink towards zero."""
    dim: int = 512
    """Width of a code, and of the vectors."""
    temperature: float = 100.0
    """Divides the scores before sparsemax: the lower it is, the fewer codes an input uses. With the authors' 1000 an
    input starts with thousands of codes, or nearly all of a small codebook; if it is too low, an input uses a few codes
    and others never learn. It is tuned."""


FDT = ScorerSpec(
    name="fdt",
    title="FDT",
    source="Chen et al. 2023, Revisiting multimodal representation in contrastive learning",
    about="images and texts as sparse means of the same learned codes",
    implementation="menagerie.models.networks.read_outs:FDTScorer",
    config=FDTConfig,
    small={"codes": 256, "dim": 128},
    smoke={"codes": 128, "dim": 64},
    # example/clip_fdt/config_cc3m.yaml of yuxiaochen1103/FDT: its rate rises from 1e-4 to 1e-3.
    scratch={"learning_rate": 1e-3, "weight_decay": 0.1, "warmup": 2500, "betas": (0.9, 0.98)},
    pretrained=PRETRAINED,
    space={"codes": (64, 256, 1024), "temperature": Range(10.0, 1000.0, log=True)},
)


# Read-outs: SPARO's own, and two of table 6 with separate maps for keys and values, without or with a map that mixes
# the heads' outputs.
Attention = Literal["sparo", "separate", "multi"]


@dataclass(frozen=True)
class SPAROConfig(CLIPConfig):
    """Sizes and choices of SPARO; defaults are those for Conceptual Captions, 64 slots (128 for LAION-400M)."""

    slots: int = 64
    """L, number of slots of each tower."""
    dim: int = 64
    """V, width of a slot."""
    key_dim: int = 64
    """D, width of a query and of each key."""
    group: int = 1
    """Slots that share one map to keys, each with its own query; a divisor of `slots`."""
    replace_block: bool = True
    """Replace each tower's last block by SPARO. A tower of a single block keeps it: otherwise a text would be a bag of
    words, without attention between them."""
    attention: Attention = "sparo"
    """sparo, or a variant of table 6: separate (two maps for keys and values), or multi (separate, and a map that mixes
    the outputs of the heads)."""
    slot_norm: bool = True
    """With `attention` separate or multi: apply LayerNorm to each slot by itself, not to all as one vector."""
    slot_projection: bool = True
    """With `attention` separate or multi: project each slot by itself, not all as one vector."""

    def __post_init__(self) -> None:
        if self.attention != "sparo" and self.group != 1:
            raise UserError(f"--sparo.group {self.group} is for --sparo.attention sparo alone; leave it out")


SPARO = ScorerSpec(
    name="sparo",
    title="SPARO",
    source="Vani et al. 2024, SPARO: selective attention for robust and compositional transformer encodings for vision",
    about="CLIP whose vectors consist of slots, each read out by attention of its own",
    implementation="menagerie.models.networks.read_outs:SPAROScorer",
    config=SPAROConfig,
    # L D is 8 times the towers' width (5 to 16 in the paper), so the read-out is no bigger than the block it replaces.
    small={"slots": 32, "dim": 16, "key_dim": 16},
    smoke={"slots": 8, "dim": 8, "key_dim": 8},
    scratch=SCRATCH,
    pretrained=PRETRAINED,
    space={"slots": (8, 16, 32, 64), "dim": (8, 16, 32), "key_dim": (8, 16, 32)},
)

SPECS = (ATTPOOL, LINEAR, FDT, SPARO)
