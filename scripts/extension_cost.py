#!/usr/bin/env python3
"""Counts the places that an extension of the core costs, by making it:

    scripts/extension_cost.py [--json FILE] [--keep]

Copies the sources into build/extension, adds a problem type, a field of each type, a column of a
feature table, a metric of a family, an outcome, a kind of model, a strategy, a feature table and a
family as their authors would, builds, and uses each from the command line, C and Python. A place is a run of changed lines outside of the new folder (or, for
all but a problem type, outside of the folder or file that owns it). Files that were written before
must answer as before, to the bit; files that use an addition that the program before cannot know must
be refused by it in one sentence that names it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build/extension/tree"
WORK = ROOT / "build/extension/work"
BUILD = TREE / "build/release"
FORETUNE = BUILD / "tools/foretune/foretune"
TYPE_FOLDER = "foretune/problem/stencil"
PRODUCT = ("gemm", "m=256", "n=512", "k=128")
LIMITS = {"problem_type_places": 1, "problem_field_places": 0, "feature_column_places": 0,
          "metric_places": 1, "enumerator_places": 0, "model_kind_places": 1, "strategy_places": 1,
          "feature_places": 1, "family_places": 1}


class Failed(Exception):
    """Says what went wrong."""


def run(*command: str | Path | int, wanted: int = 0, **environment: str) -> str:
    """Returns stdout and stderr; the exit code must be the wanted one."""
    done = subprocess.run([str(word) for word in command], cwd=WORK, capture_output=True, text=True,
                          check=False, env={**os.environ, **environment})
    if done.returncode != wanted:
        raise Failed(f"`{' '.join(map(str, command))}` ended with {done.returncode}:\n"
                     + (done.stdout + done.stderr)[-3000:])
    return done.stdout + done.stderr


def run_script(script: str) -> str:
    """Runs a Python script with the package of the build."""
    return run(ROOT / "build/venv/bin/python", "-c", script, PYTHONPATH=str(BUILD / "python"))


def git(*arguments: str) -> str:
    return run("git", "-C", TREE, *arguments)


def copy_sources() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    TREE.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    kept = {name for name in names if name and (ROOT / name).is_file()}
    for name in kept:
        target = TREE / name
        # Unchanged files keep their times, so that a second run builds little.
        if not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
            os.utime(target)
    for path in [*(TREE / "foretune").rglob("*"), *(TREE / "tests").rglob("*")]:
        if path.is_file() and str(path.relative_to(TREE)) not in kept:
            path.unlink()
    shutil.rmtree(TREE / TYPE_FOLDER, ignore_errors=True)
    (TREE / "build").mkdir(exist_ok=True)
    for name in ("deps", "venv"):
        link = TREE / "build" / name
        if not link.exists():
            link.symlink_to(ROOT / "build" / name)
    shutil.rmtree(TREE / ".git", ignore_errors=True)
    git("init", "-q")
    commit()


def commit() -> None:
    git("add", "--all")
    git("-c", "user.name=extension", "-c", "user.email=extension@localhost", "commit", "-q", "-m",
        "state", "--allow-empty")


def build() -> None:
    if not (BUILD / "build.ninja").exists():
        run("cmake", "--preset", "release", "-S", TREE, "-DFORETUNE_BUILD_PYTHON=ON",
            "-DFORETUNE_BUILD_TESTS=ON")
    run("cmake", "--build", BUILD, "--parallel", "--target", "foretune", "golden", "_foretune",
        "foretune_select_shared")


def places_outside(owned: str) -> int:
    """Runs of changed lines outside of the folder or file."""
    git("add", "--all", "--intent-to-add")
    count = 0
    name = ""
    for line in git("diff", "--unified=0").splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ b/")
        elif line.startswith("@@") and not name.startswith(owned):
            count += 1
    return count


def insert(name: str, before: str, text: str) -> None:
    path = TREE / name
    content = path.read_text(encoding="utf-8")
    if content.count(before) != 1:
        raise Failed(f"{name} holds {content.count(before)} of the place to extend: {before}")
    path.write_text(content.replace(before, text + before), encoding="utf-8")


def check_golden() -> None:
    run(BUILD / "tests/golden", TREE / "tests/golden")


def expect(pattern: str, text: str) -> None:
    if not re.search(pattern, text):
        raise Failed(f"no '{pattern}' in:\n{text[-2000:]}")


def problem_type() -> int:
    folder = TREE / TYPE_FOLDER
    folder.mkdir()
    shutil.copy(ROOT / "scripts/extension/stencil_type.cc", folder)
    types = TREE / "foretune/problem/types.inc"
    types.write_text(types.read_text(encoding="utf-8") + "FORETUNE_PROBLEM_TYPE(stencil)\n",
                     encoding="utf-8")
    places = places_outside(TYPE_FOLDER)
    build()
    check_golden()
    null = ["--family", "null", "--family-option", "type=stencil"]
    run(FORETUNE, "collect", *null, "--log-normal", "--log-normal-radius-mean", "1.2", "--num-shapes",
        "50", "--borders", "zero", "wrap", "--search-space", "SAMPLE:40", "--output", "train.ftd")
    run(FORETUNE, "train", "--dataset", "train.ftd", "--model", "stencil.ftm", "--trees", "60")
    run(FORETUNE, "create-validation", *null, "--num-shapes", "12", "--training-data", "train.ftd",
        "--search-space", "SAMPLE:60", "--output", "validation.ftd")
    judged = run(FORETUNE, "validate-model", "--model", "stencil.ftm", "--dataset", "validation.ftd",
                 "--training-data", "train.ftd", "--no-measure", "--json", "figures.json")
    expect(r"Efficiency of the model's picks on 12 problems", judged)
    if json.loads((WORK / "figures.json").read_text())["metrics"]["mean_efficiency"] < 0.9:
        raise Failed("the picks of the new type are poor:\n" + judged[:1500])
    predicted = run(FORETUNE, "predict", "--model", "stencil.ftm", "--cells", "4096", "--radius", "2",
                    "--border", "wrap")
    expect(r"(?s)stencil cells=4096 radius=2 border=wrap\npick: block_m=\d+", predicted)
    run(FORETUNE, "convert", "train.ftd", "--output", "train.csv")
    expect(r"^cells,radius,border,block_m", (WORK / "train.csv").read_text())
    run(FORETUNE, "convert", "train.csv", "--family", "null", "--output", "again.ftd")
    library = BUILD / "foretune/select"
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{TREE}",
        ROOT / "scripts/extension/select_stencil.c", f"-L{library}", "-lforetune_select",
        f"-Wl,-rpath,{library}", "-o", "select_stencil")
    expect("picked by text, the same by fields", run("./select_stencil", "stencil.ftm"))
    script = ("import foretune\n"
              "choice = foretune.select('stencil.ftm', {'cells': 4096, 'radius': 2, 'border': 'wrap'})\n"
              "print('picked', choice.config)")
    expect(r"picked .*block_m", run_script(script))
    return places


def field_is_later(type_name: str, csv: str, before: Path) -> None:
    """Old files answer as before; a file without the field is for all, one with it for this build."""
    check_golden()
    null = ["--family", "null", "--family-option", f"type={type_name}", "--num-shapes", "20"]
    run(FORETUNE, "collect", *null, "--search-space", "SAMPLE:20", "--output", "plain.ftd")
    run(before, "inspect", "plain.ftd")
    (WORK / "later.csv").write_text(csv, encoding="utf-8")
    run(FORETUNE, "convert", "later.csv", "--output", "later.ftd")
    run(FORETUNE, "convert", "later.ftd", "--output", "later.json")
    expect("tint=3", (WORK / "later.json").read_text())
    refused = run(before, "inspect", "later.ftd", wanted=3)
    expect(r"has problems with the field 'tint', which \w+ problems do not have in this version",
           refused)
    if len(refused.strip().splitlines()) != 1:
        raise Failed("the refusal is no single sentence:\n" + refused)
    for name in ("plain.ftd", "later.ftd", "later.json"):
        (WORK / name).unlink()


TINT = ('{.name = "tint", .minimum = 0, .maximum = 9, .default_value = 0, '
        ".groups = {.problem = true}, .since = %d}")


def gemm_field(before: Path) -> int:
    source = "foretune/problem/gemm/gemm_type.cc"
    insert(source, "};\n    list[position(GemmField::kWeights)]", f",\n        ProblemField{TINT % 3}")
    places = places_outside("foretune/problem/gemm/")
    build()
    field_is_later("gemm", "m,n,k,tint,tile,time_ns\n8,16,24,0,1,10\n8,16,32,3,1,20\n", before)
    return places


def conv_field(before: Path) -> int:
    source = "foretune/problem/conv/conv_type.cc"
    insert(source, "};\n    for (const ConvField skip :", f",\n        ProblemField{TINT % 5}")
    places = places_outside("foretune/problem/conv/")
    build()
    field_is_later("conv", "n,c,k,hi,wi,y,x,tint,tile,time_ns\n1,8,8,9,9,3,3,0,1,10\n"
                   "2,8,8,9,9,3,3,3,1,20\n", before)
    return places


def feature_column(before: Path) -> int:
    source = "foretune/features/tables/gemm_null.cc"
    insert(source, "};\n\nclass GemmNullTable",
           '    FeatureInfo{.name = "blocks_m", .kind = FeatureKind::kInteraction,\n'
           '                .description = "blocks of rows", .since = 2},\n')
    insert(source, "  }\n};\n\n}  // namespace\n\nconst FeatureTable& gemm_null_table()",
           "    writer.put(ceil_div(view.m, words[0]));\n")
    places = places_outside(source)
    build()
    check_golden()
    collect_null(40, 30, by=before)
    run(before, "train", "--dataset", "null.ftd", "--model", "old.ftm", "--trees", "60")
    predict = ["predict", "--model", "old.ftm", *PRODUCT]
    if run(before, *predict) != run(FORETUNE, *predict):
        raise Failed("a model from before answers otherwise with one more column")
    run(FORETUNE, "train", "--dataset", "null.ftd", "--model", "new.ftm", "--trees", "60")
    run(FORETUNE, "predict", "--model", "new.ftm", *PRODUCT)
    refused = run(before, "predict", "--model", "new.ftm", *PRODUCT, wanted=3)
    expect("column 'blocks_m', which the feature table gemm-null does not have", refused)
    return places


def metric(before: Path) -> int:
    """Declared and yielded by its family, and known to everything else by its name."""
    source = "foretune/families/null/null.cc"
    insert(source, "                       {.name = std::string(kNullAccuracy)",
           '                       {.name = "spills", .unit = "B"},\n')
    insert(source, "};\n  }\n  Result<std::vector<MetricValue>> evaluate",
           ',\n            {"spills", 64.0 * config_.words[kUnroll], 0, 1}')
    places = places_outside("foretune/families/null/")
    build()
    check_golden()
    null = ["--family", "null", "--family-option", "metrics=1"]
    run(FORETUNE, "collect", *null, "--metrics", "accuracy", "--num-shapes", "8", "--search-space",
        "SAMPLE:30", "--output", "spills.ftd")
    expect(r"metrics .*\bspills:minimise:B", run(FORETUNE, "inspect", "spills.ftd"))
    run(before, "inspect", "spills.ftd")
    run(FORETUNE, "convert", "spills.ftd", "--output", "spills.csv")
    expect(r"^[^\n]*,spills:minimise:B,spills_spread,", (WORK / "spills.csv").read_text())
    run(FORETUNE, "convert", "spills.csv", "--family", "null", "--output", "again.ftd")
    expect(r"metrics .*\bspills:minimise:B", run(FORETUNE, "inspect", "again.ftd"))
    ask = [*PRODUCT, "--strategy", "exhaustive", "--budget", "5000"]
    best = run(FORETUNE, "tune", *ask, *null, "--objective",
               "minimise time_ns subject to spills <= 64 B")
    expect(r"best: [^\n]*unroll=1\b", best)
    run(FORETUNE, "tune", *ask, *null, "--objective", "pareto time_ns spills accuracy")
    script = ("import foretune\n"
              "data = foretune.Dataset.open('spills.ftd')\n"
              "assert ('spills', 'B', 'minimise', 'run') in data.metrics\n"
              "frame = data.to_pandas()\n"
              "timed = frame[frame['time_ns'] > 0]\n"
              "assert (timed['spills:minimise:B'] == 64 * timed['unroll']).all()\n"
              "print('spills of', len(timed))")
    expect(r"spills of \d+", run_script(script))
    return places


def outcome(before: Path) -> int:
    """Not a row yet: an enumerator and a name, in the files that own them."""
    header = "foretune/dataset/measurement.h"
    source = "foretune/dataset/measurement.cc"
    insert(header, "};\n// Returns the names that this version knows, in the order of the enumerators",
           "  kSpilled = 7,\n")
    insert(source, "});\nconstexpr auto kStages", ', "spilled"')
    places = places_outside("foretune/dataset/measurement.")
    build()
    check_golden()
    (WORK / "outcome.csv").write_text("m,n,k,tile,time_ns,outcome\n8,16,24,1,10,ok\n"
                                      "8,16,32,1,,spilled\n", encoding="utf-8")
    run(FORETUNE, "convert", "outcome.csv", "--output", "outcome.ftd")
    run(FORETUNE, "convert", "outcome.ftd", "--output", "outcome-again.csv")
    expect("spilled", (WORK / "outcome-again.csv").read_text())
    refused = run(before, "inspect", "outcome.ftd", wanted=3)
    expect("this version does not know .*outcome 7", refused)
    return places


def append_row(name: str, row: str) -> None:
    path = TREE / name
    path.write_text(path.read_text(encoding="utf-8") + row + "\n", encoding="utf-8")


def add_file(source: str, target: str, rows: str, row: str) -> int:
    """Builds with one more file and its row in a list; returns the places outside of its folder."""
    shutil.copy(ROOT / "scripts/extension" / source, TREE / target)
    append_row(rows, row)
    places = places_outside(f"{Path(target).parent}/")
    build()
    return places


def collect_null(shapes: int, configs: int, by: Path = FORETUNE) -> None:
    """Writes null.ftd, measurements of the family null."""
    run(by, "collect", "--family", "null", "--num-shapes", shapes, "--search-space",
        f"SAMPLE:{configs}", "--output", "null.ftd")


def model_kind(before: Path) -> int:
    """A folder and a row: trained, inspected, explained and asked from everywhere."""
    folder = TREE / "foretune/model/ridge"
    folder.mkdir()
    for source in (ROOT / "examples/extending/model").glob("ridge_*"):
        text = source.read_text(encoding="utf-8")
        (folder / source.name).write_text(
            text.replace("examples/extending/model/", "foretune/model/ridge/"),
            encoding="utf-8")
    append_row("foretune/model/kinds.inc", "FORETUNE_MODEL_KIND(ridge)")
    places = places_outside("foretune/model/ridge")
    build()
    check_golden()
    collect_null(40, 60)
    run(FORETUNE, "train", "--dataset", "null.ftd", "--model", "ridge.ftm", "--model-type", "ridge")
    expect(r"(?s)kind +ridge.*slopes +\d+ of a linear function", run(FORETUNE, "inspect", "ridge.ftm"))
    predict = ["predict", "--model", "ridge.ftm", *PRODUCT]
    expect(r"pick: block_m=\d+", run(FORETUNE, *predict, "--explain"))
    run(FORETUNE, "create-validation", "--family", "null", "--num-shapes", "12", "--training-data",
        "null.ftd", "--search-space", "SAMPLE:60", "--output", "validation.ftd")
    run(FORETUNE, "validate-model", "--model", "ridge.ftm", "--dataset", "validation.ftd",
        "--no-measure", "--json", "figures.json")
    if json.loads((WORK / "figures.json").read_text())["metrics"]["mean_efficiency"] < 0.5:
        raise Failed("the picks of the new kind are poor")
    refused = run(before, *predict, wanted=4)
    expect("models of kind 'ridge' are not known to this version", refused)
    script = ("import foretune\n"
              "model = foretune.Model.open('ridge.ftm')\n"
              "assert model.info['kind'] == 'ridge' and model.info['figures']['slopes'] > 5\n"
              "print('picked', foretune.select(model, 'gemm m=256 n=512 k=128').config)")
    expect(r"picked .*block_m", run_script(script))
    return places


def strategy(_before: Path) -> int:
    """A file and a row: offered by every command that searches."""
    places = add_file("halving_strategy.cc", "foretune/search/strategies/halving.cc",
                      "foretune/search/strategies.inc", "FORETUNE_STRATEGY(halving)")
    expect(r"best: block_m=\d+", run(FORETUNE, "tune", *PRODUCT, "--family", "null", "--strategy",
                                     "halving", "--budget", "80"))
    collect_null(20, 30)
    run(FORETUNE, "train", "--dataset", "null.ftd", "--model", "null.ftm", "--trees", "30")
    run(FORETUNE, "search", "--model", "null.ftm", *PRODUCT, "--strategy", "halving")
    return places


def feature_table(_before: Path) -> int:
    """A file and a row: learned from and asked by its name."""
    places = add_file("gemm_bytes_table.cc", "foretune/features/tables/gemm_bytes.cc",
                      "foretune/features/tables.inc", "FORETUNE_FEATURE_TABLE(gemm_bytes)")
    collect_null(30, 40)
    run(FORETUNE, "train", "--dataset", "null.ftd", "--model", "bytes.ftm", "--trees", "40",
        "--features", "gemm-bytes")
    expect("gemm-bytes", run(FORETUNE, "inspect", "bytes.ftm"))
    run(FORETUNE, "predict", "--model", "bytes.ftm", *PRODUCT)
    return places


def family(_before: Path) -> int:
    """A folder and a row: measured in workers, learned from and tuned. Outside of the tree it costs
    no place at all: examples/own_family, which a test installs against."""
    shutil.copytree(ROOT / "scripts/extension/blocked_copy",
                    TREE / "foretune/families/blocked_copy")
    append_row("foretune/families/families.inc", "FORETUNE_FAMILY(blocked_copy)")
    places = places_outside("foretune/families/blocked_copy/")
    build()
    own = ["--family", "blocked-copy"]
    run(FORETUNE, "collect", *own, "--random", "--num-shapes", "6", "--max-bytes", "2e6",
        "--search-space", "SAMPLE:12", "--output", "copies.ftd")
    run(FORETUNE, "train", "--dataset", "copies.ftd", "--model", "copies.ftm", "--trees", "20",
        "--folds", "2")
    ask = ["gemm", "m=200", "n=300", "k=8"]
    expect(r"pick: block_m=\d+", run(FORETUNE, "predict", "--model", "copies.ftm", *ask))
    expect(r"best: block_m=\d+", run(FORETUNE, "tune", *ask, *own, "--budget", "12"))
    measured = run(FORETUNE, "measure", *ask, *own, "--model", "copies.ftm", "--config",
                   "block_m=16 block_n=16 block_k=1 unroll=2", "--rounds", "3")
    expect(r"(?s)given.*result verified.*default", measured)
    return places


def reset() -> None:
    git("checkout", "-q", "--", ".")
    git("reset", "-q")
    git("clean", "-q", "-d", "--force", "--", "foretune")
    shutil.rmtree(WORK)
    WORK.mkdir()


def measure() -> dict[str, int]:
    print("building what there is", flush=True)
    copy_sources()
    build()
    before = ROOT / "build/extension/foretune-before"
    shutil.copy2(FORETUNE, before)
    check_golden()
    figures: dict[str, int] = {}
    steps: list[tuple[str, str, Callable[[], int]]] = [
        ("a problem type", "problem_type_places", problem_type),
        ("a field of gemm", "problem_field_places", lambda: gemm_field(before)),
        ("a field of conv", "problem_field_places", lambda: conv_field(before)),
        ("a column of gemm-null", "feature_column_places", lambda: feature_column(before)),
        ("a metric of null", "metric_places", lambda: metric(before)),
        ("an outcome", "enumerator_places", lambda: outcome(before)),
        ("a kind of model", "model_kind_places", lambda: model_kind(before)),
        ("a strategy", "strategy_places", lambda: strategy(before)),
        ("a feature table", "feature_places", lambda: feature_table(before)),
        ("a family", "family_places", lambda: family(before))]
    for what, name, step in steps:
        places = step()
        print(f"{what}: {places} places outside", flush=True)
        figures[name] = max(figures.get(name, 0), places)
        reset()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Counts the places that an extension costs.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts")
    parser.add_argument("--keep", action="store_true", help="keep build/extension")
    options = parser.parse_args()
    try:
        figures = measure()
    except Failed as error:
        print(f"extension_cost: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps({"name": "extension_cost", "metrics": figures}, indent=1)
                                + "\n", encoding="utf-8")
    if not options.keep:
        shutil.rmtree(ROOT / "build/extension")
    over = [name for name, limit in LIMITS.items() if figures[name] > limit]
    for name in over:
        print(f"{name} is {figures[name]}, more than {LIMITS[name]}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
