# How everything here is compiled: one INTERFACE target carries language level and warnings, and the
# build tree has the layout of the install tree, so that programs find each other in both alike.
include(GNUInstallDirs)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Relative run paths: build and install tree may be moved whole.
set(CMAKE_INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(TROUPE_LIBEXEC_DIR ${PROJECT_BINARY_DIR}/libexec/troupe)

add_library(troupe_flags INTERFACE)
target_include_directories(troupe_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(troupe_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow>)
if(TROUPE_WARNINGS_AS_ERRORS AND NOT TROUPE_SANITIZE)  # their instrumentation makes g++ see things that are not there
  target_compile_options(troupe_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# g++ 12 sees overlaps and overflows in std::string's operator+ that are not there (GCC bug 105651), and warns of them even
# in the system's headers once these are precompiled.
target_compile_options(troupe_flags INTERFACE
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>")
if(CMAKE_UNITY_BUILD)  # where g++ takes a file that is included with others for a header
  target_compile_options(troupe_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endif()
# What is built says "src/..." of itself, not where it was built.
set(source_prefix_map -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_options(troupe_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${source_prefix_map}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${source_prefix_map}>)
if(TROUPE_SANITIZE)
  # What it finds ends the program: by default undefined behaviour is only printed, and a test that meets it passes.
  target_compile_options(troupe_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TROUPE_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
  # g++ tells the code of its sanitizers, clang does so from version 21 on.
  foreach(sanitizer address thread)
    if(TROUPE_SANITIZE MATCHES ${sanitizer})
      string(TOUPPER __SANITIZE_${sanitizer}__ told)
      target_compile_options(troupe_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-U${told};-D${told}=1>)
    endif()
  endforeach()
  # Known false alarms of g++ under sanitizers: destructors of variants that hold no string; and fences, which the thread
  # sanitizer does not follow (what they order is atomic all the same).
  target_compile_options(troupe_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized;-Wno-tsan>)
endif()

# troupe_library(NAME SOURCES... PUBLIC targets... PRIVATE targets...): one folder, one static library.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC troupe_flags ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()
