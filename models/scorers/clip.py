"""The specs of CLIP, of CLIP with average pooling, and of CLIP with negatives in its batches; free of torch."""

from dataclasses import dataclass

from menagerie.models.spec import ScorerSpec


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

SPECS = (CLIP, AVERAGE, NEGCLIP)
