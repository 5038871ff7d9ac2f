"""The spec of LABCLIP; free of torch."""

from dataclasses import dataclass

from menagerie.models.spec import ScorerSpec, Stage


@dataclass(frozen=True)
class LABCLIPConfig:
    """Options of LABCLIP."""

    logit_scale: float = 1.0
    """Initial value of the learned inverse temperature: 1, as published, not CLIP's."""


# Published: Adam at a constant rate, 1e-2 on synthetic images; ours decays to 0, as all models' do. No weight decay: it
# would pull the map towards 0 instead of the identity.
RECIPE = {"learning_rate": 1e-2, "weight_decay": 0.0, "warmup": 0, "betas": (0.9, 0.999)}

LABCLIP = ScorerSpec(
    name="labclip",
    title="LABCLIP",
    source="Koishigarina et al. 2025, CLIP behaves like a bag-of-words model cross-modally but not uni-modally",
    about="a frozen CLIP whose text vectors pass a learned linear map",
    implementation="menagerie.models.networks.labclip:LABCLIPScorer",
    config=LABCLIPConfig,
    scratch=RECIPE,
    pretrained=RECIPE,
    space={"logit_scale": (1.0, 1 / 0.07, 100.0)},
    negatives=("captions",),
    stage=Stage("clip"),
)

SPECS = (LABCLIP,)
