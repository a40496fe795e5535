#!/usr/bin/env python3
"""Holds the #includes of every module against its declared dependencies, and these against the
architecture.

    scripts/check_layering.py build/dev/modules.txt

The file is written by CMake: one line `name|folder|deps|private deps|files` per module.
"""

import pathlib
import re
import sys

from sources import ROOT, sources

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')

# What a module may use besides itself (docs/architecture.md). "families" knows all families.
DESCRIBE = {"base", "metrics", "hardware", "problem", "space"}
ALLOWED = {
    "base": set(),
    "metrics": {"base"},
    "hardware": {"base"},
    "problem": {"base"},
    "space": {"base", "hardware", "problem"},
    "documents": {"base"},
    "dataset": DESCRIBE | {"documents"},
    "features": DESCRIBE | {"loop"},
    "kernels": {"base", "hardware"},
    "loop": {"base", "hardware", "problem", "space"},
    "loop_machine": {"base", "hardware", "kernels", "loop"},
    "gpu": {"base", "hardware", "problem"},
    "family": DESCRIBE,
    "cublaslt": DESCRIBE | {"family", "gpu"},
    "models_infer": DESCRIBE | {"features"},
    "models_neural": {"base", "models_infer"},
    "models_exchange": DESCRIBE | {"documents", "features", "models_infer", "models_neural"},
    "models_train": DESCRIBE | {"features", "dataset", "models_infer", "models_neural",
                                "models_exchange"},
    "measure": DESCRIBE | {"family", "dataset"},
    # LoopTune's environment: measures by the family of loop nests.
    "loop_gym": DESCRIBE | {"family", "families_loop_nest", "measure", "dataset", "loop"},
    "search": DESCRIBE | {"models_infer"},
    # Names families and strategies only, so that a selector may load plug-ins, too.
    "plugin": DESCRIBE | {"loop", "features", "models_infer"},
    "plugin_loader": DESCRIBE | {"features", "plugin", "families", "search"},
    "tune": DESCRIBE | {"family", "dataset", "measure", "search", "features", "models_infer",
                        "models_train"},
    "report": {"base", "space", "problem", "documents", "tune"},
    "evaluate": DESCRIBE | {"dataset", "documents", "features", "models_infer", "search", "tune",
                            "select"},
    "select": DESCRIBE | {"loop", "features", "models_infer", "plugin"},
    "export_cpp": DESCRIBE | {"features", "models_infer"},
    "dispatch": DESCRIBE | {"select", "models_infer", "family", "families_cpu_gemm",
                            "families_cublaslt", "cublaslt", "gpu"},
}
# What every family may use; never another family, never dataset.
FAMILY = DESCRIBE | {"family", "gpu", "kernels", "loop", "loop_machine", "cublaslt"}
# One that reads what programs print.
COMMAND_FAMILY = FAMILY | {"documents"}

# Our header that hands a third-party one on, on purpose: whoever includes it counts as a user.
PASSES_JSON_ON = "foretune/documents/json.h"

# Third-party headers, and the modules that may include them; tools/, tests and bench/ may use all.
THIRD_PARTY = {
    "nlohmann/": {"documents", "dataset", "models_train", "evaluate"},
    PASSES_JSON_ON: {"documents", "dataset", "models_exchange", "evaluate", "families_command"},
    "toml++/": {"families_command"},
    "zlib.h": {"documents"},
    "LightGBM/": {"models_train"},
    "asmjit/": {"loop_machine"},
    "CLI/": set(),
    "gtest/": set(),
    "gmock/": set(),
}
# Not among the dependencies (docs/dependencies.md): nowhere, programs and tests included. They may
# be installed on the machine of whoever writes the include, and on no other.
NOT_USED = ("fmt/", "benchmark/", "boost/", "absl/", "Eigen/", "msgpack")


def allowed_for(name, modules):
    if name in ALLOWED:
        return ALLOWED[name]
    if name == "families":
        # The table of all families: no family itself, and linked by programs only. It hands the
        # recorded family its rows, for which it reads data sets.
        families = {other for other in modules if other.startswith("families_")}
        return FAMILY | {"dataset", "features"} | families
    if name == "families_command":
        return COMMAND_FAMILY
    if name.startswith("families_"):
        return FAMILY
    raise SystemExit(f"module {name} is not in the table of {pathlib.Path(__file__).name}")


def read_modules(path):
    modules = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line:
            name, folder, public, private, files = line.split("|")
            deps = {dep for dep in (public + "," + private).split(",") if dep}
            modules[name] = (folder, deps, [file for file in files.split(",") if file])
    return modules


def closure(name, modules):
    seen = set()
    pending = [name]
    while pending:
        for dep in modules.get(pending.pop(), ("", set(), []))[1]:
            if dep not in seen:
                seen.add(dep)
                pending.append(dep)
    return seen


def check_declarations(modules, problems):
    for name, (folder, deps, _) in modules.items():
        allowed = allowed_for(name, modules)
        for dep in sorted(closure(name, modules)):
            if dep not in modules:
                problems.append(f"{folder}/CMakeLists.txt: {name} depends on {dep}, which is no "
                                "module")
            # What an allowed module uses in turn is that module's affair, except below a family and
            # below the selector, where nothing else may be linked at all.
            elif dep not in allowed and (dep in deps or name == "select"
                                         or name.startswith("families_")):
                problems.append(f"{folder}/CMakeLists.txt: {name} may not depend on {dep}")


def check_includes(modules, problems):
    # Longest folder first, so that families/null is not taken for families.
    folders = sorted(((folder, name) for name, (folder, _, _) in modules.items()),
                     key=lambda item: -len(item[0]))

    def module_of(path):
        return next((name for folder, name in folders if path.startswith(folder + "/")), None)

    heavy = {}  # headers that include a third-party one
    included_by = []
    # Tests and their programs are no part of a module and link what they like.
    files = [(name, pathlib.PurePosixPath(folder, file))
             for name, (folder, _, files) in modules.items() for file in files]
    for name, path in files:
        reachable = closure(name, modules) | {name}
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(1)
            where = f"{path}:{number}"
            if included.startswith(("tools/", "tests/", "bench/", "fuzz/", "examples/")):
                problems.append(f"{where}: the library includes no program")
            included_by.append((included, name, path.suffix, where))
            target = module_of(included)
            if target and target not in reachable:
                problems.append(f"{where}: {name} includes {target} without declaring it")
            for prefix, users in THIRD_PARTY.items():
                if included.startswith(prefix):
                    if name not in users:
                        problems.append(f"{where}: {name} may not use {included}")
                    elif path.suffix == ".h":
                        heavy[str(path)] = (name, included)


    # Such a header stays inside its module, between source files: through another header it would
    # reach everybody. (tl/expected.hpp is the one exception, and in no table above.)
    for included, name, suffix, where in included_by:
        if included == PASSES_JSON_ON:
            continue
        if included in heavy and (suffix == ".h" or heavy[included][0] != name):
            problems.append(f"{where}: {included} passes {heavy[included][1]} on; include it in "
                            "source files of its module only")


def check_dependencies(problems):
    for name in sources():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1).startswith(NOT_USED):
                problems.append(f"{name}:{number}: {match.group(1)} is not in docs/dependencies.md")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    modules = read_modules(pathlib.Path(sys.argv[1]))
    problems = []
    check_declarations(modules, problems)
    check_includes(modules, problems)
    check_dependencies(problems)
    for problem in problems:
        print(problem)
    print(f"layering: {len(modules)} modules, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
