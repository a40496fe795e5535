"""Convolutional networks of groups, of branches and of dense maps, and decoders, as programs like
those of network_layers_conv.py. The figures are those of the papers and of timm's and torchvision's
versions of the networks, with equal pads on both sides.
"""

from __future__ import annotations

from network_layers_conv import (GOOGLENET, basic_block, bottleneck, inception, inverted_residual, signal,
                                 spatial_pyramid)
from network_layers_types import VALIDATION, Layers, Map, divisible, image, network


# Groups.

def regnet_x(net: Layers, widths: tuple[int, ...], depths: tuple[int, ...],
             group_width: int) -> None:
    x = net.conv("stem", image(224), 32, 3, 2)
    for stage, (width, depth) in enumerate(zip(widths, depths), 1):
        for i in range(depth):
            x = bottleneck(net, f"stage{stage}_{i}", x, width, width, 2 if i == 0 else 1,
                           g=width // group_width)
    net.linear(x.c, 1000)


@network(VALIDATION, "RegNetX-400MF: Radosavovic et al., Designing network design spaces, 2020 "
         "(torchvision)", macs=414, weights=5.496)
def regnet_x_400mf(net: Layers) -> None:
    regnet_x(net, (32, 64, 160, 400), (1, 2, 7, 12), 16)


@network(VALIDATION, "RegNetX-3.2GF: Radosavovic et al., Designing network design spaces, 2020 "
         "(torchvision)", macs=3177, weights=15.296)
def regnet_x_3_2gf(net: Layers) -> None:
    regnet_x(net, (96, 192, 432, 1008), (2, 6, 15, 2), 48)


@network(VALIDATION, "ResNeXt-101 32x8d: Xie et al., Aggregated residual transformations for deep "
         "neural networks, 2016 (torchvision)", macs=16414, weights=88.791)
def resnext101_32x8d(net: Layers) -> None:
    x = net.conv("stem", image(224), 64, 7, 2).pooled(3, 2, 1)
    for stage, blocks in enumerate((3, 4, 23, 3)):
        for i in range(blocks):
            x = bottleneck(net, f"stage{stage}_{i}", x, 256 << stage, 256 << stage,
                           2 if stage > 0 and i == 0 else 1, g=32)
    net.linear(2048, 1000)


@network(VALIDATION, "DPN-92: Chen et al., Dual path networks, 2017", macs=6540, weights=37.67)
def dpn92(net: Layers) -> None:
    x = net.conv("stem", image(224), 64, 7, 2).pooled(3, 2, 1)
    for stage, (blocks, growth) in enumerate(((3, 16), (4, 32), (20, 24), (3, 128))):
        residual, between = 256 << stage, 96 << stage
        for i in range(blocks):
            name, stride = f"stage{stage}_{i}", 2 if stage > 0 and i == 0 else 1
            if i == 0:
                net.conv(f"{name}_shortcut", x, residual + 2 * growth, 1, stride)
            y = net.conv(f"{name}_conv1", x, between, 1)
            y = net.conv(f"{name}_conv2", y, between, 3, stride, g=32)
            y = net.conv(f"{name}_conv3", y, residual + growth, 1)
            # The second path is dense: it keeps what came before, and its shortcut has two growths.
            x = y.with_channels(residual + 3 * growth if i == 0 else x.c + growth)
    net.linear(x.c, 1000)


@network(VALIDATION, "RepVGG-B1g4: Ding et al., RepVGG: making VGG-style ConvNets great again, "
         "2021 (with its branches merged)", macs=7300, weights=36.12)
def repvgg_b1g4(net: Layers) -> None:
    x = net.conv("stem", image(224), 64, 3, 2)
    layer = 1
    for stage, (width, blocks) in enumerate(((128, 4), (256, 6), (512, 16), (2048, 1)), 1):
        for i in range(blocks):
            x = net.conv(f"stage{stage}_{i}", x, width, 3, 2 if i == 0 else 1,
                         g=4 if layer % 2 == 0 else 1)
            layer += 1
    net.linear(2048, 1000)


@network(VALIDATION, "ResNeSt-50: Zhang et al., ResNeSt: split-attention networks, 2020 (timm)",
         macs=5400, weights=27.48)
def resnest50(net: Layers) -> None:
    x = net.conv("stem1", image(224), 32, 3, 2)
    x = net.conv("stem3", net.conv("stem2", x, 32, 3), 64, 3).pooled(3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for i in range(blocks):
            name = f"stage{stage}_{i}"
            y = net.conv(f"{name}_conv1", x, width, 1)
            y = net.conv(f"{name}_splits", y, 2 * width, 3, g=2).with_channels(width)
            net.linear(width, max(width // 2, 32), 2 * width)
            # Both paths are averaged over 2 x 2 points instead of having strides.
            if stage > 0 and i == 0:
                x, y = x.pooled(2, 2), y.pooled(3, 2, 1)
            if i == 0:
                net.conv(f"{name}_shortcut", x, 4 * width, 1)
            x = net.conv(f"{name}_conv3", y, 4 * width, 1)
    net.linear(2048, 1000)


# Branches.

@network(VALIDATION, "Inception v4: Szegedy, Ioffe, Vanhoucke and Alemi, Inception-v4, "
         "Inception-ResNet and the impact of residual connections on learning, 2016 (299 x 299)",
         macs=12280, weights=42.68)
def inception_v4(net: Layers) -> None:
    row, column = (1, 7), (7, 1)
    x = net.conv("conv1", image(299), 32, 3, 2, pad=0)
    x = net.conv("conv3", net.conv("conv2", x, 32, 3, pad=0), 64, 3)
    x = inception(net, "mixed3a", x, [(96, 3)], stride=2, kept=64)
    y = inception(net, "mixed4a_branch1", x, [(64, 1), (64, row), (64, column)])
    net.conv("mixed4a_branch0_last", net.conv("mixed4a_branch0_0", x, 64, 1), 96, 3, pad=0)
    x = net.conv("mixed4a_branch1_last", y, 96, 3, pad=0).with_channels(192)
    x = inception(net, "mixed5a", x, [(192, 3)], stride=2, kept=192)
    for i in range(4):
        x = inception(net, f"inceptionA{i}", x, [(96, 1)], [(64, 1), (96, 3)],
                      [(64, 1), (96, 3), (96, 3)], [(96, 1)])
    x = inception(net, "reductionA", x, [(384, 3)], [(192, 1), (224, 3), (256, 3)], stride=2,
                  kept=x.c)
    for i in range(7):
        x = inception(net, f"inceptionB{i}", x, [(384, 1)], [(192, 1), (224, row), (256, column)],
                      [(192, 1), (192, column), (224, row), (224, column), (256, row)], [(128, 1)])
    x = inception(net, "reductionB", x, [(192, 1), (192, 3)],
                  [(256, 1), (256, row), (320, column), (320, 3)], stride=2, kept=x.c)
    for i in range(3):
        y = net.conv(f"inceptionC{i}_branch1", x, 384, 1)
        z = inception(net, f"inceptionC{i}_branch2", x, [(384, 1), (448, (3, 1)), (512, (1, 3))])
        for branch, joint in ((1, y), (2, z)):
            net.conv(f"inceptionC{i}_branch{branch}_row", joint, 256, (1, 3))
            net.conv(f"inceptionC{i}_branch{branch}_column", joint, 256, (3, 1))
        x = inception(net, f"inceptionC{i}_outer", x, [(256, 1)], [(256, 1)], kept=4 * 256)
    net.linear(1536, 1000)


@network(VALIDATION, "Res2Net-50 26w4s: Gao et al., Res2Net: a new multi-scale backbone "
         "architecture, 2019", macs=4284, weights=25.70)
def res2net50_26w_4s(net: Layers) -> None:
    x = net.conv("stem", image(224), 64, 7, 2).pooled(3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width, out = 26 << stage, 256 << stage
        for i in range(blocks):
            name, stride = f"stage{stage}_{i}", 2 if stage > 0 and i == 0 else 1
            y = net.conv(f"{name}_conv1", x, 4 * width, 1)
            for scale in range(3):
                z = net.conv(f"{name}_scale{scale}", y.with_channels(width), width, 3, stride)
            if i == 0:
                net.conv(f"{name}_shortcut", x, out, 1, stride)
            x = net.conv(f"{name}_conv3", z.with_channels(4 * width), out, 1)
    net.linear(2048, 1000)


@network(VALIDATION, "HRNet-W18: Wang et al., Deep high-resolution representation learning for "
         "visual recognition, 2019", macs=4320, weights=21.299)
def hrnet_w18(net: Layers) -> None:
    x = net.conv("stem2", net.conv("stem1", image(224), 64, 3, 2), 64, 3, 2)
    for i in range(4):
        x = bottleneck(net, f"stage1_{i}", x, 64, 256)
    branches = [net.conv("transition1_0", x, 18, 3), net.conv("transition1_1", x, 36, 3, 2)]
    for stage, modules in ((2, 1), (3, 4), (4, 3)):
        if stage > 2:
            last = branches[-1]
            branches.append(net.conv(f"transition{stage - 1}", last, 2 * last.c, 3, 2))
        for module in range(modules):
            name = f"stage{stage}_{module}"
            for b, y in enumerate(branches):
                for i in range(4):
                    y = basic_block(net, f"{name}_branch{b}_{i}", y, y.c, 1)
            for source, y in enumerate(branches):
                for target, z in enumerate(branches):
                    if target < source:
                        net.conv(f"{name}_fuse{source}to{target}", y, z.c, 1)
                    down = y
                    for step in range(source + 1, target + 1):
                        down = net.conv(f"{name}_fuse{source}to{target}_{step}", down,
                                        z.c if step == target else down.c, 3, 2)
    ends = [bottleneck(net, f"head{b}", y, 32 << b, 128 << b) for b, y in enumerate(branches)]
    for b in range(3):
        net.conv(f"head_down{b}", ends[b], 256 << b, 3, 2)
    net.linear(net.conv("last", ends[3], 2048, 1).c, 1000)


@network(VALIDATION, "VoVNet-39 with squeezing: Lee and Park, CenterMask: real-time anchor-free "
         "instance segmentation, 2019 (timm)", macs=7090, weights=24.57)
def vovnet39(net: Layers) -> None:
    x = net.conv("stem2", net.conv("stem1", image(224), 64, 3, 2), 64, 3)
    x = net.conv("stem3", x, 128, 3, 2)
    for stage, (between, out, blocks) in enumerate(((128, 256, 1), (160, 512, 1), (192, 768, 2),
                                                    (224, 1024, 2)), 1):
        if stage > 1:
            x = x.pooled(3, 2, ceil=True)
        for block in range(blocks):
            y = x
            for i in range(5):
                y = net.conv(f"stage{stage}_{block}_{i}", y, between, 3)
            x = net.conv(f"stage{stage}_{block}_joint", y.with_channels(x.c + 5 * between), out, 1)
        net.linear(out, out)  # squeezing of the stage's last block
    net.linear(1024, 1000)


@network(VALIDATION, "I3D: Carreira and Zisserman, Quo vadis, action recognition? A new model and "
         "the Kinetics dataset, 2017 (64 frames of 224 x 224)", weights=12.697)
def i3d(net: Layers) -> None:
    x = net.conv("conv1", Map(3, (64, 224, 224)), 64, 7, 2).pooled((1, 3, 3), (1, 2, 2), (0, 1, 1))
    x = net.conv("conv2", x, 64, 1)
    x = net.conv("conv3", x, 192, 3).pooled((1, 3, 3), (1, 2, 2), (0, 1, 1))
    for name, a, b1, b3, c1, c3, pooled in GOOGLENET:
        if name == "4a":
            x = x.pooled(3, 2, 1)
        if name == "5a":
            x = x.pooled(2, 2)
        x = inception(net, f"inception{name}", x, [(a, 1)], [(b1, 1), (b3, 3)],
                      [(c1, 1), (c3, 3)], [(pooled, 1)])
    net.linear(1024, 400)


# Dense maps: dilated layers, and layers that enlarge a map.

@network(VALIDATION, "DeepLabV3 with MobileNetV3-Large: Howard et al., Searching for MobileNetV3, "
         "2019 (torchvision, 520 x 520)", macs=10452, weights=11.029)
def deeplabv3_mobilenet_v3(net: Layers) -> None:
    x = net.conv("stem", image(520), 16, 3, 2)
    auxiliary = x
    for i, (filter, expanded, width, excite, stride, dilation) in enumerate(
            ((3, 16, 16, 0, 1, 1), (3, 64, 24, 0, 2, 1), (3, 72, 24, 0, 1, 1), (5, 72, 40, 1, 2, 1),
             (5, 120, 40, 1, 1, 1), (5, 120, 40, 1, 1, 1), (3, 240, 80, 0, 2, 1),
             (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
             (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2),
             (5, 960, 160, 1, 1, 2), (5, 960, 160, 1, 1, 2)), 1):
        x = inverted_residual(net, f"block{i}", x, expanded, width, filter, stride,
                              divisible(expanded / 4) if excite else 0, dilation)
        auxiliary = x if i == 4 else auxiliary
    x = spatial_pyramid(net, net.conv("last", x, 960, 1))
    net.conv("classes", net.conv("head", x, 256, 3), 21, 1)
    net.conv("auxiliary_classes", net.conv("auxiliary", auxiliary, 10, 3), 21, 1)


@network(VALIDATION, "DRN-D-22: Yu, Koltun and Funkhouser, Dilated residual networks, 2017",
         weights=16.394)
def drn_d_22(net: Layers) -> None:
    x = net.conv("stem", image(224), 16, 7)
    x = net.conv("level2", net.conv("level1", x, 16, 3), 32, 3, 2)
    for level, (width, stride, dilation) in enumerate(
            ((64, 2, 1), (128, 2, 1), (256, 1, 2), (512, 1, 4)), 3):
        for i in range(2):
            name, s = f"level{level}_{i}", stride if i == 0 else 1
            if i == 0:
                net.conv(f"{name}_shortcut", x, width, 1, s)
            x = net.conv(f"{name}_conv1", x, width, 3, s, dilation=dilation)
            x = net.conv(f"{name}_conv2", x, width, 3, dilation=dilation)
    x = net.conv("level8", net.conv("level7", x, 512, 3, dilation=2), 512, 3)
    net.linear(512, 1000)


@network(VALIDATION, "CycleGAN generator: Zhu, Park, Isola and Efros, Unpaired image-to-image "
         "translation using cycle-consistent adversarial networks, 2017 (256 x 256)",
         weights=11.378)
def cyclegan_generator(net: Layers) -> None:
    x = net.conv("first", image(256), 64, 7)
    for i, width in enumerate((128, 256), 1):
        x = net.conv(f"down{i}", x, width, 3, 2)
    for i in range(9):
        x = basic_block(net, f"block{i}", x, 256, 1)
    for i, width in enumerate((128, 64), 1):
        x = net.transposed(f"up{i}", x, width, 3, 2, pad=1, extra=1)
    net.conv("last", x, 3, 7)


@network(VALIDATION, "HiFi-GAN V3 generator: Kong, Kim and Bae, HiFi-GAN: generative adversarial "
         "networks for efficient and high fidelity speech synthesis, 2020 (segments of 8,192 "
         "samples)", weights=1.46)
def hifigan_v3(net: Layers) -> None:
    x = net.conv("first", signal(80, 32), 256, 7)
    for level, stride in enumerate((8, 8, 4), 1):
        x = net.transposed(f"up{level}", x, x.c // 2, 2 * stride, stride, pad=stride // 2)
        for filter, dilations in ((3, (1, 2)), (5, (2, 6)), (7, (3, 12))):
            for dilation in dilations:
                net.conv(f"up{level}_filter{filter}_dilated{dilation}", x, x.c, filter,
                         dilation=dilation)
    net.conv("last", x, 1, 7)


@network(VALIDATION, "MelGAN generator: Kumar et al., MelGAN: generative adversarial networks for "
         "conditional waveform synthesis, 2019 (segments of 8,192 samples)", weights=4.26)
def melgan(net: Layers) -> None:
    x = net.conv("first", signal(80, 32), 512, 7)
    for level, stride in enumerate((8, 8, 2, 2), 1):
        x = net.transposed(f"up{level}", x, x.c // 2, 2 * stride, stride, pad=stride // 2)
        for dilation in (1, 3, 9):
            name = f"up{level}_dilated{dilation}"
            net.conv(f"{name}_shortcut", x, x.c, 1)
            net.conv(f"{name}_second", net.conv(name, x, x.c, 3, dilation=dilation), x.c, 1)
    net.conv("last", x, 1, 7)
