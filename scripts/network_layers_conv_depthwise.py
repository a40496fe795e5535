"""Convolutional networks whose filters are mostly depthwise or in many groups, as programs like
those of network_layers_conv.py. The figures are those of the papers and of timm's and torchvision's
versions of the networks, with equal pads on both sides.
"""

from __future__ import annotations

from network_layers_conv import inverted_residual
from network_layers_types import VALIDATION, Layers, Map, divisible, image, network


def separable(net: Layers, name: str, x: Map, out: int, filter: int = 3, stride: int = 1,
              dilation: int = 1) -> Map:
    """A depthwise layer, then one that mixes channels."""
    y = net.depthwise(f"{name}_depthwise", x, filter, stride, dilation)
    return net.conv(f"{name}_pointwise", y, out, 1)


@network(VALIDATION, "MobileNetV1: Howard et al., MobileNets: efficient convolutional neural "
         "networks for mobile vision applications, 2017", macs=569, weights=4.232)
def mobilenet_v1(net: Layers) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    for i, (width, stride) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                                         *[(512, 1)] * 5, (1024, 2), (1024, 1)), 1):
        x = separable(net, f"block{i}", x, width, 3, stride)
    net.linear(1024, 1000)


@network(VALIDATION, "MnasNet-A1 without squeezing (MnasNet 1.0): Tan et al., MnasNet: "
         "platform-aware neural architecture search for mobile, 2018 (torchvision)", macs=314,
         weights=4.383)
def mnasnet1_0(net: Layers) -> None:
    x = separable(net, "first", net.conv("stem", image(224), 32, 3, 2), 16)
    for stage, (ratio, filter, stride, width, blocks) in enumerate(
            ((3, 3, 2, 24, 3), (3, 5, 2, 40, 3), (6, 5, 2, 80, 3), (6, 3, 1, 96, 2),
             (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)), 1):
        for i in range(blocks):
            x = inverted_residual(net, f"stage{stage}_{i}", x, ratio * x.c, width, filter,
                                  stride if i == 0 else 1)
    net.linear(net.conv("last", x, 1280, 1).c, 1000)


def ghost(net: Layers, name: str, x: Map, out: int) -> Map:
    """Half of the channels are computed from all inputs, the others from that half one by one."""
    y = net.conv(f"{name}_primary", x, out // 2, 1)
    return net.depthwise(f"{name}_cheap", y, 3).with_channels(out)


@network(VALIDATION, "GhostNet: Han et al., GhostNet: more features from cheap operations, 2019 "
         "(timm)", macs=142, weights=5.183)
def ghostnet(net: Layers) -> None:
    x = net.conv("stem", image(224), 16, 3, 2)
    for i, (filter, expanded, width, excite, stride) in enumerate(
            ((3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2),
             (5, 120, 40, 1, 1), (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1),
             (3, 184, 80, 0, 1), (3, 480, 112, 1, 1), (3, 672, 112, 1, 1), (5, 672, 160, 1, 2),
             (5, 960, 160, 0, 1), (5, 960, 160, 1, 1), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1)),
            1):
        y = ghost(net, f"block{i}_ghost1", x, expanded)
        if stride > 1:
            y = net.depthwise(f"block{i}_depthwise", y, filter, stride)
        if excite:
            net.squeeze_excite(y, divisible(expanded / 4, 4))
        if stride > 1 or x.c != width:
            separable(net, f"block{i}_shortcut", x, width, filter, stride)
        x = ghost(net, f"block{i}_ghost2", y, width)
    net.linear(net.conv("last", x, 960, 1).c, 1280, 1000)


@network(VALIDATION, "Xception: Chollet, Xception: deep learning with depthwise separable "
         "convolutions, 2016 (299 x 299)", macs=8400, weights=22.856)
def xception(net: Layers) -> None:
    x = net.conv("conv1", image(299), 32, 3, 2, pad=0)
    x = net.conv("conv2", x, 64, 3, pad=0)
    for block, widths in enumerate(((128, 128), (256, 256), (728, 728), *[(728, 728, 728)] * 8,
                                    (728, 1024)), 1):
        y = x
        for i, width in enumerate(widths, 1):
            y = separable(net, f"block{block}_{i}", y, width)
        if len(widths) == 2:
            net.conv(f"block{block}_shortcut", x, widths[-1], 1, 2)
            y = y.pooled(3, 2, 1)
        x = y
    x = separable(net, "conv4", separable(net, "conv3", x, 1536), 2048)
    net.linear(2048, 1000)


def mixed(net: Layers, name: str, x: Map, out: int, parts: int) -> Map:
    """Each part of the outputs sees as large a part of the inputs."""
    for i in range(parts):
        net.conv(f"{name}{i}", x.with_channels(x.c // parts), out // parts, 1)
    return x.with_channels(out)


@network(VALIDATION, "MixNet-S: Tan and Le, MixConv: mixed depthwise convolutional kernels, 2019 "
         "(timm)", weights=4.135)
def mixnet_s(net: Layers) -> None:
    x = separable(net, "first", net.conv("stem", image(224), 16, 3, 2), 16)
    # Ratio, depthwise filters, parts of the layers before and behind, squeezing, stride, width.
    blocks: list[tuple[int, tuple[int, ...], int, int, float, int, int]] = [
        (6, (3,), 2, 2, 0, 2, 24), (3, (3,), 2, 2, 0, 1, 24), (6, (3, 5, 7), 1, 1, 0.5, 2, 40),
        *[(6, (3, 5), 2, 2, 0.5, 1, 40)] * 3, (6, (3, 5, 7), 1, 2, 0.25, 2, 80),
        *[(6, (3, 5), 1, 2, 0.25, 1, 80)] * 2, (6, (3, 5, 7), 2, 2, 0.5, 1, 120),
        *[(3, (3, 5, 7, 9), 2, 2, 0.5, 1, 120)] * 2, (6, (3, 5, 7, 9, 11), 1, 1, 0.5, 2, 200),
        *[(6, (3, 5, 7, 9), 1, 2, 0.5, 1, 200)] * 2]
    for i, (ratio, filters, before, behind, excite, stride, width) in enumerate(blocks, 1):
        y = mixed(net, f"block{i}_expand", x, ratio * x.c, before)
        part = y.c // len(filters)
        for j, filter in enumerate(filters):
            # The first part has what a division leaves over.
            channels = y.c - part * (len(filters) - 1) if j == 0 else part
            z = net.depthwise(f"block{i}_depthwise{filter}", y.with_channels(channels), filter,
                              stride)
        y = z.with_channels(y.c)
        if excite:
            net.squeeze_excite(y, int(x.c * excite))
        x = mixed(net, f"block{i}_project", y, width, behind)
    net.linear(net.conv("last", x, 1536, 1).c, 1000)


@network(VALIDATION, "ReXNet 1.0x: Han, Yun, Heo and Yoo, Rethinking channel dimensions for "
         "efficient model design, 2020", macs=410, weights=4.80)
def rexnet_100(net: Layers) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    # Every block has 11.25 channels more than the one before.
    for i in range(16):
        ratio, stride = 1 if i == 0 else 6, 2 if i in (1, 3, 5, 11) else 1
        expanded = ratio * x.c
        x = inverted_residual(net, f"block{i}", x, expanded, round(16 + 11.25 * i), 3, stride,
                              divisible(int(expanded / 12), 8) if i >= 3 else 0)
    net.linear(net.conv("last", x, 1280, 1).c, 1000)


@network(VALIDATION, "ShuffleNet 1x, three groups: Zhang, Zhou, Lin and Sun, ShuffleNet: an "
         "extremely efficient convolutional neural network for mobile devices, 2017", macs=137)
def shufflenet_v1_g3(net: Layers) -> None:
    groups = 3
    x = net.conv("stem", image(224), 24, 3, 2).pooled(3, 2, 1)
    for stage, (width, blocks) in enumerate(((240, 4), (480, 8), (960, 4)), 2):
        for i in range(blocks):
            name, between = f"stage{stage}_{i}", width // 4
            # The first of all has few inputs, and no groups.
            y = net.conv(f"{name}_conv1", x, between, 1, g=1 if x.c == 24 else groups)
            y = net.depthwise(f"{name}_depthwise", y, 3, 2 if i == 0 else 1)
            # The pooled inputs of a first block are some of its outputs.
            y = net.conv(f"{name}_conv2", y, width - x.c if i == 0 else width, 1, g=groups)
            x = y.with_channels(width)
    net.linear(960, 1000)


@network(VALIDATION, "EfficientNetV2-S: Tan and Le, EfficientNetV2: smaller models and faster "
         "training, 2021 (torchvision, 384 x 384)", macs=8366, weights=21.458)
def efficientnet_v2_s(net: Layers) -> None:
    x = net.conv("stem", image(384), 24, 3, 2)
    for stage, (ratio, stride, width, blocks) in enumerate(
            ((1, 1, 24, 2), (4, 2, 48, 4), (4, 2, 64, 4), (4, 2, 128, 6), (6, 1, 160, 9),
             (6, 2, 256, 15)), 1):
        for i in range(blocks):
            name, s = f"stage{stage}_{i}", stride if i == 0 else 1
            if stage > 3:
                x = inverted_residual(net, name, x, ratio * x.c, width, 3, s, x.c // 4)
            elif ratio == 1:
                x = net.conv(f"{name}_conv", x, width, 3, s)
            else:
                x = net.conv(f"{name}_project", net.conv(f"{name}_expand", x, ratio * x.c, 3, s),
                             width, 1)
    net.linear(net.conv("last", x, 1280, 1).c, 1000)


@network(VALIDATION, "MobileOne-S1: Vasu et al., MobileOne: an improved one millisecond mobile "
         "backbone, 2022 (with its branches merged)", macs=825, weights=4.8)
def mobileone_s1(net: Layers) -> None:
    x = net.conv("stem", image(224), 64, 3, 2)
    for stage, (width, blocks) in enumerate(((96, 2), (192, 8), (512, 10), (1280, 1)), 1):
        for i in range(blocks):
            x = separable(net, f"stage{stage}_{i}", x, width, 3, 2 if i == 0 else 1)
    net.linear(1280, 1000)


# Large filters.

def convmixer(net: Layers, width: int, depth: int, filter: int, patch: int) -> None:
    x = net.conv("stem", image(224), width, patch, patch, pad=0)
    for i in range(depth):
        x = separable(net, f"layer{i}", x, width, filter)
    net.linear(width, 1000)


@network(VALIDATION, "ConvMixer-768/32: Trockman and Kolter, Patches are all you need?, 2022",
         weights=21.11)
def convmixer_768_32(net: Layers) -> None:
    convmixer(net, 768, 32, 7, 7)


@network(VALIDATION, "ConvMixer-1024/20: Trockman and Kolter, Patches are all you need?, 2022 "
         "(filters of 9, patches of 14)", weights=24.38)
def convmixer_1024_20(net: Layers) -> None:
    convmixer(net, 1024, 20, 9, 14)


@network(VALIDATION, "StarNet-S1: Ma, Dai, Bai, Wang and Fu, Rewrite the stars, 2024", macs=425,
         weights=2.87)
def starnet_s1(net: Layers) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    for stage, depth in enumerate((2, 2, 8, 3)):
        x = net.conv(f"stage{stage}_down", x, 24 << stage, 3, 2)
        for i in range(depth):
            name = f"stage{stage}_{i}"
            y = net.depthwise(f"{name}_depthwise1", x, 7)
            net.conv(f"{name}_factor1", y, 4 * x.c, 1)
            y = net.conv(f"{name}_factor2", y, 4 * x.c, 1)
            x = net.depthwise(f"{name}_depthwise2", net.conv(f"{name}_project", y, x.c, 1), 7)
    net.linear(x.c, 1000)


# Video and sound.

@network(VALIDATION, "X3D-M: Feichtenhofer, X3D: expanding architectures for efficient video "
         "recognition, 2020 (16 frames of 224 x 224)", macs=4730, weights=3.79)
def x3d_m(net: Layers) -> None:
    x = net.conv("stem_space", Map(3, (16, 224, 224)), 24, (1, 3, 3), (1, 2, 2))
    x = net.depthwise("stem_time", x, (5, 1, 1))
    for stage, depth in enumerate((3, 5, 11, 7)):
        width = 24 << stage
        for i in range(depth):
            name, stride, between = f"stage{stage}_{i}", (1, 2, 2) if i == 0 else 1, width * 9 // 4
            y = net.conv(f"{name}_expand", x, between, 1)
            y = net.depthwise(f"{name}_depthwise", y, 3, stride)
            if i % 2 == 0:
                net.squeeze_excite(y, divisible(between / 16))
            if i == 0:
                net.conv(f"{name}_shortcut", x, width, 1, stride)
            x = net.conv(f"{name}_project", y, width, 1)
    net.linear(net.conv("last", x, 432, 1).c, 2048, 400)


@network(VALIDATION, "QuartzNet-15x5: Kriman et al., QuartzNet: deep automatic speech recognition "
         "with 1D time-channel separable convolutions, 2019 (ten seconds)", weights=18.9)
def quartznet_15x5(net: Layers) -> None:
    x = separable(net, "first", Map(64, (1, 1, 1000)), 256, 33, 2)
    for block, (filter, width) in enumerate(((33, 256), (39, 256), (51, 512), (63, 512),
                                             (75, 512)), 1):
        for repeat in range(3):
            net.conv(f"block{block}_{repeat}_shortcut", x, width, 1)
            for i in range(5):
                x = separable(net, f"block{block}_{repeat}_{i}", x, width, filter)
    x = net.conv("last", separable(net, "dilated", x, 512, 87, dilation=2), 1024, 1)
    net.conv("letters", x, 29, 1)
