"""SPARO, as studies know it; free of torch."""

from dataclasses import dataclass

from menagerie.envs.core.errors import UserError, choose
from menagerie.models.scorers.clip import READ_OUT_PRETRAINED, READ_OUT_SCRATCH, CLIPConfig
from menagerie.models.spec import ScorerSpec

# Read-outs: SPARO's own, and table 6's others, whose keys and values are two maps: with a map that mixes the heads'
# outputs, or without.
ATTENTION = ("sparo", "separate", "multi")


@dataclass(frozen=True)
class SPAROConfig(CLIPConfig):
    """Sizes and choices of SPARO; defaults are those for Conceptual Captions, 64 slots (128 for LAION-400M)."""

    slots: int = 64
    """L, slots of each tower."""
    dim: int = 64
    """V, numbers of a slot."""
    key_dim: int = 64
    """D, numbers of a query and of each key."""
    group: int = 1
    """Slots that share one map to keys, each with its own query; a divisor of `slots`."""
    replace_block: bool = True
    """SPARO takes the place of each tower's last block, so that it reads no layer that CLIP throws away. A tower of a
    single block keeps it: without, a text would be a bag of words that have never met."""
    attention: str = "sparo"
    """sparo, or of table 6: separate (keys and values by two maps), multi (and a map that mixes the heads' outputs)."""
    slot_norm: bool = True
    """LayerNorm of each slot by itself, not of all as one vector; sparo has none."""
    slot_projection: bool = True
    """A projection of each slot by itself, not of all as one vector; sparo has none."""

    def __post_init__(self) -> None:
        choose("--sparo.attention", self.attention, ATTENTION)
        if self.attention != "sparo" and self.group != 1:
            raise UserError(f"--sparo.group {self.group} is for --sparo.attention sparo alone; leave it out")


SPEC = ScorerSpec(
    name="sparo",
    title="SPARO",
    source="Vani et al. 2024, SPARO: selective attention for robust and compositional transformer encodings for vision",
    about="CLIP whose vectors consist of slots, each read out by attention of its own",
    implementation="menagerie.models.networks.sparo:SPAROScorer",
    config=SPAROConfig,
    # L D is 8 times the towers' width (5 to 16 in the paper): the read-out is no bigger than the block it replaces.
    small={"slots": 32, "dim": 16, "key_dim": 16},
    smoke={"slots": 8, "dim": 8, "key_dim": 8},
    scratch=READ_OUT_SCRATCH,
    pretrained=READ_OUT_PRETRAINED,
    space={"slots": (8, 16, 32, 64), "dim": (8, 16, 32), "key_dim": (8, 16, 32)},
)
