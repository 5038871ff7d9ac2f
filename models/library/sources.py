"""The sources of scorers: checkpoints, open_clip, Hugging Face, users' classes. Heavy libraries are imported on use."""

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.envs.core.identity import digest
from menagerie.envs.core.plugins import own_sources
from menagerie.envs.core.reading import is_system_file
from menagerie.envs.core.records import sha256
from menagerie.models.cell_results import CONFIG
from menagerie.models.registry import is_own, spec_of
from menagerie.models.towers.config import TowerConfig, file_and_tag

if TYPE_CHECKING:
    from menagerie.models.library.loaded import LoadedScorer
    from menagerie.models.scorer import Scorer

LONGEST = 32  # words in a caption


class ScorerSource(ABC):
    """A place from which a scorer can be loaded."""

    name: str
    """Name as the user gave it."""

    @abstractmethod
    def identity(self) -> str:
        """Return a hash of all that decides scores: bytes of weights and code, or the name of weights elsewhere."""

    @abstractmethod
    def scorer(self, world: str = "") -> "Scorer":
        """Load the scorer alone; `world` gives the names for parsing captions."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Inputs that the scorer reads of a text, as in `ScorerSpec.reads`."""
        return ("captions",)

    def load(self, device: str = "cpu", world: str = "") -> "LoadedScorer":
        """Load the scorer for images and captions in plain form."""
        from menagerie.models.library.loaded import LoadedScorer

        return LoadedScorer(self.name, self.scorer(world).to(device), self.reads, world)


@dataclass(frozen=True)
class Checkpoint(ScorerSource):
    """A folder written by `menagerie.models.checkpoint`."""

    name: str
    folder: Path
    model: str
    """Name of the scorer; for a user's class file.py:Class, whose file is run."""

    def identity(self) -> str:
        """Hash of the checkpoint's description, which has the digest of its weights, and of the source files of a
        user's class."""
        from menagerie.models.checkpoint import scorer_config

        scorer_config(self.folder)  # raises if the weights aren't this cell's
        code = own_sources(file_of_name(self.model)) if is_own(self.model) else []
        return digest_files([self.folder / CONFIG, *code])

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs that the scorer's spec names."""
        return spec_of(self.model).reads

    def scorer(self, world: str = "") -> "Scorer":
        """Load the scorer with its weights."""
        from menagerie.models.checkpoint import load_checkpoint

        return load_checkpoint(self.folder, self.model)


@dataclass(frozen=True)
class OpenCLIP(ScorerSource):
    """An architecture of open_clip with its weights: a tag, a local file (FILE, FILE@TAG), or "" for random ones."""

    name: str
    architecture: str
    weights: str

    def identity(self) -> str:
        """Hash of the architecture, of the weights (the bytes of a file, else the tag), of the tag that decides how
        pictures are prepared for a file, and of the file's image size if it isn't the architecture's."""
        from menagerie.models.towers.build import at_own_sizes
        from menagerie.models.towers.preparation import towers_to_record

        weights, tag = file_and_tag(towers_to_record(TowerConfig(self.architecture, self.weights)).pretrained)
        weights = digest_files([Path(weights)]) if Path(weights).is_file() else weights or "random"
        usual, own = (at_own_sizes(self.architecture, its)[0].resolution for its in ("", self.weights))
        more = ({"prepared_as": tag} if tag else {}) | ({"side": own} if own != usual else {})
        return digest({"open_clip": self.architecture, "weights": weights} | more)

    def scorer(self, world: str = "") -> "Scorer":
        """Build CLIP on these towers, at their own sizes; without weights, warn, and use the same random ones."""
        import torch

        from menagerie.models.checkpoint import build_scorer
        from menagerie.models.towers.build import at_own_sizes

        towers, texts = at_own_sizes(self.architecture, self.weights)
        if not self.weights:
            name = self.architecture
            warnings.warn(f"{name} has random weights; to name some, write {name}/TAG or {name}/FILE", stacklevel=4)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return build_scorer("clip", towers, texts)


@dataclass(frozen=True)
class HuggingFace(ScorerSource):
    """A folder of transformers, or a name on the hub."""

    name: str
    place: str

    def identity(self) -> str:
        """Hash of all files in a folder and below it, or of the name of a model on the hub."""
        folder = Path(self.place)
        names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        seen = (name for name in names if not any(part.startswith(".") for part in name.parts[:-1]))  # git's, the hub's
        files = sorted(folder / name for name in seen if not is_system_file(name))
        if not files:
            return digest({"hugging_face": self.place})
        whole = digest_files(path for path in files if path.parent == folder)
        below = {path.relative_to(folder).as_posix(): digest_files([path]) for path in files if path.parent != folder}
        return digest({"files": whole, "below": below}) if below else whole

    def scorer(self, world: str = "") -> "Scorer":
        """Load the scorer with its weights."""
        from menagerie.models.networks.clip import HuggingFaceScorer

        return HuggingFaceScorer(self.place)


@dataclass(frozen=True)
class OwnClass(ScorerSource):
    """A user's scorer class without a checkpoint. Its towers are untrained unless the class loads weights itself."""

    name: str
    towers: TowerConfig = field(default_factory=TowerConfig)

    def identity(self) -> str:
        """Hash of the class's file, its towers and its initial weights, which it may read from files of its own."""
        from safetensors.torch import save

        # Copies: safetensors accepts neither views nor tensors that share memory, such as tied weights.
        state = {name: tensor.contiguous().clone() for name, tensor in self.scorer().state_dict().items()}
        file = digest_files(own_sources(file_of_name(self.name)))
        code = {"file": file, "name": self.name, "towers": asdict(self.towers)}
        return digest(code | {"weights": hashlib.sha256(save(state)).hexdigest()})

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs that the class's spec names."""
        return spec_of(self.name).reads

    def scorer(self, world: str = "") -> "Scorer":
        """Build the scorer with seed 0. A closed vocabulary has the words of all captions of `world`; by default of all
        built-in animals and backgrounds, and of the textures of pug."""
        import torch

        from menagerie.generators.parsers.rules import vocabulary_of, words_of_captions
        from menagerie.models.checkpoint import build_scorer
        from menagerie.models.contract import attempt
        from menagerie.models.towers.tokenizers import text_space

        words = words_of_captions(vocabulary_of(world))
        texts = text_space(self.towers, [*words, " ".join([words[0]] * LONGEST)])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return attempt(self.name, "can't be built", lambda: build_scorer(self.name, self.towers, texts)).eval()


def file_of_name(name: str) -> Path:
    """The path of the file in `file.py:Class`."""
    return Path(name.rpartition(":")[0])


def digest_files(files: Iterable[Path]) -> str:
    """Hash of the contents of several files."""
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(sha256(path))
    return hashed.hexdigest()[:16]
