# LightGBM as scripts/install_dependencies.sh built it: lightgbm::lightgbm, used by the trainer and
# by benchmarks and tests as the peer, never by the selector.
find_path(
  LightGBM_INCLUDE_DIR LightGBM/c_api.h
  PATHS ${FORETUNE_DEPS_DIR}/lightgbm-4.5.0/include
  NO_DEFAULT_PATH)
find_library(
  LightGBM_LIBRARY lib_lightgbm.a
  PATHS ${FORETUNE_DEPS_DIR}/lightgbm-4.5.0/lib
  NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LightGBM
  REQUIRED_VARS LightGBM_LIBRARY LightGBM_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "run scripts/install_dependencies.sh first")
if(LightGBM_FOUND AND NOT TARGET lightgbm::lightgbm)
  add_library(lightgbm::lightgbm STATIC IMPORTED)
  set_target_properties(
    lightgbm::lightgbm
    PROPERTIES IMPORTED_LOCATION ${LightGBM_LIBRARY}
               INTERFACE_INCLUDE_DIRECTORIES ${LightGBM_INCLUDE_DIR}
               INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${LightGBM_INCLUDE_DIR})
  # Its OpenMP runtime is GCC's, whichever compiler builds our code; only the linker's own search
  # path knows the run-time library under both.
  target_link_libraries(lightgbm::lightgbm INTERFACE -l:libgomp.so.1 Threads::Threads)
endif()
