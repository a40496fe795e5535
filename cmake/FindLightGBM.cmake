# LightGBM as scripts/install_dependencies.sh fetched it: lightgbm::lightgbm, used by the trainer and
# by benchmarks and tests as the peer, never by the selector.
set(LightGBM_INCLUDE_DIR ${FORETUNE_DEPS_DIR}/lightgbm/include)
set(LightGBM_LIBRARY ${FORETUNE_DEPS_DIR}/lightgbm/lib/libforetune_lightgbm.so)
if(EXISTS ${FORETUNE_DEPS_DIR}/lightgbm/complete)
  set(LightGBM_FOUND TRUE)
endif()
if(LightGBM_FOUND AND NOT TARGET lightgbm::lightgbm)
  add_library(lightgbm::lightgbm SHARED IMPORTED)
  set_target_properties(
    lightgbm::lightgbm
    PROPERTIES IMPORTED_LOCATION ${LightGBM_LIBRARY}
               IMPORTED_SONAME libforetune_lightgbm.so
               INTERFACE_INCLUDE_DIRECTORIES ${LightGBM_INCLUDE_DIR}
               INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${LightGBM_INCLUDE_DIR})
endif()
