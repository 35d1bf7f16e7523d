# The targets kvlane::asio and kvlane::boost_asio, each if its Asio is there and new enough: per-operation cancellation and the public
# recycling_allocator came with 1.22.1, which is also what Boost 1.80 has at least.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

function(kvlane_add_flavour_of_asio name package version dependency)
  if(NOT TARGET ${dependency})
    # A project that adds this one as a subdirectory links the target, so it has to see what that needs.
    set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
    find_package(${package} ${version} QUIET)
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
kvlane_add_flavour_of_asio(asio Asio 1.22.1 Asio::Asio)
kvlane_add_flavour_of_asio(boost_asio Boost 1.80 Boost::headers)
