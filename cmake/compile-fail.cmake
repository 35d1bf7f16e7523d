# cmake -D SOURCE=<file> -D "COMMAND=<compiler;flags>" -P compile-fail.cmake
#
# The file must not compile, with a diagnostic for each `// expect: <regex>` line in it (CMake's regular expressions). Compiled with
# KVLANE_COMPILE_FAIL_OK defined, it must compile: so that it is refused for what it shows and not for a typing error.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${COMMAND} -DKVLANE_COMPILE_FAIL_OK "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE diagnostics)
if(NOT status EQUAL 0)
  message("${diagnostics}")
  message(FATAL_ERROR "does not compile with KVLANE_COMPILE_FAIL_OK")
endif()

execute_process(COMMAND ${COMMAND} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE diagnostics)
if(status EQUAL 0)
  message(FATAL_ERROR "compiles, but should be refused")
endif()

file(STRINGS "${SOURCE}" expectations REGEX "^[ \t]*// expect: ")
if(NOT expectations)
  message(FATAL_ERROR "names no diagnostic: add a line `// expect: <regex>`")
endif()
foreach(expectation IN LISTS expectations)
  string(REGEX REPLACE "^[ \t]*// expect: " "" regex "${expectation}")
  if(NOT diagnostics MATCHES "${regex}")
    message("${diagnostics}")
    message(FATAL_ERROR "no diagnostic matches: ${regex}")
  endif()
endforeach()
