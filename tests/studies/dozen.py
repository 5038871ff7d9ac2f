"""A study with a dozen models of made-up strength, as `python dozen.py binding_grid --preset smoke ...`.

Their results are fabricated: only how tables and figures look is of interest.
"""

import importlib
import sys

from menagerie.envs.core.errors import run_command
from menagerie.models.registry import specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.analysis.papers import ABLATIONS, Ablations, Claim
from menagerie.studies.frame import command
from tests.studies.oracles import OracleConfig

NAMES = {
    "clip": "CLIP",
    "clip-gap": "CLIP with average pooling",
    "clip-attpool": "CLIP with attentional pooling",
    "clip-linear": "CLIP with a linear bottleneck",
    "fdt": "FDT",
    "negclip": "NegCLIP",
    "siglip": "SigLIP",
    "sparo": "SPARO",
    "flair": "FLAIR",
    "dcsm": "DCSM",
    "labclip": "LABCLIP",
    "oc-clip": "OC-CLIP",
}
CLAIM = Claim("strength 0.1", "binding", (("unseen_pairs", "swap"), ("seen_pairs", "swap")), -1, "Strength helps.")


def registered() -> None:
    """Put the dozen in place of what there is; the later a name, the stronger."""
    specs().clear()
    for number, (name, title) in enumerate(NAMES.items()):
        given = {"kind": "noisy", "strength": 0.03 * 1.35**number}
        rows = {f"strength {value:g}": f"strength={value}" for value in (0.05, 0.1, 0.5, 1.0)}
        specs()[name] = ScorerSpec(
            *(name, "tests.studies.oracles:Perfect", OracleConfig, title, "made up"),
            **{"small": given, "smoke": given},
        )
        ABLATIONS[name] = Ablations(rows=rows, claims=(CLAIM,))


if __name__ in ("__main__", "__mp_main__"):  # the latter in the processes that train
    registered()

if __name__ == "__main__":
    study = importlib.import_module(f"menagerie.studies.{sys.argv.pop(1)}")
    if study.main is command.main:
        name = study.__name__.rpartition(".")[2]
        run_command(lambda: command.start(name, study.__doc__, study.PRESETS, "laptop"))
    else:
        run_command(study.main)
