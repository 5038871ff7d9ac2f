from .envs.core.errors import UserError as UserError
from .generators.parsers.rules import parse as parse
from .generators.storage.dataset import SplitDataset as SplitDataset
from .generators.storage.folder import SplitFolder as SplitFolder
from .models.library.load import load_scorer as load_scorer
from .models.scorer import Scorer as Scorer
from .models.spec import ScorerSpec as ScorerSpec
from .studies.frame.run import train as train

__version__: str
