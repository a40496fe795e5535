#!/usr/bin/env python3
"""Holds the #includes of every module against its declared dependencies, and these against the
architecture.

    scripts/check_layering.py build/dev/modules.txt

The file is written by CMake: one line `name|folder|deps|private deps|files` per module.
"""

import os
import pathlib
import re
import sys

from sources import ROOT, report, sources

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')

# The modules that a module may use besides itself (docs/explanation/architecture.md). "families" knows all
# families.
DESCRIBE = {"base", "metrics", "hardware", "sparse", "graph", "problem", "space"}
ALLOWED = {
    "base": set(),
    "formats": {"base"},
    "metrics": {"base"},
    "hardware": {"base"},
    "sparse": {"base"},
    "graph": {"base"},
    "problem": {"base", "graph", "sparse"},
    "space": {"base", "hardware", "problem"},
    "interop_names": {"base", "hardware", "problem", "space"},
    "interop_onnx": {"base", "graph"},
    "dataset": DESCRIBE,
    "features": DESCRIBE | {"loop", "interop_names"},
    "kernels": {"base", "hardware"},
    "loop": {"base", "hardware", "problem", "space"},
    "loop_machine": {"base", "hardware", "kernels", "loop"},
    "cuda": {"base", "hardware", "problem"},
    "family": DESCRIBE,
    "cuda_measuring": DESCRIBE | {"family", "cuda"},
    "cublaslt": DESCRIBE | {"family", "cuda", "cuda_measuring"},
    "cudnn": DESCRIBE | {"family", "cuda", "cuda_measuring"},
    # The family of sparse products without the reading of files, for the dispatcher.
    "sparse_products": DESCRIBE | {"family", "kernels"},
    "model": DESCRIBE | {"features", "loop"},
    "interop_data": DESCRIBE | {"formats", "dataset", "interop_names"},
    "interop_models": DESCRIBE | {"formats", "features", "model", "interop_names"},
    "training_files": {"base", "model"},
    "model_train": DESCRIBE | {"features", "dataset", "model", "training_files", "interop_models"},
    "interop_import": DESCRIBE | {"features", "dataset", "model", "model_train", "interop_names",
                                  "interop_models"},
    "measure": DESCRIBE | {"family", "dataset"},
    # LoopTune's environment: measures by the family of loop nests.
    "loop_gym": DESCRIBE | {"family", "families_loop_nest", "measure", "dataset", "loop"},
    "search": DESCRIBE | {"model"},
    # Names families and strategies only, so that a selector may load plug-ins, too.
    "plugin": DESCRIBE | {"loop", "features", "model"},
    "plugin_loader": DESCRIBE | {"features", "plugin", "families", "search"},
    "collect": DESCRIBE | {"family", "dataset", "measure", "search", "features", "model",
                           "model_train"},
    "tune": DESCRIBE | {"family", "dataset", "measure", "search", "features", "model", "model_train",
                        "collect"},
    "evaluate": DESCRIBE | {"formats", "dataset", "features", "model", "select"},
    "report": DESCRIBE | {"formats", "dataset", "search", "tune", "approx", "evaluate"},
    "select": DESCRIBE | {"loop", "features", "model", "plugin", "interop_names"},
    "interop_dispatcher": DESCRIBE | {"select", "interop_names"},
    "export_cpp": DESCRIBE | {"features", "model"},
    # Tunes how networks compute; the family's data judge the images.
    "approx": DESCRIBE | {"family", "families_network_cpu", "graph_run", "dataset", "measure",
                          "collect", "search", "tune"},
    # The use cases of the command line and of the Python package.
    "workflow": DESCRIBE | {"formats", "families", "family", "dataset", "features", "measure",
                            "search", "collect", "tune", "evaluate", "report", "select", "model",
                            "model_train", "interop_names", "interop_data", "interop_models",
                            "interop_import", "interop_onnx", "graph", "graph_run", "approx",
                            "kernels", "loop", "loop_gym"},
    # Work shared out among machines: leases of a folder, job arrays.
    "cluster": DESCRIBE | {"workflow", "families", "collect", "tune", "measure", "dataset",
                           "family", "formats"},
    "dispatch": DESCRIBE | {"select", "model", "family", "dataset", "measure", "families_cpu_gemm",
                            "families_cpu_conv", "families_cublaslt", "sparse_products", "kernels",
                            "cublaslt", "cudnn", "cuda", "features"},
    "graph_run": {"base", "hardware", "problem", "kernels", "graph", "family", "dispatch",
                  "families_cpu_conv", "families_cpu_gemm"},
}
# The modules that every family may use; never another family, never dataset.
FAMILY = DESCRIBE | {"family", "cuda", "cuda_measuring", "kernels", "loop", "loop_machine",
                     "cublaslt", "cudnn"}
# The modules of a family that reads the output of programs, or compressed files.
READING_FAMILY = FAMILY | {"formats"}

# Our headers that include a third-party one on purpose: a file that includes them counts as its
# user.
JSON_HEADER = "foretune/formats/json.h"
CARD_HEADER = "foretune/model/train/model_card.h"
PASS_JSON_ON = (JSON_HEADER, CARD_HEADER)

# Third-party headers, and the modules that may include them; tools/, tests and bench/ may use all.
THIRD_PARTY = {
    "nlohmann/": {"formats", "interop_data", "model_train", "interop_import", "report"},
    CARD_HEADER: {"model_train", "interop_import"},
    JSON_HEADER: {"formats", "cluster", "interop_data", "interop_models", "evaluate", "report",
                     "families_command"},
    "toml++/": {"families_command"},
    "zlib.h": {"formats"},
    "zstd.h": {"formats"},
    "LightGBM/": {"model_train"},
    "onnx/": {"interop_onnx"},
    "google/protobuf/": {"interop_onnx"},
    "asmjit/": {"loop_machine"},
    "CLI/": set(),
    "Eigen/": set(),
    "GraphBLAS.h": set(),
    "rsb.h": set(),
    "gtest/": set(),
    "gmock/": set(),
}
# Libraries that are not dependencies (docs/explanation/dependencies.md), so no file may include them, not even
# programs and tests. They may be installed on the machine of the person who writes the include, and
# on no other.
NOT_USED = ("fmt/", "benchmark/", "boost/", "absl/", "msgpack")


def allowed_for(name, modules):
    if name in ALLOWED:
        return ALLOWED[name]
    if name == "families":
        # The table of all families: no family itself, and linked by programs only. It hands the
        # recorded family its rows, for which it reads data sets.
        families = {other for other in modules if other.startswith("families_")}
        return FAMILY | {"dataset", "interop_data", "features"} | families
    if name == "families_sparse_cpu":
        return READING_FAMILY | {"sparse_products"}
    if name == "families_network_cpu":
        # Networks run on the one dispatcher, which brings what it decides with.
        return FAMILY | ALLOWED["dispatch"] | ALLOWED["select"] | {"dispatch", "graph_run"}
    if name == "families_command":
        return READING_FAMILY
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
            # An allowed module decides for itself which modules it uses, except below a family and
            # below the selector, where nothing else may be linked at all.
            elif dep not in allowed and (dep in deps or name == "select"
                                         or name.startswith("families_")):
                problems.append(f"{folder}/CMakeLists.txt: {name} may not depend on {dep}")


def check_includes(modules, problems):
    # Several modules may share a folder, and the trainer of a kind of model is in the kind's
    # folder.
    owners = {os.path.normpath(f"{folder}/{file}"): name
              for name, (folder, _, files) in modules.items() for file in files}
    # Headers that no list names: longest folder first, so that families/null is not taken for
    # families.
    folders = sorted(((folder, name) for name, (folder, _, _) in modules.items()),
                     key=lambda item: -len(item[0]))

    def module_of(path):
        return owners.get(path) or next((name for folder, name in folders
                                         if path.startswith(folder + "/")), None)

    heavy = {}  # headers that include a third-party one
    included_by = []
    # Tests and their programs are not part of a module and may link anything.
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
            if "/internal/" in included and module_of(included) != name:
                problems.append(f"{where}: {included} is for {module_of(included)} alone")
            if "/testing/" in included and "/testing/" not in str(path):
                problems.append(f"{where}: {included} is for tests alone")
            target = module_of(included)
            if target and target not in reachable:
                problems.append(f"{where}: {name} includes {target} without declaring it")
            for prefix, users in THIRD_PARTY.items():
                if included.startswith(prefix):
                    if name not in users:
                        problems.append(f"{where}: {name} may not use {included}")
                    elif path.suffix == ".h":
                        heavy[str(path)] = (name, included)


    # Only source files of the module may include such a header: through another header it would
    # reach every user. (tl/expected.hpp is the one exception, and in no table above.)
    for included, name, suffix, where in included_by:
        if included in PASS_JSON_ON:
            continue
        if included in heavy and (suffix == ".h" or heavy[included][0] != name):
            problems.append(f"{where}: {included} passes {heavy[included][1]} on; include it in "
                            "source files of its module only")


def check_dependencies(problems):
    for name in sources():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1).startswith(NOT_USED):
                problems.append(f"{name}:{number}: {match.group(1)} is not in docs/explanation/dependencies.md")


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    modules = read_modules(pathlib.Path(sys.argv[1]))
    problems = []
    check_declarations(modules, problems)
    check_includes(modules, problems)
    check_dependencies(problems)
    return report(problems, f"layering: {len(modules)} modules")


if __name__ == "__main__":
    sys.exit(main())
