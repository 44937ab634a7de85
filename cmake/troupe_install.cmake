# The install tree: bin/ programs, lib/ libtroupe, libexec/troupe/ the device host and its engines, include/troupe/,
# share/troupe/ the example of a site file and the job scripts for Slurm, share/doc/troupe/ the documents. The same folders everywhere, also where the
# system's own libraries lie elsewhere: libtroupe looks for libexec/troupe beside its folder. Programs find each other and
# their libraries relative to themselves, so the tree may be moved.
include(CMakePackageConfigHelpers)

set(installed_programs troupe-cg troupe-drill troupe-fft troupe-flight troupe-gemm troupe-heat troupe-info troupe-perf troupe-top troupe-torture troupe-train)
set(installed_hosts troupe-device-host troupe-keeper troupe-compile)
foreach(engine cpu cuda)
  if(TARGET troupe_module_${engine})
    list(APPEND installed_hosts troupe_module_${engine} troupe-torture-functions-${engine})
  endif()
  if(TARGET tridiagonal_${engine})
    list(APPEND installed_hosts tridiagonal_${engine})
  endif()
endforeach()
foreach(peer mpi nccl)
  if(TARGET troupe-perf-${peer})
    list(APPEND installed_hosts troupe-perf-${peer})
  endif()
endforeach()
get_property(halves GLOBAL PROPERTY TROUPE_LIBRARY_halves)
list(APPEND installed_hosts ${halves})
# Libraries in other places than the system's (a site's MPI, the CUDA toolkit) are looked for where they were found.
set_target_properties(troupe ${installed_programs} ${installed_hosts} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(troupe ${installed_programs} PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib")
set_target_properties(${installed_hosts} PROPERTIES INSTALL_RPATH "\$ORIGIN/../../lib")

install(TARGETS troupe EXPORT troupe_targets LIBRARY DESTINATION lib)
set(plugin_libraries troupe_plugin)
if(TARGET troupe_plugin_cuda)
  list(APPEND plugin_libraries troupe_plugin_cuda)
endif()
install(TARGETS ${plugin_libraries} EXPORT troupe_targets ARCHIVE DESTINATION lib)
install(TARGETS ${installed_programs} RUNTIME DESTINATION bin)
install(TARGETS ${installed_hosts} RUNTIME DESTINATION libexec/troupe LIBRARY DESTINATION libexec/troupe)
install(DIRECTORY include/troupe DESTINATION include)
install(CODE "set(SOURCE ${PROJECT_SOURCE_DIR}/src)
  set(DESTINATION \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/include/troupe/plugin\")
  include(${PROJECT_SOURCE_DIR}/cmake/troupe_plugin_headers.cmake)")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/troupe)
install(DIRECTORY docs DESTINATION share/doc/troupe FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
# Everything that the documents link to lies beside them as it does in the source tree: tests/structure/install.sh.
install(DIRECTORY apps/examples DESTINATION share/doc/troupe/apps)
install(FILES apps/troupe-cg/bar-400.mtx DESTINATION share/doc/troupe/apps/troupe-cg)
install(FILES apps/troupe-fft/oracle.hpp DESTINATION share/doc/troupe/apps/troupe-fft)
install(FILES apps/troupe-gemm/check.hpp DESTINATION share/doc/troupe/apps/troupe-gemm)
install(FILES apps/troupe-heat/main.cpp DESTINATION share/doc/troupe/apps/troupe-heat)
install(FILES apps/troupe-train/kernels.cpp DESTINATION share/doc/troupe/apps/troupe-train)
install(DIRECTORY bench/results DESTINATION share/doc/troupe/bench)
install(FILES bench/nccl_tests.py DESTINATION share/doc/troupe/bench)
install(DIRECTORY scripts packaging config DESTINATION share/doc/troupe USE_SOURCE_PERMISSIONS)
install(FILES config/troupe.conf.example DESTINATION share/troupe)
install(PROGRAMS scripts/slurm/troupe.sbatch scripts/slurm/scaling.sbatch scripts/slurm/drill.sbatch
        DESTINATION share/troupe/slurm)
install(PROGRAMS scripts/scaling.sh DESTINATION share/troupe)
install(PROGRAMS scripts/troupe-run DESTINATION bin)
install(FILES scripts/slurm/env.sh scripts/slurm/burn_in.sh scripts/slurm/sweep.sh scripts/slurm/scaling_report.py
        DESTINATION share/troupe/slurm)

install(EXPORT troupe_targets FILE troupe-targets.cmake NAMESPACE troupe:: DESTINATION lib/cmake/troupe)
configure_package_config_file(cmake/troupe-config.cmake.in ${PROJECT_BINARY_DIR}/generated/troupe-config.cmake
  INSTALL_DESTINATION lib/cmake/troupe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/troupe-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/troupe-config.cmake cmake/troupe_kernels.cmake cmake/troupe_add_library.cmake
              ${PROJECT_BINARY_DIR}/generated/troupe-config-version.cmake
        DESTINATION lib/cmake/troupe)
configure_file(cmake/troupe.pc.in ${PROJECT_BINARY_DIR}/generated/troupe.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/troupe.pc DESTINATION lib/pkgconfig)
