# Tests of the build itself: the scripts that hold the tree against its own rules, and the package
# as a stranger would use it.
find_program(FORETUNE_PYTHON python3 REQUIRED)

add_test(NAME checks.layering
         COMMAND ${FORETUNE_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/check_layering.py
                 ${CMAKE_BINARY_DIR}/modules.txt)
add_test(NAME checks.style COMMAND ${FORETUNE_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/check_style.py)
add_test(NAME checks.select_closure
         COMMAND ${FORETUNE_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/check_select_closure.py
                 ${CMAKE_BINARY_DIR})
set_tests_properties(checks.layering checks.style checks.select_closure PROPERTIES LABELS unit
                                                                                   TIMEOUT 60)
add_test(NAME install.consumer
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_install.sh ${CMAKE_BINARY_DIR}
                 ${CMAKE_CXX_COMPILER})
set_tests_properties(install.consumer PROPERTIES LABELS install TIMEOUT 300)
if(FORETUNE_BUILD_PYTHON)
  set(package_python ${Python_EXECUTABLE})
endif()
add_test(NAME install.own_family
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_own_family.sh ${CMAKE_BINARY_DIR}
                 ${CMAKE_CXX_COMPILER} ${package_python})
set_tests_properties(install.own_family PROPERTIES LABELS install TIMEOUT 300)
