"""Models that answer questions about images, at a server or in this process. A model has a judge for each form of
questions, and on request a blind one too."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.core.progress import silence_loggers
from menagerie.envs.core.reading import read_json
from menagerie.models.judges.questions import VERSION, FormName, JudgeOptions
from menagerie.models.library.sources import HuggingFace, ScorerSource
from menagerie.models.towers.hugging_face import MASKED
from menagerie.models.towers.weight_file import check_no_adapter

if TYPE_CHECKING:
    from menagerie.models.judges.judge import Judge, Respondent
    from menagerie.models.scorer import Scorer

CHAT, HUB, CONFIG = "chat:", "hf:", "config.json"


@dataclass(frozen=True)
class JudgeSource(ScorerSource):
    """A model asked in one form of questions; if `blind`, it never sees the image."""

    name: str
    """chat:URL#MODEL, or a folder or a hub's name of Hugging Face's transformers."""
    form: FormName
    blind: bool
    options: JudgeOptions

    @property
    def place(self) -> str:
        """The server's address, or the folder or the hub's name."""
        return self.name.removeprefix(CHAT).partition("#")[0] if self.on_server else self.name.removeprefix(HUB)

    @property
    def model(self) -> str:
        """The name on the server, or the last part of the folder or the hub's name."""
        return self.name.partition("#")[2] if self.on_server else Path(self.place).name

    @property
    def on_server(self) -> bool:
        """Whether a server answers, not this process."""
        return self.name.startswith(CHAT)

    @property
    def asked(self) -> str:
        """The form of questions in words."""
        return f"{self.form}, blind" if self.blind else self.form

    @property
    def about(self) -> str:
        """What the model is, in a line."""
        if self.on_server:
            return f"the model {self.model} at {self.place}"
        return f"an image-text-to-text model of Hugging Face's transformers, {self.place}"

    def respondent(self, device: str) -> "Respondent":
        """Return the model that answers, without loading it. Raises for a wrong address and for a missing key."""
        from menagerie.models.judges.respondents import ChatModel, HuggingFaceModel

        if self.on_server:
            return ChatModel(self.place, self.model, self.options)
        return HuggingFaceModel(self.model, self.place, HuggingFace(self.name, self.place).identity(), device)

    def identity(self) -> str:
        """Return a hash of everything that decides the judge's scores; a server's address isn't part of it."""
        how = {"side": self.options.side, "largest": self.options.largest}
        prior = self.options.prior if self.form == "likelihood" and not self.blind else 0.0
        asked = {"form": self.form, "blind": self.blind, "prior": prior, "version": VERSION, **how}
        allowed = {} if self.options.unanswered == "refuse" else {"unanswered": self.options.unanswered}
        return digest({**self.respondent("cpu").identity(), **asked, **allowed})

    def scorer(self, world: str = "") -> "Scorer":
        raise UserError(
            f"{self.name} answers questions, and has neither layers nor embeddings; evaluate and transfer ask it"
        )

    def load(self, device: str = "cpu", world: str = "") -> "Judge":  # type: ignore[override]
        """Return the judge. Nothing is loaded or sent before its first question."""
        from menagerie.models.judges.forms import make_form
        from menagerie.models.judges.judge import Judge

        return Judge(self.respondent(device), make_form(self.form, self.options, self.blind), self.options)


def find_judges(name: str, options: JudgeOptions) -> list[JudgeSource]:
    """Return the judges that a name stands for: one for each form of questions, and with `options.blind` a second,
    blind one. Empty if the name isn't that of a model that answers questions. Raises for a chat model without a name,
    with an invalid address, or whose key is missing."""
    if not is_judge(name):
        return []
    blind = (False, True) if options.blind else (False,)
    judges = [JudgeSource(name, form, blinded, options) for blinded in blind for form in options.forms]
    if judges[0].on_server:
        if not judges[0].model:
            raise UserError(f"{name} names no model; write chat:http://HOST:PORT/v1#MODEL")
        judges[0].respondent("cpu")
    else:
        check_no_adapter(Path(judges[0].place))
    return judges


def check_key(key: str, sources: Iterable[ScorerSource]) -> None:
    """Raise if a key would be sent to several servers."""
    judges = [source for source in sources if isinstance(source, JudgeSource) and source.on_server]
    parts = [urlsplit(judge.place) for judge in judges]
    servers = sorted({f"{part.scheme}://{part.netloc}" for part in parts})
    if key and len(servers) > 1:
        raise UserError(f"--judge.key {key} would be sent to {' and '.join(servers)}; ask each by a command of its own")


def is_judge(name: str) -> bool:
    """Whether a name is that of a model that answers questions."""
    place = name.removeprefix(HUB)
    if name.startswith(CHAT) or not (name.startswith(HUB) or Path(place).is_dir()):
        return name.startswith(CHAT)
    kind = kind_of_hugging_face(Path(place)) if Path(place).is_dir() else kind_on_hub(place)
    return bool(kind) and kind not in MASKED and reads_images_and_text(kind)


def kind_of_hugging_face(folder: Path) -> str:
    """The `model_type` in a folder of Hugging Face's transformers; empty for other folders."""
    try:
        return str(read_json(folder / CONFIG, dict[str, object]).get("model_type", ""))
    except ValueError:
        return ""


@silence_loggers()
def kind_on_hub(name: str) -> str:
    """The `model_type` of a model on the hub; empty if it can't be loaded."""
    try:
        from transformers import AutoConfig

        return str(AutoConfig.from_pretrained(name, trust_remote_code=False).model_type)
    except Exception:  # each reason raises its own type, and again when the model is loaded
        return ""


def reads_images_and_text(kind: str) -> bool:
    """Whether models of a kind read images and text and write text; false without transformers."""
    try:
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as known
    except ImportError:
        return False
    return kind in known
