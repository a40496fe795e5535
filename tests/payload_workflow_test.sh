#!/usr/bin/env bash
# Products with weights from files: measured in workers, learned from, predicted, judged; and every
# way in which a file may be missing, changed or wrong is one sentence.
#   payload_workflow_test.sh FORETUNE SOURCE_DIR
set -euo pipefail
foretune="$1"
source_dir="$2"
source "$source_dir/tests/expect.bash"

# 48 rows of 64: B by columns of n=48 k=64. Files of NumPy's and without a header.
mkdir weights elsewhere
python3 - <<'END'
import array, random, struct
random.seed(5)
def values(zeros):
    return array.array("f", (0 if random.random() < zeros else random.gauss(0, 0.02) for _ in range(48 * 64)))
def npy(path, shape, data, order="False"):
    header = "{'descr': '<f4', 'fortran_order': %s, 'shape': (%d, %d), }" % (order, *shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data.tobytes())
npy("weights/up.npy", (48, 64), values(0))
npy("weights/sparse.npy", (48, 64), values(0.9))
with open("weights/down.f32", "wb") as file:
    file.write(values(0.5).tobytes())
npy("elsewhere/other.npy", (48, 64), values(0))
bad = values(0)
bad[7] = float("nan")
npy("elsewhere/nan.npy", (48, 64), bad)
END
sizes="n=48 k=64 layout=rcr"
payloads=(--payloads weights)

# One problem, by text and by options.
expect 0 "$foretune" tune gemm m=8 $sizes payload=@up.npy "${payloads[@]}" --budget 6 --output tuned.ftd
digest="$(grep -oE 'payload=[0-9a-f]{32}' out.txt | head -1)"
test -n "$digest"
expect 0 "$foretune" tune --m 8 --n 48 --k 64 --layout rcr --payload @up.npy "${payloads[@]}" \
  --budget 6 --output tuned.ftd
grep -q "tuned already" err.txt
expect 0 "$foretune" tune gemm m=8 $sizes "$digest" "${payloads[@]}" --budget 6 --output tuned.ftd
grep -q "tuned already" err.txt
ls weights/.foretune/*.gemm-weights >descriptors.txt

# A data set; half of its problems have other weights in the same sizes, or none.
for m in 1 4 16 64 100; do
  for file in up.npy sparse.npy down.f32; do
    echo "gemm m=$m $sizes payload=@$file"
  done
  echo "gemm m=$m $sizes"
done >shapes.txt
expect 0 "$foretune" collect --shapeset shapes.txt --num-shapes 0 "${payloads[@]}" --repeat 2 \
  --search-space SAMPLE:6 --output train.ftd
expect 0 "$foretune" convert train.ftd --output train.json
test "$(grep -oE 'payload=[0-9a-f]{32}' train.json | sort -u | wc -l)" -eq 3
grep -q '"ok"' train.json
if grep -qE '"(wrong|crashed|unsupported)"' train.json; then
  echo "workers do not reach the weights"
  exit 1
fi
expect 0 "$foretune" convert train.json --output again.ftd
expect 4 "$foretune" convert train.ftd --output train.csv
one_sentence
grep -q "payload" err.txt

# Problems that differ in their weights alone are one group.
sed 's/@sparse.npy/@up.npy/' shapes.txt | sort -u >same_sizes.txt
expect 2 "$foretune" create-validation --shapeset same_sizes.txt --num-shapes 0 "${payloads[@]}" \
  --training-data train.ftd --search-space SAMPLE:2 --output none.ftd
one_sentence
grep -q "some are in the training data" err.txt
sed 's/m=1 /m=2 /; s/m=4 /m=7 /; s/m=16 /m=31 /' shapes.txt | grep -v "m=64\|m=100" >validation.txt
expect 0 "$foretune" create-validation --shapeset validation.txt --num-shapes 0 "${payloads[@]}" \
  --training-data train.ftd --search-space SAMPLE:8 --repeat 2 --output validation.ftd

# Trained, asked and judged with what is known of the weights; without, said.
expect 0 "$foretune" train --dataset train.ftd "${payloads[@]}" --trees 40 --folds 2 --model with.ftm
if grep -q "without --payloads" err.txt; then
  echo "nothing was missing"
  exit 1
fi
expect 0 "$foretune" train --dataset train.ftd --trees 40 --folds 2 --model without.ftm
grep -q "15 problems have payloads, of which nothing is known without --payloads" err.txt
expect 0 "$foretune" predict --model with.ftm gemm m=8 $sizes payload=@sparse.npy "${payloads[@]}"
grep -q "^pick: " out.txt
expect 0 "$foretune" predict --model with.ftm --m 8 --n 48 --k 64 --layout rcr "${payloads[@]}" \
  --payload @up.npy --explain
expect 0 "$foretune" search --model with.ftm gemm m=8 $sizes payload=@up.npy "${payloads[@]}" \
  --budget 30 --measure --rounds 2
expect 0 "$foretune" validate-model --model with.ftm --dataset validation.ftd "${payloads[@]}" \
  --training-data train.ftd --measure-top 2 --repeat 2
expect 0 "$foretune" evaluate --dataset train.ftd "${payloads[@]}" --nested-folds 2 --folds 2 --trees 20
expect 0 "$foretune" compare with.ftm without.ftm --dataset validation.ftd "${payloads[@]}" \
  --mean 100 --median 100 --p10 100 --problem 1000
# A family that reads no weights takes such problems all the same.
expect 0 "$foretune" collect --family null --shapeset shapes.txt --num-shapes 4 "${payloads[@]}" \
  --search-space SAMPLE:2 --output simulated.ftd

# Missing, changed and wrong files.
refused() {
  local code="$1" sentence="$2"
  shift 2
  expect "$code" "$@"
  one_sentence
  if ! grep -qF -- "$sentence" err.txt; then
    echo "not '$sentence':"
    cat err.txt
    exit 1
  fi
}
refused 3 "no folder of payloads was named" "$foretune" tune gemm m=8 $sizes payload=@up.npy --budget 2
refused 3 "no folder of payloads was named" "$foretune" predict --model with.ftm gemm m=8 $sizes "$digest"
refused 3 "there is no folder of payloads 'nowhere'" "$foretune" tune gemm m=8 $sizes "$digest" \
  --payloads nowhere --budget 2
refused 3 "in the folder elsewhere" "$foretune" tune gemm m=8 $sizes "$digest" --payloads elsewhere --budget 2
refused 3 "there is no file 'missing.npy'" "$foretune" tune gemm m=8 $sizes payload=@missing.npy \
  "${payloads[@]}" --budget 2
refused 3 "in the folder elsewhere" "$foretune" train --dataset train.ftd --payloads elsewhere
refused 2 "value 7 of the weights is NaN" "$foretune" tune gemm m=8 $sizes payload=@nan.npy \
  --payloads elsewhere --budget 2
refused 3 "layout=rcr has the other" "$foretune" tune gemm m=8 n=48 k=64 payload=@up.npy \
  "${payloads[@]}" --budget 2
refused 2 "one product of f32" "$foretune" tune gemm m=8 $sizes dtype=bf16 payload=@up.npy \
  "${payloads[@]}" --budget 2
cp elsewhere/other.npy weights/up.npy
refused 3 "had it and has another content now" "$foretune" tune gemm m=8 $sizes "$digest" \
  "${payloads[@]}" --budget 2
expect 0 "$foretune" tune gemm m=8 $sizes payload=@up.npy "${payloads[@]}" --budget 3
test "$(grep -oE 'payload=[0-9a-f]{32}' out.txt | head -1)" != "$digest"
# Descriptors are enough to learn from: the weights themselves may be gone.
rm weights/*.npy weights/*.f32
expect 0 "$foretune" train --dataset train.ftd "${payloads[@]}" --trees 40 --folds 2 --model again.ftm
cmp with.ftm again.ftm
echo "payloads: as expected"
