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

# One installation for the tests that use the package. It is moved, as packages are: nothing may remember
# where it was installed. It is stripped: a plug-in needs no symbol of the program that loads it.
set(first ${FORETUNE_INSTALLED}-first)
add_test(
  NAME installed
  COMMAND sh -c "rm -rf '${FORETUNE_INSTALLED}' '${first}' && \
'${CMAKE_COMMAND}' --install '${CMAKE_BINARY_DIR}' --prefix '${first}' --strip && \
mv '${first}' '${FORETUNE_INSTALLED}'")
set_tests_properties(installed PROPERTIES LABELS install TIMEOUT 300 FIXTURES_SETUP installed)
add_test(NAME installed.removed COMMAND ${CMAKE_COMMAND} -E rm -rf ${FORETUNE_INSTALLED})
set_tests_properties(installed.removed PROPERTIES LABELS install FIXTURES_CLEANUP installed)

add_test(NAME install.consumer
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_install.sh ${FORETUNE_INSTALLED} ${CMAKE_CXX_COMPILER})
if(FORETUNE_BUILD_PYTHON)
  set(package_python ${Python_EXECUTABLE})
endif()
add_test(NAME install.own_family
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_own_family.sh ${FORETUNE_INSTALLED}
                 ${CMAKE_CXX_COMPILER} ${package_python})
set_tests_properties(install.consumer install.own_family PROPERTIES LABELS install TIMEOUT 300
                                                                    FIXTURES_REQUIRED installed
                                                                    ENVIRONMENT PYTHONPATH=${CMAKE_BINARY_DIR}/python)
