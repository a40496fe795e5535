"""Runs the code blocks of a page of documentation, as a reader would who goes from top to bottom.

Pages are tutorials and guides (test_pages.py), where ``source/`` is a link to this repository, and the
READMEs of examples (scripts/check_example.py). Blocks are fenced and say their language:

- ``sh`` runs in the page's folder with ``foretune`` and ``python3`` in the path and stops at the first
  error.
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

The variable FORETUNE_INSTALLED names an installation of this build, which ctest makes once for all pages.
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
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```\s*$", re.S | re.M)
COMMENT = re.compile(r"<!-- (file|more|in|test): (.*?) -->", re.S)
RUN = ("sh", "python")
INSTALLED = "FORETUNE_INSTALLED"
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

    @property
    def code(self) -> str:
        """The text as the test runs it."""
        text = self.text
        for old, new in self.replacements:
            text = text.replace(old, new)
        return text


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
    if INSTALLED in os.environ:
        return Path(os.environ[INSTALLED]) / "bin/foretune"
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
    """Returns the variables with which CMake finds this build as a package. Without FORETUNE_INSTALLED the
    build is installed into a folder that lives as long as the process."""
    if INSTALLED in os.environ:
        return {"CMAKE_PREFIX_PATH": os.environ[INSTALLED]}
    build = tool().parents[2]
    prefix = tempfile.mkdtemp(prefix="foretune-installed-")
    atexit.register(shutil.rmtree, prefix, ignore_errors=True)
    done = subprocess.run(["cmake", "--install", str(build), "--prefix", prefix], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, f"{build} cannot be installed:\n{done.stdout[-2000:]}"
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$",
                         (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
    assert compiler
    return {"CMAKE_PREFIX_PATH": prefix, "CXX": compiler[1]}


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
        is_there = INSTALLED in os.environ or (tool().parents[2] / "CMakeCache.txt").exists()
        return is_there and shutil.which("cmake") is not None
    return False


def _environment(folder: Path, blocks: list[Block]) -> dict[str, str]:
    """Returns the variables of the shell blocks and writes their programs into `folder`."""
    tools = folder / ".tools"
    tools.mkdir()
    for name, target in (("foretune", tool()), ("python3", sys.executable), ("python", sys.executable)):
        launcher = tools / name
        # A launcher, not a link: an interpreter of a virtual environment finds it by its own path.
        launcher.write_text(f'#!/bin/sh\nexec "{target}" "$@"\n', encoding="utf-8")
        launcher.chmod(0o755)
    is_installed = any("installed" in block.needs for block in blocks) and has("installed")
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **(_installation() if is_installed else {})}


def _shell(block: Block, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", block.code], cwd=folder, env=environment,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert (done.returncode != 0) == block.fails, \
        f"line {block.line} ended with {done.returncode}:\n{block.code}\n{done.stdout}"
    return done.stdout


def _write(block: Block, folder: Path) -> None:
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if block.is_more else "w", encoding="utf-8") as file:
        file.write(block.code)


def run_page(page: Path, folder: Path, capture: Callable[[], str] = str) -> None:
    """Runs the page in `folder`, which Python's blocks need to be the current one. `capture` returns what
    Python printed since the last call."""
    blocks = blocks_of(page)
    environment = _environment(folder, blocks) if any(block.language == "sh" for block in blocks) else {}
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        where = f"{page.name}:{block.line}"
        if block.within:
            assert block.text in (ROOT / block.within).read_text(encoding="utf-8"), \
                f"{where} is not in {block.within}"
        elif block.file:
            _write(block, folder)
        elif block.language not in RUN:
            assert block.language == "text", \
                f"{where}: say what the block is: sh, python, text, or a file (<!-- file: NAME -->)"
        elif not all(has(need) for need in block.needs):
            if block.language == "sh":
                check_options(block.code)
            else:
                compile(block.code, where, "exec")
        else:
            if block.language == "sh":
                output = _shell(block, folder, environment)
            else:
                exec(compile("\n" * block.line + block.code, str(page), "exec"), names)  # noqa: S102
                output = capture()
            for shown in block.shows:
                assert shown in output, f"{where} does not print {shown!r}:\n{output}"
