"""Convolutional networks, written as short programs that pass a map from layer to layer.

The figures are those of the papers and of torchvision's versions of the networks (strides on the
3x3 layers of bottlenecks, pads that are equal on both sides), for one image of the usual size.

Squeeze-and-excitation layers have one output point and are products rather than convolutions; so
are fully connected layers. Both count towards a network's total, and neither is listed. Transposed
convolutions are listed as the backward_data of the convolution whose gradient they compute; their
multiply-adds are counted once, where some published totals count them stride x stride times.
"""

from __future__ import annotations

import math

from network_layers_types import TRAINING, Layers, Map, Sizes, divisible, image, network


# Plain networks.

def vgg_stage(net: Layers, x: Map, stage: int, width: int, layers: int) -> Map:
    for i in range(1, layers + 1):
        x = net.conv(f"conv{stage}_{i}", x, width, 3)
    return x


@network(TRAINING, "AlexNet: Krizhevsky, One weird trick for parallelizing convolutional neural "
         "networks, 2014 (torchvision)", macs=714)
def alexnet(net: Layers) -> None:
    x = net.conv("conv1", image(224), 64, 11, 4, pad=2).pooled(3, 2)
    x = net.conv("conv2", x, 192, 5).pooled(3, 2)
    for i, width in enumerate((384, 256, 256), 3):
        x = net.conv(f"conv{i}", x, width, 3)
    net.linear(256 * 6 * 6, 4096, 4096, 1000)


@network(TRAINING, "VGG-16: Simonyan and Zisserman, Very deep convolutional networks for "
         "large-scale image recognition, 2014", macs=15470, weights=138.36)
def vgg16(net: Layers) -> None:
    x = image(224)
    for stage, (width, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        x = vgg_stage(net, x, stage, width, layers).pooled(2, 2)
    net.linear(512 * 7 * 7, 4096, 4096, 1000)


@network(TRAINING, "CSRNet: Li, Zhang and Chen, CSRNet: dilated convolutional neural networks for "
         "understanding the highly congested scenes, 2018 (crops of 384 x 512)", weights=16.26)
def csrnet(net: Layers) -> None:
    x = image(384, 512)
    for stage, (width, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3)), 1):
        x = vgg_stage(net, x, stage, width, layers)
        x = x.pooled(2, 2) if stage < 4 else x
    for i, width in enumerate((512, 512, 512, 256, 128, 64), 1):
        x = net.conv(f"backend{i}", x, width, 3, dilation=2)
    net.conv("density", x, 1, 1)


@network(TRAINING, "SqueezeNet 1.1: Iandola et al., SqueezeNet: AlexNet-level accuracy with 50x "
         "fewer parameters, 2016 (torchvision)", macs=349, weights=1.2355)
def squeezenet1_1(net: Layers) -> None:
    x = net.conv("conv1", image(224), 64, 3, 2, pad=0)
    widths = (16, 16, 32, 32, 48, 48, 64, 64)
    for i, squeezed in enumerate(widths, 2):
        if i in (2, 4, 6):
            x = x.pooled(3, 2, ceil=True)
        y = net.conv(f"fire{i}_squeeze", x, squeezed, 1)
        net.conv(f"fire{i}_expand1", y, 4 * squeezed, 1)
        x = net.conv(f"fire{i}_expand3", y, 4 * squeezed, 3).with_channels(8 * squeezed)
    net.conv("classifier", x, 1000, 1)


@network(TRAINING, "U-Net: Ronneberger, Fischer and Brox, U-Net: convolutional networks for "
         "biomedical image segmentation, 2015 (padded variant, 256 x 256)", weights=31.03)
def unet(net: Layers) -> None:
    x = Map(1, (1, 256, 256))
    skips: list[Map] = []
    for level in range(5):
        for i in (1, 2):
            x = net.conv(f"down{level}_conv{i}", x, 64 << level, 3)
        if level < 4:
            skips.append(x)
            x = x.pooled(2, 2)
    for level in reversed(range(4)):
        up = net.transposed(f"up{level}_transposed", x, 64 << level, 2, 2)
        x = up.with_channels(up.c + skips[level].c)
        for i in (1, 2):
            x = net.conv(f"up{level}_conv{i}", x, 64 << level, 3)
    net.conv("classes", x, 2, 1)


@network(TRAINING, "DCGAN generator: Radford, Metz and Chintala, Unsupervised representation "
         "learning with deep convolutional generative adversarial networks, 2015 (the version "
         "of PyTorch's examples)", weights=3.5767)
def dcgan_generator(net: Layers) -> None:
    x = net.transposed("transposed1", Map(100, (1, 1, 1)), 512, 4, 1)
    for i, width in enumerate((256, 128, 64, 3), 2):
        x = net.transposed(f"transposed{i}", x, width, 4, 2, pad=1)


# Residual networks.

def basic_block(net: Layers, name: str, x: Map, width: int, stride: int) -> Map:
    y = net.conv(f"{name}_conv1", x, width, 3, stride)
    y = net.conv(f"{name}_conv2", y, width, 3)
    if stride != 1 or x.c != width:
        net.conv(f"{name}_shortcut", x, width, 1, stride)
    return y


def bottleneck(net: Layers, name: str, x: Map, width: int, out: int, stride: int = 1, g: int = 1,
               dilation: int = 1) -> Map:
    y = net.conv(f"{name}_conv1", x, width, 1)
    y = net.conv(f"{name}_conv2", y, width, 3, stride, g=g, dilation=dilation)
    y = net.conv(f"{name}_conv3", y, out, 1)
    if stride != 1 or x.c != out:
        net.conv(f"{name}_shortcut", x, out, 1, stride)
    return y


def resnet50_stages(net: Layers, x: Map, g: int = 1, group_width: int = 64,
                    dilated_from: int = 5) -> list[Map]:
    """From stage `dilated_from` on, dilation takes the place of strides."""
    x = net.conv("stem", x, 64, 7, 2).pooled(3, 2, 1)
    ends: list[Map] = []
    dilation = 1
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        stride = 1 if stage == 1 else 2
        # The first block of a dilated stage still has the dilation of the stage before.
        first = dilation
        if stage >= dilated_from:
            dilation, stride = 2 * dilation, 1
        width = (group_width * g) << (stage - 1)
        for i in range(blocks):
            x = bottleneck(net, f"stage{stage}_{i}", x, width, 128 << stage,
                           stride if i == 0 else 1, g, first if i == 0 else dilation)
        ends.append(x)
    return ends


def resnet18_stages(net: Layers, x: Map) -> None:
    for stage in range(1, 5):
        for i in range(2):
            x = basic_block(net, f"stage{stage}_{i}", x, 32 << stage,
                            2 if stage > 1 and i == 0 else 1)


@network(TRAINING, "ResNet-18: He, Zhang, Ren and Sun, Deep residual learning for image "
         "recognition, 2015", macs=1814, weights=11.69)
def resnet18(net: Layers) -> None:
    resnet18_stages(net, net.conv("stem", image(224), 64, 7, 2).pooled(3, 2, 1))
    net.linear(512, 1000)


@network(TRAINING, "ResNet-50 (v1.5): He, Zhang, Ren and Sun, Deep residual learning for image "
         "recognition, 2015 (torchvision)", macs=4089, weights=25.557)
def resnet50(net: Layers) -> None:
    resnet50_stages(net, image(224))
    net.linear(2048, 1000)


@network(TRAINING, "ResNeXt-50 32x4d: Xie et al., Aggregated residual transformations for deep "
         "neural networks, 2016", macs=4230, weights=25.029)
def resnext50_32x4d(net: Layers) -> None:
    resnet50_stages(net, image(224), g=32, group_width=4)
    net.linear(2048, 1000)


def spatial_pyramid(net: Layers, x: Map) -> Map:
    """DeepLabV3's dilated layers side by side, on one map."""
    net.conv("aspp_1x1", x, 256, 1)
    for rate in (12, 24, 36):
        net.conv(f"aspp_rate{rate}", x, 256, 3, dilation=rate)
    net.linear(x.c, 256)
    return net.conv("aspp_project", x.with_channels(5 * 256), 256, 1)


@network(TRAINING, "DeepLabV3 with ResNet-50: Chen et al., Rethinking atrous convolution for "
         "semantic image segmentation, 2017 (torchvision, 520 x 520)", macs=178722,
         weights=42.004)
def deeplabv3_resnet50(net: Layers) -> None:
    ends = resnet50_stages(net, image(520), dilated_from=3)
    x = spatial_pyramid(net, ends[3])
    x = net.conv("head", x, 256, 3)
    net.conv("classes", x, 21, 1)
    # The auxiliary head, which is used in training only, is part of the published totals.
    x = net.conv("auxiliary", ends[2], 256, 3)
    net.conv("auxiliary_classes", x, 21, 1)


@network(TRAINING, "DenseNet-121: Huang, Liu, van der Maaten and Weinberger, Densely connected "
         "convolutional networks, 2016", macs=2834, weights=7.979)
def densenet121(net: Layers) -> None:
    growth = 32
    x = net.conv("stem", image(224), 64, 7, 2).pooled(3, 2, 1)
    for block, layers in enumerate((6, 12, 24, 16), 1):
        for i in range(1, layers + 1):
            y = net.conv(f"dense{block}_{i}_conv1", x, 4 * growth, 1)
            net.conv(f"dense{block}_{i}_conv2", y, growth, 3)
            x = x.with_channels(x.c + growth)
        if block < 4:
            x = net.conv(f"transition{block}", x, x.c // 2, 1).pooled(2, 2)
    net.linear(x.c, 1000)


def regnet_y(net: Layers, widths: tuple[int, ...], depths: tuple[int, ...],
             group_width: int) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    for stage, (width, depth) in enumerate(zip(widths, depths), 1):
        for i in range(depth):
            net.squeeze_excite(Map(width, (1, 1, 1)), round(x.c / 4))
            x = bottleneck(net, f"stage{stage}_{i}", x, width, width, 2 if i == 0 else 1,
                           g=width // group_width)
    net.linear(x.c, 1000)


@network(TRAINING, "RegNetY-400MF: Radosavovic et al., Designing network design spaces, 2020 "
         "(torchvision)", macs=402, weights=4.344)
def regnet_y_400mf(net: Layers) -> None:
    regnet_y(net, (48, 104, 208, 440), (1, 3, 6, 6), 8)


@network(TRAINING, "RegNetY-1.6GF: Radosavovic et al., Designing network design spaces, 2020 "
         "(torchvision)", macs=1612, weights=11.202)
def regnet_y_1_6gf(net: Layers) -> None:
    regnet_y(net, (48, 120, 336, 888), (2, 6, 17, 2), 24)


# Mobile networks.

def inverted_residual(net: Layers, name: str, x: Map, expanded: int, out: int, filter: int,
                      stride: int, squeezed: int = 0, dilation: int = 1) -> Map:
    y = net.conv(f"{name}_expand", x, expanded, 1) if expanded != x.c else x
    y = net.depthwise(f"{name}_depthwise", y, filter, stride, dilation)
    if squeezed:
        net.squeeze_excite(y, squeezed)
    return net.conv(f"{name}_project", y, out, 1)


@network(TRAINING, "MobileNetV2: Sandler et al., MobileNetV2: inverted residuals and linear "
         "bottlenecks, 2018", macs=301, weights=3.505)
def mobilenet_v2(net: Layers) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    for stage, (ratio, width, blocks, stride) in enumerate(
            ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1)), 1):
        for i in range(blocks):
            x = inverted_residual(net, f"stage{stage}_{i}", x, ratio * x.c, width, 3,
                                  stride if i == 0 else 1)
    net.linear(net.conv("last", x, 1280, 1).c, 1000)


@network(TRAINING, "MobileNetV3-Large: Howard et al., Searching for MobileNetV3, 2019 "
         "(torchvision)", macs=217, weights=5.483)
def mobilenet_v3_large(net: Layers) -> None:
    x = net.conv("stem", image(224), 16, 3, 2)
    for i, (filter, expanded, width, excite, stride) in enumerate(
            ((3, 16, 16, 0, 1), (3, 64, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2),
             (5, 120, 40, 1, 1), (5, 120, 40, 1, 1), (3, 240, 80, 0, 2), (3, 200, 80, 0, 1),
             (3, 184, 80, 0, 1), (3, 184, 80, 0, 1), (3, 480, 112, 1, 1), (3, 672, 112, 1, 1),
             (5, 672, 160, 1, 2), (5, 960, 160, 1, 1), (5, 960, 160, 1, 1)), 1):
        x = inverted_residual(net, f"block{i}", x, expanded, width, filter, stride,
                              divisible(expanded / 4) if excite else 0)
    net.linear(net.conv("last", x, 960, 1).c, 1280, 1000)


def efficientnet(net: Layers, size: int, width: float, depth: float) -> None:
    x = net.conv("stem", image(size), divisible(32 * width), 3, 2)
    for stage, (ratio, filter, stride, out, blocks) in enumerate(
            ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
             (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)), 1):
        for i in range(math.ceil(blocks * depth)):
            x = inverted_residual(net, f"stage{stage}_{i}", x, ratio * x.c, divisible(out * width),
                                  filter, stride if i == 0 else 1, x.c // 4)
    net.linear(net.conv("last", x, 4 * x.c, 1).c, 1000)


@network(TRAINING, "EfficientNet-B0: Tan and Le, EfficientNet: rethinking model scaling for "
         "convolutional neural networks, 2019 (torchvision)", macs=386, weights=5.289)
def efficientnet_b0(net: Layers) -> None:
    efficientnet(net, 224, 1.0, 1.0)


@network(TRAINING, "EfficientNet-B4: Tan and Le, EfficientNet: rethinking model scaling for "
         "convolutional neural networks, 2019 (torchvision, 380 x 380)", macs=4394,
         weights=19.342)
def efficientnet_b4(net: Layers) -> None:
    efficientnet(net, 380, 1.4, 1.8)


@network(TRAINING, "ShuffleNetV2 1.0x: Ma, Zhang, Zheng and Sun, ShuffleNet V2: practical "
         "guidelines for efficient CNN architecture design, 2018", macs=145, weights=2.279)
def shufflenet_v2_x1_0(net: Layers) -> None:
    x = net.conv("stem", image(224), 24, 3, 2).pooled(3, 2, 1)
    for stage, (width, blocks) in enumerate(((116, 4), (232, 8), (464, 4)), 2):
        half = width // 2
        for i in range(blocks):
            name = f"stage{stage}_{i}"
            stride = 2 if i == 0 else 1
            if i == 0:
                y = net.depthwise(f"{name}_left_depthwise", x, 3, 2)
                net.conv(f"{name}_left_conv", y, half, 1)
            else:
                x = x.with_channels(half)
            y = net.conv(f"{name}_conv1", x, half, 1)
            y = net.depthwise(f"{name}_depthwise", y, 3, stride)
            x = net.conv(f"{name}_conv2", y, half, 1).with_channels(width)
    net.linear(net.conv("last", x, 1024, 1).c, 1000)


# Inceptions: every branch is a list of (width, filter), and the branches are joined.

def inception(net: Layers, name: str, x: Map, *branches: list[tuple[int, Sizes]],
              stride: int = 1, kept: int = 0) -> Map:
    """With a stride the last layer of a branch has it, without pad; `kept` channels are pooled."""
    out = x
    for b, branch in enumerate(branches):
        y = x
        for i, (width, filter) in enumerate(branch):
            last = stride > 1 and i == len(branch) - 1
            y = net.conv(f"{name}_branch{b}_{i}", y, width, filter, stride if last else 1,
                         0 if last else None)
        kept += y.c
        out = y
    return out.with_channels(kept)


# The modules of GoogLeNet: their names and the filters of each part.
GOOGLENET = (
    ("3a", 64, 96, 128, 16, 32, 32), ("3b", 128, 128, 192, 32, 96, 64),
    ("4a", 192, 96, 208, 16, 48, 64), ("4b", 160, 112, 224, 24, 64, 64),
    ("4c", 128, 128, 256, 24, 64, 64), ("4d", 112, 144, 288, 32, 64, 64),
    ("4e", 256, 160, 320, 32, 128, 128), ("5a", 256, 160, 320, 32, 128, 128),
    ("5b", 384, 192, 384, 48, 128, 128))


@network(TRAINING, "GoogLeNet: Szegedy et al., Going deeper with convolutions, 2014", macs=1580)
def googlenet(net: Layers) -> None:
    x = net.conv("conv1", image(224), 64, 7, 2).pooled(3, 2, ceil=True)
    x = net.conv("conv2", x, 64, 1)
    x = net.conv("conv3", x, 192, 3).pooled(3, 2, ceil=True)
    for name, a, b1, b3, c1, c5, pooled in GOOGLENET:
        if name in ("4a", "5a"):
            x = x.pooled(3, 2, ceil=True)
        x = inception(net, f"inception{name}", x, [(a, 1)], [(b1, 1), (b3, 3)],
                      [(c1, 1), (c5, 5)], [(pooled, 1)])
    net.linear(1024, 1000)


@network(TRAINING, "Inception v3: Szegedy et al., Rethinking the Inception architecture for "
         "computer vision, 2015 (torchvision, 299 x 299, without the auxiliary classifier)",
         macs=5713)
def inception_v3(net: Layers) -> None:
    row, column = (1, 7), (7, 1)
    x = net.conv("conv1a", image(299), 32, 3, 2, pad=0)
    x = net.conv("conv2a", x, 32, 3, pad=0)
    x = net.conv("conv2b", x, 64, 3).pooled(3, 2)
    x = net.conv("conv3b", x, 80, 1)
    x = net.conv("conv4a", x, 192, 3, pad=0).pooled(3, 2)
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = inception(net, f"mixed{name}", x, [(64, 1)], [(48, 1), (64, 5)],
                      [(64, 1), (96, 3), (96, 3)], [(pooled, 1)])
    x = inception(net, "mixed6a", x, [(384, 3)], [(64, 1), (96, 3), (96, 3)], stride=2, kept=x.c)
    for name, w in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = inception(net, f"mixed{name}", x, [(192, 1)], [(w, 1), (w, row), (192, column)],
                      [(w, 1), (w, column), (w, row), (w, column), (192, row)], [(192, 1)])
    x = inception(net, "mixed7a", x, [(192, 1), (320, 3)],
                  [(192, 1), (192, row), (192, column), (192, 3)], stride=2, kept=x.c)
    for name in ("7b", "7c"):
        y = net.conv(f"mixed{name}_branch1_0", x, 384, 1)
        z = inception(net, f"mixed{name}_branch2", x, [(448, 1), (384, 3)])
        for branch, joint in ((1, y), (2, z)):
            net.conv(f"mixed{name}_branch{branch}_row", joint, 384, (1, 3))
            net.conv(f"mixed{name}_branch{branch}_column", joint, 384, (3, 1))
        x = inception(net, f"mixed{name}_outer", x, [(320, 1)], [(192, 1)], kept=4 * 384)
    net.linear(2048, 1000)


# Large depthwise filters.

def convnext(net: Layers, widths: tuple[int, ...], depths: tuple[int, ...]) -> None:
    x = net.conv("stem", image(224), widths[0], 4, 4, pad=0)
    for stage, (width, depth) in enumerate(zip(widths, depths), 1):
        if stage > 1:
            x = net.conv(f"downsample{stage}", x, width, 2, 2, pad=0)
        for i in range(depth):
            y = net.depthwise(f"stage{stage}_{i}_depthwise", x, 7)
            y = net.conv(f"stage{stage}_{i}_expand", y, 4 * width, 1)
            x = net.conv(f"stage{stage}_{i}_project", y, width, 1)
    net.linear(x.c, 1000)


@network(TRAINING, "ConvNeXt-T: Liu et al., A ConvNet for the 2020s, 2022", macs=4456,
         weights=28.589)
def convnext_tiny(net: Layers) -> None:
    convnext(net, (96, 192, 384, 768), (3, 3, 9, 3))


@network(TRAINING, "ConvNeXt-B: Liu et al., A ConvNet for the 2020s, 2022", macs=15355,
         weights=88.591)
def convnext_base(net: Layers) -> None:
    convnext(net, (128, 256, 512, 1024), (3, 3, 27, 3))


@network(TRAINING, "RepLKNet-31B: Ding et al., Scaling up your kernels to 31x31: revisiting "
         "large kernel design in CNNs, 2022 (with its small filters merged)", macs=15300,
         weights=79)
def replknet_31b(net: Layers) -> None:
    x = net.conv("stem1", image(224), 128, 3, 2)
    x = net.depthwise("stem2", x, 3)
    x = net.conv("stem3", x, 128, 1)
    x = net.depthwise("stem4", x, 3, 2)
    for stage, (filter, depth) in enumerate(((31, 2), (29, 2), (27, 18), (13, 2)), 1):
        if stage > 1:
            x = net.conv(f"transition{stage}_expand", x, 2 * x.c, 1)
            x = net.depthwise(f"transition{stage}_depthwise", x, 3, 2)
        for i in range(depth):
            y = net.conv(f"stage{stage}_{i}_conv1", x, x.c, 1)
            y = net.depthwise(f"stage{stage}_{i}_depthwise", y, filter)
            y = net.conv(f"stage{stage}_{i}_conv2", y, x.c, 1)
            y = net.conv(f"stage{stage}_{i}_expand", y, 4 * x.c, 1)
            x = net.conv(f"stage{stage}_{i}_project", y, x.c, 1)
    net.linear(x.c, 1000)


# Detectors.

@network(TRAINING, "YOLOv3: Redmon and Farhadi, YOLOv3: an incremental improvement, 2018 "
         "(416 x 416, 80 classes)", macs=32930, weights=61.95)
def yolov3(net: Layers) -> None:
    x = net.conv("stem", image(416), 32, 3)
    ends: list[Map] = []
    for stage, blocks in enumerate((1, 2, 8, 8, 4), 1):
        x = net.conv(f"stage{stage}_down", x, 32 << stage, 3, 2)
        for i in range(blocks):
            y = net.conv(f"stage{stage}_{i}_conv1", x, x.c // 2, 1)
            x = net.conv(f"stage{stage}_{i}_conv2", y, x.c, 3)
        ends.append(x)
    for level, width in ((4, 512), (3, 256), (2, 128)):
        if level < 4:
            y = net.conv(f"head{level}_reduce", x, width, 1).scaled(2)
            x = y.with_channels(y.c + ends[level].c)
        for i in (1, 2, 3):
            x = net.conv(f"head{level}_{i}_conv1", x, width, 1)
            y = net.conv(f"head{level}_{i}_conv2", x, 2 * width, 3)
        net.conv(f"head{level}_boxes", y, 255, 1)


def csp_layer(net: Layers, name: str, x: Map, out: int, blocks: int) -> Map:
    half = out // 2
    net.conv(f"{name}_conv2", x, half, 1)
    y = net.conv(f"{name}_conv1", x, half, 1)
    for i in range(blocks):
        y = net.conv(f"{name}_{i}_conv1", y, half, 1)
        y = net.conv(f"{name}_{i}_conv2", y, half, 3)
    return net.conv(f"{name}_conv3", y.with_channels(out), out, 1)


@network(TRAINING, "YOLOX-s: Ge, Liu, Wang, Li and Sun, YOLOX: exceeding YOLO series in 2021, "
         "2021 (640 x 640, 80 classes)", macs=13400, weights=8.97)
def yolox_s(net: Layers) -> None:
    # The stem sees four interleaved quarters of the image as 12 channels.
    x = net.conv("stem", Map(12, (1, 320, 320)), 32, 3)
    ends: list[Map] = []
    for stage, blocks in enumerate((1, 3, 3, 1), 2):
        x = net.conv(f"dark{stage}_down", x, 16 << stage, 3, 2)
        if stage == 5:
            y = net.conv("pyramid_conv1", x, x.c // 2, 1)
            x = net.conv("pyramid_conv2", y.with_channels(4 * y.c), x.c, 1)
        x = csp_layer(net, f"dark{stage}", x, x.c, blocks)
        ends.append(x)
    top = net.conv("lateral5", ends[3], 256, 1)
    x = csp_layer(net, "up4", top.scaled(2).with_channels(512), 256, 1)
    middle = net.conv("lateral4", x, 128, 1)
    levels = [csp_layer(net, "up3", middle.scaled(2).with_channels(256), 128, 1)]
    for level, width in ((4, 256), (5, 512)):
        y = net.conv(f"down{level}", levels[-1], width // 2, 3, 2)
        levels.append(csp_layer(net, f"down{level}", y.with_channels(width), width, 1))
    for level, x in enumerate(levels, 3):
        stem = net.conv(f"head{level}_stem", x, 128, 1)
        for branch, widths in (("class", (80,)), ("box", (4, 1))):
            y = net.conv(f"head{level}_{branch}_conv1", stem, 128, 3)
            y = net.conv(f"head{level}_{branch}_conv2", y, 128, 3)
            for width in widths:
                net.conv(f"head{level}_{branch}_out{width}", y, width, 1)


# Three dimensions: 16 frames of 112 x 112.

VIDEO = Map(3, (16, 112, 112))


@network(TRAINING, "C3D: Tran et al., Learning spatiotemporal features with 3D convolutional "
         "networks, 2014", macs=38500)
def c3d(net: Layers) -> None:
    x = net.conv("conv1", VIDEO, 64, 3).pooled((1, 2, 2), (1, 2, 2))
    x = net.conv("conv2", x, 128, 3).pooled(2, 2)
    for stage, width in ((3, 256), (4, 512), (5, 512)):
        x = net.conv(f"conv{stage}a", x, width, 3)
        x = net.conv(f"conv{stage}b", x, width, 3)
        x = x.pooled(2, 2, (0, 1, 1) if stage == 5 else 0)
    net.linear(512 * 4 * 4, 4096, 4096, 487)


@network(TRAINING, "R3D-18: Tran et al., A closer look at spatiotemporal convolutions for action "
         "recognition, 2017 (torchvision)", macs=40697, weights=33.37)
def r3d_18(net: Layers) -> None:
    resnet18_stages(net, net.conv("stem", VIDEO, 64, (3, 7, 7), (1, 2, 2)))
    net.linear(512, 400)


@network(TRAINING, "R(2+1)D-18: Tran et al., A closer look at spatiotemporal convolutions for "
         "action recognition, 2017 (torchvision)", macs=40519, weights=31.506)
def r2plus1d_18(net: Layers) -> None:
    x = net.conv("stem_space", VIDEO, 45, (1, 7, 7), (1, 2, 2))
    x = net.conv("stem_time", x, 64, (3, 1, 1))
    for stage in range(1, 5):
        for i in range(2):
            width, stride = 32 << stage, 2 if stage > 1 and i == 0 else 1
            # As many weights as the 3 x 3 x 3 filters of the block's first layer would have.
            between = x.c * width * 27 // (x.c * 9 + 3 * width)
            if stride > 1:
                net.conv(f"stage{stage}_{i}_shortcut", x, width, 1, stride)
            for j, s in ((1, stride), (2, 1)):
                x = net.conv(f"stage{stage}_{i}_space{j}", x, between, (1, 3, 3), (1, s, s))
                x = net.conv(f"stage{stage}_{i}_time{j}", x, width, (3, 1, 1), (s, 1, 1))
    net.linear(512, 400)


# One dimension: sound. A signal lies along the width.

def signal(channels: int, samples: int) -> Map:
    return Map(channels, (1, 1, samples))


@network(TRAINING, "M11: Dai et al., Very deep convolutional neural networks for raw waveforms, "
         "2016 (four seconds at 8 kHz)", weights=1.786)
def m11(net: Layers) -> None:
    x = net.conv("conv1", signal(1, 32000), 64, 80, 4, pad=38).pooled(4, 4)
    for stage, (width, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 2)), 2):
        for i in range(1, layers + 1):
            x = net.conv(f"conv{stage}_{i}", x, width, 3)
        x = x.pooled(4, 4) if stage < 5 else x
    net.linear(512, 10)


@network(TRAINING, "Conv-TasNet: Luo and Mesgarani, Conv-TasNet: surpassing ideal time-frequency "
         "magnitude masking for speech separation, 2018 (four seconds at 8 kHz)", weights=5.05)
def conv_tasnet(net: Layers) -> None:
    encoded = net.conv("encoder", signal(1, 32000), 512, 16, 8, pad=0)
    x = net.conv("bottleneck", encoded, 128, 1)
    for repeat in range(3):
        for i in range(8):
            name = f"repeat{repeat}_{i}"
            y = net.depthwise(f"{name}_depthwise", net.conv(f"{name}_conv1", x, 512, 1), 3,
                              dilation=1 << i)
            net.conv(f"{name}_skip", y, 128, 1)
            x = net.conv(f"{name}_residual", y, 128, 1)
    net.conv("masks", x, 2 * 512, 1)
    net.transposed("decoder", encoded, 1, 16, 8)


@network(TRAINING, "wav2vec 2.0 base: Baevski, Zhou, Mohamed and Auli, wav2vec 2.0: a framework "
         "for self-supervised learning of speech representations, 2020 (feature encoder and "
         "positional convolution, ten seconds at 16 kHz)")
def wav2vec2_base(net: Layers) -> None:
    x = signal(1, 160000)
    for i, (filter, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))):
        x = net.conv(f"encoder{i}", x, 512, filter, stride, pad=0)
    assert x.size == (1, 1, 499)
    net.conv("positions", x.with_channels(768), 768, 128, pad=64, g=16)


@network(TRAINING, "HiFi-GAN V1 generator: Kong, Kim and Bae, HiFi-GAN: generative adversarial "
         "networks for efficient and high fidelity speech synthesis, 2020 (segments of 8,192 "
         "samples)", weights=13.92)
def hifigan_v1(net: Layers) -> None:
    x = net.conv("first", signal(80, 32), 512, 7)
    for level, stride in enumerate((8, 8, 2, 2), 1):
        x = net.transposed(f"up{level}", x, x.c // 2, 2 * stride, stride, pad=stride // 2)
        for filter in (3, 7, 11):
            for dilation in (1, 3, 5):
                net.conv(f"up{level}_filter{filter}_dilated{dilation}", x, x.c, filter,
                         dilation=dilation)
                net.conv(f"up{level}_filter{filter}_second{dilation}", x, x.c, filter)
    net.conv("last", x, 1, 7)
