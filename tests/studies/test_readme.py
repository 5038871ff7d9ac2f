"""What the README says to paste works, in an empty folder of a clone."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.command import ROOT


def block_with(text: str) -> str:
    """The README's block of commands that holds `text`."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if text in block]
    return block


def test_an_own_split_and_an_own_model(tmp_path):
    """Two rules, three models, a test for each rule; with few steps and views."""
    for name in ("studies", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    block = (
        block_with("mine.toml")
        .replace("--steps 700", "--steps 4 --batch 8")
        .replace("views = 8", "views = 1\ntest_views = 1")
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert ", 0 fail" in done.stdout
    (run,) = tmp_path.glob("runs/*")
    rows = list(csv.DictReader((run / "results.csv").open()))
    assert len({row["model"] for row in rows}) == 3
    assert {"held_out", "held_out 1", "held_out 2"} <= {row["subset"] for row in rows}
    report = (run / "report.html").read_text()
    assert "held_out 1: texture=red &amp; animal=penguin" in report
    assert "held_out 2: pair={camel, elephant}" in report
