"""The measurement runs and reports what it could not measure."""

import sys

from tests.studies.command import ROOT, run


def test_rendering_is_compared(tmp_path):
    options = ["--world", "tiny", "--resolution", "32", "--scenes", "1", "--rounds", "1", "--cycles-samples", "1"]
    result = run([sys.executable, str(ROOT / "studies" / "throughput.py"), "rendering", *options], tmp_path)
    assert result.returncode == 0, result.stderr
    rows = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    assert float(rows["menagerie"][-1]) == 1.0
    assert float(rows["menagerie, direct"][-1]) > 1
    for name, refused in {"pyrender": "pyrender can't", "tiny": "physics needs", "cycles": "no blender"}.items():
        assert (name in rows) != (refused in result.stdout), name
