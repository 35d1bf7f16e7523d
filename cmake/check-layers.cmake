# cmake -D INCLUDE_DIR=<include> -D LAYERS=<kvlane-layers.txt> -P check-layers.cmake
#
# Fails if a header includes one that does not stand on a lower floor, if a header has no floor, or if a header of the std-only part
# includes something that is neither kvlane's nor the standard library's.
cmake_minimum_required(VERSION 3.25)

cmake_path(ABSOLUTE_PATH INCLUDE_DIR)

set(std_headers
    algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts condition_variable coroutine deque
    exception execution filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream
    iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
    syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime
    cuchar cwchar cwctype)

set(problems 0)
function(problem text)
  message("${text}")
  math(EXPR problems "${problems} + 1")
  set(problems ${problems} PARENT_SCOPE)
endfunction()

# floor_<header>, foreign_<header>, allow_<a>_<b>, whole_<part>
file(STRINGS "${LAYERS}" rules REGEX "^[^#]")
foreach(rule IN LISTS rules)
  string(STRIP "${rule}" rule)
  if(rule MATCHES "^allow +([^ ]+) +-> +([^ ]+)$")
    set("allow_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}" ON)
    if(DEFINED "allow_${CMAKE_MATCH_2}_${CMAKE_MATCH_1}")
      problem("${LAYERS}: ${CMAKE_MATCH_1} and ${CMAKE_MATCH_2} are allowed to include each other")
    endif()
  elseif(rule MATCHES "^part +([^ ]+) +of +([^ ]+)$")
    set("whole_${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}")
    set("allow_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}" ON)
    set("allow_${CMAKE_MATCH_2}_${CMAKE_MATCH_1}" ON)
  elseif(rule MATCHES "^foreign +([^ ]+)$")
    set("foreign_${CMAKE_MATCH_1}" ON)
  elseif(rule MATCHES "^(apart|[0-9]+) +([^ ]+)$")
    if(DEFINED "floor_${CMAKE_MATCH_2}")
      problem("${LAYERS}: ${CMAKE_MATCH_2} is listed twice")
    endif()
    set("floor_${CMAKE_MATCH_2}" "${CMAKE_MATCH_1}")
  elseif(rule)
    problem("${LAYERS}: not a rule: ${rule}")
  endif()
endforeach()

# Sets <out> to the floor of a header, or to nothing.
function(floor_of header out)
  if(DEFINED "whole_${header}")
    set(header "${whole_${header}}")
  endif()
  set(pattern "${header}")
  while(NOT DEFINED "floor_${pattern}" AND pattern MATCHES "^(.*)/[^/]+$")
    set(folder "${CMAKE_MATCH_1}")
    if(DEFINED "floor_${folder}/*")
      set(pattern "${folder}/*")
    else()
      set(pattern "${folder}")
    endif()
  endwhile()
  set(${out} "${floor_${pattern}}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE "${INCLUDE_DIR}/kvlane" "${INCLUDE_DIR}/kvlane/*")
list(LENGTH files file_count)
if(file_count EQUAL 0)
  problem("no headers in ${INCLUDE_DIR}/kvlane")
endif()
foreach(file IN LISTS files)
  if(NOT file MATCHES "^(.+)\\.hpp$")
    problem("${file}: a header ends in .hpp")
    continue()
  endif()
  set(header "${CMAKE_MATCH_1}")
  floor_of("${header}" floor)
  if(floor STREQUAL "")
    problem("${file}: has no floor in kvlane-layers.txt")
    continue()
  elseif(floor STREQUAL "apart")
    continue()
  endif()

  file(READ "${INCLUDE_DIR}/kvlane/${file}" text)
  string(REGEX MATCHALL "(^|\n)[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"]" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX MATCH "[<\"].*" include "${include}")
    if(include MATCHES "^<kvlane/(.+)\\.hpp>$")
      set(target "${CMAKE_MATCH_1}")
      floor_of("${target}" target_floor)
      if(target_floor STREQUAL "")
        problem("${file}: includes ${include}, which has no floor in kvlane-layers.txt")
      elseif(target_floor STREQUAL "apart")
        problem("${file}: includes ${include}, which stands apart")
      elseif(target_floor EQUAL floor AND DEFINED "allow_${header}_${target}")
        # listed
      elseif(NOT target_floor LESS floor)
        problem("${file} (floor ${floor}): includes ${include} (floor ${target_floor}); includes go to lower floors")
      endif()
    elseif(include MATCHES "^<(.+)>$" AND CMAKE_MATCH_1 IN_LIST std_headers)
      # standard library
    elseif(NOT DEFINED "foreign_${header}")
      problem("${file}: includes ${include}, which is neither <kvlane/...> nor a C++20 standard header")
    endif()
  endforeach()
endforeach()

if(problems)
  message(FATAL_ERROR "layering: ${problems} problem(s)")
endif()
message("layering: ${file_count} headers in order")
