# Install rules: targets with their headers, a CMake package, a pkg-config file.
include(CMakePackageConfigHelpers)

set(kvlane_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvlane")
set(kvlane_installed_targets kvlane_core)
set(kvlane_pc_library "")
if(TARGET kvlane)
  list(APPEND kvlane_installed_targets kvlane)
  set(kvlane_pc_library "-L\${libdir} -lkvlane ")
endif()

install(
  TARGETS ${kvlane_installed_targets}
  EXPORT kvlaneTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  EXPORT kvlaneTargets
  NAMESPACE kvlane::
  DESTINATION "${kvlane_cmake_dir}")

# Export sets of their own: who does not ask for these components does not need what they need.
foreach(component IN ITEMS asio boost_asio prometheus)
  if(TARGET kvlane_${component})
    install(
      TARGETS kvlane_${component}
      EXPORT kvlane_${component}_targets
      FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(
      EXPORT kvlane_${component}_targets
      FILE kvlane-${component}-targets.cmake
      NAMESPACE kvlane::
      DESTINATION "${kvlane_cmake_dir}")
  endif()
endforeach()
install(FILES cmake/FindAsio.cmake DESTINATION "${kvlane_cmake_dir}")

configure_package_config_file(cmake/kvlaneConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/kvlaneConfig.cmake"
                              INSTALL_DESTINATION "${kvlane_cmake_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/kvlaneConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kvlaneConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/kvlaneConfigVersion.cmake"
        DESTINATION "${kvlane_cmake_dir}")

# Paths in the .pc file are relative to the file, so that `cmake --install --prefix` may still choose the place.
file(RELATIVE_PATH kvlane_pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
cmake_path(APPEND kvlane_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND kvlane_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/kvlane.pc.in "${CMAKE_CURRENT_BINARY_DIR}/kvlane.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kvlane.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
