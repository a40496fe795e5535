"""Makes the documentation site of the pages as they are: the navigation, pages for the files and folders
outside of docs/ that they link, and the Markdown of GitHub in that of MkDocs.

MkDocs calls the functions that begin with on_ (mkdocs.yml names this file).
"""

from __future__ import annotations

import html
import posixpath
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
# Pages outside of docs/ lie below this folder of the site.
SOURCE = "source"

# Larger files are copied instead of shown.
MAX_SHOWN = 1 << 20

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^ *(?P=fence)[ \t]*$", re.S | re.M)
CODE = re.compile(r"(?P<ticks>`+)(?:(?!(?P=ticks)).)+?(?P=ticks)(?!`)")
HEADING = re.compile(r"^# (.+)$", re.M)
FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?(https?://[^"' >]+)""")
ITEM = re.compile(r"^( *)(?:[-*+]|\d+\.) ")
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".c": "c", ".py": "python", ".sh": "sh", ".toml": "toml",
             ".json": "json", ".yml": "yaml", ".cmake": "cmake"}

# Guides for one kind of reader, in their order; those for users of other tools begin with from-.
READERS = ("kernel-libraries", "pytorch-users", "compiler-engineers", "sparse-data", "network-runners")

# The order of the pages of a folder, by their names; pages that are not named follow by their titles.
ORDER: dict[str, list[str]] = {
    "tutorials": ["first-model", "program-with-flags", "own-kernel", "csv-to-selector", "faster-products", "pytorch",
                  "accuracy-budget", "sparse-product", "loop-nest"],
    "guides": ["predict-and-search", "tuning", "dispatch", "convolutions", "sparse", "networks",
               "loop-nests", "python", "torch", "triton", "gpu", "cudnn", "fast-mode", "active",
               "cluster", "when-not", "troubleshooting", *READERS],
    "guides/extending": ["family", "command", "model", "feature", "strategy"],
    "reference": ["command-line", "python", "python-options", "c-api", "cpp", "problems", "features",
                  "feature-tables", "metrics", "file-formats"],
    "reference/python": ["collecting", "datasets", "models", "own-models", "features", "predictor", "tuning",
                         "autotune", "convolutions", "sparse", "networks", "loops", "loop-search",
                         "loop-environments", "torch", "triton", "approx", "approx-torch", "approx-tuners", "approx-knobs", "approx-models",
                         "model-zoo", "parquet", "problems", "errors"],
    "reference/file-formats": ["dataset", "model", "kernels", "networks", "payloads", "exchange", "foreign-data",
                               "shape-sets", "foreign-models", "onnx", "figures"],
    "explanation": ["architecture", "families", "measuring", "training", "evaluation", "search", "selection",
                    "fast-picks", "decisions", "learnings", "dependencies"],
    "benchmarks": ["products", "picks-cpu", "convolutions", "sparse", "networks", "loop-nests",
                   "loop-policy", "neural", "cublaslt", "triton", "picks-triton", "selector", "ck"],
}
@cache
def tracked() -> frozenset[str]:
    """Returns the files of the project: what git tracks or would."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    return frozenset(name for name in names if name)


def title_of(path: Path) -> str:
    heading = HEADING.search(FENCE.sub("", path.read_text(encoding="utf-8")))
    return heading.group(1).replace("`", "") if heading else path.stem


def pages_of(folder: str) -> list[str]:
    """Returns the pages of a folder of docs/ in their order, without its index."""
    names = {path.stem: path for path in (ROOT / DOCS / folder).glob("*.md") if path.stem != "index"}
    known = [name for name in ORDER.get(folder, []) if name in names]
    rest = sorted(names.keys() - set(known), key=lambda name: title_of(names[name]).lower())
    return [f"{folder}/{name}.md" for name in known + rest]


def section_of(folder: str) -> list:
    """Returns the index of a folder, its pages, and a section for each folder in it."""
    path = ROOT / DOCS / folder
    out: list = [f"{folder}/index.md"] if (path / "index.md").exists() else []
    entries: dict[str, object] = {PurePosixPath(page).stem: page for page in pages_of(folder)}
    for inner in sorted(path.iterdir()):
        if inner.is_dir():
            content = section_of(f"{folder}/{inner.name}")
            if content:
                index = inner / "index.md"
                title = title_of(index) if index.exists() else inner.name.replace("-", " ").capitalize()
                entries[inner.name] = {title: content}
    order = {name: place for place, name in enumerate(ORDER.get(folder, []))}
    for name in sorted(entries, key=lambda name: order.get(name, len(order))):
        out.append(entries[name])
    return out


def guides() -> list:
    index = ["guides/index.md"] if (ROOT / DOCS / "guides/index.md").exists() else []
    parts: dict[str, list[str]] = {"By reader": [], "By need": [], "Coming from": []}
    for page in pages_of("guides"):
        name = PurePosixPath(page).stem
        part = ("By reader" if name in READERS else "Coming from" if name.startswith("from-") else "By need")
        parts[part].append(page)
    return [*index, *({title: part} for title, part in parts.items() if part),
            {"Extending": section_of("guides/extending")}]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    benchmarks = ["benchmarks.md", *section_of("benchmarks")]
    config.nav = [{"Home": "index.md"}, {"Tutorials": section_of("tutorials")}, {"Guides": guides()},
                  {"Reference": section_of("reference")}, {"Explanation": section_of("explanation")},
                  {"Benchmarks": benchmarks}]
    if (ROOT / DOCS / "glossary.md").exists():
        config.nav[0] = {"Home": ["index.md", "glossary.md"]}
    return config


def outside_of(page: str, link: str) -> str | None:
    """Returns the file or folder outside of docs/ that a link of a page names, from the root, or None."""
    path = link.partition("#")[0]
    if not path or "://" in link or link.startswith("mailto:"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if target == DOCS or target.startswith((f"{DOCS}/", "../")):
        return None
    return target


@cache
def is_text(target: str) -> bool:
    """Returns True for a file that a page can show; others are copied."""
    try:
        return (ROOT / target).stat().st_size < MAX_SHOWN and bool((ROOT / target).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return False


def site_path(target: str) -> str:
    """Returns the page of the site, from docs_dir, that shows a file or folder outside of docs/."""
    if (ROOT / target).is_dir():
        return posixpath.join(SOURCE, target, "index.md")
    is_page = not target.endswith(".md") and is_text(target)
    return posixpath.join(SOURCE, f"{target}.md" if is_page else target)


def rewrite(markdown: str, page: str, at: str) -> str:
    """Returns the Markdown of `page` (a path from the root) with links for its place `at` in the site."""

    def replaced(match: re.Match[str]) -> str:
        link = match.group(2)
        target = outside_of(page, link)
        anchor = link.partition("#")[2]
        if target is None:
            if page.startswith(f"{DOCS}/") or "://" in link or link.startswith("#"):
                return match.group(0)
            # A page that lies elsewhere in the site than in the project, to a page of docs/.
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))
            new = path.removeprefix(f"{DOCS}/")
        else:
            new = site_path(target)
        new = posixpath.relpath(new, posixpath.dirname(at) or ".")
        return match.group(1) + new + (f"#{anchor}" if anchor else "") + match.group(3)

    def outside_code(text: str) -> str:
        return outside(CODE, text, lambda words: LINK.sub(replaced, words))

    return outside(FENCE, markdown, outside_code)


def outside(pattern: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Returns the text with what lies between the matches of a pattern changed."""
    out, end = [], 0
    for match in pattern.finditer(text):
        out += [change(text[end:match.start()]), match.group(0)]
        end = match.end()
    return "".join([*out, change(text[end:])])


def with_bars(row: str) -> str:
    """Returns a row of a table with its bars in code as entities: Python's Markdown would show the backslash."""

    def replaced(match: re.Match[str]) -> str:
        code = match.group(0).strip("`").strip()
        if "\\|" not in code:
            return match.group(0)
        text = html.escape(code.replace("\\|", "|"), quote=False)
        return f"<code>{text.replace('|', '&#124;')}</code>"

    return CODE.sub(replaced, row)


def as_mkdocs_reads_it(markdown: str) -> str:
    """Returns GitHub's Markdown with blank lines before lists and tables, and the content of list items
    indented by four columns."""
    out: list[str] = []
    fence = ""
    # Columns at which the content of the open list items begins, the outermost first.
    items: list[int] = []
    after_fence = False
    is_loose = False  # the item has several paragraphs
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if not text:
            out.append(line)
            after_fence = False
            is_loose = bool(items)
            continue
        follows_text = bool(out and out[-1].strip())
        item = None if fence else ITEM.match(line)
        if item and indent >= (items[-1] if items else 0) + 4:
            item = None  # code
        # A line that is indented less leaves the item, unless it continues a paragraph.
        depth = len(items)
        if not fence and (item or not follows_text):
            while items and indent < items[-1]:
                items.pop()
        if item:
            begins_list = not items and not ITEM.match(out[-1]) and not out[-1].startswith(" ") if out else False
            if follows_text and (begins_list or is_loose or len(items) < depth - 1):
                out.append("")
            is_loose = False
            line = " " * 4 * len(items) + text
            items.append(len(item.group(0)))
        elif items:
            line = " " * (4 * len(items) + max(0, indent - items[-1])) + text
        elif not fence and text.startswith("|") and follows_text and not out[-1].lstrip().startswith("|"):
            out.append("")
        if after_fence:
            out.append("")
            after_fence = False
        mark = re.match(r"```+|~~~+", text)
        if mark and not fence:
            fence = mark.group(0)
            if follows_text:
                out.append("")
        elif fence and text.rstrip() == fence:
            fence = ""
            after_fence = True
        out.append(line if fence or not text.startswith("|") else with_bars(line))
    return "\n".join(out)


def page_of(target: str) -> str:
    """Returns the Markdown of the page that shows a file or folder outside of docs/."""
    path = ROOT / target
    hidden = "---\nsearch:\n  exclude: true\n---\n\n"
    if path.is_dir():
        inner = sorted({name[len(target) + 1:].split("/")[0] + ("/" if "/" in name[len(target) + 1:] else "")
                        for name in tracked() if name.startswith(f"{target}/")})
        lines = [f"- [{name}]({name})" if not name.endswith("/") else f"- {name}" for name in inner]
        return f"{hidden}# {target}/\n\n" + "\n".join(lines) + "\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return hidden + text
    language = "cmake" if path.name == "CMakeLists.txt" else LANGUAGES.get(path.suffix, "text")
    ticks = "`" * max(4, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{hidden}# {target}\n\n{ticks}{language}\n{text}\n{ticks}\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for every file and folder outside of docs/ that a page links, and those that they link."""
    waiting = [(f"{DOCS}/{file.src_uri}", (ROOT / DOCS / file.src_uri).read_text(encoding="utf-8"))
               for file in files.documentation_pages()]
    made: set[str] = set()
    while waiting:
        page, markdown = waiting.pop()
        for link in LINK.findall(CODE.sub("", FENCE.sub("", markdown))):
            target = outside_of(page, link[1])
            if target is None or target in made or not (ROOT / target).exists():
                continue
            made.add(target)
            if not (ROOT / target).is_dir() and not is_text(target):
                files.append(File.generated(config, site_path(target), abs_src_path=str(ROOT / target)))
                continue
            content = page_of(target)
            at = f"{target}/index.md" if (ROOT / target).is_dir() else target
            file = File.generated(config, site_path(target), content=rewrite(content, at, site_path(target)),
                                  inclusion=InclusionLevel.NOT_IN_NAV)
            files.append(file)
            if (ROOT / target).is_dir() or target.endswith(".md"):
                waiting.append((at, content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if not uri.startswith(f"{SOURCE}/"):
        markdown = rewrite(markdown, f"{DOCS}/{uri}", uri)
    return as_mkdocs_reads_it(markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuses a site that would fetch something: it has to work without a network."""
    for path in Path(config.site_dir).rglob("*.html"):
        fetched = FETCHED.search(path.read_text(encoding="utf-8"))
        if fetched:
            raise PluginError(f"{path.relative_to(config.site_dir)} fetches {fetched.group(1)}")
