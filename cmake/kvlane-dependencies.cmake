# kvlane_require(<name>): the installed package if there is one, a pinned download otherwise.
#
# The versions are those the library is developed against (Debian 12). The download path is for systems without the packages; it is
# not covered by the tests, which run on installed ones.
include(FetchContent)

FetchContent_Declare(
  nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG v3.11.2
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 3.10)
FetchContent_Declare(
  fmt
  GIT_REPOSITORY https://github.com/fmtlib/fmt.git
  GIT_TAG 9.1.0
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 9)
FetchContent_Declare(
  GTest
  GIT_REPOSITORY https://github.com/google/googletest.git
  GIT_TAG release-1.12.1
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 1.12)
FetchContent_Declare(
  rapidcheck
  GIT_REPOSITORY https://github.com/emil-e/rapidcheck.git
  GIT_TAG 08b5058
  SYSTEM
  FIND_PACKAGE_ARGS)
FetchContent_Declare(
  CLI11
  GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
  GIT_TAG v2.1.2
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 2.1)
FetchContent_Declare(
  benchmark
  GIT_REPOSITORY https://github.com/google/benchmark.git
  GIT_TAG v1.7.1
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 1.7)

set(kvlane_target_of_nlohmann_json nlohmann_json::nlohmann_json)
set(kvlane_target_of_fmt fmt::fmt-header-only)
set(kvlane_target_of_GTest GTest::gtest_main)
set(kvlane_target_of_rapidcheck rapidcheck)
set(kvlane_target_of_CLI11 CLI11::CLI11)
set(kvlane_target_of_benchmark benchmark::benchmark)

function(kvlane_require name)
  if(TARGET ${kvlane_target_of_${name}})
    return()
  endif()
  # Two folders may ask for one package, and FetchContent looks only once.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  set(INSTALL_GTEST OFF)
  set(BENCHMARK_ENABLE_TESTING OFF)
  FetchContent_MakeAvailable(${name})
endfunction()
