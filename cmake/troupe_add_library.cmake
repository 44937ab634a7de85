# troupe_add_library(NAME OPERATIONS FILE... [RANK FILE...] [CPU FILE...] [CUDA FILE...] [CPU_LIBRARIES LIBRARY...]
# [CUDA_LIBRARIES LIBRARY...]): a library outside troupe's tree, whose operations are called NAME.something. It makes
#
#   NAME        what programs link: the operations' tables and checks, and what else runs in the rank
#   NAME_cpu    troupe-NAME-cpu.so: its half on the cpu engine, a module that device hosts load
#   NAME_cuda   troupe-NAME-cuda.so: its half on the cuda engine. It is left out, with a line that says why, where there is
#               no CUDA toolkit, troupe was built without it, or there are files *.cu and the language CUDA is not enabled.
#
# A half's module lies where the project's programs are built, which is where device hosts look for it. To install it:
# install(TARGETS NAME_cpu LIBRARY DESTINATION libexec/troupe), with the programs in bin. The source folder is on the
# include path of all of them. See docs/extending.md.
function(troupe_add_library name)
  cmake_parse_arguments(ARG "" "" "OPERATIONS;RANK;CPU;CUDA;CPU_LIBRARIES;CUDA_LIBRARIES" ${ARGN})
  if(NOT ARG_OPERATIONS OR ARG_UNPARSED_ARGUMENTS OR NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "troupe_add_library(NAME OPERATIONS FILE... [RANK|CPU|CUDA|CPU_LIBRARIES|CUDA_LIBRARIES ...]): "
                        "NAME is of lower-case letters, digits and '_', and OPERATIONS names at least one file")
  endif()
  # Compiled once, for the programs and for the modules, which export none of it.
  add_library(${name}_operations OBJECT ${ARG_OPERATIONS})
  set_target_properties(${name}_operations PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${name}_operations PRIVATE troupe::plugin)
  target_include_directories(${name}_operations PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

  add_library(${name} STATIC $<TARGET_OBJECTS:${name}_operations> ${ARG_RANK})
  target_link_libraries(${name} PUBLIC troupe::troupe)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)

  set(no_cuda "")
  if(ARG_CUDA)
    find_package(CUDAToolkit QUIET)
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT TARGET troupe::plugin_cuda)
      set(no_cuda "this troupe has no cuda engine")
    elseif(NOT TARGET CUDA::cudart)
      set(no_cuda "there is no CUDA toolkit")
    elseif(ARG_CUDA MATCHES "\\.cu(;|$)" AND NOT CUDA IN_LIST languages)
      set(no_cuda "the language CUDA is not enabled")
    endif()
  endif()
  foreach(engine CPU CUDA)
    string(TOLOWER ${engine} suffix)
    if(NOT ARG_${engine})
      continue()
    elseif(engine STREQUAL CUDA AND no_cuda)
      message(STATUS "${name}: no half for the cuda engine: ${no_cuda}")
      continue()
    endif()
    set(half ${name}_${suffix})
    add_library(${half} MODULE $<TARGET_OBJECTS:${name}_operations> ${ARG_${engine}})
    set_target_properties(${half} PROPERTIES
      OUTPUT_NAME troupe-${name}-${suffix} PREFIX "" SUFFIX ".so"
      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Shared)
    if(CMAKE_RUNTIME_OUTPUT_DIRECTORY)
      set_target_properties(${half} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    endif()
    target_include_directories(${half} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    if(engine STREQUAL CUDA)
      target_link_libraries(${half} PRIVATE troupe::plugin_cuda CUDA::cudart)
    endif()
    target_link_libraries(${half} PRIVATE ${ARG_${engine}_LIBRARIES} troupe::plugin)
    # What is missing is found here, not where it is loaded.
    target_link_options(${half} PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,defs)
  endforeach()
endfunction()
