# Warnings for our own sources, tests and examples. Never exported: what a user of the headers wants to be warned about is theirs to say.
add_library(kvlane_warnings INTERFACE)
if(MSVC)
  target_compile_options(kvlane_warnings INTERFACE /W4 $<$<BOOL:${KVLANE_WARNINGS_AS_ERRORS}>:/WX>)
else()
  target_compile_options(
    kvlane_warnings
    INTERFACE -Wall
              -Wextra
              -Wpedantic
              -Wshadow
              -Wconversion
              -Wsign-conversion
              -Wold-style-cast
              -Wcast-align
              -Wformat=2
              -Wimplicit-fallthrough
              -Wnon-virtual-dtor
              -Woverloaded-virtual
              # A designated initialiser that leaves members at their defaults is how this library takes arguments.
              -Wno-missing-field-initializers
              $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches>
              $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
              $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
              $<$<BOOL:${KVLANE_WARNINGS_AS_ERRORS}>:-Werror>)
endif()
