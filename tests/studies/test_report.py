"""The report in a real browser."""

import pytest

from tests.command import GRID, QUICK, succeed
from tests.studies.browser import CHROMIUM, TELL, TORN, after, after_all, assert_readable, verdict

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    succeed([*GRID, *QUICK, "--steps", "10", "--out", "runs/r"], folder)
    return folder / "runs/r/report.html"


def test_a_report_is_readable_on_a_desk_and_on_a_telephone(report, tmp_path):
    assert_readable(report, tmp_path)
    script = '<script>document.body.setAttribute("data-verdict", innerWidth);</script>'
    found = after_all(report, tmp_path, {"shown": TELL, "wide": script}, 420)
    assert int(found["shown"].partition(" images; ")[0]) >= 3
    assert found["wide"] == "420"


def test_the_browser_notices_broken_and_torn_pages(report, tmp_path):
    html, broken = report.read_text(), tmp_path / "broken.html"
    broken.write_text(html.replace("</h1>", '</h1><img src="nothing.png" alt="lost"><script>missing()</script>', 1))
    found = verdict(broken, tmp_path)
    assert "broken image: lost" in found
    assert "missing is not defined" in found
    torn = '</h1><p style="width: 3rem; overflow-wrap: anywhere">unbreakable</p>'
    broken.write_text(html.replace("</h1>", torn))
    assert after(broken, tmp_path, TORN) == "unbreakable"
