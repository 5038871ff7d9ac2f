"""The specs of CLIP or SigLIP with losses over each image's own false captions (CE-CLIP, FSC-CLIP), or over further
texts: phrases (C2LIP), parts of captions and their false versions (CS-CLIP), other captions (READ-CLIP); free of
torch.
"""

from dataclasses import dataclass
from typing import Annotated

from menagerie.envs.core.validation import POSITIVE, SHARE
from menagerie.envs.core.validation import Range as Limits
from menagerie.models.scorers.clip import CLIP, SIGLIP, CLIPConfig, SigLIPConfig
from menagerie.models.spec import Range, ScorerSpec

WEIGHT = Limits(0.0, 1000.0)
# Of the authors' scripts, both alike.
FINE_TUNED = {"learning_rate": 5e-6, "weight_decay": 0.1, "warmup": 50, "betas": (0.9, 0.98)}


@dataclass(frozen=True)
class CECLIPConfig(CLIPConfig):
    """Weights of CE-CLIP's losses; defaults are those of the authors' script (run_multiple_nodes.sh)."""

    rank_weight: Annotated[float, WEIGHT] = 0.2
    """Weight of the ranking loss: a caption should score above its false captions by a threshold that adapts."""
    text_weight: Annotated[float, WEIGHT] = 0.3
    """Weight of the loss that pushes the text vectors of captions away from those of false captions."""


CE_CLIP = ScorerSpec(
    name="ce-clip",
    title="CE-CLIP",
    source="Zhang et al. 2024, Contrasting intra-modal and ranking cross-modal hard negatives to enhance "
    "visio-linguistic compositional understanding",
    about="CLIP with false captions in its loss: among captions, ranked by image, and as texts unlike the captions",
    implementation="menagerie.models.networks.own_negatives:CECLIPScorer",
    config=CECLIPConfig,
    scratch=CLIP.scratch,  # the paper only fine-tunes
    pretrained=FINE_TUNED,
    space={"rank_weight": Range(0.05, 1.0, log=True), "text_weight": Range(0.05, 1.0, log=True)},
    negatives=("captions",),
    control=True,
)


@dataclass(frozen=True)
class FSCCLIPConfig(CLIPConfig):
    """Weights of FSC-CLIP's losses; defaults are the authors'."""

    global_weight: Annotated[float, WEIGHT] = 0.5
    """Weight of the loss over vectors of an image's caption and its own false captions."""
    patch_weight: Annotated[float, WEIGHT] = 0.2
    """Weight of the same loss over words and the patches that fit them."""
    gamma: Annotated[float, Limits(0.0, 10.0)] = 2.0
    """Focal exponent: the larger, the less the loss counts choices that are already sure; 0 gives cross-entropy."""
    smoothing: Annotated[float, SHARE] = 0.02
    """Label smoothing: share of the target that is divided equally among the caption and its false captions."""


FSC_CLIP = ScorerSpec(
    name="fsc-clip",
    title="FSC-CLIP",
    source="Oh et al. 2024, Preserving multi-modal capabilities of pre-trained VLMs for improving vision-linguistic "
    "compositionality",
    about="CLIP that also chooses each image's caption among its own false ones, by vectors and by words on patches",
    implementation="menagerie.models.networks.own_negatives:FSCCLIPScorer",
    config=FSCCLIPConfig,
    scratch=CLIP.scratch,  # the paper only fine-tunes
    pretrained=FINE_TUNED,
    space={"global_weight": Range(0.1, 2.0, log=True), "patch_weight": Range(0.05, 1.0, log=True)},
    negatives=("captions",),
    control=True,
)


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
    implementation="menagerie.models.networks.further_texts:C2LIPScorer",
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
    implementation="menagerie.models.networks.further_texts:CSCLIPScorer",
    config=CSCLIPConfig,
    smoke={"parts": 1},
    scratch=CLIP.scratch,  # the paper only fine-tunes
    # The authors warm up for three of five epochs, which would be longer than our runs.
    pretrained={"learning_rate": 5e-6, "weight_decay": 0.01, "warmup": 50, "betas": (0.9, 0.98)},
    space={"parts": (1, 2, 3), "part_weight": Range(0.1, 2.0, log=True)},
    negatives=("captions",),
    parts=True,
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
    implementation="menagerie.models.networks.further_texts:ReadCLIPScorer",
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

SPECS = (CE_CLIP, FSC_CLIP, C2LIP, CS_CLIP, READ_CLIP)
