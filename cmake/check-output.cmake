# cmake -D PROGRAM=<path> -D EXPECTED=<file> -P check-output.cmake: runs a program and compares what it prints with a file.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE status OUTPUT_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with: ${status}\n${output}")
endif()
file(READ "${EXPECTED}" expected)
if(NOT output STREQUAL expected)
  message("printed:\n${output}\nexpected (${EXPECTED}):\n${expected}")
  message(FATAL_ERROR "the output differs")
endif()
