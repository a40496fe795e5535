# ONNX's messages as Protocol Buffers generates them: onnx::proto, linked by the module interop_onnx and
# by nothing else. Found where Debian's libonnx-dev puts it, or under CMAKE_PREFIX_PATH. Not by its own
# ONNXConfig.cmake, which names a target of Protocol Buffers that it does not look for.
find_path(Onnx_INCLUDE_DIR onnx/onnx_pb.h)
find_path(Onnx_PROTOBUF_INCLUDE_DIR google/protobuf/message.h)
find_library(Onnx_LIBRARY onnx_proto)
find_library(Onnx_PROTOBUF_LIBRARY protobuf)
mark_as_advanced(Onnx_INCLUDE_DIR Onnx_PROTOBUF_INCLUDE_DIR Onnx_LIBRARY Onnx_PROTOBUF_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Onnx
  REQUIRED_VARS Onnx_LIBRARY Onnx_INCLUDE_DIR Onnx_PROTOBUF_LIBRARY Onnx_PROTOBUF_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "ONNX files are not read")
if(Onnx_FOUND AND NOT TARGET onnx::proto)
  add_library(onnx::proto INTERFACE IMPORTED)
  target_include_directories(onnx::proto SYSTEM INTERFACE ${Onnx_INCLUDE_DIR}
                                                          ${Onnx_PROTOBUF_INCLUDE_DIR})
  target_compile_definitions(onnx::proto INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1)
  target_link_libraries(onnx::proto INTERFACE ${Onnx_LIBRARY} ${Onnx_PROTOBUF_LIBRARY})
endif()
