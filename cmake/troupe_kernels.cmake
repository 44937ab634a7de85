# troupe_add_kernels(TARGET FILE.cu... [ARCHITECTURES 90 ...]): what nvcc makes of kernels becomes part of a program. Of
# each file NAME.cu the program includes <troupe_kernels/NAME.hpp>, which has
#
#   std::span<const std::byte> troupe_kernels::NAME_image();   // a fatbin, for Device::load; empty where there is no nvcc
#   std::string_view troupe_kernels::NAME_source();            // the file, for Device::compile on the cpu engine
#
# ARCHITECTURES: compute capabilities, 75 80 90 unless said otherwise; the last also as PTX, for GPUs to come.
function(troupe_add_kernels target)
  cmake_parse_arguments(ARG "" "" "ARCHITECTURES" ${ARGN})
  if(NOT ARG_ARCHITECTURES)
    set(ARG_ARCHITECTURES 75 80 90)
  endif()
  find_program(TROUPE_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  set(code "")
  foreach(architecture IN LISTS ARG_ARCHITECTURES)
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
    set(newest ${architecture})
  endforeach()
  list(APPEND code -gencode arch=compute_${newest},code=compute_${newest})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels)
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WE)
    set(image "")
    set(has_image 0)
    if(TROUPE_NVCC)
      set(has_image 1)
      set(image ${folder}/${name}.fatbin)
      add_custom_command(OUTPUT ${image} DEPENDS ${source} VERBATIM COMMENT "Kernels of ${name}.cu"
        COMMAND ${TROUPE_NVCC} -fatbin -std=c++17 -O3 ${code} -o ${image} ${source})
    endif()
    file(CONFIGURE OUTPUT ${folder}/include/troupe_kernels/${name}.hpp @ONLY CONTENT [[
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe_kernels {
std::span<const std::byte> @name@_image();
std::string_view @name@_source();
}  // namespace troupe_kernels
]])
    # The assembler puts the files into the program as they are.
    file(CONFIGURE OUTPUT ${folder}/${name}_kernels.cpp @ONLY CONTENT [[
#include <troupe_kernels/@name@.hpp>

asm(R"(.section .rodata
.balign 16
troupe_kernels_@name@_image:
.if @has_image@
.incbin "@image@"
.endif
troupe_kernels_@name@_source:
.incbin "@source@"
troupe_kernels_@name@_end:
.globl troupe_kernels_@name@_image, troupe_kernels_@name@_source, troupe_kernels_@name@_end
.hidden troupe_kernels_@name@_image, troupe_kernels_@name@_source, troupe_kernels_@name@_end
.previous
)");
extern "C" {
extern const char troupe_kernels_@name@_image[], troupe_kernels_@name@_source[], troupe_kernels_@name@_end[];
}

namespace troupe_kernels {

std::span<const std::byte> @name@_image() {
  return std::as_bytes(std::span(troupe_kernels_@name@_image, troupe_kernels_@name@_source));
}
std::string_view @name@_source() {
  return {troupe_kernels_@name@_source, troupe_kernels_@name@_end};
}

}  // namespace troupe_kernels
]])
    set_source_files_properties(${folder}/${name}_kernels.cpp PROPERTIES
      OBJECT_DEPENDS "${source};${image}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE ${folder}/${name}_kernels.cpp)
  endforeach()
  target_include_directories(${target} PRIVATE ${folder}/include)
endfunction()
