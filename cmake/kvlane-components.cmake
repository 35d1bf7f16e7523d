# Targets for the headers that need more than the standard library, each if what it needs is there: whoever wants it has it.
# CMAKE_DISABLE_FIND_PACKAGE_<package>=ON does without.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

# kvlane_add_component(<name> <dependency> <arguments of find_package>...): kvlane::<name> with <kvlane/<name>.hpp>
function(kvlane_add_component name dependency)
  if(NOT TARGET ${dependency})
    # A project that adds this one as a subdirectory links the target, so it has to see what that needs.
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
    find_package(${ARGN} QUIET)
  endif()
  if(NOT TARGET ${dependency})
    return()
  endif()
  add_library(kvlane_${name} INTERFACE)
  add_library(kvlane::${name} ALIAS kvlane_${name})
  set_target_properties(kvlane_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(kvlane_${name} INTERFACE kvlane_core ${dependency})
  target_sources(kvlane_${name} INTERFACE FILE_SET HEADERS BASE_DIRS "${kvlane_include_dir}" FILES "${kvlane_include_dir}/kvlane/${name}.hpp")
endfunction()

# Per-operation cancellation and the public recycling_allocator came with Asio 1.22.1, which is also what Boost 1.80 has at least.
kvlane_add_component(asio Asio::Asio Asio 1.22.1)
kvlane_add_component(boost_asio Boost::headers Boost 1.80)
# Without a version: Debian's package does not tell its own.
kvlane_add_component(prometheus prometheus-cpp::core prometheus-cpp CONFIG)
