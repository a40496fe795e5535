"""Simulates an H200 for PyTorch: Inductor lowers graphs of fake tensors, nothing runs.

    with pretended_gpu() as gpu:
        graph = gpu.graph(torch.ops.aten.mm.default, gpu.matrix(512, 64), gpu.matrix(64, 128))
        (buffer,) = gpu.lower(graph).operations
"""

import contextlib
import sys
import types
from unittest import mock

import torch
import torch._inductor.choices
import torch._inductor.scheduler
import torch._inductor.utils
import torch.utils._triton
from foretune.torch import _hooks
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime.hints import DeviceProperties
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode

PROPERTIES = types.SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32,
    shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
    regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
    total_memory=141 * 10**9, L2_cache_size=52428800, gcnArchName="")
DEVICE = DeviceProperties(type="cuda", index=0, multi_processor_count=132, cc=90, major=9,
                          regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
                          warp_size=32)
# The module that makes templates' candidates; its place differs between versions.
HEURISTICS = sys.modules[torch._inductor.choices.BaseConfigHeuristic.__module__]


class Driver:
    """Stands in for Triton's driver, as far as code generation calls it."""

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0


class Gpu:
    """Makes graphs of fake tensors on the GPU, and lowers them."""

    def __init__(self):
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)

    def matrix(self, *sizes, dtype=torch.bfloat16):
        with self.fake:
            return torch.empty(sizes, device="cuda", dtype=dtype)

    def graph(self, operation, *tensors, **keywords):
        """Returns a module of one operation, and its inputs."""
        graph = torch.fx.Graph()
        with self.fake:
            result = operation(*tensors, **keywords)
        places = []
        for position, tensor in enumerate(tensors):
            places.append(graph.placeholder(f"a{position}"))
            places[-1].meta["val"] = tensor
        node = graph.call_function(operation, tuple(places), keywords)
        node.meta["val"] = result
        graph.output((node,))
        return torch.fx.GraphModule(torch.nn.Module(), graph), list(tensors)

    def lower(self, graph, codegen=False):
        """Returns the lowering with its ``operations``; ``codegen`` adds the wrapper's ``code``."""
        module, inputs = graph
        lowering = GraphLowering(module, example_inputs=inputs, shape_env=None, is_inference=True)
        with (V.set_graph_handler(lowering), V.set_fake_mode(self.fake),
              V.set_debug_handler(DebugContext())):
            lowering.run(*inputs)
            if codegen:
                code, _ = lowering.codegen()
                lowering.code = code.value
        return lowering


@contextlib.contextmanager
def pretended_gpu():
    import triton

    def is_cuda(_, device):
        return PROPERTIES if device is None or device.type == "cuda" else None

    with contextlib.ExitStack() as patches:
        for target, name, value in (
                (torch.cuda, "get_device_properties", lambda *_: PROPERTIES),
                (torch.cuda, "current_device", lambda: 0),
                (torch.cuda, "get_device_capability", lambda *_: (9, 0)),
                (torch._inductor.utils, "is_big_gpu", lambda *_: True),
                (HEURISTICS, "get_num_sms", lambda: 132),
                (torch._inductor.utils, "get_num_sms", lambda: 132),
                (torch._inductor.scheduler, "has_triton", lambda *_: True),
                (torch.utils._triton, "has_triton_tma_device", lambda: True),
                (DeviceProperties, "create", classmethod(lambda *_: DEVICE)),
                (_hooks, "_properties", is_cuda)):
            patches.enter_context(mock.patch.object(target, name, value))
        patches.enter_context(mock.patch.object(triton.runtime.driver, "_active", Driver()))
        yield Gpu()
