#!/usr/bin/env bash
# Networks on the command line: inspect prints each format, convert writes ours.
#   network_commands_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"
holds() { # holds TEXT: the last command printed it.
  grep -qF -- "$1" out.txt || { cat out.txt; fail "no '$1'"; }
}

# A network and a task; the counts are also written as JSON.
expect 0 "$foretune" inspect "$source_dir/tests/golden/small.ftn"
holds "small.ftn: network"
holds "input               image 1x1x10x10"
holds "output              classes 1x3"
holds "multiply-adds       5,364 for one image"
holds "weights             1,180 bytes"
holds "conv2      conv          1x6x3x5    1,620"
holds "relu1      relu          1x4x10x10"
expect 0 "$foretune" inspect "$source_dir/tests/golden/small.ftt" --json counts.json
holds "small.ftt: task"
holds "images              3 for tuning, 2 for testing, of 3 classes"
grep -q '"multiply_adds": 5364' counts.json
grep -q '"tuning_images": 3' counts.json

# The bytes tell a network, whatever its name is; damage is named.
cp "$source_dir/tests/golden/small.ftn" network.bin
expect 0 "$foretune" inspect network.bin
head -c 500 network.bin >cut.ftn
expect 3 "$foretune" inspect cut.ftn
one_sentence
grep -q "checksum of the network" err.txt
expect 2 "$foretune" inspect network.bin --problem "gemm m=1 n=1 k=1"
one_sentence

# The network of a task is the one that it was made of. Other options have no effect.
expect 0 "$foretune" convert "$source_dir/tests/golden/small.ftt" --output small.ftn
cmp small.ftn "$source_dir/tests/golden/small.ftn"
expect 2 "$foretune" convert "$source_dir/tests/golden/small.ftt" --output small.ftn
one_sentence
expect 2 "$foretune" convert "$source_dir/tests/golden/small.ftt" --output b.ftn --family recorded
one_sentence
expect 2 "$foretune" convert "$source_dir/tests/golden/small.ftt" --output b.ftn --input-shape x=1
grep -q "only with ONNX files" err.txt
expect 3 "$foretune" convert "$source_dir/tests/golden/conv.ftd" --output b.ftn
grep -q "no file of a network" err.txt

# Tuning how a network computes: all images of the task judge it, and a data set keeps the measurements.
mkdir tasks
cp "$source_dir/tests/golden/small.ftt" tasks/
expect 0 "$foretune" approx tasks/small.ftt --images 2 --threads 1 --budgets 50,100 \
  --family-option knobs=i8,f32+rows2.0 --fit 3 --judge 2 --json approx.json --output approx.ftd \
  --report approx.html
holds "exact: "
holds "for 2 images"
python3 - <<'END'
import json
made = json.load(open("approx.json", encoding="utf-8"))
assert made["name"] == "approx" and made["version"] == 1, made
assert made["metrics"]["measured"] >= 2, made["metrics"]
assert made["exact"]["speedup"] == 1 and made["metrics"]["chosen"] == len(made["configs"]), made
for each in made["configs"]:
    assert each["tune_loss"] <= each["loss_high"] <= each["budget"] <= 100, each
assert all(layer["knobs"][0]["knob"] == "f32" for layer in made["layers"]), made["layers"]
page = open("approx.html", encoding="utf-8").read()
assert "Layers alone" in page and made["layers"][0]["layer"] in page, page
END
expect 0 "$foretune" approx tasks/small.ftt --images 2 --threads 1 --budgets 100 \
  --family-option knobs=i8 --fit 0 --quality psnr --json approx.json
holds "psnr 100.00 dB on the test images"
grep -q '"quality": "psnr", "unit": "dB"' approx.json
expect 4 "$foretune" approx tasks/small.ftt --quality top5
grep -q "the five largest of 3 outputs are all of them" err.txt
expect 2 "$foretune" approx tasks/small.ftt --quality best
one_sentence
expect 0 "$foretune" inspect approx.ftd
holds "network-cpu"
expect 2 "$foretune" approx tasks/small.ftt --budgets 1,much
grep -q "budgets are losses from 0 up, as in 0.5,1,2; not 'much'" err.txt
one_sentence
expect 3 "$foretune" approx "$source_dir/tests/golden/small.ftn"
one_sentence
expect 3 "$foretune" approx missing.ftt
one_sentence

# ONNX, where this build reads it.
model="$source_dir/foretune/interop/onnx/testdata/conv.onnx"
if ! "$foretune" inspect "$model" >out.txt 2>err.txt; then
  grep -q "reads no ONNX files" err.txt
  exit 0
fi
holds "conv.onnx: ONNX model"
expect 0 "$foretune" convert "$model" --output conv.ftn
holds "wrote conv.ftn (ftn)"
expect 0 "$foretune" inspect conv.ftn
holds "1x3x7x8"
expect 0 "$foretune" convert "$model" --output other.ftn --input-shape x0=1x3x9x9
expect 0 "$foretune" inspect other.ftn
holds "1x3x9x9"
expect 2 "$foretune" convert "$model" --output b.ftn --input-shape x0=1x3xlarge
grep -q "is not NAME=EXTENTS" err.txt
