#!/usr/bin/env python3
"""Writes the reference of the installed headers from the headers and their comments: docs/reference/c-api, which
is part of the repository, and docs/reference/cpp, which is part of the site alone. Needs libclang for Python
(scripts/install_dependencies.sh --docs).

    /usr/bin/python3 scripts/header_reference.py            writes both folders
    /usr/bin/python3 scripts/header_reference.py --check    fails where docs/reference/c-api differs; writes the other
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from clang import cindex
from clang.cindex import AccessSpecifier, Cursor, CursorKind

from header_text import Block, as_markdown, blocks_as_markdown, first_sentence, without_marks
from pages import ROOT, finish

CPP = ROOT / "docs/reference/cpp"
C_API = ROOT / "docs/reference/c-api"
LIBCLANG = "/usr/lib/llvm-19/lib/libclang-19.so.1"

CLASSES = (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE, CursorKind.UNION_DECL,
           CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD,
             CursorKind.CONSTRUCTOR, CursorKind.CONVERSION_FUNCTION)
VALUES = (CursorKind.FIELD_DECL, CursorKind.VAR_DECL, CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL,
          CursorKind.TYPE_ALIAS_TEMPLATE_DECL, CursorKind.CONCEPT_DECL)
SCOPES = (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL)
HIDDEN_NAMESPACES = {"internal", "detail"}
# Longer initial values are not shown.
MAX_VALUE = 60
MACRO = re.compile(r"((?:^//[^\n]*\n)+)^#define (\w+(?:\([^)]*\))?)", re.M)


def globbed(listing: Path, variable: str) -> list[Path]:
    """Returns the files that file(GLOB) and list(FILTER) of a CMakeLists.txt put into a variable."""
    text = listing.read_text()
    patterns = re.search(rf"file\(GLOB {variable} CONFIGURE_DEPENDS RELATIVE \S+ (.*?)\)", text)
    assert patterns, f"{listing}: no file(GLOB {variable}"
    excluded = re.findall(rf'list\(FILTER {variable} EXCLUDE REGEX "(.*?)"\)', text)
    return [path for pattern in patterns.group(1).split() for path in listing.parent.glob(pattern)
            if not any(re.search(regex, str(path.relative_to(listing.parent))) for regex in excluded)]


def public_headers() -> dict[str, list[Path]]:
    """Returns the headers of each installed module, from the root, as CMake's files declare them."""
    names = re.search(r"set\(public_modules (.*?)\)", (ROOT / "cmake/install.cmake").read_text(), re.S)
    assert names, "cmake/install.cmake sets no public_modules"
    modules = names.group(1).split()
    out: dict[str, list[Path]] = {}
    for listing in sorted((ROOT / "foretune").rglob("CMakeLists.txt")):
        for match in re.finditer(r"foretune_module\(\s*(\w+)(.*?)\n?\)", listing.read_text(), re.S):
            if match.group(1) not in modules:
                continue
            headers: list[Path] = []
            taken = False
            for word in match.group(2).split():
                if word.isupper():
                    taken = word == "HEADERS"
                elif taken and word.startswith("${"):
                    headers += globbed(listing, word[2:-1])
                elif taken:
                    headers.append(listing.parent / word)
            out[match.group(1)] = sorted({path.relative_to(ROOT) for path in headers
                                          if "internal" not in path.parts})
    return {name: out[name] for name in modules}


def parse(headers: list[Path]) -> cindex.TranslationUnit:
    """Parses all headers as one source file."""
    cindex.Config.set_library_file(LIBCLANG)
    text = "".join(f'#include "{header}"\n' for header in headers)
    name = str(ROOT / "all_headers.cc")
    unit = cindex.Index.create().parse(
        name, unsaved_files=[(name, text)],
        args=["-std=c++20", "-x", "c++", f"-I{ROOT}", "-fparse-all-comments",
              "-resource-dir=/usr/lib/llvm-19/lib/clang/19"])
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        sys.exit("\n".join(errors[:5]))
    return unit


class Reader:
    """Makes blocks of declarations and comments of the entities of one header."""

    def __init__(self, path: Path) -> None:
        self.text = (ROOT / path).read_bytes()

    def source(self, begin: int, end: int) -> str:
        return self.text[begin:end].decode()

    def declaration(self, cursor: Cursor) -> str:
        """Returns the declaration without its body, its initial list and what only compilers read."""
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        for child in cursor.get_children():
            if cursor.kind in FUNCTIONS and child.kind == CursorKind.COMPOUND_STMT:
                end = child.extent.start.offset
            if cursor.kind == CursorKind.FUNCTION_TEMPLATE and child.kind == CursorKind.COMPOUND_STMT:
                end = child.extent.start.offset
        text = self.source(begin, end).rstrip()
        if cursor.kind in (CursorKind.CONSTRUCTOR, CursorKind.FUNCTION_TEMPLATE):
            text = re.sub(r"\)\s*(noexcept)?\s*:\s[^:].*$", lambda m: ")" + (" noexcept" if m.group(1) else ""),
                          text, flags=re.S)
        text = re.sub(r"\[\[nodiscard\]\]\s*|\bFORETUNE_API\s+|\s*// NOLINT[^\n]*", "", text)
        if cursor.kind == CursorKind.VAR_DECL:
            head, sign, value = text.partition("=")
            if sign and (len(value) > MAX_VALUE or "\n" in value):
                text = head.rstrip()
        if cursor.kind in FUNCTIONS:
            return on_lines(text) + ";"
        return dedent(text, cursor.extent.start.column - 1) + ";"

    def fields(self, cursor: Cursor) -> str:
        """Returns a field or enumeration as it stands, with the comment behind it."""
        line_end = self.text.find(b"\n", cursor.extent.end.offset)
        rest = self.source(cursor.extent.end.offset, line_end)
        comment = re.search(r"(//|/\*).*", rest)
        text = self.declaration(cursor)
        if not comment or "NOLINT" in comment.group(0):
            return text
        behind = comment.group(0).strip()
        end = line_end
        while True:  # lines of a comment that goes on below
            next_end = self.text.find(b"\n", end + 1)
            line = self.source(end + 1, next_end)
            at = len(line) - len(line.lstrip())
            goes_on = (line.strip().startswith("//") and at > cursor.extent.start.column + 3
                       or behind.startswith("/*") and "*/" not in behind)
            if not goes_on:
                break
            behind += " " + line.strip().lstrip("/* ").strip()
            end = next_end
        return f"{text}  {behind}"


def dedent(text: str, columns: int) -> str:
    head, *rest = text.split("\n")
    return "\n".join([head, *(line[min(columns, len(line) - len(line.lstrip())):] for line in rest)])


def on_lines(function: str) -> str:
    """Returns a declaration in lines of at most 100 columns, the template's parameters on one of their own."""
    text = " ".join(re.sub(r"//[^\n]*", "", function).split())
    out = []
    while text.startswith("template"):
        depth, end = 0, len("template ")
        for end, c in enumerate(text):
            depth += (c == "<") - (c == ">")
            if c == ">" and depth == 0:
                break
        out.append(text[:end + 1])
        text = text[end + 1:].lstrip()
    # Lines end behind commas.
    text = re.sub(r"(?<!,) ", "\xa0", text)
    lines = textwrap.wrap(text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join([*out, *lines]).replace("\xa0", " ")


def shown(cursor: Cursor) -> bool:
    if cursor.access_specifier == AccessSpecifier.PRIVATE:
        return False
    if cursor.kind in CLASSES or cursor.kind == CursorKind.ENUM_DECL:
        return cursor.is_definition() and (cursor.kind == CursorKind.ENUM_DECL or not cursor.is_anonymous())
    if cursor.kind == CursorKind.TYPEDEF_DECL and cursor.underlying_typedef_type.get_declaration().is_definition():
        return cursor.underlying_typedef_type.get_declaration().spelling != cursor.spelling
    if cursor.kind in FUNCTIONS:
        special = cursor.is_copy_constructor() or cursor.is_move_constructor() or cursor.is_deleted_method()
        return not special and not cursor.is_default_method() and "operator=" != cursor.spelling
    return cursor.kind in VALUES


def comment_of(cursor: Cursor) -> str:
    raw = cursor.raw_comment
    return "" if raw is None or "NOLINT" in raw and raw.count("\n") == 0 else without_marks(raw)


def blocks_of(cursors: Iterable[Cursor], reader: Reader, header: str, level: int) -> list[Block]:
    """Returns the blocks of entities, in the order of the header."""
    out: list[Block] = []
    last_field = -1
    for cursor in cursors:
        file = cursor.location.file
        if file is None or file.name != header:
            continue
        if cursor.kind in SCOPES:
            if cursor.spelling not in HIDDEN_NAMESPACES and (
                    cursor.kind != CursorKind.NAMESPACE or not cursor.is_anonymous()):
                out += blocks_of(cursor.get_children(), reader, header, level)
            continue
        if not shown(cursor):
            continue
        if cursor.kind in CLASSES:
            inner = blocks_of(cursor.get_children(), reader, header, level + 1)
            head = reader.source(cursor.extent.start.offset, cursor.extent.end.offset).partition("{")[0]
            words = re.sub(r"\s*//[^\n]*|\[\[nodiscard\]\] ", "", head).strip()
            named = cursor.spelling or words.split()[-1]
            head = " ".join(words.split())
            if inner and inner[0].is_fields:
                fields = textwrap.indent(inner.pop(0).code, "  ")
                code = f"{head} {{\n{fields}\n}};"
            else:
                code = f"{head};"
            out.append(Block(title=named, code=code, about=comment_of(cursor), level=level))
            out += inner
        elif cursor.kind == CursorKind.ENUM_DECL:
            source = reader.source(cursor.extent.start.offset, cursor.extent.end.offset)
            out.append(Block(code=dedent(source, cursor.extent.start.column - 1) + ";",
                             about=comment_of(cursor)))
        elif cursor.kind in FUNCTIONS:
            about = comment_of(cursor)
            code = reader.declaration(cursor)
            if out and not about and not out[-1].about and out[-1].is_function:
                out[-1].code += "\n" + code
            else:
                out.append(Block(code=code, about=about, is_function=True))
        else:
            code = reader.fields(cursor)
            about = comment_of(cursor)
            before = about and not code.rstrip().endswith(about[-20:]) and "  //" not in code and "  /*" not in code
            if before:
                code = "".join(f"// {line}\n" for line in about.split("\n")) + code
            if out and out[-1].is_fields and cursor.extent.start.offset == last_field:
                out[-1].code = out[-1].code.rpartition("\n")[0]  # another name of the same line
            if out and out[-1].is_fields:
                out[-1].code = (out[-1].code + "\n" + code).lstrip("\n")
            else:
                out.append(Block(code=code, is_fields=True))
            last_field = cursor.extent.start.offset
    return out


def macros_of(text: str) -> list[Block]:
    return [Block(title=name.partition("(")[0], code=f"#define {name}", about=without_marks(comment), level=2)
            for comment, name in MACRO.findall(text)]


def header_comment(text: str) -> str:
    match = re.match(r"((?://[^\n]*\n)+|/\*.*?\*/)", text, re.S)
    return without_marks(match.group(1)) if match else ""


def page_of(header: Path, module: str, scopes: dict[str, list[Cursor]], is_c: bool) -> str:
    text = (ROOT / header).read_text()
    reader = Reader(header)
    name = str(ROOT / header)
    blocks = blocks_of(scopes.get(name, []), reader, name, 2) + macros_of(text)
    library = f"// CMake: foretune::{module}"
    return (f"# {header.relative_to('foretune')}\n\n{as_markdown(header_comment(text))}\n\n"
            f"```{'c' if is_c else 'cpp'}\n#include \"{header}\"  {library}\n```\n\n"
            + blocks_as_markdown(blocks, "c" if is_c else "cpp"))


def is_c_header(header: Path) -> bool:
    return (ROOT / header).read_text().startswith("/*")


def scopes_by_file(unit: cindex.TranslationUnit) -> dict[str, list[Cursor]]:
    """Returns the outermost namespaces and declarations, by the file that they stand in."""
    out: dict[str, list[Cursor]] = {}
    for cursor in unit.cursor.get_children():
        if cursor.location.file is not None:
            out.setdefault(cursor.location.file.name, []).append(cursor)
    return out


def index_of(folder: Path, headers: list[Path], title: str, intro: str, root: Path) -> str:
    lines = [f"# {title}", "", intro, "", "| header | what it is |", "|---|---|"]
    for header in headers:
        about = first_sentence(header_comment((ROOT / header).read_text())).replace("|", "\\|")
        lines.append(f"| [{header.name}]({(root / header.stem).relative_to(folder)}.md) | {about} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    modules = public_headers()
    headers = [header for listed in modules.values() for header in listed]
    scopes = scopes_by_file(parse(headers))
    out: dict[Path, str] = {}
    by_folder: dict[Path, tuple[str, list[Path]]] = {}
    c_headers = []
    for module, listed in modules.items():
        for header in listed:
            is_c = is_c_header(header)
            page = page_of(header, module, scopes, is_c)
            if is_c:
                if page.count("```") > 2:  # not one of macros for compilers alone
                    c_headers.append(header)
                    out[C_API / f"{header.stem}.md"] = page
                continue
            below = header.parent.relative_to("foretune")
            by_folder.setdefault(below, (module, []))[1].append(header)
            out[CPP / below / f"{header.stem}.md"] = page
    rows = []
    for below, (module, listed) in sorted(by_folder.items()):
        folder = CPP / below
        out[folder / "index.md"] = index_of(
            folder, sorted(listed), f"foretune/{below}", f"Link `foretune::{module}`.", folder)
        rows.append(f"| [{below}]({below}/index.md) | `foretune::{module}` | {len(listed)} |")
    out[CPP / "index.md"] = (
        "# C++ headers\n\nThe installed headers, folder by folder: their classes, functions and comments.\n"
        "`scripts/header_reference.py` writes these pages. [The C interface](../c-api/index.md) has pages of its own.\n\n"
        "Everything is in the namespace `foretune`. A function that can fail returns `Result<T>` or `Status`\n"
        "([result.h](base/result.md)); no exception leaves the library.\n\n"
        "Most programs need few of them: [select](select/select.md) picks configs, [dispatch](dispatch/dispatcher.md) runs\n"
        "the picks, and [plugin](plugin/plugin.md) is where an extension begins.\n\n"
        "| folder | CMake target | headers |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    out[C_API / "index.md"] = index_of(
        C_API, sorted(c_headers), "C interface",
        "Functions for C and for every language that calls C. `scripts/header_reference.py` writes these pages.\n\n"
        "`libforetune_dispatch.so` exports the functions of `foretune/dispatch`; link `foretune::select` for those of\n"
        "`foretune/select`. No exception leaves a function.", C_API)
    return out


def main() -> int:
    script = "scripts/header_reference.py"
    written = pages()
    of_site = {path: text for path, text in written.items() if path.is_relative_to(CPP)}
    failed = finish(of_site, [CPP], script, check=False)
    rest = {path: text for path, text in written.items() if path not in of_site}
    return finish(rest, [C_API], script, sys.argv[1:] == ["--check"]) or failed


if __name__ == "__main__":
    sys.exit(main())
