#!/usr/bin/env python3
"""Writes the keywords of the Python package from the options of the command line: their types in
python/foretune/_options.py and their reference in docs/reference/python-options.md.

    PYTHONPATH=build/dev/python python3 scripts/python_options.py            writes both
    PYTHONPATH=build/dev/python python3 scripts/python_options.py --check    fails where they differ
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import foretune
from foretune import _foretune

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "python/foretune/_options.py"
PAGE = ROOT / "docs/reference/python-options.md"

# Names may be added to these at run time, so their types do not list them.
OPEN_NAMES = ("model-type", "features", "family")
# The collector's own way to say these.
NOT_KEYWORDS = ("output", "budget", "dry-run", "log-normal", "random", "family-option")


def type_of(option: dict[str, Any]) -> str:
    if option["choices"] and option["name"] not in OPEN_NAMES:
        literal = f"Literal[{', '.join(json.dumps(choice) for choice in option['choices'])}]"
        return f"Sequence[{literal}]" if option["kind"] == "list" else literal
    if option["value"] in ("FILE", "DIR", "PATH"):
        return "str | os.PathLike[str]"
    if option["kind"] == "str":
        return "str | Sequence[object]" if "LIST" in option["value"] or "," in option["value"] else "str"
    return {"switch": "bool", "int": "int", "float": "float", "list": "Sequence[str]"}[option["kind"]]


def options_of(*use_cases: str, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Returns the options of all use cases, each once, but those of `without`."""
    options = {}
    for use_case in use_cases:
        for option in _foretune.options_of(use_case):
            if option["name"] not in without:
                options.setdefault(option["name"], option)
    return list(options.values())


def collector_options() -> list[dict[str, Any]]:
    parameters = inspect.signature(foretune.MatmulDatasetCollector).parameters
    own = tuple(name.replace("_", "-") for name in parameters)
    return options_of("collect", "create-validation", without=NOT_KEYWORDS + own)


def keyword(option: dict[str, Any]) -> str:
    return str(option["name"]).replace("-", "_")


def with_keywords(text: str) -> str:
    """Returns the text with keywords where it names options."""
    for name in sorted((other["name"] for other in options_of("train", "collect", "create-validation", "tune")),
                       key=len, reverse=True):
        text = text.replace(f"--{name}", f"``{name.replace('-', '_')}``")
    return text


def help_of(option: dict[str, Any]) -> str:
    text = with_keywords(str(option["help"]))
    if option["default"]:
        text += f" (default: {option['default']})"
    return text


def typed_dict(name: str, about: str, options: list[dict[str, Any]], base: str = "TypedDict") -> str:
    lines = [f"class {name}({base}, total=False):", f'    """{about}"""', ""]
    for option in options:
        field = f"    {keyword(option)}: {type_of(option)}"
        if len(field) > 100:
            head, _, rest = field.partition("[")
            wrapped = textwrap.wrap(rest, 92, break_long_words=False)
            field = head + "[\n        " + "\n        ".join(wrapped)
        lines.append(field)
        text = textwrap.wrap(help_of(option), 90)
        lines.append('    """' + "\n    ".join(text) + '"""')
    return "\n".join(lines) + "\n"


def types_text() -> str:
    tuning, measuring = options_of("tune"), options_of("measure")
    shared = [option for option in measuring if option in tuning]
    return (
        '"""Types of the keywords that are options of the command line. Written by '
        'scripts/python_options.py."""\n\n'
        "from __future__ import annotations\n\n"
        "import os\nfrom collections.abc import Sequence\nfrom typing import Literal, TypedDict\n\n\n"
        + typed_dict("TrainOptions", "Keywords of ``foretune.train``.", options_of("train", without=("warm-start",)))
        + "\n\n"
        + typed_dict("CollectOptions", "Further keywords of ``foretune.MatmulDatasetCollector``.",
                     collector_options())
        + "\n\n" + typed_dict("RunOptions", "Keywords of ``foretune.tune`` and ``foretune.measure``.", shared)
        + "\n\n" + typed_dict("TuneOptions", "Keywords of ``foretune.tune``.",
                              [option for option in tuning if option not in shared], "RunOptions")
        + "\n\n" + typed_dict("MeasureOptions", "Keywords of ``foretune.measure``.",
                              [option for option in measuring if option not in shared], "RunOptions"))


def table(options: list[dict[str, Any]]) -> str:
    out, section = "", None
    for option in options:
        if option["section"] != section:
            section = option["section"]
            title = with_keywords(section or "General").replace("``", "`")
            out += f"\n### {title}\n\n| Keyword | Type | |\n|---|---|---|\n"
        text = help_of(option).replace("``", "`").replace("|", "\\|")
        out += f"| `{keyword(option)}` | `{type_of(option)}` | {text} |\n".replace("` | `str | ", "` | `str \\| ")
    return out


def page_text() -> str:
    return (
        "# Keywords of the Python package\n\n"
        "These keywords are options of the [command line](command-line/index.md), with underscores for dashes.\n"
        "`scripts/python_options.py` writes this page.\n\n"
        "## `foretune.train`\n" + table(options_of("train"))
        + "\n## `foretune.MatmulDatasetCollector`\n\n"
        "Beside the parameters that its docstring explains:\n" + table(collector_options())
        + "\n## `foretune.tune`\n" + table(options_of("tune"))
        + "\n## `foretune.measure`\n" + table(options_of("measure")))


def main() -> int:
    texts = {TYPES: types_text(), PAGE: page_text()}
    if sys.argv[1:] == ["--check"]:
        old = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
        for path in old:
            print(f"{path.relative_to(ROOT)} differs from the options: run scripts/python_options.py")
        return 1 if old else 0
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
