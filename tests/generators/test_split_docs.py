"""docs/splits.md: what it has to paste reads the same from a file as `SplitDataset`, with h5py and torch alone."""

import re

import numpy as np
import torch

from menagerie import SplitDataset
from menagerie.generators.storage.pack import pack
from tests.command import ROOT

PAGE = (ROOT / "docs" / "splits.md").read_text()
(LOADER,) = re.findall(r"^```python\n(import h5py\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_loader_reads_what_the_data_set_reads(copied, tmp_path, monkeypatch):
    pack(copied)
    copied.rename(tmp_path / "split.h5")
    monkeypatch.chdir(tmp_path)
    pasted = {}
    exec(compile(LOADER, "docs/splits.md", "exec"), pasted)
    assert len(pasted["captions"]) == len(pasted["false_captions"]) == len(pasted["images"]) > 0
    assert pasted["images"].shape == pasted["swapped_images"].shape
    for subset in ("train", "unseen_pairs"):
        rows, data = pasted["Examples"]("split.h5", subset), SplitDataset("split.h5", subset)
        images, swapped, captions, false_captions = zip(*(rows[i] for i in range(len(rows))), strict=True)
        every = np.arange(len(data))
        rows_of_swapped = data.counterfactual_items(every)
        alike = data.images(np.where(rows_of_swapped < 0, every, rows_of_swapped))
        others = data.counterfactual_images(every) if data.has_counterfactuals else alike
        assert torch.equal(torch.stack(images).permute(0, 3, 1, 2), data.images(every))
        assert torch.equal(torch.stack(swapped).permute(0, 3, 1, 2), others)
        assert list(captions) == data.records.captions
        assert list(false_captions) == data.records.negatives
