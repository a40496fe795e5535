#!/usr/bin/env python3
"""Writes small ONNX models with inputs and the outputs that ONNX Runtime computes of them:

    scripts/onnx_cases.py [FOLDER]      needs the packages onnx and onnxruntime

A model carries them as initializers test/input_I and test/output_I, which nothing reads. The folder
is foretune/interop/onnx/testdata unless another one is named; its models are replaced.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "foretune/interop/onnx/testdata"
BATCH = 2
OPSET = 17
# The last ones whose files the oldest supported readers know.
IR_VERSION = 8


class Case:
    """A model that grows node by node."""

    def __init__(self, name, opset=OPSET, seed=None):
        self.name, self.opset = name, opset
        self.random = np.random.default_rng(seed if seed is not None else sum(name.encode()))
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.count = 0

    def input(self, *shape, name=None, dtype=np.float32, fixed=False):
        """Adds an input; `shape` is that of one image without the batch."""
        name = name or f"x{len(self.inputs)}"
        self.inputs.append((name, list(shape), dtype, fixed))
        return name

    def floats(self, *shape, low=-1.0, high=1.0):
        return self.constant(self.random.uniform(low, high, shape).astype(np.float32))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def constant(self, array):
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"t{self.count}_{i}" for i in range(outputs)]
        node = helper.make_node(op, list(inputs), names, name=f"{op.lower()}_{self.count}", domain=domain,
                                **attributes)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [BATCH if fixed else "N", *shape])
            for name, shape, dtype, fixed in self.inputs]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, infos, results, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = IR_VERSION
        return model

    def write(self, *outputs, low=-2.0, high=2.0, expected=None):
        """Writes the model with random inputs in [low, high)."""
        model = self.model(*outputs)
        feeds = {name: self.random.uniform(low, high, (BATCH, *shape)).astype(dtype)
                 for name, shape, dtype, _ in self.inputs}
        if expected is None:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            results = session.run(list(outputs), feeds)
        else:
            results = [expected(*feeds.values())]
        for i, array in enumerate(feeds.values()):
            model.graph.initializer.append(
                numpy_helper.from_array(array.astype(np.float32), f"test/input_{i}"))
        for i, array in enumerate(results):
            model.graph.initializer.append(
                numpy_helper.from_array(array.astype(np.float32), f"test/output_{i}"))
        (Case.folder / f"{self.name}.onnx").write_bytes(model.SerializeToString())


def windows():
    for name, shape, weights, attributes in [
            ("conv", (3, 7, 8), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
            ("conv_stride", (3, 9, 8), (4, 3, 3, 2), {"strides": [2, 3], "pads": [0, 1, 2, 1]}),
            ("conv_groups", (4, 6, 6), (8, 2, 3, 3), {"group": 2, "pads": [1, 0, 1, 0]}),
            ("conv_depthwise", (4, 6, 6), (4, 1, 3, 3), {"group": 4}),
            ("conv_dilated", (2, 9, 9), (3, 2, 3, 3), {"dilations": [2, 3]}),
            ("conv_same_upper", (2, 7, 8), (3, 2, 2, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
            ("conv_same_lower", (2, 7, 8), (3, 2, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
            ("conv_valid", (2, 7, 8), (3, 2, 2, 4), {"auto_pad": "VALID"}),
            ("conv_rows", (3, 12), (4, 3, 3), {"pads": [2, 1], "strides": [2], "dilations": [2]}),
    ]:
        case = Case(name)
        x = case.input(*shape)
        inputs = [x, case.floats(*weights)]
        if "dilated" not in name:
            inputs.append(case.floats(weights[0]))
        case.write(case.add("Conv", *inputs, **attributes))
    for op in ("MaxPool", "AveragePool"):
        for name, shape, attributes in [
                ("", (2, 7, 8), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
                ("_ceil", (2, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
                ("_same", (2, 7, 8), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
                ("_same_lower", (2, 7, 8), {"kernel_shape": [2, 4], "auto_pad": "SAME_LOWER"}),
                ("_rows", (2, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
        ]:
            case = Case(f"{op.lower()}{name}")
            case.write(case.add(op, case.input(*shape), **attributes))
    case = Case("maxpool_dilated")
    case.write(case.add("MaxPool", case.input(2, 7, 8), kernel_shape=[2, 2], dilations=[2, 3]))
    case = Case("averagepool_padding")
    case.write(case.add("AveragePool", case.input(2, 7, 8), kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                        count_include_pad=1))
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        case = Case(op.lower())
        case.write(case.add(op, case.input(3, 4, 5)))


def elementwise():
    for op in ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Abs", "Neg", "Softplus", "HardSwish", "LeakyRelu",
               "HardSigmoid"):
        case = Case(op.lower())
        case.write(case.add(op, case.input(3, 5)))
    for op in ("Sqrt", "Reciprocal"):
        case = Case(op.lower())
        case.write(case.add(op, case.input(3, 5)), low=0.5)
    case = Case("attributes")
    x = case.input(3, 5)
    y = case.add("LeakyRelu", x, alpha=0.3)
    case.write(case.add("HardSigmoid", y, alpha=0.4, beta=0.3))
    for approximation in ("none", "tanh"):
        case = Case(f"gelu_{approximation}", opset=20)
        case.write(case.add("Gelu", case.input(3, 5), approximate=approximation))
    case = Case("clip")
    x = case.input(4, 4)
    y = case.add("Clip", x, case.constant(np.float32(-0.5)), case.constant(np.float32(1.0)))
    z = case.add("Clip", x, "", case.constant(np.float32(0.25)))
    case.write(y, z, case.add("Clip", x, case.constant(np.float32(0.25))))
    case = Case("clip_attributes", opset=10)
    case.write(case.add("Clip", case.input(4, 4), min=0.0, max=1.5))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        case = Case(f"{op.lower()}_operands")
        a, b = case.input(3, 4, 4), case.input(3, 1, 1)
        y = case.add(op, a, b)
        z = case.add(op, case.floats(3, 1, 4, low=0.5), y)
        case.write(y, z, case.add(op, a, case.constant(np.float32(1.5))), low=0.5)
    case = Case("pow")
    x = case.input(3, 4)
    y = case.add("Pow", x, case.constant(np.float32(2.5)))
    case.write(y, case.add("Pow", x, case.constant(np.array([2], np.int64))), low=0.1)
    for op in ("Sum", "Mean", "Max", "Min"):
        case = Case(f"{op.lower()}_of_three")
        case.write(case.add(op, case.input(3, 4), case.input(3, 4), case.input(1, 4)))
    for name, shape, slopes in [("prelu", (4, 3, 3), (4, 1, 1)), ("prelu_one", (4, 3, 3), (1,))]:
        case = Case(name)
        case.write(case.add("PRelu", case.input(*shape), case.floats(*slopes)))
    case = Case("batchnormalization")
    x = case.input(4, 3, 2)
    case.write(case.add("BatchNormalization", x, case.floats(4), case.floats(4), case.floats(4),
                        case.floats(4, low=0.2), epsilon=0.01))
    case = Case("batchnormalization_vectors", opset=9)
    x = case.input(6)
    case.write(case.add("BatchNormalization", x, case.floats(6), case.floats(6), case.floats(6),
                        case.floats(6, low=0.2)))
    # ONNX Runtime does not run the broadcasting of models before opset 7.
    case = Case("add_legacy", opset=6)
    x = case.input(3, 2, 2)
    bias = np.array([1.0, 2.0, 3.0], np.float32)
    case.write(case.add("Add", x, case.constant(bias), axis=1, broadcast=1),
               expected=lambda values: values + bias[:, None, None])


def products():
    for name, attributes, weights, bias in [
            ("gemm", {}, (5, 4), (4,)),
            ("gemm_turned", {"transB": 1, "alpha": 0.5, "beta": 2.0}, (4, 5), (1, 4)),
            ("gemm_scalar", {"transB": 1}, (4, 5), ()),
            ("gemm_plain", {}, (5, 4), None),
    ]:
        case = Case(name)
        inputs = [case.input(5), case.floats(*weights)]
        if bias is not None:
            inputs.append(case.floats(*bias))
        case.write(case.add("Gemm", *inputs, **attributes))
    case = Case("gemm_added_tensor")
    case.write(case.add("Gemm", case.input(5), case.floats(5, 4), case.input(4)))
    case = Case("matmul_bias")
    product = case.add("MatMul", case.input(3, 5), case.floats(5, 4))
    case.write(case.add("Add", case.floats(4), product))
    case = Case("matmul_shared")
    product = case.add("MatMul", case.input(5), case.floats(5, 4))
    case.write(case.add("Add", product, case.floats(4)), case.add("Mul", product, product))
    case = Case("matmul_raised_weights")
    case.write(case.add("MatMul", case.input(3, 5), case.floats(1, 5, 4)))
    case = Case("matmul_left")
    case.write(case.add("MatMul", case.floats(4, 3), case.input(3, 5)))
    case = Case("matmul_tensors")
    case.write(case.add("MatMul", case.input(2, 3, 5), case.input(2, 5, 4)))
    case = Case("matmul_batch")
    case.write(case.add("MatMul", case.input(3, 5), case.input(5, 4)))


def rows():
    for op in ("ReduceMean", "ReduceSum", "ReduceMax"):
        for name, axes, keep in [("", [1, 3], 1), ("_flat", [2], 0), ("_negative", [-1, -2], 1)]:
            case = Case(f"{op.lower()}{name}")
            x = case.input(3, 4, 5)
            if op == "ReduceSum":
                y = case.add(op, x, case.ints(*axes), keepdims=keep)
            else:
                y = case.add(op, x, axes=axes, keepdims=keep)
            case.write(y)
    case = Case("reducemean_input", opset=18)
    case.write(case.add("ReduceMean", case.input(3, 4), case.ints(1), keepdims=0))
    case = Case("reducemax_none", opset=18)
    x = case.add("Relu", case.input(3, 4))
    case.write(case.add("ReduceMax", x, noop_with_empty_axes=1))
    case = Case("softmax")
    x = case.input(3, 4, 5)
    case.write(case.add("Softmax", x), case.add("Softmax", x, axis=1), case.add("Softmax", x, axis=-2))
    case = Case("softmax_flattening", opset=11)
    x = case.input(3, 4, 5)
    case.write(case.add("Softmax", x), case.add("Softmax", x, axis=2), case.add("Softmax", x, axis=-1))
    case = Case("layernormalization")
    x = case.input(3, 4, 6)
    y = case.add("LayerNormalization", x, case.floats(6), case.floats(6), epsilon=0.01)
    z = case.add("LayerNormalization", x, case.floats(4, 6), axis=-2)
    case.write(y, z)
    for size in (3, 5):
        case = Case(f"lrn_{size}")
        case.write(case.add("LRN", case.input(6, 3, 3), size=size, alpha=0.5, beta=0.6, bias=1.5))


def movement():
    case = Case("reshape")
    x = case.input(4, 6)
    y = case.add("Reshape", x, case.ints(0, 2, -1))
    case.write(y, case.add("Reshape", y, case.ints(-1, 3, 8)))
    case = Case("reshape_fixed_batch")
    x = case.input(4, 6, fixed=True)
    case.write(case.add("Relu", case.add("Reshape", x, case.ints(BATCH, 24))))
    case = Case("flatten")
    x = case.input(3, 4, 5)
    case.write(case.add("Flatten", x), case.add("Flatten", x, axis=2), case.add("Flatten", x, axis=-1))
    case = Case("squeeze")
    x = case.input(1, 4, 1)
    y = case.add("Squeeze", x, case.ints(1, -1))
    case.write(y, case.add("Unsqueeze", y, case.ints(-1, 1)), case.add("Squeeze", x))
    case = Case("squeeze_attributes", opset=11)
    y = case.add("Squeeze", case.input(1, 4, 1), axes=[1])
    case.write(y, case.add("Unsqueeze", y, axes=[1, 4]))
    case = Case("transpose")
    x = case.input(3, 4, 5)
    case.write(case.add("Transpose", x, perm=[0, 3, 1, 2]), case.add("Transpose", x, perm=[0, 2, 1, 3]))
    case = Case("concat")
    x, y = case.input(3, 4), case.input(2, 4)
    z = case.add("Concat", x, y, axis=1)
    case.write(z, case.add("Concat", x, x, axis=-1))
    case = Case("slice")
    x = case.input(6, 8)
    y = case.add("Slice", x, case.ints(1, -6), case.ints(2**62, -1), case.ints(1, 2), case.ints(2, 3))
    case.write(y, case.add("Slice", x, case.ints(-3), case.ints(-1), case.ints(-1)))
    case = Case("slice_attributes", opset=9)
    case.write(case.add("Slice", case.input(6, 8), axes=[1, 2], starts=[1, 0], ends=[5, 2147483647]))
    case = Case("split")
    x = case.input(6, 4)
    y = case.add("Split", x, axis=1, outputs=3)
    z = case.add("Split", x, case.ints(1, 3), axis=-1, outputs=2)
    case.write(y[0], y[2], z[0], z[1])
    case = Case("split_uneven", opset=18)
    case.write(*case.add("Split", case.input(7), axis=1, outputs=3, num_outputs=3))
    case = Case("split_attributes", opset=11)
    case.write(*case.add("Split", case.input(6, 4), axis=1, split=[1, 5], outputs=2))
    case = Case("gather")
    x = case.input(6, 4)
    y = case.add("Gather", x, case.constant(np.int64(0)), axis=1)
    z = case.add("Gather", x, case.ints(1, 3, 5), axis=1)
    case.write(y, z, case.add("Gather", x, case.ints(-1, 0, 2), axis=2))
    case = Case("pad")
    x = case.input(3, 4)
    y = case.add("Pad", x, case.ints(0, 1, 2, 0, 0, 1), case.constant(np.float32(0.5)))
    case.write(y, case.add("Pad", x, case.ints(0, 0, 1, 0, 1, 0)))
    case = Case("pad_axes", opset=18)
    case.write(case.add("Pad", case.input(3, 4), case.ints(1, 2), "", case.ints(-1)))
    case = Case("pad_attributes", opset=10)
    case.write(case.add("Pad", case.input(3, 4), pads=[0, 1, 2, 0, 0, 1], value=0.25))


def constants():
    case = Case("identities")
    x = case.add("Identity", case.input(3, 4))
    y = case.add("Dropout", x)
    z = case.add("Cast", y, to=TensorProto.FLOAT)
    case.write(case.add("Relu", z))
    case = Case("half_input")
    x = case.add("Cast", case.input(3, 4, dtype=np.float16), to=TensorProto.FLOAT)
    case.write(case.add("Mul", x, case.floats(4)))
    case = Case("constant_nodes")
    x = case.input(3, 4)
    tensor = numpy_helper.from_array(case.random.uniform(-1, 1, (3, 1)).astype(np.float32))
    y = case.add("Add", x, case.add("Constant", value=tensor))
    y = case.add("Mul", y, case.add("Constant", value_float=1.5))
    y = case.add("Sub", y, case.add("Constant", value_floats=[1.0, 2.0, 3.0, 4.0]))
    y = case.add("Gather", y, case.add("Constant", value_int=2), axis=1)
    case.write(case.add("Reshape", y, case.add("Constant", value_ints=[0, 2, 2])))
    case = Case("typed_fields")
    x = case.input(3)
    for kind, values in [(TensorProto.FLOAT, [1.5, 2.0, -3.0]), (TensorProto.FLOAT16, [0.5, -6e-8, 1.25]),
                         (TensorProto.DOUBLE, [1.0, 2.0, 0.1])]:
        name = f"typed_{kind}"
        case.constants.append(helper.make_tensor(name, kind, [3], values))
        x = case.add("Add", x, case.add("Cast", name, to=TensorProto.FLOAT))
    half = case.constant(np.array([1.0, 3.0, 65504.0], np.float16))
    case.write(case.add("Add", x, case.add("Cast", half, to=TensorProto.FLOAT)))
    # The flattening and the heads of exported models.
    case = Case("shape_chain")
    x = case.input(4, 6)
    shape = case.add("Shape", x)
    batch = case.add("Gather", shape, case.constant(np.int64(0)), axis=0)
    depth = case.add("Div", case.add("Gather", shape, case.constant(np.int64(2)), axis=0),
                     case.constant(np.int64(2)))
    parts = [case.add("Unsqueeze", number, case.ints(0)) for number in (batch, depth)]
    target = case.add("Concat", parts[0], case.ints(-1), parts[1], axis=0)
    y = case.add("Reshape", x, target)
    tail = case.add("Slice", case.add("Shape", y), case.ints(1), case.ints(3), case.ints(0))
    last = case.add("Squeeze", case.add("Slice", tail, case.ints(1), case.ints(2)), case.ints(0))
    root = case.add("Sqrt", case.add("Cast", last, to=TensorProto.FLOAT))
    case.write(case.add("Div", y, root))
    case = Case("folded_floats")
    x = case.input(4)
    weights = case.add("Transpose", case.add("Reshape", case.floats(4, 6), case.ints(6, 4)), perm=[1, 0])
    weights = case.add("Mul", case.add("Identity", weights), case.constant(np.float32(0.5)))
    bias = case.add("Sqrt", case.add("Add", case.floats(6, low=0.1), case.constant(np.float32(0.25))))
    case.write(case.add("Gemm", x, weights, case.add("Sub", bias, case.floats(6))))
    case = Case("expanded_token")
    x = case.input(5, 4)
    first = case.add("Gather", case.add("Shape", x), case.ints(0), axis=0)
    wanted = case.add("Concat", first, case.ints(-1, -1), axis=0)
    ones = case.add("ConstantOfShape", case.ints(3), value=numpy_helper.from_array(np.array([1], np.int64)))
    shape = case.add("Where", case.add("Equal", wanted, case.ints(-1, -1, -1)), ones, wanted)
    case.write(case.add("Concat", case.add("Expand", case.floats(1, 1, 4), shape), x, axis=1))
    case = Case("constantofshape")
    zeros = case.add("ConstantOfShape", case.ints(3, 1))
    case.write(case.add("Max", case.input(3, 4), zeros))
    case = Case("expand")
    case.write(case.add("Expand", case.input(3, 1), case.ints(1, 3, 4)))


def layer_norm_of_parts(case, x, depth):
    centred = case.add("Sub", x, case.add("ReduceMean", x, axes=[-1]))
    variance = case.add("ReduceMean", case.add("Pow", centred, case.constant(np.float32(2))), axes=[-1])
    root = case.add("Sqrt", case.add("Add", variance, case.constant(np.float32(1e-5))))
    scaled = case.add("Mul", case.add("Div", centred, root), case.floats(depth))
    return case.add("Add", scaled, case.floats(depth))


def linear(case, x, inputs, outputs):
    return case.add("Add", case.add("MatMul", x, case.floats(inputs, outputs)), case.floats(outputs))


def encoder():
    """An encoder block of a transformer, as exporters write it."""
    tokens, depth, heads = 5, 8, 2
    case = Case("encoder_block")
    x = case.input(tokens, depth)
    normed = layer_norm_of_parts(case, x, depth)
    parts = []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        split = case.add("Reshape", linear(case, normed, depth, depth),
                         case.ints(0, 0, heads, depth // heads))
        parts.append(case.add("Transpose", split, perm=order))
    scores = case.add("Div", case.add("MatMul", parts[0], parts[1]), case.constant(np.float32(2.0)))
    mixed = case.add("MatMul", case.add("Softmax", scores, axis=-1), parts[2])
    mixed = case.add("Reshape", case.add("Transpose", mixed, perm=[0, 2, 1, 3]), case.ints(0, 0, depth))
    x = case.add("Add", x, linear(case, mixed, depth, depth))
    wide = linear(case, layer_norm_of_parts(case, x, depth), depth, 16)
    error = case.add("Erf", case.add("Div", wide, case.constant(np.float32(np.sqrt(2)))))
    bent = case.add("Mul", wide, case.add("Add", error, case.constant(np.float32(1))))
    bent = case.add("Mul", bent, case.constant(np.float32(0.5)))
    case.write(case.add("Add", x, linear(case, bent, 16, depth)))
    # Tokens first, as in PyTorch's attention: the batch of 1 moves, and sums go over dimension 0.
    case = Case("tokens_first")
    x = case.add("Transpose", case.input(4, 6, fixed=True), perm=[1, 0, 2])
    y = case.add("Reshape", x, case.ints(4, 2, 3))
    y = case.add("Transpose", y, perm=[1, 0, 2])
    z = case.add("Concat", case.add("Softmax", y, axis=0), y, axis=0)
    part = case.add("Slice", z, case.ints(1), case.ints(4), case.ints(0))
    head = case.add("Gather", z, case.constant(np.int64(1)), axis=0)
    total = case.add("ReduceSum", part, case.ints(0), keepdims=0)
    global BATCH
    batch, BATCH = BATCH, 1
    case.write(case.add("Add", head, total))
    BATCH = batch


def random_images(seed):
    """A random network of images with branches."""
    case = Case(f"random_images_{seed}", seed=seed)
    pick = case.random.integers
    channels, side = int(pick(2, 5)), int(pick(8, 13))
    x = case.input(channels, side, side)
    for _ in range(int(pick(4, 9))):
        kind = int(pick(0, 8))
        if kind in (0, 1):
            filters, kernel = int(pick(2, 7)), int(pick(1, 4))
            x = case.add("Conv", x, case.floats(filters, channels, kernel, kernel), case.floats(filters),
                         pads=[kernel // 2, kernel // 2, (kernel - 1) // 2, (kernel - 1) // 2])
            channels = filters
        elif kind == 2:
            x = case.add("BatchNormalization", x, case.floats(channels), case.floats(channels),
                         case.floats(channels), case.floats(channels, low=0.3))
        elif kind == 3:
            op = ["Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Softplus"][int(pick(0, 6))]
            x = case.add(op, x)
        elif kind == 4 and side >= 4:
            op = ["MaxPool", "AveragePool"][int(pick(0, 2))]
            x = case.add(op, x, kernel_shape=[2, 2], strides=[2, 2])
            side //= 2
        elif kind == 5:
            branch = case.add("Conv", x, case.floats(channels, 1, 3, 3), pads=[1, 1, 1, 1], group=channels)
            x = case.add("Add", x, branch)
        elif kind == 6:
            branch = case.add("Conv", x, case.floats(3, channels, 1, 1))
            x = case.add("Concat", x, branch, axis=1)
            channels += 3
        elif kind == 7:
            gate = case.add("Conv", case.add("GlobalAveragePool", x), case.floats(channels, channels, 1, 1))
            x = case.add("Mul", x, case.add("Sigmoid", gate))
    x = case.add("Flatten", case.add("ReduceMean", x, axes=[2, 3]))
    x = case.add("Gemm", x, case.floats(4, channels), case.floats(4), transB=1)
    case.write(case.add("Softmax", x, axis=-1))


def random_rows(seed):
    """A random network of rows of vectors."""
    case = Case(f"random_rows_{seed}", seed=100 + seed)
    pick = case.random.integers
    tokens, depth = int(pick(2, 6)), int(pick(2, 5)) * 2
    x = case.input(tokens, depth)
    for _ in range(int(pick(4, 9))):
        kind = int(pick(0, 7))
        if kind in (0, 1):
            outputs = int(pick(2, 5)) * 2
            x = linear(case, x, depth, outputs)
            depth = outputs
        elif kind == 2:
            x = case.add("LayerNormalization", x, case.floats(depth), case.floats(depth))
        elif kind == 3:
            halves = case.add("Split", x, axis=-1, outputs=2)
            x = case.add("Mul", halves[0], case.add("Sigmoid", halves[1]))
            x = case.add("Concat", x, halves[1], axis=2)
        elif kind == 4:
            x = case.add("Transpose", x, perm=[0, 2, 1])
            tokens, depth = depth, tokens
            if depth % 2:
                x = case.add("Pad", x, case.ints(0, 0, 0, 0, 0, 1))
                depth += 1
        elif kind == 5:
            scores = case.add("Softmax", case.add("MatMul", x, case.add("Transpose", x, perm=[0, 2, 1])))
            x = case.add("MatMul", scores, x)
        elif kind == 6:
            x = case.add("Sub", x, case.add("ReduceMax", x, axes=[1]))
    case.write(x)


def main():
    Case.folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    Case.folder.mkdir(parents=True, exist_ok=True)
    for old in Case.folder.glob("*.onnx"):
        if not old.name.startswith("light_"):
            old.unlink()
    for write in (windows, elementwise, products, rows, movement, constants, encoder):
        write()
    for seed in range(16):
        random_images(seed)
        random_rows(seed)
    print(f"{len(list(Case.folder.glob('*.onnx')))} models in {Case.folder}")


if __name__ == "__main__":
    main()
