"""The spec of a classifier of animals; free of torch."""

from dataclasses import dataclass

from menagerie.models.scorers.clip import CLIP, CLIPConfig
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class ClassifierConfig(CLIPConfig):
    """Options of the classifier."""

    animals: tuple[str, ...] = ()
    """Names of the classes, which are animals; empty takes all built-in animals. For a world of your own, name its
    animals."""


CLASSIFIER = ScorerSpec(
    name="classifier",
    title="Classifier",
    source="supervised baseline, as in Abbasi et al. 2024, Language plays a pivotal role in the object-attribute "
    "compositional generalization of CLIP",
    about="CLIP's image tower and a vector for each animal in place of texts; of a caption it reads only which animals "
    "it names",
    implementation="menagerie.models.networks.classifier:ClassifierScorer",
    config=ClassifierConfig,
    scratch=CLIP.scratch,
    pretrained=CLIP.pretrained,
    reads=("graphs",),
    takes_negatives=False,
    control=True,
)

SPECS = (CLASSIFIER,)
