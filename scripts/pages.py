"""Writing and comparing pages, for the generators of the reference."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400


def finish(pages: dict[Path, str], folders: list[Path], script: str, check: bool) -> int:
    """Writes the pages and removes others from the folders; with `check` it only compares. Returns the exit
    code."""
    problems = [f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines; a page has at most {MAX_LINES}"
                for path, text in pages.items() if text.count("\n") > MAX_LINES]
    there = {path for folder in folders for path in folder.rglob("*.md")}
    if check:
        problems += [f"{path.relative_to(ROOT)} differs: run {script}" for path, text in pages.items()
                     if path not in there or path.read_text(encoding="utf-8") != text]
        problems += [f"{path.relative_to(ROOT)} describes what is no longer there: run {script}"
                     for path in sorted(there - pages.keys())]
    else:
        for path in there - pages.keys():
            path.unlink()
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for problem in problems:
        print(problem)
    print(f"{script}: {len(pages)} pages, {len(problems)} problems")
    return 1 if problems else 0
