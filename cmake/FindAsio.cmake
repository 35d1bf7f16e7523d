# Finds standalone Asio, which ships no CMake package of its own. Installed beside kvlane's package, whose component asio needs it.
#
#   Asio::Asio     the target; header-only, needs threads
#   Asio_VERSION   from asio/version.hpp
#   Asio_INCLUDE_DIR may be set to where asio.hpp lies
find_path(Asio_INCLUDE_DIR asio.hpp)
mark_as_advanced(Asio_INCLUDE_DIR)

if(Asio_INCLUDE_DIR AND EXISTS "${Asio_INCLUDE_DIR}/asio/version.hpp")
  file(STRINGS "${Asio_INCLUDE_DIR}/asio/version.hpp" asio_version_line REGEX "^#define ASIO_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" asio_version_number "${asio_version_line}")
  # 102201 is 1.22.1
  math(EXPR asio_major "${asio_version_number} / 100000")
  math(EXPR asio_minor "${asio_version_number} / 100 % 1000")
  math(EXPR asio_patch "${asio_version_number} % 100")
  set(Asio_VERSION "${asio_major}.${asio_minor}.${asio_patch}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS Asio_INCLUDE_DIR VERSION_VAR Asio_VERSION)

if(Asio_FOUND AND NOT TARGET Asio::Asio)
  find_package(Threads REQUIRED)
  add_library(Asio::Asio INTERFACE IMPORTED)
  target_include_directories(Asio::Asio SYSTEM INTERFACE "${Asio_INCLUDE_DIR}")
  target_compile_definitions(Asio::Asio INTERFACE ASIO_STANDALONE)
  target_link_libraries(Asio::Asio INTERFACE Threads::Threads)
endif()
