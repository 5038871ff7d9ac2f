"""The specs of scorers that read image and text together, by likelihood or early fusion; free of torch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from menagerie.envs.core.validation import COUNT, POSITIVE, SHARE
from menagerie.envs.core.validation import Range as Limits
from menagerie.models.scorers.read_outs import PRETRAINED
from menagerie.models.spec import Range, ScorerSpec

SCORED = ("alpha", "prior", "per_token")


@dataclass(frozen=True)
class LikelihoodConfig:
    """Options of scorers by likelihood."""

    tokens: Literal["patches", "pooled"] = "patches"
    """Image tokens that words see: all patches, or CLS alone."""
    null_share: Annotated[float, SHARE] = 0.1
    """Share of training captions that are read without their image, for the prior "null"."""
    alpha: Annotated[float, Limits(0.0, 10.0)] = 0.0
    """Weight of the prior in scores: log P(text | image) - alpha log P(text). Doesn't change training."""
    prior: Literal["images", "noise", "null"] = "images"
    """How P(text) is computed: as the mean over 32 training images (images) or 8 images of noise (noise), or by reading
    without an image (null). Doesn't change training."""
    per_token: bool = True
    """Divide scores by the number of tokens; otherwise shorter texts score higher. Doesn't change training."""


@dataclass(frozen=True)
class CaptionerConfig(LikelihoodConfig):
    """Options of the captioner."""

    fusion: Literal["early", "late", "prefix"] = "early"
    """How words see the image: by cross-attention in each block (early), by one cross-attention after the last block
    (late), or as tokens before the words (prefix)."""
    parallel: Annotated[float, SHARE] = 0.0
    """Share of training captions whose words are all predicted at once, from the image alone; CapPa's is 0.75."""
    average: Literal["tokens", "captions"] = "tokens"
    """What the loss is a mean of: all tokens of a batch (tokens), or captions, each with the mean of its own tokens
    (captions, CapPa's loss)."""


# CapPa (configs/proj/cappa/pretrain.py of google-research/big_vision): Adafactor's rate and decay, which is subtracted
# at each step at the peak rate; torch's AdamW multiplies decay by the rate, so here it is 1e-4 / 1e-3. Its 10 000 steps
# of warm-up would be longer than our runs. Adafactor's second beta rises to 0.999.
CAPPA = {"learning_rate": 1e-3, "weight_decay": 0.1, "warmup": 1000, "betas": (0.9, 0.999)}
CAPTIONER = ScorerSpec(
    name="captioner",
    title="Captioner",
    source="after CapPa: Tschannen et al. 2023, Image captioners are scalable vision learners too",
    about="predicts a text word by word from the image's patches; the score is the text's log-likelihood",
    implementation="menagerie.models.networks.captioners:CaptionerScorer",
    config=CaptionerConfig,
    smoke={"parallel": 0.5, "alpha": 1.0, "prior": "null"},
    scratch=CAPPA,
    pretrained=PRETRAINED,  # no paper trains such a decoder on CLIP's pretrained towers
    space={"parallel": (0.0, 0.75)},
    takes_negatives=False,
    scored=SCORED,
    control=True,
)


@dataclass(frozen=True)
class CoCaConfig(LikelihoodConfig):
    """Options of CoCa; defaults are its paper's (base model)."""

    decoder_layers: Annotated[int, POSITIVE] = 12
    """Number of blocks after the text tower; they read the image."""
    contrast_weight: Annotated[float, Limits(0.0, 1000.0)] = 1.0
    """Weight of InfoNCE."""
    caption_weight: Annotated[float, Limits(0.0, 1000.0)] = 2.0
    """Weight of the captioning loss."""
    logit_scale: float = 1 / 0.07
    """Initial value of the learned inverse temperature of InfoNCE."""
    score: Literal["contrast", "likelihood"] = "contrast"
    """What scores a pair, however trained: the cosine of vectors (contrast), or the text's likelihood (likelihood)."""


COCA = ScorerSpec(
    name="coca",
    title="CoCa",
    source="Yu et al. 2022, CoCa: Contrastive captioners are image-text foundation models",
    about="CLIP whose text tower also feeds a decoder that predicts each word from the image's patches",
    implementation="menagerie.models.networks.captioners:CoCaScorer",
    config=CoCaConfig,
    small={"decoder_layers": 2},
    smoke={"decoder_layers": 1, "score": "likelihood", "alpha": 1.0, "prior": "null"},
    # Section 4.1: Adafactor, here AdamW with the same rates; its warm-up is 2 % of 500 000 steps.
    scratch={"learning_rate": 8e-4, "weight_decay": 0.01, "warmup": 1000, "betas": (0.9, 0.999)},
    pretrained=PRETRAINED,
    space={"caption_weight": (0.5, 1.0, 2.0), "decoder_layers": (1, 2)},
    scored=(*SCORED, "score"),
    control=True,
)


@dataclass(frozen=True)
class FusionConfig:
    """Options of the scorer with early fusion; defaults are ALBEF's, as far as it has them."""

    fusion: Literal["early", "prefix"] = "early"
    """How words see the image: by cross-attention in each block (early), or as tokens before them (prefix: ViLT)."""
    tokens: Literal["patches", "pooled"] = "patches"
    """Image tokens that words see: all patches, or CLS alone."""
    objective: Literal["matching", "infonce"] = "matching"
    """Loss over the scores of pairs: whether each is true (matching), or which is, among negatives (infonce)."""
    negatives: Annotated[int, COUNT] = 1
    """Wrong texts for each image, and wrong images for each text, in a step; 0 takes all of the batch, at the price of
    reading every image with every text."""
    hard: bool = True
    """Draw similar wrong pairs more often: similar by vectors that CLIP's loss trains beside the scores. If false, all
    wrong pairs are equally likely, and there are no vectors."""
    logit_scale: float = 1 / 0.07
    """Initial inverse temperature of the vectors by which hard pairs are drawn."""


# ALBEF's (configs/Pretrain.yaml and Pretrain.py of salesforce/ALBEF), with torch's own betas.
ALBEF = {"learning_rate": 1e-4, "weight_decay": 0.02, "warmup": 2000, "betas": (0.9, 0.999)}
FUSION = ScorerSpec(
    name="fusion",
    title="Early fusion",
    source="Li et al. 2021, Align before fuse (ALBEF): image-text matching; BLIP (Li et al. 2022)",
    about="text blocks attend to the image's patches; the score is the log-odds that text and image match",
    implementation="menagerie.models.networks.fusion:FusionScorer",
    config=FusionConfig,
    smoke={"negatives": 3},
    scratch=ALBEF,
    pretrained=PRETRAINED,  # no paper trains such a tower on CLIP's pretrained towers
    space={"negatives": Range(1, 15, log=True), "hard": (True, False)},
    control=True,
)

SPECS = (CAPTIONER, COCA, FUSION)
