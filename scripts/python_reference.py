#!/usr/bin/env python3
"""Writes the reference of the Python package, docs/reference/python, from its signatures and docstrings. Reads
the sources and imports nothing; needs griffe (scripts/install_dependencies.sh --docs).

    build/docs-venv/bin/python scripts/python_reference.py            writes the folder
    build/docs-venv/bin/python scripts/python_reference.py --check    fails where it differs
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import griffe

from pages import ROOT, finish

FOLDER = ROOT / "docs/reference/python"
WIDTH = 120
IS_PYTHON = re.compile(r"^\s*(from|import) |\w\(|^\w+ = ", re.M)
# Called by operators or statements.
SPECIAL = {"__call__", "__getitem__", "__len__", "__iter__", "__enter__", "__contains__", "__array__"}


@dataclass
class PageOf:
    """A page: its title, what it is for, and the module and names that it describes (none: all of the module)."""

    title: str
    about: str
    module: str = "foretune"
    names: tuple[str, ...] = ()


PAGES = {
    "collecting": PageOf("Collecting", "measure many problems into a data set", names=(
        "MatmulDatasetCollector", "CollectionMode", "CollectionSummary", "families")),
    "datasets": PageOf("Data sets", "read, filter, convert and write measurements", names=(
        "Dataset", "ImportReport", "OUTCOMES", "STAGES")),
    "models": PageOf("Models", "train, judge, save and ask models", names=(
        "train", "evaluate", "select", "Model", "Selector", "Choice", "Evaluation")),
    "own-models": PageOf("Models of your own", "train with any function", names=(
        "register_model", "TrainingRows")),
    "features": PageOf("Features", "the inputs of models", names=(
        "feature_tables", "feature_table", "register_features", "FeatureTable", "Feature", "FeatureEngine",
        "GemmUniversalFeatureEngine", "GroupedConvFeatureEngine")),
    "predictor": PageOf("Predicting as CK Tile does", "rank kernels with a directory of models", names=(
        "Predictor", "RankedKernel")),
    "tuning": PageOf("Tuning one problem", "search by measuring, or time given configs", names=(
        "tune", "measure", "TuneResult", "TunedConfig", "MeasuredConfig")),
    "autotune": PageOf("Autotuning Triton kernels", "a drop-in for `triton.autotune`", names=("autotune",)),
    "convolutions": PageOf("Convolutions", "run convolutions on NumPy arrays", names=(
        "conv", "conv_input_gradient", "conv_weight_gradient", "Convolution", "ConvDispatcher",
        "exported_layers")),
    "problems": PageOf("Problems and plug-ins", "texts of problems, and extensions from outside", names=(
        "problem_text", "load_plugin", "loaded_plugins")),
    "errors": PageOf("Errors", "every exception of the package", names=(
        "Error", "CancelledError", "CorruptDataError", "InputOutputError", "InternalError",
        "InvalidArgumentError", "MismatchError", "NotFoundError", "UnsupportedError")),
    "sparse": PageOf("foretune.sparse", "run sparse products", "foretune.sparse"),
    "networks": PageOf("foretune.networks", "run neural networks", "foretune.networks"),
    "loops": PageOf("foretune.loops", "compile and search loop nests", "foretune.loops", (
        "Computation", "Variable", "Operand", "Kernel", "compile", "CacheInfo", "canonical", "instruction_sets",
        "legal", "measure_peak", "to_c", "tree", "why_not")),
    "loop-search": PageOf("Searching with foretune.loops", "find fast schedules", "foretune.loops", (
        "search", "textbook_schedules", "schedule", "Policy", "Best", "Found", "Taken")),
    "loop-environments": PageOf("Environments of foretune.loops", "schedule loop nests as an agent",
                                "foretune.loops", ("LoopNestEnv", "LoopNestVectorEnv", "Observation",
                                                   "observations")),
    "torch": PageOf("foretune.torch", "replace max-autotune of `torch.compile`", "foretune.torch"),
    "triton": PageOf("foretune.triton", "compile and measure Triton's templates", "foretune.triton"),
    "approx": PageOf("Applications of foretune.approx", "say what is tuned, with PredTuner's names",
                     "foretune.approx", ("ApproxApp", "ModeledApp", "CommandApp")),
    "approx-torch": PageOf("PyTorch in foretune.approx", "tune a module of PyTorch", "foretune.approx", (
        "TorchApp", "from_torch", "accuracy")),
    "approx-tuners": PageOf("Tuners of foretune.approx", "trade quality for time", "foretune.approx", (
        "ApproxTuner", "ApproxModeledTuner", "Config", "ValConfig", "load_configs", "load_hpvm_configs",
        "config_pylogger")),
    "approx-knobs": PageOf("Knobs of foretune.approx", "say how a layer may compute less", "foretune.approx", (
        "ApproxKnob", "Conv2dSampling", "FP16Approx", "FP32Baseline", "PerforateConv2dStride", "PromiseSim",
        "get_knobs_from_file")),
    "approx-models": PageOf("Models of foretune.approx", "predict quality and cost", "foretune.approx", (
        "ICostModel", "IQoSModel", "LinearCostModel", "MeasuredCostModel", "QoSModelP1", "QoSModelP2")),
    "model-zoo": PageOf("foretune.approx.model_zoo", "networks and data sets to try it on", "foretune.approx.model_zoo"),
    "parquet": PageOf("foretune.parquet", "Parquet files", "foretune.parquet"),
}


def markdown(text: str) -> str:
    """Returns reStructuredText of a docstring as Markdown: code, and blocks behind ``::``."""
    out: list[str] = []
    literal = False
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.strip():
            continue
        indented = all(line.startswith("    ") for line in paragraph.split("\n"))
        if literal and indented:
            code = textwrap.dedent(paragraph)
            if out[-1].endswith("\n```"):
                out[-1] = f"{out[-1].removesuffix(chr(10) + '```')}\n\n{code}\n```"
            else:
                out.append(f"```{'python' if IS_PYTHON.search(code) else 'text'}\n{code}\n```")
            continue
        if paragraph.lstrip().startswith("==="):  # a table, whose columns are those of the text
            out.append(f"```text\n{textwrap.dedent(paragraph)}\n```")
            continue
        literal = paragraph.rstrip().endswith("::")
        paragraph = re.sub(r"::$", ":", paragraph.rstrip())
        out.append(filled(paragraph))
    return "\n\n".join(out)


def link_to(page: str) -> str:
    """Returns a link to a page of docs/ with its name as text."""
    return f"[{Path(page).stem}]({posixpath.relpath(page, 'reference/python')})"


def filled(paragraph: str, first: str = "") -> str:
    """Returns the words in lines, behind `first`, which the other lines are indented by two columns for."""
    words = re.sub(r"``(.+?)``", r"`\1`", " ".join(paragraph.split()), flags=re.S)
    words = re.sub(r"`docs/([\w/-]+\.md)`", lambda match: link_to(match.group(1)), words)
    parts = re.split(r"(`[^`]*`)", words)
    words = "".join(part if part.startswith("`") else part.replace("*", "\\*").replace("<", "&lt;")
                    for part in parts)
    return textwrap.fill(first + words, WIDTH, subsequent_indent="  " if first else "", break_long_words=False,
                         break_on_hyphens=False)


def described(items: list) -> str:
    lines = []
    for item in items:
        name = getattr(item, "name", "") or (str(item.annotation) if item.annotation else "")
        lines.append(filled(item.description, f"- `{name.strip('(),')}`: " if name else "- "))
    return "\n".join(lines)


def docstring_of(thing: griffe.Object) -> str:
    if thing.docstring is None:
        return ""
    out = []
    for section in thing.docstring.parse("google", warnings=False):
        kind = section.kind.value
        if kind == "text":
            out.append(markdown(section.value))
        elif kind == "parameters":
            out.append("**Arguments**\n\n" + described(section.value))
        elif kind == "attributes":
            out.append(described(section.value))
        elif kind in ("returns", "yields"):
            text = " ".join(item.description for item in section.value)
            out.append(f"**{kind.capitalize()}** {filled(text)}")
        elif kind == "raises":
            out.append("**Raises**\n\n" + described(section.value))
        elif kind == "examples":
            out += [f"```python\n{text}\n```" if style.value == "examples" else markdown(text)
                    for style, text in section.value]
        elif kind == "admonition":
            title = section.title or section.value.kind
            out.append(f"**{title.rstrip(':')}**\n\n{markdown(section.value.contents)}")
        else:
            raise ValueError(f"{thing.path}: a section of the kind {kind}")
    return "\n\n".join(part for part in out if part)


def signature(name: str, thing: griffe.Function, is_method: bool) -> str:
    parts = []
    bare_star = False
    for place, parameter in enumerate(thing.parameters):
        if place == 0 and is_method and parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind
        if kind == griffe.ParameterKind.keyword_only and not bare_star:
            parts.append("*")
            bare_star = True
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        bare_star = bare_star or stars == "*"
        text = f"{stars}{parameter.name}"
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not stars:
            text += f" = {parameter.default}" if parameter.annotation is not None else f"={parameter.default}"
        parts.append(text)
    returned = f" -> {thing.returns}" if thing.returns is not None and str(thing.returns) != "None" else ""
    line = f"{name}({', '.join(parts)}){returned}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"
    return line


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def plain(thing: griffe.Object | griffe.Alias) -> griffe.Object:
    return thing.final_target if isinstance(thing, griffe.Alias) else thing


def function_text(name: str, thing: griffe.Function, level: int, heading: str, is_method: bool) -> str:
    overloads = thing.overloads or []
    code = "\n".join(signature(name, each, is_method) for each in overloads or [thing])
    if "property" in thing.labels:
        code = f"{name}: {thing.returns}" if thing.returns is not None else name
    parts = [f"{'#' * level} {heading}", fenced(code), docstring_of(thing)]
    return "\n\n".join(part for part in parts if part)


def attribute_text(thing: griffe.Attribute) -> str:
    kind = f" (`{thing.annotation}`)" if thing.annotation is not None else ""
    value = f" = `{thing.value}`" if "class-attribute" in thing.labels and thing.value and not kind else ""
    head = f"- `{thing.name}`{kind}{value}"
    first, _, rest = docstring_of(thing).partition("\n\n")
    out = filled(first, f"{head}: ") if first else head
    return out + (f"\n\n{textwrap.indent(rest, '  ')}" if rest else "")


def class_text(thing: griffe.Class) -> str:
    parts = [f"## {thing.name}"]
    constructor = plain(thing.members["__init__"]) if "__init__" in thing.members else None
    is_plain = constructor is None or len(constructor.parameters) <= 1
    is_plain = is_plain or any("_foretune." in str(each.annotation) for each in constructor.parameters)
    if not is_plain and "dataclass" not in str(thing.decorators):
        parts.append(fenced(signature(thing.name, constructor, True)))
    bases = [str(base) for base in thing.bases if not str(base).startswith(("_", "Generic", "CpuDispatcher"))]
    if bases:
        parts.append(f"A subclass of {', '.join(f'`{base}`' for base in bases)}.")
    about = docstring_of(thing)
    parts += [about] if about else []
    if not is_plain and constructor.docstring:
        parts.append(docstring_of(constructor))
    public = [plain(member) for name, member in thing.members.items()
              if not name.startswith("_") or name in SPECIAL]
    explained = re.findall(r"\w+", " ".join(re.findall(r"^- `(.+?)`:", about, re.M)))
    values = [member for member in public if isinstance(member, griffe.Attribute) and "property" not in member.labels
              and member.name not in explained
              and (member.docstring or not explained and member.annotation is not None
                   or "class-attribute" in member.labels and member.value)]
    if values:
        parts.append("\n".join(attribute_text(member) for member in values))
    properties = [member for member in public if "property" in member.labels]
    if properties:
        parts.append("\n".join(attribute_text(member) for member in properties))
    for member in public:
        if isinstance(member, griffe.Function) and "property" not in member.labels:
            if member.docstring or not member.name.startswith("_"):
                name = member.name
                parts.append(function_text(
                    name, member, 3, f"`{thing.name}.{name}`" if name in SPECIAL else f"{thing.name}.{name}", "staticmethod" not in member.labels))
    return "\n\n".join(parts)


def text_of(thing: griffe.Object) -> str:
    if isinstance(thing, griffe.Class):
        return class_text(thing)
    if isinstance(thing, griffe.Function):
        return function_text(thing.name, thing, 2, thing.name, False)
    about = docstring_of(thing)
    value = f"\n\n{fenced(f'{thing.name} = {thing.value}')}" if thing.value is not None else ""
    return f"## {thing.name}{value}" + (f"\n\n{about}" if about else "")


def member(module: griffe.Module, name: str) -> griffe.Object:
    if name in module.members:
        return plain(module.members[name])
    # Imported when it is asked for: the module that defines it is the one of these names.
    for inner in module.modules.values():
        if name in inner.members and not inner.members[name].is_alias:
            return inner.members[name]
    raise ValueError(f"{module.path}.{name} is not there")


def exports(module: griffe.Module) -> list[str]:
    if module.exports:
        return [str(getattr(name, "name", name)) for name in module.exports]
    return [name for name, each in module.members.items()
            if not name.startswith("_") and not each.is_alias and isinstance(each, griffe.Function | griffe.Class)
            and each.docstring]


def pages() -> dict[Path, str]:
    logging.getLogger("griffe").setLevel(logging.ERROR)
    package = griffe.load("foretune", search_paths=[ROOT / "python"], resolve_aliases=True)
    out: dict[Path, str] = {}
    described_names: dict[str, set[str]] = {}
    rows = []
    for name, page in PAGES.items():
        module = package if page.module == "foretune" else package[page.module.removeprefix("foretune.")]
        names = list(page.names) or exports(module)
        described_names.setdefault(page.module, set()).update(names)
        parts = [f"# {page.title}"]
        if page.title == page.module and module.docstring:
            parts.append(docstring_of(module))
        else:
            parts.append(f"Names of the module `{page.module}`.")
        parts += [text_of(member(module, each)) for each in names]
        out[FOLDER / f"{name}.md"] = "\n\n".join(parts) + "\n"
        rows.append(f"| [{page.title}]({name}.md) | {page.about} | {', '.join(f'`{each}`' for each in names)} |")
    for module_name, names in described_names.items():
        module = package if module_name == "foretune" else package[module_name.removeprefix("foretune.")]
        missing = set(exports(module)) - names
        if missing:
            sys.exit(f"scripts/python_reference.py describes no {', '.join(sorted(missing))} of {module_name}")
    out[FOLDER / "index.md"] = (
        "# Python\n\nClasses and functions of the package, with their docstrings.\n"
        "`scripts/python_reference.py` writes these pages. [The guide](../../guides/python.md) shows how they work\n"
        "together; [Keywords](../python-options.md) lists the options of training, collecting and tuning.\n\n"
        "| page | use it to | names |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return out


def main() -> int:
    return finish(pages(), [FOLDER], "scripts/python_reference.py", sys.argv[1:] == ["--check"])


if __name__ == "__main__":
    sys.exit(main())
