# Functions that every CMakeLists.txt of the project uses.
#
#   foretune_module(space SOURCES config.cc HEADERS config.h DEPS problem hardware base
#                   [PRIVATE_DEPS ...] [LIBRARIES ZLIB::ZLIB])   foretune_space, foretune::space
#   foretune_test(space SOURCES config_test.cc [DEPS ...] [LABELS unit] [TIMEOUT 60] [FAKE_GPU])
#   foretune_fuzz(journal SOURCES journal_fuzz.cc DEPS dataset CORPUS corpus/journal)
#   foretune_bench(select SOURCES select.cc DEPS select)
#   foretune_example(pick SOURCES pick.cc DEPS select)
#   foretune_isa_source(avx512 kernel_avx512.cc ...)             flags for these files only
#   foretune_embed_texts(hardware device_profile_texts profiles)  files as constants of a module
#
# A module without SOURCES is header-only. A test with the name of a module links that module
# without naming it. Tests with the label `threads` run under the thread sanitizer. The target
# fuzzers builds the fuzz targets of the preset asan, the target benchmarks the benchmarks. DEPS are
# modules; the layering check reads them from build/<preset>/modules.txt. LIBRARIES are third-party
# targets: linked for the build, never exported. Tests with FAKE_GPU find NVIDIA's libraries, as
# tests/fake_gpu plays them, at the path FORETUNE_FAKE_GPU. Tests see FORETUNE_SHARED_DATA_DIR (may
# be "": skip with a message), FORETUNE_SOURCE_DIR, FORETUNE_CLI (path of the built command) and, in
# sanitizer builds, FORETUNE_SANITIZED.

add_library(foretune_warnings INTERFACE)
# A unity build's files are not headers, and its inlining confuses GCC 12 about sizes.
set(FORETUNE_UNITY_WARNINGS -Wno-subobject-linkage -Wno-stringop-overflow)
target_compile_options(
  foretune_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
            -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wcast-align -Wdouble-promotion
            -Wundef -Wformat=2 -Wmissing-declarations
            # Designated initialisers leave members to their defaults on purpose.
            -Wno-missing-field-initializers
            # The stable_sort of libstdc++ 12 uses a function that libstdc++ declares deprecated.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
            $<$<AND:$<BOOL:${FORETUNE_UNITY}>,$<CXX_COMPILER_ID:GNU>>:${FORETUNE_UNITY_WARNINGS}>
            $<$<BOOL:${FORETUNE_WERROR}>:-Werror>)

# Options for tests. They are linked after foretune_warnings, since a target's own options would
# come before it and be overruled. GoogleTest's macros mix signedness; libFuzzer's entry point has
# no declaration.
add_library(foretune_test_warnings INTERFACE)
# Tests at -O1 compile in two thirds of the time; sanitizer builds decide for themselves.
target_compile_options(
  foretune_test_warnings
  INTERFACE -Wno-sign-conversion $<$<AND:$<CONFIG:RelWithDebInfo>,$<NOT:$<BOOL:${FORETUNE_SANITIZED}>>>:-O1>
            $<$<AND:$<BOOL:${FORETUNE_UNITY_TESTS}>,$<CXX_COMPILER_ID:GNU>>:${FORETUNE_UNITY_WARNINGS}>)
add_library(foretune_fuzz_warnings INTERFACE)
target_compile_options(foretune_fuzz_warnings INTERFACE -Wno-missing-declarations)

set(FORETUNE_IS_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(FORETUNE_IS_X86 ON)
endif()

set_property(GLOBAL PROPERTY FORETUNE_MODULES "")

function(foretune_common_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:foretune_warnings>)
endfunction()

# Modules that compute much, as their tests do. The preset asan compiles the others without optimising,
# which takes half of the time.
set(FORETUNE_BUSY_MODULES
    base formats kernels loop loop_machine loop_jit sparse sparse_products graph graph_run features
    space metrics model model_train dataset families_cpu_gemm families_cpu_conv families_null
    interop_data)

function(foretune_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS;LIBRARIES" ${ARGN})
  set(target foretune_${name})
  list(TRANSFORM ARG_DEPS PREPEND foretune_ OUTPUT_VARIABLE deps)
  list(TRANSFORM ARG_PRIVATE_DEPS PREPEND foretune_ OUTPUT_VARIABLE private_deps)
  if(ARG_SOURCES)
    set(scope PUBLIC)
    add_library(${target} STATIC ${ARG_SOURCES})
    foretune_common_settings(${target})
    if(FORETUNE_SANITIZED AND name IN_LIST FORETUNE_BUSY_MODULES)
      target_compile_options(${target} PRIVATE -O1)
    endif()
    set_target_properties(
      ${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                           VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD ${FORETUNE_UNITY})
    target_link_libraries(${target} PUBLIC ${deps} PRIVATE ${private_deps})
    foreach(library IN LISTS ARG_LIBRARIES)
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
    endforeach()
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} INTERFACE ${deps} ${private_deps})
  endif()
  target_include_directories(
    ${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # As a header set they are installed under their own paths, and each can be compiled alone. Those of
  # a folder internal/ are for the module.
  set(public_headers ${ARG_HEADERS})
  list(FILTER public_headers EXCLUDE REGEX "(^|/)internal/")
  if(public_headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                                      FILES ${public_headers})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  add_library(foretune::${name} ALIAS ${target})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(JOIN ARG_DEPS "," deps_text)
  list(JOIN ARG_PRIVATE_DEPS "," private_text)
  list(JOIN ARG_SOURCES "," sources_text)
  list(JOIN ARG_HEADERS "," headers_text)
  set_property(
    GLOBAL APPEND
    PROPERTY FORETUNE_MODULES
             "${name}|${folder}|${deps_text}|${private_text}|${sources_text},${headers_text}")
endfunction()

# Defines `std::span<const EmbeddedText> foretune::${function}()` in the module: all .txt files of a
# folder beside its CMakeLists.txt, ordered by name. Nothing reads them at run time.
function(foretune_embed_texts module function folder)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.txt)
  list(SORT files)
  set_property(
    DIRECTORY
    APPEND
    PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(entries "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM stem)
    file(READ ${file} text)
    string(APPEND entries "      EmbeddedText{\"${stem}\", R\"__(${text})__\"},\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  # Written only when it changes.
  file(
    GENERATE
    OUTPUT ${generated}
    CONTENT
      "// Generated from the files of ${folder}.
#include <array>

#include \"foretune/base/embedded_text.h\"

namespace foretune {

std::span<const EmbeddedText> ${function}();

std::span<const EmbeddedText> ${function}() {
  static constexpr std::array kTexts{
${entries}  };
  return kTexts;
}

}  // namespace foretune
")
  # Compilers must support 65,536 characters and support more.
  set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(foretune_${module} PRIVATE ${generated})
endfunction()

# Makes a module one shared library, libforetune_NAME, that exports only the C interfaces of some
# sources, as the module's exports.map names them.
function(foretune_c_library name)
  set(target foretune_${name}_shared)
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/exports.map)
  add_library(${target} SHARED ${ARGN})
  # The module's archive holds these sources, too. Each is alone in an object, so that no linker
  # takes both copies.
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foretune_common_settings(${target})
  set_target_properties(
    ${target}
    PROPERTIES OUTPUT_NAME foretune_${name}
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS ${exports})
  target_link_libraries(${target} PRIVATE foretune_${name})
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Declares a test, fuzz target or benchmark for scripts/changed_programs.py. Labels follow the kind.
function(foretune_list_program target kind)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  get_target_property(sources ${target} SOURCES)
  list(JOIN sources "," sources_text)
  list(JOIN ARGN "," labels_text)
  set_property(GLOBAL APPEND PROPERTY FORETUNE_PROGRAMS
                                      "${target}|${kind}|${folder}|${labels_text}|${sources_text}")
endfunction()

# Writes the declared modules and programs, for the scripts that read them.
function(foretune_write_modules)
  get_property(modules GLOBAL PROPERTY FORETUNE_MODULES)
  # A misspelt dependency would otherwise become a library name for the linker to miss.
  foreach(line IN LISTS modules)
    string(REPLACE "|" ";" fields "${line}")
    list(GET fields 0 name)
    list(GET fields 2 3 dependencies)
    string(REPLACE "," ";" dependencies "${dependencies}")
    foreach(dependency IN LISTS dependencies)
      if(dependency AND NOT TARGET foretune_${dependency})
        message(FATAL_ERROR "module ${name} depends on ${dependency}, which is no module")
      endif()
    endforeach()
  endforeach()
  list(JOIN modules "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/modules.txt "${text}\n")
  get_property(programs GLOBAL PROPERTY FORETUNE_PROGRAMS)
  list(JOIN programs "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/programs.txt "${text}\n")
endfunction()

function(foretune_executable target)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBRARIES" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  foretune_common_settings(${target})
  list(TRANSFORM ARG_DEPS PREPEND foretune_ OUTPUT_VARIABLE deps)
  target_link_libraries(${target} PRIVATE ${deps} ${ARG_LIBRARIES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# Defines the macros that tests may use: shared data (may be empty: the test skips), the built
# command line.
function(foretune_test_definitions target)
  target_compile_definitions(
    ${target} PRIVATE FORETUNE_SHARED_DATA_DIR="${FORETUNE_SHARED_DATA}"
                      FORETUNE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                      FORETUNE_CLI="${CMAKE_BINARY_DIR}/tools/foretune/foretune"
                      $<$<BOOL:${FORETUNE_SANITIZED}>:FORETUNE_SANITIZED>)
endfunction()

function(foretune_test name)
  if(NOT FORETUNE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "FAKE_GPU" "TIMEOUT" "SOURCES;DEPS;LIBRARIES;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(FORETUNE_SANITIZED)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set(target ${name}_test)
  set(deps ${ARG_DEPS})
  if(TARGET foretune_${name})
    list(APPEND deps ${name})
  endif()
  foretune_executable(${target} SOURCES ${ARG_SOURCES} DEPS ${deps}
                      LIBRARIES ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  foretune_list_program(${target} test ${ARG_LABELS})
  foretune_test_definitions(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORETUNE_UNITY_TESTS})
  target_link_libraries(${target} PRIVATE foretune_test_warnings)
  if(FORETUNE_SANITIZED AND name IN_LIST FORETUNE_BUSY_MODULES)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if(ARG_FAKE_GPU)
    target_compile_definitions(${target}
                               PRIVATE FORETUNE_FAKE_GPU="$<TARGET_FILE:foretune_fake_gpu>")
    add_dependencies(${target} foretune_fake_gpu)
  endif()
  # Several labels do not survive the discovery, which flattens lists (and would take the second
  # label for the name of a property). A script that CTest reads after it sets them.
  gtest_discover_tests(
    ${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
    TEST_LIST ${target}_names PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  file(WRITE ${labels_file}
       "if(${target}_names)\n"
       "  set_tests_properties(\${${target}_names} PROPERTIES LABELS \"${ARG_LABELS}\")\n"
       "endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()

# Adds a program to those that the target `group` builds.
function(foretune_add_to_group group target)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${target})
endfunction()

# Makes a fuzz target: libFuzzer in the preset asan, elsewhere a program that replays its corpus.
function(foretune_fuzz name)
  if(NOT FORETUNE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "" ${ARGN})
  set(target ${name}_fuzz)
  foretune_executable(${target} ${ARG_UNPARSED_ARGUMENTS})
  foretune_list_program(${target} fuzz)
  if(FORETUNE_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    foretune_add_to_group(fuzzers ${target})
  else()
    if(NOT TARGET foretune_fuzz_replay)
      add_library(foretune_fuzz_replay OBJECT ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
      foretune_common_settings(foretune_fuzz_replay)
    endif()
    target_link_libraries(${target} PRIVATE foretune_fuzz_replay)
    add_test(NAME fuzz.${name} COMMAND ${target} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
  target_link_libraries(${target} PRIVATE foretune_fuzz_warnings)
endfunction()

function(foretune_bench name)
  if(NOT FORETUNE_BUILD_BENCH)
    return()
  endif()
  foretune_executable(bench_${name} ${ARGN})
  foretune_list_program(bench_${name} bench)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                 ${CMAKE_BINARY_DIR}/bench)
  # Where there are tests, only the target benchmarks builds them.
  if(FORETUNE_BUILD_TESTS)
    set_target_properties(bench_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    foretune_add_to_group(benchmarks bench_${name})
  endif()
endfunction()

# Makes a small program that is built and run as a test.
function(foretune_example name)
  if(NOT FORETUNE_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBRARIES;ARGUMENTS" ${ARGN})
  foretune_executable(example_${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS}
                      LIBRARIES ${ARG_LIBRARIES})
  add_test(NAME example.${name} COMMAND example_${name} ${ARG_ARGUMENTS})
  set_tests_properties(example.${name} PROPERTIES LABELS examples TIMEOUT 120)
endfunction()

# Sets the flags of files that hold code of one instruction set. On machines other than x86 the
# files compile without these flags and must then be empty.
function(foretune_isa_source isa)
  if(NOT FORETUNE_IS_X86)
    return()
  endif()
  if(isa STREQUAL "avx512")
    set(flags -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mbmi -mbmi2)
  elseif(isa STREQUAL "avx512vbmi")
    set(flags -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx512vbmi -mavx2 -mfma -mbmi -mbmi2
              -mpopcnt)
  elseif(isa STREQUAL "avx512vnni")
    set(flags -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx512vnni -mavx2 -mfma -mbmi -mbmi2)
  elseif(isa STREQUAL "avx2")
    set(flags -mavx2 -mfma -mbmi -mbmi2)
  elseif(isa STREQUAL "sse42")
    set(flags -msse4.2)
  else()
    message(FATAL_ERROR "unknown instruction set ${isa}")
  endif()
  # Instrumented by g++ 12, masked AVX-512 code gives other results; clang's thread sanitizer finds
  # it right. Kernels share nothing between threads.
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -fno-sanitize=thread)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()
