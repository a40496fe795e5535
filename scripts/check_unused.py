#!/usr/bin/env python3
"""Lists functions, enumerators and headers of the library that nothing but tests uses:

    scripts/check_unused.py

A name counts as used where it stands in code outside of its declaration and definition: in the
library, a program, the bindings, a benchmark, a fuzz target or an example. Comments and texts do not
count. Names in scripts/unused_allowed.txt have a reason there, and leave it when they are used.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from sources import ROOT, included_files, is_test_file, report, sources

ALLOWED = ROOT / "scripts/unused_allowed.txt"
STRIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                      r"'(?:\\.|[^'\\\n])'", re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
# A declaration at the beginning of a line, or of a member two columns in.
FUNCTION = re.compile(r"^(?:  )?(?:\[\[nodiscard\]\] )?(?:static |virtual |inline |constexpr |explicit )*"
                      r"[A-Za-z_][\w:<>,*& ]*?[ *&]([a-z_]\w*)\(", re.M)
ENUM = re.compile(r"enum class \w+[^{;]*\{([^}]*)\}", re.S)
DEFINITION = re.compile(r"^[A-Za-z_][\w:<>,*& ]*?[ *&:]([a-z_]\w*)\(", re.M)
# Called by the language or by what we implement, not by our code.
IMPLICIT = {"operator", "main", "begin", "end", "what", "swap", "hash"}
STATEMENT = re.compile(r"\s*(return|co_return|co_yield|throw|case|else|new|delete)\b")
# The rows of the .inc files become names: FORETUNE_FAMILY(null) calls null_family().
ROW = re.compile(r"^FORETUNE_\w+\((\w+)\)", re.M)
PASTED = re.compile(r"\bname##_(\w+)")


def code(path: Path) -> str:
    return STRIPPED.sub(lambda match: '""' if match.group(0)[0] in "\"R'" else " ",
                        path.read_text(encoding="utf-8"))


def is_override(text: str, position: int) -> bool:
    end = min((i for i in (text.find(";", position), text.find("{", position)) if i >= 0),
              default=position)
    return "override" in text[position:end]


def main() -> int:
    texts = {name: code(ROOT / name) for name in sources()}
    product = {name: text for name, text in texts.items() if not is_test_file(Path(name))}
    uses: Counter[str] = Counter()
    for text in product.values():
        uses.update(WORD.findall(text))
    declared: dict[str, str] = {}
    own: Counter[str] = Counter()
    enumerators: dict[str, str] = {}
    for name, text in product.items():
        if name.parts[0] != "foretune" and name.parts[:2] != ("tools", "foretune"):
            continue
        if name.suffix == ".h":
            for match in FUNCTION.finditer(text):
                if STATEMENT.match(match.group(0)):
                    continue
                own[match.group(1)] += 1
                # Functions of the C interface are used outside.
                if not is_override(text, match.start()) and "FORETUNE_API" not in match.group(0):
                    declared.setdefault(match.group(1), str(name))
            for match in ENUM.finditer(text):
                for word in re.findall(r"\bk[A-Z]\w*", match.group(1)):
                    own[word] += 1
                    enumerators.setdefault(word, str(name))
        else:
            own.update(match.group(1) for match in DEFINITION.finditer(text))
    rows = {row for path in (ROOT / "foretune").rglob("*.inc")
            for row in ROW.findall(path.read_text(encoding="utf-8"))}
    endings = {ending for text in product.values() for ending in PASTED.findall(text)}
    uses.update({f"{row}_{ending}": 2 for row in rows for ending in endings})
    found = {word: file for word, file in {**declared, **enumerators}.items()
             if uses[word] <= own[word] and word not in IMPLICIT}
    included = {header for name in product for header in included_files(ROOT / name)}
    for name in product:
        if (name.suffix == ".h" and name.parts[0] == "foretune" and str(name) not in included
                and 'extern ""' not in product[name]):
            found[str(name)] = str(name)
    allowed = {line.split("#")[0].strip() for line in ALLOWED.read_text(encoding="utf-8").splitlines()
               } - {""} if ALLOWED.exists() else set()
    problems = [f"{file}: {word} is used by nothing but tests"
                for word, file in sorted(found.items(), key=lambda item: (item[1], item[0]))
                if word not in allowed]
    problems += [f"{word} is used: take it from {ALLOWED.relative_to(ROOT)}"
                 for word in sorted(allowed - set(found))]
    return report(problems, f"unused: {len(declared)} functions, {len(enumerators)} enumerators")


if __name__ == "__main__":
    sys.exit(main())
