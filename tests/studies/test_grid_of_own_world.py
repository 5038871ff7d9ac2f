"""A grid in a world of a user's own."""

import csv
import sys

import matplotlib.image
import numpy as np
import trimesh

from tests.command import GRID, QUICK, run_here, succeed


def test_a_world_of_ones_own_goes_from_toml_to_results(tmp_path):
    """An own mesh and an own texture, no Python written; a second run finds everything done."""
    body = trimesh.creation.icosphere(3, 0.5)
    trimesh.Trimesh(body.vertices * (1.3, 0.8, 1), body.faces).export(tmp_path / "blob.stl")
    tiles = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)
    matplotlib.image.imsave(tmp_path / "tiles.png", tiles)
    (tmp_path / "mine.toml").write_text(
        'extends = "tiny"\nanimals = ["gridblob", "penguin", "rabbit", "elephant"]\ntextures = ["red", "gridtiles"]\n'
        'backgrounds = ["desert"]\n'
        '[animal.gridblob]\nmesh = "blob.stl"\nsize = 1.2\n[texture.gridtiles]\nimage = "tiles.png"\n'
    )
    command = [*GRID, *QUICK, "--world", "mine.toml", "--steps", "10", "--out", "runs/o"]
    succeed(command, tmp_path, figures=False)
    rows = list(csv.DictReader((tmp_path / "runs/o/results.csv").open()))
    assert {row["model"] for row in rows if row["n"] != "0"} == {"clip", "oc-clip"}
    (split,) = tmp_path.glob("store/mine-32px-*/binding-*.h5")
    succeed([sys.executable, "-m", "menagerie", "audit", str(split)], tmp_path)
    assert "2 of them finished before" in run_here(command, tmp_path, page=False).stdout
