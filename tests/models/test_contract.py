"""Every registered scorer keeps to the contract; every way to break it is named."""

from pathlib import Path

import numpy as np
import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.contract import build_for_contract, check_contract, contract_texts
from menagerie.models.recipe import Recipe
from menagerie.models.registry import own_class, scorer_class, spec_of, specs
from menagerie.models.towers.config import TowerConfig
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.encoding import batch_loss
from menagerie.models.training.feed import Feed
from menagerie.models.training.loop import train_scorer
from menagerie.studies.runs.command_line import only_models, scorer_options
from tests.helpers.scorers import OPTIONS, STAGED, for_data

NANO = TowerConfig("nano", resolution=32)


# Of a caption the classifier reads only which animals it names: a false one of the same animals tells it nothing. A
# captioner's loss is the likelihood of what is true.
WITHOUT_NEGATIVES = {name for name, spec in specs().items() if not spec.takes_negatives}


@pytest.mark.parametrize("tokenizer", ["", "open_clip"])
@pytest.mark.parametrize("name", specs())
def test_every_scorer_keeps_the_contract(name, tokenizer):
    towers = TowerConfig("nano", resolution=32, tokenizer=tokenizer)
    check_contract(name, towers, dict(spec_of(name).smoke), negatives=name not in WITHOUT_NEGATIVES)


@pytest.mark.parametrize("name", sorted(WITHOUT_NEGATIVES))
def test_scorers_whose_loss_takes_no_false_captions_refuse_them(name):
    with pytest.raises(UserError, match="its loss takes no negatives"):
        check_contract(name, NANO, dict(spec_of(name).smoke), negatives=True)


@pytest.mark.parametrize("name", specs())
def test_every_spec_names_its_class_and_valid_options(name):
    spec = specs()[name]
    assert issubclass(scorer_class(name).config_class, spec.config)
    for size in (spec.small, spec.smoke):
        spec.config(**size)


@pytest.mark.parametrize("name", [name for name, spec in specs().items() if spec.stage])
def test_training_leaves_the_frozen_base_scorer_unchanged(name, data):
    model = for_data(name, data)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    train_scorer(model, data, Recipe(steps=5, batch=8, **spec_of(name).scratch), 0, negatives=spec_of(name).negatives)
    changed = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    assert changed == {key for key, parameter in model.named_parameters() if parameter.requires_grad}
    assert not any(key.startswith("base.") for key in changed)
    assert not any(module.training for module in model.train().base.modules())


@pytest.mark.parametrize("name", specs())
def test_every_trained_parameter_has_a_gradient(name, spatial):
    """In towers of two blocks; the contract looks at those of one."""
    towers = TowerConfig("mini", resolution=32)
    model = build_scorer(name, towers, text_space(towers, spatial.texts()), OPTIONS[name]).train()
    pairs = np.flatnonzero(~spatial.strata["single_object"])[:6]
    batch = Feed(spatial, model.reader, Recipe(batch=6), 0, spec_of(name).negatives).batch(pairs, 0)
    batch_loss(model, batch, Recipe(batch=6)).backward()
    idle = [key for key, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert idle == ["model.visual.proj"] * (name == "oc-clip"), "OC-CLIP keeps a projection that it doesn't use"


OWN = """
from dataclasses import dataclass
import torch
from menagerie.models.networks.clip import CLIPScorer
from menagerie.models.scorers.clip import CLIPConfig
from menagerie.models.scorer import Scorer

@dataclass(frozen=True)
class Config(CLIPConfig):
    width: int = 3
    "Some width."

class Mine(CLIPScorer):
    config_class = Config
"""

BROKEN = {
    "no config": ("class Bad(Scorer):\n    pass\n", "needs `config_class`, a dataclass"),
    "an option without a default": (
        "@dataclass\nclass C:\n    width: int\n\nclass Bad(CLIPScorer):\n    config_class = C\n",
        "every option of C, the config of .*, needs a default",
    ),
    "options that aren't kept": (
        "class Bad(Mine):\n    def __init__(self, *a):\n        super().__init__(*a)\n        self.config = None\n",
        "fails at checkpoint as configured: TypeError",
    ),
    "numbers that aren't": (
        "class Bad(Mine):\n    def similarity(self, i, t):\n        return super().similarity(i, t) / 0 * 0\n",
        "not finite numbers",
    ),
    "images that see one another": (
        "class Bad(Mine):\n    def encode_images(self, p):\n        x = super().encode_images(p)\n"
        "        return x - x.mean(0, keepdim=True)\n",
        "depends on what else is in the batch",
    ),
    "pairs that differ from the whole": (
        "class Bad(Mine):\n    def pair_similarity(self, i, t):\n        return super().pair_similarity(i, t) + 0.1\n",
        "`pair_similarity` does not give what `similarity` gives",
    ),
    "a loss without gradients": (
        "class Bad(Mine):\n    def loss(self, *a):\n        return super().loss(*a).detach()\n",
        "fails at gradients",
    ),
    "weights that a checkpoint loses": (
        "class Bad(Mine):\n    def __init__(self, *a):\n        super().__init__(*a)\n"
        "        self.lost = torch.rand(1)\n"
        "    def encode_images(self, p):\n        return super().encode_images(p) * self.lost\n",
        "its scores change when it is saved and loaded",
    ),
    "a scored option that training takes": (
        "from menagerie.models.spec import ScorerSpec\n\n@dataclass(frozen=True)\nclass Factor(CLIPConfig):\n"
        "    factor: float = 1.0\n\nclass Bad(Mine):\n    config_class = Factor\n"
        "    spec = ScorerSpec(name='bad', implementation='', config=Factor, scored=('factor',))\n"
        "    def loss(self, *a):\n        return super().loss(*a) * self.config.factor\n",
        "its option factor changes the loss",
    ),
    "a scored option that decides weights": (
        "from menagerie.models.spec import ScorerSpec\n\n@dataclass(frozen=True)\nclass Sized(CLIPConfig):\n"
        "    wide: bool = False\n\nclass Bad(Mine):\n    config_class = Sized\n"
        "    spec = ScorerSpec(name='bad', implementation='', config=Sized, scored=('wide',))\n"
        "    def __init__(self, *a):\n        super().__init__(*a)\n"
        "        self.more = torch.nn.Linear(1, 2 if self.config.wide else 1)\n",
        "its option wide changes weights",
    ),
    "a text embedding without a row for each text": (
        "class Bad(Mine):\n    pairs_only = True\n"
        "    def encode_texts(self, t):\n        return super().encode_texts(t), torch.zeros(1)\n"
        "    def similarity(self, i, t):\n        return i @ t[0].T\n",
        "need a row for each text",
    ),
    "a mistake of its own": (
        "class Bad(Mine):\n    def encode_texts(self, t):\n        return t.no_such_object\n",
        "fails at scores as configured: AttributeError",
    ),
}


def written(folder, text):
    file = folder / "mine.py"
    file.write_text(OWN + "\n\n" + text)
    return file


@pytest.mark.parametrize("fault", BROKEN)
def test_contract_names_each_way_to_break_it(fault, tmp_path):
    text, message = BROKEN[fault]
    name = f"{written(tmp_path, text)}:Bad"
    with pytest.raises(UserError, match=message):
        check_contract(name, NANO, dict(spec_of(name).smoke))


def test_users_class_has_flags_and_checkpoints(tmp_path):
    name = f"{written(tmp_path, '')}:Mine"
    assert spec_of(name).flag == "mine"
    check_contract(name, NANO, {"width": 5})
    options = only_models(scorer_options("small"), [name])
    assert options.of(name) == {}
    assert options.mine.width == 3
    save_checkpoint(tmp_path / "saved", name, build_for_contract(name, NANO, {"width": 5}))
    assert load_checkpoint(tmp_path / "saved", name).config.width == 5
    with pytest.raises(UserError, match="its file is run only if you name it"):
        load_checkpoint(tmp_path / "saved")
    with pytest.raises(UserError, match="has no class 'Yours' that extends"):
        spec_of(name.replace(":Mine", ":Yours"))
    with pytest.raises(UserError, match="did you mean 'oc-clip'"):
        spec_of("occlip")


def test_users_spec_replaces_the_default_one(tmp_path):
    spec = "ScorerSpec(name='mine', implementation='', config=Config, smoke={'width': 2}, negatives=('captions',))"
    text = f"from menagerie.models.spec import ScorerSpec\n\nclass Spec(Mine):\n    spec = {spec}\n"
    name = f"{written(tmp_path, text)}:Spec"
    assert (spec_of(name).flag, spec_of(name).negatives) == ("mine", ("captions",))
    assert scorer_options("smoke").of(name) == {"width": 2}


def test_users_scorer_on_a_frozen_base_keeps_the_contract(tmp_path):
    name = f"{written(tmp_path, STAGED)}:Linear"
    check_contract(name, NANO, {})
    scorer = build_for_contract(name, NANO, {})
    trained = [key for key, parameter in scorer.named_parameters() if parameter.requires_grad]
    assert trained == ["log_scale", "map.weight"]


def test_texts_decide_words_and_context():
    space = text_space(NANO, contract_texts())
    assert "red" in space.words
    assert space.context == 20
    assert text_space(NANO, [" ".join(["red"] * 21)]).context == 24
    long = text_space(TowerConfig("nano", tokenizer="open_clip"), [" ".join(["red"] * 200)])
    assert long.context == 77
    assert not long.words


def test_scorer_in_the_docs_keeps_the_contract(tmp_path):
    """The block of docs/scorers.md, as a reader would copy it."""
    text = (Path(__file__).parents[2] / "docs" / "scorers.md").read_text()
    (tmp_path / "my_model.py").write_text(text.partition("```python\n")[2].partition("```")[0])
    name = f"{tmp_path}/my_model.py:Bottleneck"
    check_contract(name, NANO, {"width": 8})
    assert scorer_options("smoke").of(name) == {"width": 4}


def test_two_classes_of_one_file_share_a_module(tmp_path):
    file = written(tmp_path, "class Other(Mine):\n    pass\n")
    mine, other = (f"{file}:{name}" for name in ("Mine", "Other"))
    assert issubclass(own_class(other), own_class(mine))


def test_users_class_named_like_a_shipped_scorer_is_refused(tmp_path):
    """Their options would have one name on the command line."""
    own = f"{written(tmp_path, 'class Clip(Mine):' + chr(10) + '    pass' + chr(10))}:Clip"
    with pytest.raises(UserError) as error:
        only_models(scorer_options("small"), [own])
    assert f"the options of clip and {own} would both be --clip" in str(error.value)
