"""FDT, as studies know it; free of torch."""

from dataclasses import dataclass

from menagerie.models.scorers.clip import READ_OUT_PRETRAINED, READ_OUT_SCRATCH, CLIPConfig
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class FDTConfig(CLIPConfig):
    """Sizes of the codebook; defaults are the authors'."""

    codes: int = 16384
    """Codes, which images and texts share. They decay with the weights, as in the authors' runs: codes that nothing
    chooses shrink until they matter to nobody."""
    dim: int = 512
    """Numbers of a code, and of the vectors."""
    temperature: float = 100.0
    """What scores are divided by before sparsemax: the less, the fewer codes an input takes. The authors' 1000 starts
    with thousands, of a small codebook with nearly all; a small one with a few, and others never learn. It is tuned."""


SPEC = ScorerSpec(
    name="fdt",
    title="FDT",
    source="Chen et al. 2023, Revisiting multimodal representation in contrastive learning",
    about="images and texts as sparse means of the same learned codes",
    implementation="menagerie.models.networks.fdt:FDTScorer",
    config=FDTConfig,
    small={"codes": 256, "dim": 128},
    smoke={"codes": 128, "dim": 64},
    scratch=READ_OUT_SCRATCH,
    pretrained=READ_OUT_PRETRAINED,
    space={"codes": (64, 256, 1024), "temperature": Range(10.0, 1000.0, log=True)},
)
