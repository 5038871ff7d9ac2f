"""The specs of CLIP or SigLIP with losses over further texts: C2LIP (phrases), CS-CLIP (parts of captions and their
false versions), READ-CLIP (other captions); free of torch."""

from dataclasses import dataclass
from typing import Annotated

from menagerie.envs.core.validation import POSITIVE
from menagerie.models.scorers.clip import CLIP, CLIPConfig
from menagerie.models.scorers.own_negatives import WEIGHT
from menagerie.models.scorers.siglip import SIGLIP, SigLIPConfig
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class C2LIPConfig(SigLIPConfig):
    """Weights of C2LIP's losses; defaults are the authors'."""

    phrase_weight: Annotated[float, WEIGHT] = 1.0
    """Weight of the loss over images and phrases of captions (NPC)."""
    patch_weight: Annotated[float, WEIGHT] = 0.01
    """Weight of the same loss over phrases and the patches that fit them (XAC)."""


C2LIP = ScorerSpec(
    name="c2lip",
    title="C2LIP",
    source="Pham et al. 2026, No hard negatives required: Concept centric learning leads to compositionality without "
    "degrading zero-shot capabilities of contrastive models",
    about="SigLIP that also finds each phrase of a caption in the image, by vectors and by patches",
    implementation="menagerie.models.networks.c2lip:C2LIPScorer",
    config=C2LIPConfig,
    small=SIGLIP.small,
    smoke=SIGLIP.smoke,
    scratch=SIGLIP.scratch,  # the authors only fine-tune
    pretrained={"learning_rate": 1e-5, "weight_decay": 0.1, "warmup": 50, "betas": (0.9, 0.98)},
    space=dict(SIGLIP.space)
    | {"phrase_weight": Range(0.1, 3.0, log=True), "patch_weight": Range(0.003, 1.0, log=True)},
    control=True,
)


@dataclass(frozen=True)
class CSCLIPConfig(CLIPConfig):
    """Options of CS-CLIP; defaults are the authors' (configs/loss/multi_caption.yaml, dataset/coco_neg.yaml)."""

    parts: Annotated[int, POSITIVE] = 2
    """Parts of each image's caption in a batch, drawn anew in each step."""
    part_weight: Annotated[float, WEIGHT] = 0.5
    """Weight of the loss over parts and their false versions."""


CS_CLIP = ScorerSpec(
    name="cs-clip",
    title="CS-CLIP",
    source="Kargi et al. 2026, Half-truths break similarity-based retrieval",
    about="CLIP that also tells parts of captions from false versions of them",
    implementation="menagerie.models.networks.cs_clip:CSCLIPScorer",
    config=CSCLIPConfig,
    smoke={"parts": 1},
    scratch=CLIP.scratch,  # the paper only fine-tunes
    # The authors warm up for three of five epochs, which would be longer than our runs.
    pretrained={"learning_rate": 5e-6, "weight_decay": 0.01, "warmup": 50, "betas": (0.9, 0.98)},
    space={"parts": (1, 2, 3), "part_weight": Range(0.1, 2.0, log=True)},
    negatives=("captions",),
    control=True,
)


@dataclass(frozen=True)
class ReadCLIPConfig(CLIPConfig):
    """Options of READ-CLIP; weights are the authors'."""

    decode_weight: Annotated[float, WEIGHT] = 0.1
    """Weight of the loss of a decoder that writes another caption of the image from a caption's vector."""
    paraphrase_weight: Annotated[float, WEIGHT] = 0.5
    """Weight of the loss that brings the text vectors of two captions of one image together."""
    decoder_layers: Annotated[int, POSITIVE] = 6
    """Blocks of the decoder; the authors' is a frozen T5 of 24."""


READ_CLIP = ScorerSpec(
    name="read-clip",
    title="READ-CLIP",
    source="Kwon et al. 2025, Enhancing compositional reasoning in CLIP via reconstruction and alignment of text "
    "descriptions",
    about="CLIP whose text vectors are also decoded to other captions of the image, and lie close to these",
    implementation="menagerie.models.networks.read_clip:ReadCLIPScorer",
    config=ReadCLIPConfig,
    small={"decoder_layers": 2},
    smoke={"decoder_layers": 1},
    scratch=CLIP.scratch,  # the paper only fine-tunes
    # The second beta is the default of the authors' trainer.
    pretrained={"learning_rate": 1e-5, "weight_decay": 0.1, "warmup": 50, "betas": (0.9, 0.999)},
    space={"decode_weight": Range(0.02, 1.0, log=True), "paraphrase_weight": Range(0.1, 2.0, log=True)},
    negatives=("captions",),
    control=True,
)

SPECS = (C2LIP, CS_CLIP, READ_CLIP)
