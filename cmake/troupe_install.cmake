# The install tree: bin/ programs, lib/ libtroupe, libexec/troupe/ the device host and its engines, include/troupe/,
# share/troupe/ scripts. Programs find each other relative to themselves, so the tree may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS troupe EXPORT troupe_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/troupe DESTINATION include)
install(TARGETS troupe-device-host RUNTIME DESTINATION libexec/troupe)
foreach(engine cpu cuda)
  if(TARGET troupe_module_${engine})
    install(TARGETS troupe_module_${engine} LIBRARY DESTINATION libexec/troupe)
  endif()
endforeach()
install(TARGETS troupe-cg troupe-info RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(EXPORT troupe_targets FILE troupe-targets.cmake NAMESPACE troupe::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
configure_package_config_file(cmake/troupe-config.cmake.in ${PROJECT_BINARY_DIR}/generated/troupe-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/troupe-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/troupe-config.cmake
              ${PROJECT_BINARY_DIR}/generated/troupe-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
