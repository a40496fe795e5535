# libtorch as its headers and libraries: torch::torch, linked by the program that trains networks and
# by nothing else. Found under CMAKE_PREFIX_PATH (the folder `torch` of a Python wheel, or an unpacked
# libtorch), else where Debian's libtorch-dev puts it. Not by its own TorchConfig.cmake, which wants
# the CUDA toolkit for a library built with CUDA and changes flags of the whole project.
find_path(Torch_INCLUDE_DIR torch/csrc/api/include/torch/version.h)
find_library(Torch_LIBRARY torch)
find_library(Torch_CPU_LIBRARY torch_cpu)
find_library(Torch_C10_LIBRARY c10)
mark_as_advanced(Torch_INCLUDE_DIR Torch_LIBRARY Torch_CPU_LIBRARY Torch_C10_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Torch
  REQUIRED_VARS Torch_LIBRARY Torch_CPU_LIBRARY Torch_C10_LIBRARY Torch_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "foretune-train-network is not built")
if(Torch_FOUND AND NOT TARGET torch::torch)
  add_library(torch::torch INTERFACE IMPORTED)
  target_include_directories(torch::torch SYSTEM INTERFACE ${Torch_INCLUDE_DIR})
  # The library `torch` is empty but for its needs, among them the part for CUDA where there is one:
  # a linker that leaves out what no symbol is taken from would leave out the devices.
  target_link_libraries(
    torch::torch INTERFACE -Wl,--push-state,--no-as-needed ${Torch_LIBRARY} -Wl,--pop-state
                           ${Torch_CPU_LIBRARY} ${Torch_C10_LIBRARY})
endif()
