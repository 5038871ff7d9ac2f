"""How much other objects hide the objects that a hard negative exchanges, in scenes of tests."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from menagerie.generators.captions.contents import exchanged_objects

BINS = {0.02: "hidden by up to 2 %", 0.1: "2 to 10 %", 0.25: "10 to 25 %", 0.5: "25 to 50 %", 1.0: "50 % or more"}
"""Upper ends of the bins of hidden shares, each with the name of its bin."""


@lru_cache(maxsize=8)
def hidden_bins(split: Path) -> dict[str, str]:
    """Return the bin of each test scene of several objects, by the scene's key: that of the more hidden one of the two
    objects whose textures are exchanged."""
    from menagerie.generators.storage.pictures import SplitPictures
    from menagerie.generators.storage.split_file import read_split

    pictures, found = SplitPictures(read_split(split)), {}
    for name, records in pictures.split.subsets.items():
        if name == "train" or not len(records):
            continue
        shares = pictures.hidden(name, range(len(records)))
        for scene, row in zip(records.scenes, shares, strict=True):
            if len(scene.objects) > 1 and not np.isnan(most := row[list(exchanged_objects(scene))].max()):
                found[scene.key] = bin_of(float(most))
    return found


def bin_of(share: float) -> str:
    """Return the name of the bin of a share from 0 to 1."""
    return next(name for end, name in BINS.items() if share <= end)
