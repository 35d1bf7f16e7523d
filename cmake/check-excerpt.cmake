# cmake -D EXCERPT=<file> -D SOURCE=<file> -P check-excerpt.cmake: the one is part of the other, word for word.
cmake_minimum_required(VERSION 3.25)

file(READ "${EXCERPT}" excerpt)
file(READ "${SOURCE}" source)
string(FIND "${source}" "${excerpt}" at)
if(excerpt STREQUAL "" OR at EQUAL -1)
  message("${excerpt}")
  message(FATAL_ERROR "this is not in ${SOURCE}")
endif()
