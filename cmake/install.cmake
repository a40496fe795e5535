# Installs what a product needs: the command line, the selector and the dispatcher with what they need.
# So does what plug-ins are written against: families, tables and strategies. The dispatcher
# measures and keeps data sets. Trainers and all third-party libraries stay behind, but for LightGBM
# beside the command line; CMake refuses the export should a module of the list come to need one that
# is not in it.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/foretune)
set(public_modules base metrics hardware sparse graph problem space interop_names loop features plugin model select kernels cuda family cuda_measuring
                   dataset measure search cublaslt cudnn families_cpu_gemm families_cpu_conv families_cublaslt sparse_products dispatch graph_run)

# tl::expected appears in our headers and is one header in the public domain, so it travels along:
# users of the package install nothing else.
find_path(FORETUNE_EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
install(FILES ${FORETUNE_EXPECTED_INCLUDE_DIR}/tl/expected.hpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/foretune/third_party/tl)
target_include_directories(
  foretune_base SYSTEM
  INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/foretune/third_party>)

list(TRANSFORM public_modules PREPEND foretune_ OUTPUT_VARIABLE public_targets)
install(
  TARGETS ${public_targets}
  EXPORT foretune_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/foretune/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/foretune)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The command line loads it beside itself.
install(FILES ${LightGBM_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/foretune)
install(
  FILES ${FORETUNE_DEPS_DIR}/lightgbm/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR}
  RENAME LICENSE.lightgbm)
install(
  EXPORT foretune_targets
  NAMESPACE foretune::
  FILE foretuneTargets.cmake
  DESTINATION ${package_folder})

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/foretuneConfig.cmake.in ${CMAKE_BINARY_DIR}/foretuneConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may break what came before it.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/foretuneConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/foretuneConfig.cmake
              ${CMAKE_BINARY_DIR}/foretuneConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/foretune_plugin.cmake DESTINATION ${package_folder})
