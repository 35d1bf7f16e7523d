# kvlane_add_readme_tests(<markdown file> COMMAND <compiler> <flags>...)
#
# One test for each ```cpp block of the file, named after its line: does it compile? A comment on the line before says how:
#   (none)                        the block is the body of a function; its own #include lines are moved up
#   <!-- kvlane: file -->         the block is a whole file
#   <!-- kvlane: example file --> the block is part of this file of the project, word for word, and is tested there
#   <!-- kvlane: skip reason -->  the block is not compiled; the test shows as skipped and prints the reason
set(kvlane_readme_prologue
    "#include <kvlane/kvlane.hpp>
#if __has_include(<kvlane/http.hpp>)
#include <kvlane/http.hpp>
#endif
#include <iostream>
#include <thread>
")

function(kvlane_add_readme_tests markdown)
  cmake_parse_arguments(arg "" "" "COMMAND" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${markdown}")
  cmake_path(GET markdown FILENAME name)
  set(out_dir "${CMAKE_CURRENT_BINARY_DIR}/readme")
  file(REMOVE_RECURSE "${out_dir}")

  # Line by line and never as a list: C++ is full of semicolons and brackets.
  file(READ "${markdown}" rest)
  set(number 0)
  set(kind "")
  set(previous "")
  while(NOT rest STREQUAL "")
    string(FIND "${rest}" "\n" end)
    if(end EQUAL -1)
      set(line "${rest}")
      set(rest "")
    else()
      string(SUBSTRING "${rest}" 0 ${end} line)
      math(EXPR end "${end} + 1")
      string(SUBSTRING "${rest}" ${end} -1 rest)
    endif()
    math(EXPR number "${number} + 1")

    if(kind STREQUAL "" AND line MATCHES "^```cpp *$")
      set(start ${number})
      set(includes "")
      math(EXPR first "${number} + 1")
      set(body "#line ${first} \"${name}\"\n")
      if(previous MATCHES "^<!-- kvlane: file -->")
        set(kind "file")
      elseif(previous MATCHES "^<!-- kvlane: example (.*) -->")
        set(kind "example")
        set(example "${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1}")
      elseif(previous MATCHES "^<!-- kvlane: skip (.*) -->")
        set(kind "skip")
        set(reason "${CMAKE_MATCH_1}")
      else()
        set(kind "body")
      endif()
    elseif(NOT kind STREQUAL "" AND line MATCHES "^``` *$")
      set(test "readme.line_${start}")
      if(kind STREQUAL "skip")
        add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" -E echo "not compiled: ${reason}")
        set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "not compiled" LABELS "readme;once")
      else()
        set(file "${out_dir}/line_${start}.cpp")
        set(command ${arg_COMMAND} "${file}")
        if(kind STREQUAL "file")
          file(WRITE "${file}" "${body}")
        elseif(kind STREQUAL "example")
          string(REGEX REPLACE "^[^\n]*\n" "" excerpt "${body}")  # without the #line
          file(WRITE "${file}" "${excerpt}")
          set(command "${CMAKE_COMMAND}" -D "EXCERPT=${file}" -D "SOURCE=${example}" -P "${PROJECT_SOURCE_DIR}/cmake/check-excerpt.cmake")
        else()
          file(WRITE "${file}"
               "${kvlane_readme_prologue}${includes}using namespace std::chrono_literals;\nvoid readme_block();\nvoid readme_block() {\n${body}}\n")
        endif()
        add_test(NAME ${test} COMMAND ${command})
        set_tests_properties(${test} PROPERTIES LABELS "readme;once")
      endif()
      set(kind "")
    elseif(kind STREQUAL "body" AND line MATCHES "^ *#include ")
      string(APPEND includes "#line ${number} \"${name}\"\n${line}\n")
      string(APPEND body "\n")
    elseif(NOT kind STREQUAL "")
      string(APPEND body "${line}\n")
    endif()
    set(previous "${line}")
  endwhile()
  if(NOT kind STREQUAL "")
    message(FATAL_ERROR "${markdown}: the block at line ${start} does not end")
  endif()
endfunction()
