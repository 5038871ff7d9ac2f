"""What a folder of Hugging Face's transformers says of how it reads, found out before anything is loaded."""

from pathlib import Path
from typing import Any

from menagerie.envs.core.reading import read_json

GEMMA_WORDS = 256_000  # of the vocabulary of SigLIP2
GEMMA = ("Gemma", "Siglip2")


def settings_in(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder; empty where there is none, or none that can be read: transformers says so later."""
    try:
        return read_json(folder / name, dict[str, Any])
    except ValueError:
        return {}


def read_otherwise_before(place: str) -> bool:
    """Whether a folder, or a model of the hub, was read otherwise once: then what it scored is not what it scores now.

    Images were always rescaled by 1/255 and normalised, and texts of SigLIP2 kept their capitals.
    """
    folder = Path(place)
    if not folder.is_dir():
        return "siglip2" in place.lower()
    settings = settings_in(folder, "processor_config.json").get("image_processor") or {}
    settings |= settings_in(folder, "preprocessor_config.json")
    steps = all(settings.get(step, True) for step in ("do_rescale", "do_normalize"))
    usual = settings.get("rescale_factor", 1 / 255) == 1 / 255
    words = (settings_in(folder, "config.json").get("text_config") or {}).get("vocab_size")
    tokenizer = str(settings_in(folder, "tokenizer_config.json").get("tokenizer_class"))
    return not (steps and usual) or words == GEMMA_WORDS or tokenizer.startswith(GEMMA)
