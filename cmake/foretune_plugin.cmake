# Part of the installed package: builds a plug-in, NAME.so, that `foretune --plugin` loads.
#
#   find_package(foretune REQUIRED)
#   foretune_plugin(stencil SOURCES stencil.cc [LIBRARIES ...])
#
# It holds its own copies of what it uses of the library and shows one function (FORETUNE_PLUGIN of
# foretune/plugin/plugin.h); what is missing is an error of the linker and not of whoever loads it.
function(foretune_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_SOURCES)
    message(FATAL_ERROR "foretune_plugin(${name} ...) names no SOURCES")
  endif()
  add_library(${name} MODULE ${ARG_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(
    ${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                       VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(
    ${name} PRIVATE foretune::plugin foretune::family foretune::search foretune::features
                    foretune::space foretune::problem foretune::base ${ARG_LIBRARIES})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs)
endfunction()
