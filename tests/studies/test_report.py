"""The report in a real browser."""

import pytest

from tests.studies.browser import CHROMIUM, verdict
from tests.studies.command import GRID, QUICK, run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    result = run([*GRID, *QUICK, "--steps", "10", "--out", "runs/r"], folder)
    assert result.returncode == 0, result.stderr
    return folder / "runs/r/report.html"


def test_no_broken_image_and_no_script_error(report, tmp_path):
    found = verdict(report, tmp_path)
    images, _, wrong = found.partition(" images; ")
    assert int(images) >= 5
    assert wrong == ""


def test_a_broken_page_would_be_noticed(report, tmp_path):
    html = report.read_text()
    html = html.replace("</h1>", '</h1><img src="nothing.png" alt="lost"><script>missing()</script>', 1)
    (tmp_path / "broken.html").write_text(html)
    found = verdict(tmp_path / "broken.html", tmp_path)
    assert "broken image: lost" in found
    assert "missing is not defined" in found
