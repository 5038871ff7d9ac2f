"""Image files of which each lies in one of several folders."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.captioned import Indices
from menagerie.generators.sources.folders import files_in
from menagerie.generators.sources.image_files import ImageFiles


class ImageFolders:
    """The images `names`, each in the first of the folders that has it."""

    def __init__(self, folders: Sequence[Path], names: Sequence[str], resolution: int) -> None:
        """Raises unless all files are there."""
        there = [files_in(folder) for folder in folders]
        owners = [next((k for k, files in enumerate(there) if name in files), -1) for name in names]
        missing = [name for name, owner in zip(names, owners, strict=True) if owner < 0]
        if missing:
            raise UserError(
                f"{len(missing)} of {len(names)} images are missing in {' and '.join(map(str, folders))}, the first is "
                f"{missing[0]!r}; put them there, or name the folders that have them"
            )
        self.owners = np.array(owners, np.int64)
        self.places = np.zeros(len(names), np.int64)
        self.resolution, self.parts = resolution, []
        for k, folder in enumerate(folders):
            own = np.flatnonzero(self.owners == k)
            self.places[own] = np.arange(len(own))
            self.parts.append(ImageFiles(folder, [names[i] for i in own], resolution))

    def __len__(self) -> int:
        return len(self.owners)

    def sizes(self) -> Iterator[str]:
        """Of each image its file and how many bytes it has, as a text, whatever folder it is in."""
        sizes = [list(part.sizes()) for part in self.parts]
        return (sizes[owner][place] for owner, place in zip(self.owners, self.places, strict=True))

    def read(self, indices: Indices) -> UInt8[Tensor, "n 3 r r"]:
        """The images of `indices`."""
        wanted = np.array([range(len(self))[index] for index in indices], np.int64)
        images = torch.empty((len(wanted), 3, self.resolution, self.resolution), dtype=torch.uint8)
        for k, part in enumerate(self.parts):
            rows = np.flatnonzero(self.owners[wanted] == k)
            if len(rows):
                images[rows] = part.read(self.places[wanted[rows]])
        return images
