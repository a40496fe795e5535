"""``python -m foretune.triton``: compiles the kernels that problems need."""

from __future__ import annotations

import argparse
import sys

from .._collector import CollectionMode
from .._errors import Error
from ._collector import TritonCollector
from ._compile import CompiledKernel


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m foretune.triton",
        description="Compiles Triton's GEMM kernels for foretune's family triton. Needs no GPU.")
    parser.add_argument("--output", required=True, metavar="FILE", help="file of kernels (.ftk)")
    parser.add_argument("--shapeset", metavar="FILE", help="file or built-in set of shapes")
    parser.add_argument("--log-normal", action="store_true", help="draw sizes log-normally")
    parser.add_argument("--num-shapes", type=int, default=0, metavar="N",
                        help="problems to draw; 0 takes all of a shape set")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--operations", nargs="+", metavar="OP",
                        help="mm, addmm, addmm_relu, addmm_gelu, bmm (default: mm, or all of a "
                             "shape set)")
    parser.add_argument("--dtypes", nargs="+", metavar="TYPE", help="bf16, f16, f32, tf32")
    parser.add_argument("--layouts", nargs="+", metavar="LAYOUT", help="rrr, rcr, crr, ccr")
    parser.add_argument("--device", default="", help="whose limits count: a100, h200 (default)")
    parser.add_argument("--target", default="sm_90", help="instruction set (default: sm_90)")
    parser.add_argument("--jobs", type=int, default=0, help="processes (default: all cores)")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS",
                        help="for one kernel (default: 60)")
    return parser


def _show(done: int, total: int, kernel: CompiledKernel) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done:,} of {total:,} kernels", end=end, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 with one sentence on standard error."""
    options = _parser().parse_args(arguments)
    operations = options.operations or (
        ["mm", "addmm", "addmm_relu", "addmm_gelu", "bmm"] if options.shapeset else ["mm"])
    try:
        collector = TritonCollector(
            CollectionMode.LOG_NORMAL if options.log_normal else None, shapeset=options.shapeset,
            num_shapes=options.num_shapes, seed=options.seed, operations=operations,
            dtypes=options.dtypes, layouts=options.layouts)
        summary = collector.compile(options.output, device=options.device, target=options.target,
                                    jobs=options.jobs, limit_s=options.limit, progress=_show)
    except Error as error:
        print(f"foretune.triton: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("foretune.triton: interrupted; the same command continues", file=sys.stderr)
        return 130
    print(f"{summary.compiled:,} kernels compiled in {summary.seconds:.0f} s, "
          f"{summary.failed:,} do not compile, {summary.present:,} were there: {summary.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
