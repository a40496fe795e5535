"""Runs the code blocks of a page of documentation, as a reader would who goes from top to bottom.

Blocks are fenced and say their language:

- ``sh`` runs in the page's folder with ``foretune`` and ``python3`` in the path and stops at the first
  error; ``source/`` is a link to this repository.
- ``python`` runs in one namespace a page.
- Any other language is a file if the comment ``<!-- file: NAME -->`` stands before the block, the next part
  of that file if the comment is ``<!-- more: NAME -->``, or part of a file of the repository if it is
  ``<!-- in: PATH -->``; the test then compares.
- ``text`` is output and does not run.

A comment ``<!-- test: ... -->`` before a block changes how it is run. The parts are separated by semicolons:

- ``replace OLD => NEW`` makes a long run short;
- ``needs WORD`` runs the block only where all needs are met (``gpu``, ``slurm``, ``torch``, ``onnx``,
  ``vectors``, ``avx512``, ``peers``, ``g++``, ``fashion-mnist``; ``installed`` gives the block this build as
  an installed package). No test has ``bench`` and ``trainer``, programs that are not built by default,
  ``data``, files of others, and ``hands``, as for installing packages. Where a need is missing the options of
  its ``foretune`` lines are looked up in the command's help;
- ``fails`` says that the last command of the block ends with an error;
- ``shows TEXT`` demands that the output contains TEXT.

A block within a comment of its own (``<!--``, the fence, ``-->``) runs, too, but readers do not see it: it
prepares files for the blocks behind it, or checks what they left.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```\s*$", re.S | re.M)
COMMENT = re.compile(r"<!-- (file|more|in|test): (.*?) -->", re.S)
RUN = ("sh", "python")
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


@dataclasses.dataclass
class Block:
    language: str
    text: str
    line: int
    file: str = ""
    is_more: bool = False
    within: str = ""
    needs: list[str] = dataclasses.field(default_factory=list)
    replacements: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    shows: list[str] = dataclasses.field(default_factory=list)
    fails: bool = False


def _apply(block: Block, kind: str, value: str) -> None:
    if kind in ("file", "more"):
        block.file = value.strip()
        block.is_more = kind == "more"
    elif kind == "in":
        block.within = value.strip()
    else:
        for part in value.split(";"):
            word, _, rest = part.strip().partition(" ")
            if word == "replace":
                old, arrow, new = rest.partition(" => ")
                assert arrow, f"line {block.line}: replace wants OLD => NEW"
                block.replacements.append((old, new))
            elif word == "needs":
                block.needs += rest.split()
            elif word == "shows":
                block.shows.append(rest)
            elif word == "fails":
                block.fails = True
            else:
                raise AssertionError(f"line {block.line}: unknown word {word} in a comment for the test")


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    out = []
    end = 0
    for fence in FENCE.finditer(text):
        indent, language, body = fence[1], fence[2], fence[3]
        lines = [line.removeprefix(indent) for line in body.split("\n")]
        block = Block(language, "\n".join(lines), text.count("\n", 0, fence.start()) + 1)
        for kind, value in COMMENT.findall(text[end:fence.start()].split("\n\n")[-1]):
            _apply(block, kind, value)
        end = fence.end()
        for old, _ in block.replacements:
            assert old in block.text, f"{page.name}:{block.line}: {old!r} is not in the block"
        out.append(block)
    return out


def tool() -> Path:
    """Returns the program `foretune` of this build."""
    import foretune

    # Not resolved: in a build the package's files are links to the sources.
    folder = Path(foretune.__file__).parents[2]
    for place in (folder / "tools/foretune/foretune", ROOT / "build/dev/tools/foretune/foretune"):
        if place.exists():
            return place
    found = shutil.which("foretune")
    assert found, "the program foretune is not built"
    return Path(found)


@functools.cache
def _installation() -> dict[str, str]:
    """Installs this build into a folder that lives as long as the process, and returns the variables with
    which CMake finds the package and the compiler that built it."""
    build = tool().parents[2]
    prefix = tempfile.mkdtemp(prefix="foretune-installed-")
    atexit.register(shutil.rmtree, prefix, ignore_errors=True)
    done = subprocess.run(["cmake", "--install", str(build), "--prefix", prefix], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"{build} cannot be installed:\n{done.stdout[-2000:]}"
    compilers = re.findall(r"^CMAKE_(CXX|C)_COMPILER:\w+=(.+)$",
                           (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
    return {"CMAKE_PREFIX_PATH": prefix,
            **{{"C": "CC"}.get(language, language): path for language, path in compilers}}


@functools.cache
def _help(command: str) -> str:
    return subprocess.run([str(tool()), *command.split(), "--help"], capture_output=True, text=True,
                          check=False).stdout


def check_options(text: str) -> None:
    """Looks up every option of the block's lines that call foretune."""
    for line in text.replace("\\\n", " ").split("\n"):
        words = shlex.split(line, comments=True)
        if "foretune" not in words:
            continue
        words = words[words.index("foretune") + 1:]
        command = next((word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)), "")
        known = _help("") + _help(command)
        assert f"{command} " in known or command in known, f"no command {command}: {line}"
        for word in words:
            if word.startswith("--"):
                name = word.split("=")[0]
                names = f"{re.escape(name)}|{re.escape(name.replace('_', '-'))}"
                assert re.search(rf"({names})(?![\w-])", known), f"no option {name}: {line}"


@functools.cache
def has(need: str) -> bool:
    if need in ("torch", "onnx", "triton", "matplotlib", "gymnasium"):
        if need == "onnx":
            from network_samples import _reads_onnx

            return _reads_onnx()
        return importlib.util.find_spec(need) is not None
    if need in ("vectors", "avx512"):
        from foretune import loops

        return ("avx512" if need == "avx512" else "avx2") in loops.instruction_sets()
    if need == "gpu":
        return shutil.which("nvidia-smi") is not None
    if need == "slurm":
        return shutil.which("sbatch") is not None and shutil.which("slurmctld") is None
    if need in ("g++", "cmake"):
        return shutil.which(need) is not None
    if need == "fashion-mnist":
        return FASHION_MNIST.exists()
    if need == "installed":
        return shutil.which("cmake") is not None and (tool().parents[2] / "CMakeCache.txt").exists()
    return False


def _shell(block: Block, text: str, folder: Path) -> str:
    tools = folder / ".tools"
    tools.mkdir(exist_ok=True)
    for name, target in (("foretune", tool()), ("python3", Path(sys.executable)),
                         ("python", Path(sys.executable))):
        launcher = tools / name
        # A launcher, not a link: an interpreter of a virtual environment finds it by its own path.
        launcher.write_text(f'#!/bin/sh\nexec "{target}" "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
                   **(_installation() if "installed" in block.needs else {})}
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder, env=environment,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert (done.returncode != 0) == block.fails, \
        f"line {block.line} ended with {done.returncode}:\n{text}\n{done.stdout}"
    return done.stdout


def run_page(page: Path, folder: Path, capture) -> int:
    """Runs the page in `folder`, which is the current one, and returns the number of blocks that ran.
    `capture` returns what Python printed since the last call."""
    if not (folder / "source").exists():
        (folder / "source").symlink_to(ROOT)
    names: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block in blocks_of(page):
        text = block.text
        for old, new in block.replacements:
            text = text.replace(old, new)
        where = f"{page.name}:{block.line}"
        if block.within:
            assert block.text in (ROOT / block.within).read_text(encoding="utf-8"), \
                f"{where} is not in {block.within}"
        elif block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if block.is_more else "w", encoding="utf-8") as file:
                file.write(text)
        elif block.language in RUN:
            if not all(has(need) for need in block.needs):
                if block.language == "sh":
                    check_options(text)
                else:
                    compile(text, where, "exec")
                continue
            if block.language == "sh":
                output = _shell(block, text, folder)
            else:
                exec(compile("\n" * block.line + text, str(page), "exec"), names)  # noqa: S102
                output = capture()
            for shown in block.shows:
                assert shown in output, f"{where} does not print {shown!r}:\n{output}"
            ran += 1
        else:
            assert block.language == "text", \
                f"{where}: say what the block is: sh, python, text, or a file (<!-- file: NAME -->)"
    return ran
