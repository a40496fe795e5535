"""Fakes of the parts of PyTorch that foretune.torch uses, enough to lower matrix products."""

import contextlib
from dataclasses import dataclass, field
from types import SimpleNamespace

from foretune.torch import _hooks, _rows
from foretune.torch._problem import Abstention
from foretune.torch._ranking import LIBRARY


@dataclass(frozen=True)
class Device:
    type: str = "cuda"

    def __str__(self):
        return f"{self.type}:0"


@dataclass
class Node:
    """An operand: sizes, strides, type."""

    size: tuple
    stride: tuple = ()
    dtype: str = "torch.bfloat16"
    device: Device = Device()

    def __post_init__(self):
        if not self.stride:
            strides = [1]
            for size in reversed(self.size[1:]):
                strides.insert(0, strides[0] * size)
            self.stride = tuple(strides)

    def get_size(self):
        return list(self.size)

    def get_stride(self):
        return list(self.stride)

    def get_dtype(self):
        return self.dtype

    def get_device(self):
        return self.device


def by_columns(rows, columns, **keywords):
    return Node((rows, columns), (1, rows), **keywords)


@dataclass(eq=False)
class TemplateChoice:
    """Stands in for KernelTemplateChoice."""

    uid: str
    keywords: dict = field(default_factory=dict)
    input_nodes: tuple = ()

    @property
    def template(self):
        return SimpleNamespace(uid=self.uid)

    @property
    def params(self):
        return SimpleNamespace(to_kwargs=lambda: dict(self.keywords))

    @property
    def annotations(self):
        return {"ktc": self}


TILES = [(16, 16, 32, 2, 2), (64, 64, 32, 3, 4), (128, 128, 64, 3, 8), (128, 256, 64, 3, 8),
         (256, 128, 64, 4, 8), (256, 256, 64, 1, 8)]


class Heuristic:
    """Makes the candidates of a template from a list of configs."""

    def __init__(self, tiles):
        self.exhaustive_configs = [
            SimpleNamespace(block_m=m, block_n=n, block_k=k, group_m=8, num_stages=stages,
                            num_warps=warps) for m, n, k, stages, warps in tiles]

    def make(self, uid):
        yield from templates(uid, [
            (config.block_m, config.block_n, config.block_k, config.num_stages, config.num_warps)
            for config in self.exhaustive_configs])


def templates(uid, tiles=TILES):
    """Returns a generator, like the one by which Inductor offers templates."""
    for m, n, k, stages, warps in tiles:
        yield TemplateChoice(uid, {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8,
                                   "num_stages": stages, "num_warps": warps, "EVEN_K": True,
                                   "ALLOW_TF32": False, "ACC_TYPE": "tl.float32",
                                   "hint_override": None})


def words(template, tile):
    m, n, k, stages, warps = tile
    return (template, m, n, k, 8, stages, warps)


class Config:
    """Settings with dotted names and ``patch``."""

    def __init__(self, **changes):
        self._values = {
            "max_autotune": False, "max_autotune_gemm": False,
            "max_autotune_gemm_backends": "ATEN,TRITON,CPP",
            "max_autotune_gemm_search_space": "DEFAULT",
            "max_autotune_prune_choices_based_on_shared_mem": False,
            "max_autotune_conv_backends": "ATEN,TRITON", "autotune_local_cache": True,
            "autotune_num_choices_displayed": 10, "benchmark_epilogue_fusion": True,
            "deterministic": False,
            "triton.num_decompose_k_splits": 10, "triton.enable_persistent_tma_matmul": False,
            "triton.native_matmul": False, "cache_key_tag": "", "force_disable_caches": False,
            **changes}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "triton":
            return SimpleNamespace(**{key.partition(".")[2]: value
                                      for key, value in self._values.items() if "." in key})
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        if name == "_values":
            super().__setattr__(name, value)
        else:
            self._values[name] = value

    @contextlib.contextmanager
    def patch(self, changes=None, **keywords):
        changes = changes or keywords
        assert all(name in self._values for name in changes)
        before = {name: self._values[name] for name in changes}
        self._values.update(changes)
        try:
            yield
        finally:
            self._values.update(before)

    def snapshot(self):
        return dict(self._values)


class Choices:
    """Stands in for InductorChoices: offers templates, and builds the choices that
    ``_finalize_template_configs`` keeps."""

    def __init__(self, inductor):
        self.inductor = inductor

    def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name,
                                   kwarg_overrides=None):
        return [choice for choices in template_choices.values() for choice in choices]

    def get_template_configs(self, kernel_inputs, templates, op_name, kwarg_overrides=None):
        offered = self.inductor.offered(op_name)
        if templates is not None:
            offered = {uid: offered[uid] for uid in templates if uid in offered}
        return self._finalize_template_configs(offered, kernel_inputs, templates, op_name)


class Virtualized:
    def __init__(self, choices):
        self.choices = choices

    def set_choices_handler(self, handler):
        before, self.choices = self.choices, handler

        @contextlib.contextmanager
        def context():
            try:
                yield
            finally:
                self.choices = before

        return context()


class Inductor:
    """Lowers ``mm`` and the like to the built choices. foretune uses its ``hooks``."""

    def __init__(self, **settings):
        self.config = Config(**settings)
        self.seen = []  # settings at the time of every lowering
        self.questions = [None]  # uids that each call of a lowering offers; None offers all
        self.library = {"mm": ["aten::mm"], "bmm": ["aten::bmm"],
                        "addmm": ["aten::bias_addmm", "aten::addmm"], "baddbmm": ["aten::baddbmm"]}
        self.heuristics = {uid: Heuristic(TILES) for uid in
                           ("triton::mm", "triton::bmm", "triton::mm_persistent_tma")}
        self.virtualized = Virtualized(Choices(self))
        self.lowerings = {name: self._lowering(name) for name in self.library}
        self.original = dict(self.lowerings)
        self.device_name = "NVIDIA H200"
        self.hits = 0
        self.algorithms = Algorithms()
        self.hooks = _hooks.Inductor(
            "2.11.0", self.config, self.config, self.lowerings,
            {name: [name] for name in self.lowerings}, self.virtualized, self.algorithms,
            lambda: False, self._facts, lambda: _rows.Machine(
                "NVIDIA H200", "sm_90 triton-3.6.0", {"cores": 132.0}), lambda: self.hits,
            lambda uid, device, operation: self.heuristics[uid])

    def _facts(self, device):
        if device is not None and device.type != "cuda":
            return None
        return _hooks.DeviceFacts(self.device_name, "sm_90")

    def _tuning(self):
        return self.config.max_autotune or self.config.max_autotune_gemm

    def offered(self, op_name):
        offered = {}
        if not self._tuning():
            uid = self.library[op_name][-1]
            return {uid: iter([TemplateChoice(uid)])}
        if "ATEN" in self.config.max_autotune_gemm_backends:
            offered = {uid: iter([TemplateChoice(uid)]) for uid in self.library[op_name]}
        uid = "triton::bmm" if "bmm" in op_name else "triton::mm"
        offered[uid] = self.heuristics[uid].make(uid)
        if self.config.triton.enable_persistent_tma_matmul and "bmm" not in op_name:
            uid = "triton::mm_persistent_tma"
            offered[uid] = self.heuristics[uid].make(uid)
        if self.config.triton.num_decompose_k_splits:
            offered["decompose_k"] = iter([TemplateChoice("decompose_k", {"k_split": 4})])
        return offered

    def _lowering(self, name):
        def lowering(*arguments, **keywords):
            self.seen.append(self.config.snapshot())
            matrices = arguments[-2:]
            inputs = SimpleNamespace(mat1mat2=lambda: matrices)
            choices = [choice for uids in self.questions for choice in
                       self.virtualized.choices.get_template_configs(inputs, uids, name)]
            if not choices:
                raise RuntimeError("No choices exist for backend.")
            return choices

        return lowering

    def lower(self, name, *arguments, **keywords):
        """Lowers one operation as a graph does; returns the built choices."""
        return self.lowerings[name](*arguments, **keywords)


class Algorithms:
    """Stands in for ``select_algorithm``: the lists of functions called around measuring."""

    def __init__(self):
        self.preprocessing_fns = []
        self.feedback_saver_fns = []

    def get_algorithm_selector_cache(self):
        return self

    def add_preprocessing_fn(self, function):
        self.preprocessing_fns.append(function)

    def add_feedback_saver(self, function):
        self.feedback_saver_fns.append(function)

    def tune(self, name, choices, milliseconds, uncompiled=(), arguments=6):
        """Measures the choices of one operation as the selector does; returns their times."""
        for function in self.preprocessing_fns:
            choices = function(choices)
        if len(choices) == 1:
            return None
        left = [choice for choice in choices if choice not in uncompiled]
        timings = {choice: milliseconds(choice) for choice in left}
        details = (timings, name, list(choices[0].input_nodes), left, lambda: timings,
                   dict.fromkeys(left, 0.5))
        for function in self.feedback_saver_fns:
            function(*details[:arguments])
        return timings


class Ranker:
    """Ranks by a table of scores, or abstains."""

    knows_library = True
    device = "NVIDIA H200"

    def __init__(self, model):
        self.scores = {}
        self.asked = []
        if isinstance(model, dict):
            self.scores = model
            self.knows_library = LIBRARY in model
        elif isinstance(model, Exception):
            self.error = model

    def rank(self, problem):
        self.asked.append(problem)
        if not self.scores:
            raise getattr(self, "error", Abstention("The problem lies outside."))
        return self.scores

    def ordered(self, problem):
        found = {}
        for key, _ in sorted(self.rank(problem).items(), key=lambda entry: entry[1]):
            found.setdefault(key[0], []).append(key)
        return found
