"""What the site (mkdocs.yml) has beside docs/: README, changes, files that pages link to, reports of finished runs.

The pages themselves stay as they are read in the repository; their links out of docs/ lead to copies here.
"""

import posixpath
import pydoc
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

import menagerie

ROOT = Path(__file__).parents[1]
DOCS = Path(__file__).parent
FRONT = {"index.md": "README.md", "changelog.md": "CHANGELOG.md"}  # pages from files above docs/
LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)#\s]+)")
DATA = (".csv", ".cff")
UNSEARCHED = ("archive", "changelog.md")  # how pages begin whose old numbers the search would find first
OBJECT = re.compile(r"^::: ([\w.]+)\n(?!    )", re.MULTILINE)  # a public object, which gets a page of its own
EXAMPLES = ("api.md", "extending.md", *(f"tutorials/{its.name}" for its in sorted((DOCS / "tutorials").glob("*.md"))))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WIDE = {"76.25em": "60em", "76.234375em": "59.984375em", "76.2344em": "59.9844em", "1220px": "960px", "1219px": "959px"}
"""From which width on tabs and sidebar are shown: the theme's, and ours."""
REPORTS = "<!-- reports -->"  # where gallery.md lists them
TITLE = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
# What a browser loads by itself: attributes of tags that aren't <a>, and addresses in styles.
LOADED = re.compile(
    r"<(?!a\s)\w+\s[^>]*?(?:src|srcset|data|poster|href)=\"?(?:https?:)?//[^\s\">]+|"
    r"url\(\s*[\"']?(?:https?:)?//[^)]*|@import\s+[\"'](?:https?:)?//[^\"']*"
)


def on_config(config: Any) -> Any:
    """List the pages of public objects below those that name them, and say the version at the foot of each page."""
    (reference,) = (its["Reference"] for its in config["nav"] if "Reference" in its)
    for page in [its for its in reference if its.startswith("reference/")]:
        title, names = named_objects(page)
        reference[reference.index(page)] = {title: [page, *map(object_page, names)]}
    config["copyright"] = f"Menagerie {menagerie.__version__}"
    return config


def named_objects(page: str) -> tuple[str, list[str]]:
    """Return the title of a page of the reference, and the public objects that it names."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition("\n")[0].removeprefix("# "), OBJECT.findall(text)


def object_page(name: str) -> str:
    return f"reference/{name.removeprefix('menagerie.')}.md"


def object_line(name: str) -> str:
    """Return the line of a public object in a list: a link to its page, and how its docstring begins."""
    says = " ".join(pydoc.getdoc(pydoc.locate(name)).partition("\n\n")[0].split())
    return f"- [`{name}`]({posixpath.basename(object_page(name))}): {says}\n"


def object_text(name: str) -> str:
    """Return the page of a public object: docstring, source, and the first script of the guides with it."""
    short = name.rpartition(".")[2]
    text = f"---\ntitle: {short}\n---\n::: {name}\n    options: {{show_source: true, heading_level: 1}}\n"
    use = re.compile(rf"import .*\b{short}\b|\b{short}\(")
    for guide in EXAMPLES:
        for script in BLOCK.findall((DOCS / guide).read_text(encoding="utf-8")):
            if use.search(script):
                return f"{text}\n## Example\n\nFrom [{guide}](../{guide}):\n\n```python\n{script}```\n"
    return text


def on_files(files: Files, config: Any) -> Files:
    """Add pages of public objects and of what is linked to outside docs/, and the reports of finished runs."""
    for page in (DOCS / "reference").glob("*.md"):
        for name in named_objects(f"reference/{page.name}")[1]:
            files.append(File.generated(config, object_page(name), content=object_text(name)))
    for name, path in FRONT.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text(encoding="utf-8")))
    for target in dict.fromkeys(its for file in files.documentation_pages() for its in outside(file)):
        for path in (target, *listing(target)):
            if not files.get_file_from_path(page_of(path)):
                files.append(File.generated(config, page_of(path), content=shown(path)))
    for report in reports():
        files.append(File.generated(config, f"reports/{report.parent.name}.html", abs_src_path=str(report)))
    return files


def outside(file: File) -> list[str]:
    """What a page links to outside docs/, and folders in it, from the top of the repository."""
    found = [in_repository(file.src_uri, link) for link in LINK.findall(file.content_string)]
    return [its for its in found if (ROOT / its).is_dir() or ((ROOT / its).exists() and not its.startswith("docs/"))]


def in_repository(page: str, link: str) -> str:
    """Where a page's link leads, from the top of the repository; pages from there have links from there."""
    return posixpath.normpath(link if page in FRONT else posixpath.join("docs", posixpath.dirname(page), link))


def page_of(target: str) -> str:
    """Where the site has a file or folder of the repository; data stay files."""
    fronts = {path: name for name, path in FRONT.items()}
    if target.startswith("docs/") and not (ROOT / target).is_dir():
        return target.removeprefix("docs/")
    return fronts.get(target) or f"source/{target}" + ".md" * (not target.endswith(DATA))


def listing(target: str) -> list[str]:
    """The files of a folder, from the top of the repository; none of a file."""
    return [its.relative_to(ROOT).as_posix() for its in sorted((ROOT / target).glob("*.*"))]


def shown(target: str) -> str:
    """A file as a page that the search leaves out; a folder as a list of its files."""
    path, name = ROOT / target, target.rpartition("/")[2]
    head = f"---\ntitle: {name}\nsearch: {{exclude: true}}\n---\n# {target}\n\n"
    if path.is_dir():
        here = posixpath.dirname(page_of(target))
        return head + "\n".join(f"- [{its}]({posixpath.relpath(page_of(its), here)})" for its in listing(target))
    text = path.read_text(encoding="utf-8")
    return text if target.endswith(DATA) else head + f"~~~~{path.suffix[1:]}\n{text}\n~~~~\n"


def reports() -> list[Path]:
    """Those of finished runs in this clone."""
    return sorted(ROOT.glob("runs/*/report.html"))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links that go out of docs/ to the pages made of their targets, and list the reports."""
    name = page.file.src_uri

    def relinked(found: re.Match[str]) -> str:
        target = page_of(in_repository(name, found[1]))
        known = files.get_file_from_path(target)
        return posixpath.relpath(target, posixpath.dirname(name) or ".") if known else found[1]

    if name.startswith(UNSEARCHED):
        page.meta["search"] = {"exclude": True}
    if name.startswith("reference/") and (DOCS / name).exists():  # not the page of an object
        markdown = OBJECT.sub(lambda its: object_line(its[1]), markdown)
    return LINK.sub(relinked, markdown).replace(REPORTS, listed())


def listed() -> str:
    """A line for each report: its folder and title."""
    found = [(its.parent.name, TITLE.search(its.read_text(encoding="utf-8"))) for its in reports()]
    return "\n".join(f"- [{name}](reports/{name}.html): {title[1] if title else name}" for name, title in found)


def on_post_build(config: Any) -> None:
    """Show tabs and sidebar on narrower screens too; raise if a built page would load anything from elsewhere."""
    site = Path(config["site_dir"])
    for path in (*site.glob("assets/stylesheets/*.css"), *site.glob("assets/javascripts/bundle*.js")):
        text = path.read_text(encoding="utf-8")
        for theirs, ours in WIDE.items():
            text = text.replace(theirs, ours)
        path.write_text(text, encoding="utf-8")
    for path in (*site.rglob("*.html"), *site.rglob("*.css")):
        if found := LOADED.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path.relative_to(site)} loads something from elsewhere: {found[0][:200]}")
