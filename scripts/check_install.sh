#!/usr/bin/env bash
# Uses an installation as a stranger would: configures, builds and runs examples/consumer against the
# package alone, and looks at what its programs and libraries need and export. The example's own test
# (example.consumer) trains a model and asks it.
#
#   scripts/check_install.sh PREFIX g++
set -euo pipefail
if [[ $# -ne 2 ]]; then
  echo "usage: scripts/check_install.sh PREFIX CXX_COMPILER" >&2
  exit 2
fi
prefix="$(cd "$1" && pwd)"
compiler="$2"
source "$(dirname "$0")/check_functions.sh"

if grep -rnF -e "$prefix" -e "$source_root" "$prefix/lib" --include='*.cmake'; then
  fail "the package remembers where it was built or installed"
fi

# The sources are copied, so that no path leads back into the repository by accident.
cp -r "$source_root/examples/consumer" "$work/consumer"
logged configure cmake -S "$work/consumer" -B "$work/consumer/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
logged consumer cmake --build "$work/consumer/build"
pick_cpp="$work/consumer/build/pick_cpp"
pick_c="$work/consumer/build/pick_c"
multiply_c="$work/consumer/build/multiply_c"
convolve_c="$work/consumer/build/convolve_c"
sparse_c="$work/consumer/build/sparse_c"
for program in "$pick_cpp" "$pick_c" "$multiply_c" "$convolve_c" "$sparse_c" "$prefix"/lib/libforetune_dispatch.so; do
  libraries="$(ldd "$program" | awk '{ print $1 }')"
  if grep -vE '^(linux-vdso|libstdc\+\+|libm|libgcc_s|libc|libpthread|/lib.*/ld-linux)' \
    <<<"$libraries"; then
    fail "$(basename "$program") links more than the C++ run time"
  fi
done
# The same programs in C99 on the shared library, which exports its C functions and nothing else.
for name in multiply convolve sparse; do
  cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o "$work/${name}_shared" "$work/consumer/$name.c" \
    -I"$prefix/include" -L"$prefix/lib" -lforetune_dispatch -Wl,-rpath,"$prefix/lib" ||
    fail "libforetune_dispatch.so does not link"
done
for program in "$multiply_c" "$work/multiply_shared"; do
  product="$("$program")"
  [[ "$product" == "0: 4 5 10 11" ]] || fail "$(basename "$program") computes '$product'"
done
# A corner's difference and the sums of the image under each weight: output and gradient.
for program in "$convolve_c" "$work/convolve_shared"; do
  result="$("$program")"
  [[ "$result" == "5 5: 45 54 81 90" ]] || fail "$(basename "$program") computes '$result'"
done
for program in "$sparse_c" "$work/sparse_shared"; do
  products="$("$program")"
  [[ "$products" == "201 0 30; 402 0 60" ]] || fail "$(basename "$program") computes '$products'"
done
exported="$(nm -D --defined-only "$prefix/lib/libforetune_dispatch.so" | awk '{ print $3 }' | sort)"
[[ "$(tr '\n' ' ' <<<"$exported")" == "foretune_conv_plan_create foretune_conv_plan_destroy \
foretune_conv_plan_elements foretune_conv_plan_explain foretune_conv_plan_pack \
foretune_conv_plan_run foretune_conv_plan_save foretune_cublaslt_close foretune_cublaslt_explain \
foretune_cublaslt_matmul foretune_cublaslt_open foretune_cublaslt_open_with \
foretune_cublaslt_save foretune_cudnn_close foretune_cudnn_convolution foretune_cudnn_explain \
foretune_cudnn_open foretune_cudnn_open_with foretune_cudnn_plan_facts foretune_cudnn_plan_text \
foretune_cudnn_prepare foretune_cudnn_release foretune_cudnn_run foretune_cudnn_save \
foretune_cudnn_workspace \
foretune_sddmm foretune_set_num_threads foretune_sgemm foretune_sparse_create foretune_sparse_destroy \
foretune_sparse_explain foretune_sparse_save foretune_spmm foretune_spmv " ]] ||
  fail "libforetune_dispatch.so exports $exported"
for program in "$pick_cpp" "$pick_c"; do
  # A model that is not there is one sentence and a non-zero exit.
  if "$program" "$work/absent.ftm" 128 256 512 2>"$work/message"; then
    fail "$(basename "$program") accepted a model that is not there"
  fi
  [[ -s "$work/message" ]] || fail "$(basename "$program") failed without a message"
done

"$prefix/bin/foretune" --version
# The manual pages and completions lie beside it.
for file in man/man1/foretune.1 man/man1/foretune-train.1 bash-completion/completions/foretune \
  zsh/site-functions/_foretune fish/vendor_completions.d/foretune.fish; do
  [[ -s "$prefix/share/$file" ]] || fail "share/$file is not installed"
done
