#!/usr/bin/env python3
"""Refuses sentences that begin with What, Of, Whether or Such.

    scripts/check_words.py

Looks at comments, docstrings, help texts and Markdown.
"""

import pathlib
import re
import subprocess
import sys

from sources import ROOT, report

QUOTING = {"scripts/check_words.py", "CONTRIBUTING.md"}  # show such sentences
FIRST = r"(What|Of|Whether|Such)\b"
# After the end of a sentence, or where a text begins.
SENTENCE = re.compile(r"(?:^|[.!?:][\"')]*\s+)" + FIRST + r"[^.]{0,60}")
COMMENT = {".cc": "//", ".h": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".txt": "#"}
HELP = re.compile(r"\"((?:what|of|whether|such)\b[^\"]{0,60})")


def comments(text, mark):
    """Yields (line, text) of every run of comment lines; a comment behind code is one of its own."""
    run, start = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped.startswith(mark) and not stripped.startswith("#!"):
            body = stripped.lstrip(mark[0]).strip()
            if body and not run:
                start = number
            if body:
                run.append(body)
                continue
        elif f" {mark} " in line and "://" not in line:
            yield number, line.split(f" {mark} ", 1)[1]
        if run:
            yield start, " ".join(run)
            run = []
    if run:
        yield start, " ".join(run)


def docstrings(text):
    for match in re.finditer(r'"""(.*?)"""', text, re.S):
        for paragraph in re.split(r"\n\s*\n", match.group(1)):
            yield text.count("\n", 0, match.start()) + 1, " ".join(paragraph.split())


def paragraphs(text):
    text = re.sub(r"```.*?```", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    number = 1
    for part in re.split(r"(\n\s*\n|\n(?=[-|#] ?))", text):
        body = re.sub(r"^[-#|*\s]+", "", part)
        if body:
            yield number, " ".join(body.split())
        number += part.count("\n")


def texts(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from paragraphs(text)
        return
    mark = COMMENT.get(path.suffix)
    if mark:
        yield from comments(text, mark)
    if path.suffix == ".py":
        yield from docstrings(text)


def found_in(path):
    out = []
    for number, text in texts(path):
        for match in SENTENCE.finditer(text):
            out.append((number, match.group(0).lstrip(".!?:\"') ")))
    if path.suffix == ".cc" and path.parts[-3:-1] == ("tools", "foretune"):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            out += [(number, match.group(1)) for match in HELP.finditer(line)]
    return out


def main():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    known = [name for name in names
             if pathlib.Path(name).suffix in COMMENT and not name.startswith("fuzz/corpus/")
             and (not name.endswith(".txt") or name.endswith("CMakeLists.txt"))
             or name.endswith(".md")]
    problems = [f"{name}:{number}: begins with {text.split()[0]}: {text}"
                for name in sorted(set(known) - QUOTING) if (ROOT / name).exists()
                for number, text in found_in(ROOT / name)]
    return report(problems, f"words: {len(known)} files")


if __name__ == "__main__":
    sys.exit(main())
