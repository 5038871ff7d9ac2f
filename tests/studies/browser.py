"""Opens a page in headless Chromium, where there is one."""

import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# Watches a copy of the page: errors from the first script on, images once all is loaded.
WATCH = '<script>var wrong = []; window.onerror = (text) => wrong.push("error: " + text);</script>'
TELL = """<script>window.onload = () => {
  for (const image of document.images) if (!image.naturalWidth) wrong.push("broken image: " + image.alt);
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  if (wide) wrong.push("wider than the window");
  document.body.setAttribute("data-verdict", document.images.length + " images; " + wrong.join("; "));
};</script>"""


def verdict(page: Path, folder: Path, width: int = 1200) -> str:
    """How many images the page shows in a window so many pixels wide, and what is wrong with it."""
    return after(page, folder, TELL, width)


def after(page: Path, folder: Path, script: str, width: int = 1200) -> str:
    """What a script at the page's end has set as `data-verdict` of the body."""
    html = page.read_text()
    assert "<head>" in html
    assert "</body>" in html
    watched = folder / "watched.html"
    watched.write_text(html.replace("<head>", "<head>" + WATCH).replace("</body>", script + "</body>"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    options += [f"--window-size={width},900"]
    command = [CHROMIUM, *options, "--virtual-time-budget=5000", "--dump-dom", watched.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return re.search(r'data-verdict="([^"]*)"', dom).group(1)
