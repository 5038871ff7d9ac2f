"""NegCLIP: CLIP whose batches hold false captions, and images beside their partners; the loss is rectangular.

Images are compared with all captions of the batch and behind them the swapped one of each, which has no image and no
row of its own; captions are compared with images alone (`menagerie.models.objectives.contrastive_loss`). Where training
shows the swapped scene of an image too, both are in one batch.

Where we differ from the published code (vinid/neg_clip):

- Its false captions exchange words of one part of speech, whether or not the result is false; ours come from the scene,
  are false of the image, and are left out where they are true of another one in the batch.
- Its hard images are one of the three nearest in CLIP's features, and a step has twice as many images; ours are
  partners and take the place of other images: a step costs as many passes as CLIP's.
- There, gathering over several GPUs breaks the order of the texts; a batch here is put together before it is moved.
"""

from menagerie.models.scorers.clip import SPEC as CLIP
from menagerie.models.spec import ScorerSpec

SPEC = ScorerSpec(
    name="negclip",
    title="NegCLIP",
    source="Yuksekgonul et al. 2023, When and why vision-language models behave like bags-of-words",
    about="CLIP trained with false captions of the same words, and with images of which they are true",
    implementation=CLIP.implementation,
    config=CLIP.config,
    scratch=CLIP.scratch,  # the paper fine-tunes only
    pretrained={"learning_rate": 1e-6, "weight_decay": 0.2, "warmup": 50, "betas": (0.9, 0.98)},
    # No space: it has no option that CLIP doesn't have.
    negatives=("captions", "images"),
)
