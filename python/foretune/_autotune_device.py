"""The device that an autotuned kernel runs on: its name, and the hardware facts for models.

Thread safety: free functions; devices are plain values.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

# Dense bf16 operations of the matrix units, per multiprocessor and clock, by compute capability.
# Source: NVIDIA's white papers on the architectures Ampere, Ada, Hopper and Blackwell, because
# drivers do not report them.
_TENSOR_FLOPS_PER_CLOCK = {80: 2048, 86: 1024, 87: 2048, 89: 1024, 90: 4096, 100: 8192, 103: 8192,
                           120: 1024}


@dataclass(frozen=True)
class Device:
    """A device. Times are only valid for the same name, architecture and Triton version."""

    name: str
    arch: str = ""
    """Backend and architecture: ``cuda:90``, ``hip:gfx942``."""
    triton: str = ""
    """Version of Triton; empty when the kernel is not a Triton kernel."""
    hardware: dict[str, float] = field(default_factory=dict, compare=False)
    """Facts under the names of ``foretune``'s hardware values: ``cores``,
    ``shared_bytes_per_block``, ``clock_mhz``, ..."""


def triton_version(kernel: Any) -> str:
    """Returns the version of the Triton that made a kernel; empty when something else made it."""
    for parent in type(kernel).__mro__:
        if parent.__module__.split(".")[0] == "triton":
            return str(getattr(sys.modules.get("triton"), "__version__", ""))
    return ""


def current_device(kernel: Any) -> Device:
    """Returns the device that Triton would launch on now.

    Raises:
        ImportError: Triton is not installed.
        RuntimeError: Triton finds no device, or several kinds of devices.
    """
    from triton.runtime.driver import driver  # type: ignore[import-not-found]

    active = driver.active
    target = active.get_current_target()
    index = active.get_current_device()
    backend, arch = str(target.backend), str(target.arch)
    properties = _or(lambda: dict(active.utils.get_device_properties(index)), {})
    name = _or(lambda: str(active.get_device_interface().get_device_name(index)), "")
    extra = _or(lambda: active.get_device_interface().get_device_properties(index), None)
    return Device(name or f"{backend}:{arch}", f"{backend}:{arch}", triton_version(kernel),
                  hardware_of(backend, arch, properties, extra))


def hardware_of(backend: str, arch: str, properties: dict[str, Any],
                extra: Any) -> dict[str, float]:
    """Returns hardware facts from the properties of Triton's driver (clocks in kHz, bus width in
    bits) and from torch's properties of the device; facts that both lack are left out."""

    def number(name: str) -> float:
        value = properties.get(name)
        return float(value) if isinstance(value, (int, float)) else 0.0

    facts = {
        "cores": number("multiprocessor_count"),
        "warp_size": number("warpSize"),
        "shared_bytes_per_block": number("max_shared_mem"),
        "clock_mhz": number("sm_clock_rate") / 1e3,
        "bandwidth_gbs": 2 * number("mem_clock_rate") * number("mem_bus_width") / 8 / 1e6,
        "register_file_bytes": 4 * number("max_num_regs"),
    }
    for fact, attribute in (("l2_bytes", "L2_cache_size"), ("memory_bytes", "total_memory"),
                            ("l1_bytes", "shared_memory_per_multiprocessor"),
                            ("threads_per_core", "max_threads_per_multi_processor")):
        value = getattr(extra, attribute, 0)
        facts[fact] = float(value) if isinstance(value, (int, float)) else 0.0
    if backend == "cuda" and arch.isdigit():
        per_clock = _TENSOR_FLOPS_PER_CLOCK.get(int(arch), 0)
        facts["tensor_peak_gflops"] = per_clock * facts["cores"] * facts["clock_mhz"] / 1e3
    facts["bandwidth_all_gbs"] = facts["bandwidth_gbs"]
    return {name: value for name, value in facts.items() if value > 0}


def _or(ask: Any, otherwise: Any) -> Any:
    """Returns what ``ask`` returns, or ``otherwise`` when it raises: some vendors' drivers and some
    versions lack a query."""
    try:
        return ask()
    except Exception:  # noqa: BLE001
        return otherwise
