# The target kvlane::prometheus, if prometheus-cpp is there: whoever wants these metrics has it. CMAKE_DISABLE_FIND_PACKAGE_prometheus-cpp=ON
# does without.
function(kvlane_add_prometheus)
  if(NOT TARGET prometheus-cpp::core)
    # A project that adds this one as a subdirectory links the target, so it has to see what that needs.
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
    # Without a version: Debian's package does not tell its own.
    find_package(prometheus-cpp CONFIG QUIET)
  endif()
  if(NOT TARGET prometheus-cpp::core)
    return()
  endif()
  add_library(kvlane_prometheus INTERFACE)
  add_library(kvlane::prometheus ALIAS kvlane_prometheus)
  set_target_properties(kvlane_prometheus PROPERTIES EXPORT_NAME prometheus)
  target_link_libraries(kvlane_prometheus INTERFACE kvlane_core prometheus-cpp::core)
  target_sources(kvlane_prometheus INTERFACE FILE_SET HEADERS BASE_DIRS "${kvlane_include_dir}" FILES "${kvlane_include_dir}/kvlane/prometheus.hpp")
endfunction()
kvlane_add_prometheus()
