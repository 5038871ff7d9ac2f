"""The classifier: CLIP's image tower under classes of animals; nothing else of a caption reaches it."""

import pytest
import torch
import torch.nn.functional as F

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.models.checkpoint import build_scorer
from menagerie.models.networks.clip import ClassReader
from menagerie.models.objectives import Targets
from menagerie.models.texts import Texts
from tests.helpers.scorers import TEXTS, TOWERS, caption, images, scorer

ANIMALS = ("cat", "tortoise", "giant tortoise", "goldfish")
SAME = [
    SceneGraph(("red cat", "white goldfish", "city")),
    SceneGraph(("white cat", "red goldfish", "city")),
    SceneGraph(("goldfish", "cat", "desert"), (Edge("to the left of", 0, 1),)),
    SceneGraph(("two grass goldfish", "three red cats", "no white tortoise", "city")),
]


@pytest.fixture(scope="module")
def model():
    return build_scorer("classifier", TOWERS, TEXTS, {"animals": ANIMALS}).eval()


def read(model, graphs):
    return model.encode_texts(model.read([caption(graph) for graph in graphs], graphs))


def test_classifier_reads_nothing_of_a_text_but_its_animals(model):
    """Whatever their textures, order, numbers, places and absent objects."""
    shares = read(model, SAME).shares
    assert shares.tolist() == [[0.5, 0, 0, 0.5]] * len(SAME)
    with torch.no_grad():
        scores = model.similarity(model.encode_images(images(3)), read(model, SAME))
    assert (scores == scores[:, :1]).all()


def test_class_whose_name_ends_with_another_is_told_apart(model):
    found = read(model, [SceneGraph(("red giant tortoise",)), SceneGraph(("giant tortoise", "red tortoise"))]).shares
    assert found.tolist() == [[0, 0, 1, 0], [0, 0.5, 0.5, 0]]


def test_text_without_a_class_scores_zero_and_cannot_train(model):
    none = [SceneGraph(("red dog", "concatenation", "city"))]
    with torch.no_grad():
        assert not model.similarity(model.encode_images(images(3)), read(model, none)).any()
    texts = Texts(["a red dog"], none)
    assert not ClassReader(ANIMALS)(texts).shares.any()
    with pytest.raises(UserError, match=r"can't train on 'a red dog', which names none .* --classifier.animals"):
        model.training_reader(texts)


def test_classifier_starts_as_clips_image_tower_without_a_text_tower():
    clip, ours = scorer("clip", seed=3), scorer("classifier", seed=3)
    with torch.no_grad():
        assert torch.equal(clip.encode_images(images(3)), ours.encode_images(images(3)))
    names = {name for name, _ in ours.named_parameters() if not name.startswith("model.visual.")}
    assert names == {"log_scale", "classes", "model.logit_scale"}
    assert clip.backbones()["vision"][0].shape == ours.backbones()["vision"][0].shape


def test_classifier_loss_is_a_softmax_over_classes(model):
    """Of an image with several animals the mean of their losses; which other images are in the batch doesn't matter."""
    graphs = [SAME[0], SceneGraph(("red giant tortoise",)), SAME[1]]
    pixels = images(3)
    with torch.no_grad():
        embeddings = model.encode_images(pixels)
        targets = Targets(torch.eye(3, dtype=torch.bool), None, 3)
        found = model.loss(embeddings, read(model, graphs), targets)
        logits = model.logit_scale() * embeddings @ F.normalize(model.classes, dim=-1).T
    labels = [[0, 3], [2], [0, 3]]
    expected = [
        sum(F.cross_entropy(row[None], torch.tensor([label])) for label in own) / len(own)
        for row, own in zip(logits, labels, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(expected).mean())
