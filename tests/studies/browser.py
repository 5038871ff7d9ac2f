"""Opens a page in headless Chromium, where there is one."""

import html
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NARROWEST = 500  # pixels of a window; what is narrower is a frame in it

# Watches a copy of the page: errors from the first script on, images once all is loaded.
WATCH = '<script>var wrong = []; window.onerror = (text) => wrong.push("error: " + text);</script>'
TELL = """<script>addEventListener("load", () => {
  for (const image of document.images) if (!image.naturalWidth) wrong.push("broken image: " + image.alt);
  const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  if (wide) wrong.push("wider than the window");
  document.body.setAttribute("data-verdict", document.images.length + " images; " + wrong.join("; "));
});</script>"""
# Words that are on more than one line, other than at their joints or, if they are long, at their hyphens. What data
# say beside a small image (names of files, captions in any language) may be longer than the image is wide.
TORN = """<script>addEventListener("load", () => {
  const torn = [], range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const check = (node, words) => {
    for (const found of node.data.matchAll(words)) {
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) torn.push(found[0]);
    }
  };
  while (walker.nextNode()) {
    const node = walker.currentNode, home = node.parentElement;
    if (["SCRIPT", "STYLE"].includes(home.nodeName)) continue;
    check(node, home.closest(".samples") ? /(?<![^\\s/_:=.-])[^\\s/_:=.-]{1,10}(?![^\\s/_:=.-])/g : /[^\\s/_:=.-]+/g);
  }
  document.body.setAttribute("data-verdict", torn.join(" "));
});</script>"""
# How many figures are cut.
CUT = """<script>addEventListener("load", () => setInterval(() => {
  const open = [...document.querySelectorAll(".wide")].filter((box) => !box.closest("details:not([open])"));
  const wide = open.filter((box) => box.scrollWidth > box.clientWidth + 1);
  const figures = wide.filter((box) => box.querySelector("img")).length;
  document.body.setAttribute("data-verdict", `${figures} figures cut`);
}, 200));</script>"""
FRAME = """<!doctype html><html><body style="margin: 0">
<iframe style="border: 0; width: WIDTHpx; height: 900px" srcdoc="PAGE"></iframe>
<script>setInterval(() => {
  const body = document.querySelector("iframe").contentDocument?.body;
  if (body) Object.assign(document.body.dataset, body.dataset);
}, 20);</script></body></html>"""


def plain(page: Path) -> str:
    """The text of a page without what keeps its words whole and lets them be broken."""
    return re.sub(r'<wbr>|<span class="whole">|</span>| class="folds"', "", page.read_text())


def verdict(page: Path, folder: Path, width: int = 1200) -> str:
    """How many images the page shows in a window so many pixels wide, and what is wrong with it."""
    return after(page, folder, TELL, width)


def after(page: Path, folder: Path, script: str, width: int = 1200) -> str:
    """What a script at the page's end has set as `data-verdict` of the body, in a window so many pixels wide."""
    return after_all(page, folder, {"verdict": script}, width)["verdict"]


def after_all(page: Path, folder: Path, scripts: dict[str, str], width: int) -> dict[str, str]:
    """The same of several scripts in one window, by their names."""
    text = page.read_text()
    assert "<head>" in text
    assert "</body>" in text
    named = "".join(script.replace("data-verdict", f"data-{name}") for name, script in scripts.items())
    head, _, tail = text.replace("<head>", "<head>" + WATCH, 1).rpartition("</body>")  # scripts may have the word
    text = head + named + "</body>" + tail
    if width < NARROWEST:
        text = FRAME.replace("WIDTH", str(width)).replace("PAGE", html.escape(text))
    watched = folder / "watched.html"
    watched.write_text(text)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    options += [f"--window-size={max(width, NARROWEST)},900"]
    command = [CHROMIUM, *options, "--virtual-time-budget=5000", "--dump-dom", watched.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (body,) = re.findall(r"<body[^>]*>", dom)[:1]
    return {name: html.unescape(re.search(rf'data-{name}="([^"]*)"', body).group(1)) for name in scripts}


def assert_readable(page: Path, folder: Path) -> None:
    """A page shows all its images on a desk and on a telephone, and tears no word."""
    for width in (1200, 420):
        found = after_all(page, folder, {"shown": TELL, "torn": TORN, "cut": CUT}, width)
        assert found["shown"].endswith(" images; "), width
        assert found["torn"] == "", width
        assert width == 420 or found["cut"] == "0 figures cut"
