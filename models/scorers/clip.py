"""The specs of CLIP, of CLIP with negatives in its batches or other pooling, of its controls on phrases of scene graphs
(which have only its options), of FILIP, SigLIP and a classifier of animals; free of torch.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from menagerie.envs.core.validation import COUNT
from menagerie.models.spec import Range, ScorerSpec


@dataclass(frozen=True)
class CLIPConfig:
    """Options of CLIP."""

    logit_scale: float = 1 / 0.07
    """Initial value of the learned inverse temperature (Radford et al. 2021, section 2.5). With pretrained weights it
    starts at theirs, unless you give another value than the default."""


CLIP = ScorerSpec(
    name="clip",
    title="CLIP",
    source="Radford et al. 2021, Learning transferable visual models from natural language supervision",
    about="one vector for an image and one for a text; the score is their cosine",
    implementation="menagerie.models.networks.clip:CLIPScorer",
    config=CLIPConfig,
    # Both models' recipe from scratch in OC-CLIP's paper (section 4.3.1), and its recipe for fine-tuning CLIP (section
    # 4.2).
    scratch={"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 1000},
    pretrained={"learning_rate": 4e-6, "weight_decay": 0.2, "warmup": 50, "betas": (0.9, 0.95)},
)

AVERAGE = ScorerSpec(
    name="clip-gap",
    title="CLIP with average pooling",
    source="Vani et al. 2024 (SPARO), baseline GAP",
    about="CLIP whose image vector is the mean over CLS and all patches",
    implementation="menagerie.models.networks.clip:AverageScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
)

# NegCLIP is CLIP with false captions and counterfactual images in its batches; the loss matrix is rectangular.
#
# Images are compared with all captions of the batch and, after them, the swap of each, which has no image and no row of
# its own; captions are compared with images alone (`menagerie.models.objectives.contrastive_loss`). If training also
# shows the swapped scene of an image, both are in one batch.
#
# Where we differ from the published code (vinid/neg_clip):
#
# - Its false captions exchange words of one part of speech, whether or not the result is false; ours come from the
#   scene, are false of the image, and are left out if they are true of another one in the batch.
# - Its hard images are one of the three nearest in CLIP's features, and a step has twice as many images; ours are
#   counterfactuals and take the place of other images, so that a step costs as many passes as CLIP's.
# - Gathering over several GPUs breaks its order of texts; our batch is put together before it is moved.
NEGCLIP = ScorerSpec(
    name="negclip",
    title="NegCLIP",
    source="Yuksekgonul et al. 2023, When and why vision-language models behave like bags-of-words",
    about="CLIP trained with false captions of the same words, and with images of which they are true",
    implementation=CLIP.implementation,
    config=CLIP.config,
    scratch=CLIP.scratch,  # the paper only fine-tunes
    pretrained={"learning_rate": 1e-6, "weight_decay": 0.2, "warmup": 50, "betas": (0.9, 0.98)},
    # No search space: it has no option that CLIP doesn't have.
    negatives=("captions", "images"),
)


SUM = ScorerSpec(
    name="clip-phrases",
    title="CLIP, sum of phrases",
    source="a control for OC-CLIP: CLIP (Radford et al. 2021) on the graphs that OC-CLIP reads",
    about="one vector for an image, and the sum of those of the graph's phrases in place of the text's",
    implementation="menagerie.models.networks.late_interaction:PhraseSumScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    control=True,
)

INTERACTION = ScorerSpec(
    name="filip-phrases",
    title="Late interaction of phrases",
    source="a control for OC-CLIP: FILIP's similarity (Yao et al. 2022) on the graphs that OC-CLIP reads",
    about="a vector for each phrase of the graph and each patch; the score is the mean of each phrase's best cosine",
    implementation="menagerie.models.networks.late_interaction:PhraseInteractionScorer",
    config=CLIP.config,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    control=True,
)


@dataclass(frozen=True)
class FILIPConfig(CLIPConfig):
    """Options of FILIP."""

    symmetric: bool = True
    """As in the paper, images choose among texts by the mean over patches of the best word. If false, both directions
    use the mean over words of the best patch, so that a text needn't describe every patch."""
    tokens: Literal["patches", "pooled"] = "patches"
    """What is compared: patches with words, or CLS with the end token, which is CLIP."""
    negatives: Annotated[int, COUNT] = 0
    """Wrong texts for each image, and wrong images for each text, in the loss, drawn anew in each step; 0 takes all of
    the batch, as in the paper."""


FILIP = ScorerSpec(
    name="filip",
    title="FILIP",
    source="Yao et al. 2022, FILIP: Fine-grained interactive language-image pre-training",
    about="a vector for each word and each patch; the score is the mean of each one's best cosine with the other side",
    implementation="menagerie.models.networks.late_interaction:FILIPScorer",
    config=FILIPConfig,
    # Our captions say nothing of most patches.
    small={"symmetric": False},
    # The paper trains with LAMB on 340M pairs; CLIP's recipes are used, because towers and temperature are CLIP's.
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    space={"symmetric": (True, False)},
    control=True,
)


@dataclass(frozen=True)
class ClassifierConfig(CLIPConfig):
    """Options of the classifier."""

    animals: tuple[str, ...] = ()
    """Names of the classes, which are animals; empty takes all built-in ones. For your own world, name its animals."""


CLASSIFIER = ScorerSpec(
    name="classifier",
    title="Classifier",
    source="supervised baseline, as in Abbasi et al. 2024, Language plays a pivotal role in the object-attribute "
    "compositional generalization of CLIP",
    about="CLIP's image tower and a vector for each animal in place of texts; of a caption it reads only which animals "
    "it names",
    implementation="menagerie.models.networks.clip:ClassifierScorer",
    config=ClassifierConfig,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    takes_negatives=False,
    control=True,
)


@dataclass(frozen=True)
class SigLIPConfig(CLIPConfig):
    """Options of SigLIP. Pretrained weights with a bias start at it, and at their temperature if you set no other."""

    logit_scale: float = 10.0
    """Initial value of the learned inverse temperature (Zhai et al. 2023, section 3.3)."""
    logit_bias: float = -10.0
    """Initial value of the learned bias; -ln(B - 1) balances an image's one positive and its B - 1 negatives."""


SIGLIP = ScorerSpec(
    name="siglip",
    title="SigLIP",
    source="Zhai et al. 2023, Sigmoid loss for language image pre-training",
    about="CLIP whose loss judges each pair of an image and a text by itself, true or false",
    implementation="menagerie.models.networks.clip:SigLIPScorer",
    config=SigLIPConfig,
    small={"logit_bias": -4.0},  # about balanced for 64 images
    smoke={"logit_bias": -3.0},
    # Section 4; its 20 000 steps of warm-up would be longer than our runs, so CLIP's number is used. Its weight decay
    # of 1e-4 is subtracted at each step at the peak rate (big_vision/optax.py adds it after scaling by the rate);
    # torch's AdamW multiplies decay by the rate, so here it is 1e-4 / 1e-3.
    scratch={"learning_rate": 1e-3, "weight_decay": 0.1, "warmup": 1000, "betas": (0.9, 0.95)},
    # Pretrained weights do better without decay (section 4.3); the rates are those of CLIP's fine-tuning.
    pretrained={"learning_rate": 4e-6, "weight_decay": 0.0, "warmup": 50, "betas": (0.9, 0.95)},
    space={"logit_bias": Range(-10.0, -2.0), "logit_scale": Range(5.0, 30.0, log=True)},
)

SPECS = (CLIP, AVERAGE, NEGCLIP, SUM, INTERACTION, FILIP, CLASSIFIER, SIGLIP)
