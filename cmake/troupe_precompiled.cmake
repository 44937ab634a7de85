# Precompiled headers: the system's headers that most files include, parsed once for each kind of target. They save time and
# do nothing else: every file includes what it uses, and CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without them. No header of
# this tree is among them, so that a change to one compiles what includes it and nothing else.

# fmt's headers are the same in all of them, whether or not a target links fmt.
target_compile_definitions(troupe_flags INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)

# troupe_precompiled_headers(NAME [PROGRAMS|MODULES] [HEADERS...]): a target that precompiles the standard headers and these,
# for static libraries, programs or modules that hide their symbols: g++ compiles each with options of its own.
function(troupe_precompiled_headers name)
  cmake_parse_arguments(ARG "PROGRAMS;MODULES" "" "" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE troupe_flags)
  if(ARG_PROGRAMS)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  elseif(ARG_MODULES)
    set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
  endif()
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <bit> <chrono> <complex> <condition_variable> <coroutine> <cstring> <deque> <filesystem>
    <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <source_location> <span> <sstream> <stdexcept>
    <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
    ${ARG_UNPARSED_ARGUMENTS})
endfunction()

# troupe_use_precompiled_headers(FOLDER LIBRARIES PROGRAMS [MODULES]): gives every static library, program and module that
# hides its symbols, below this folder, the precompiled headers of these targets, unless it has others.
function(troupe_use_precompiled_headers folder libraries programs)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(reused)
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      target_precompile_headers(${target} REUSE_FROM ${libraries})
    elseif(type STREQUAL EXECUTABLE)
      target_precompile_headers(${target} REUSE_FROM ${programs})
    elseif(type STREQUAL MODULE_LIBRARY AND ARGN)
      get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
      if(visibility STREQUAL hidden)
        target_precompile_headers(${target} REUSE_FROM ${ARGN})
      endif()
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    troupe_use_precompiled_headers(${below} ${libraries} ${programs} ${ARGN})
  endforeach()
endfunction()
