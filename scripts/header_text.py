"""Comments of headers as Markdown."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass

WIDTH = 120
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


@dataclass
class Block:
    """Declarations and what is said of them."""

    code: str
    about: str = ""
    title: str = ""
    level: int = 0
    is_function: bool = False
    is_fields: bool = False  # data members and constants, with their comments


def without_marks(comment: str) -> str:
    """Returns the lines of a comment without //, /* and the stars at their beginning."""
    text = comment.strip()
    if text.startswith("/*"):
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in text[2:].removesuffix("*/").split("\n")]
        lines[0] = text[2:].split("\n")[0].removesuffix("*/").strip()
    else:
        lines = [re.sub(r"^\s*//+ ?", "", line) for line in text.split("\n")]
    return "\n".join(line.rstrip() for line in lines if "NOLINT" not in line).strip("\n")


def escaped(text: str) -> str:
    """Escapes what Markdown would read as more than text, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else
                   html.escape(part, quote=False).replace("*", "\\*").replace("[", "\\[").replace("_ ", "\\_ ")
                   for part in parts).replace("&gt;", ">").replace("&amp;", "&")


def filled(words: str, indent: str = "") -> str:
    return "\n".join(textwrap.wrap(words, WIDTH, subsequent_indent=indent, break_long_words=False,
                                   break_on_hyphens=False))


def as_markdown(comment: str) -> str:
    """Returns paragraphs, lists and code of a comment; lines that are indented are code or lists."""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", comment):
        lines = paragraph.split("\n")
        run: list[str] = []
        code: list[str] = []

        def flush(run: list[str] = run) -> None:
            if run:
                out.append(filled(escaped(" ".join(run))))
                run.clear()

        items: list[list[str]] = []
        for line in lines:
            text = line.strip()
            if ITEM.match(text) and (items or line.startswith(" ") or not run):
                flush()
                items.append([text])
            elif items and line.startswith(" "):
                items[-1].append(text)
            elif line.startswith("  ") and not items:
                flush()
                code.append(line)
            else:
                run.append(text)
        flush()
        if items:
            out.append("\n".join(filled(escaped(" ".join(item)), "  ") for item in items))
        if code:
            body = textwrap.dedent("\n".join(code))
            if out and out[-1].endswith("\n```") and paragraph is not comment:
                out[-1] = out[-1].removesuffix("\n```") + "\n\n" + body + "\n```"
            else:
                out.append(f"```{'cpp' if re.search('[;{]$', body, re.M) else 'text'}\n{body}\n```")
    return "\n\n".join(part for part in out if part)


def first_sentence(comment: str) -> str:
    words = " ".join(re.split(r"\n\s*\n|\n\s\s", comment)[0].split())
    match = re.match(r"(.+?\.)(?:\s|$)", words)
    sentence = (match.group(1) if match else words).rstrip(":;.")
    return escaped(sentence)


def blocks_as_markdown(blocks: list[Block], language: str) -> str:
    out = []
    for block in blocks:
        code = f"```{language}\n{block.code}\n```"
        about = [as_markdown(block.about)] if block.about else []
        if block.title:
            out += [f"{'#' * min(block.level, 4)} {block.title}", *about]
            # The name of a class is in the heading already.
            if not re.fullmatch(r"(class|struct|union) \w+;", block.code):
                out.append(code)
        else:
            out += [code, *about]
    return "\n\n".join(out) + "\n" if out else ""
