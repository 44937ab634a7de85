# Everything here comes from the system's packages; scripts/lib/packages.sh lists them.
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
# Checksums of saved states in half of the time that zlib takes.
pkg_check_modules(DEFLATE IMPORTED_TARGET libdeflate)
set(TROUPE_DEFLATE $<$<BOOL:${DEFLATE_FOUND}>:PkgConfig::DEFLATE>)

# The CPU engine
find_library(TROUPE_GLOO_LIBRARY gloo)
find_path(TROUPE_GLOO_INCLUDE gloo/context.h)
find_path(TROUPE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu/openblas-pthread)
find_library(TROUPE_OPENBLAS_LIBRARY openblas)
if(TROUPE_GLOO_LIBRARY AND TROUPE_GLOO_INCLUDE AND TROUPE_CBLAS_INCLUDE AND TROUPE_OPENBLAS_LIBRARY)
  set(TROUPE_ENGINE_CPU ON)
else()
  set(TROUPE_ENGINE_CPU OFF)
  message(STATUS "troupe: no CPU engine (needs libgloo-dev and libopenblas-dev)")
endif()

# Its libraries; without one of them the library that needs it is not installed.
find_library(TROUPE_LAPACKE_LIBRARY lapacke)
find_path(TROUPE_LAPACKE_INCLUDE lapacke.h)
# Loaded at run time, never linked; the path helps where the loader does not find it.
find_library(TROUPE_FFTW_F32_LIBRARY fftw3f)
find_library(TROUPE_FFTW_F64_LIBRARY fftw3)
find_library(TROUPE_ONEDNN_LIBRARY dnnl)
find_path(TROUPE_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_package(OpenMP COMPONENTS CXX)
find_path(TROUPE_EIGEN_INCLUDE Eigen/SparseLU PATH_SUFFIXES eigen3)

# The CUDA engine
set(TROUPE_HAVE_CUDA OFF)
if(NOT TROUPE_ENGINE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  find_library(TROUPE_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  find_path(TROUPE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND TROUPE_NCCL_LIBRARY AND TROUPE_NCCL_INCLUDE)
    set(TROUPE_HAVE_CUDA ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)  # others compile the PTX when they load it; bundles have all-major
      set(CMAKE_CUDA_ARCHITECTURES 90-real 75-virtual)
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    # Without cuDNN, or without its header-only frontend (see scripts/lib/wheels.sh), no library dnn.
    find_library(TROUPE_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
    find_path(TROUPE_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(TROUPE_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
      HINTS ${TROUPE_CUDNN_FRONTEND_DIR} ${CMAKE_SOURCE_DIR}/build/wheels/include)
    # Without cuDSS (see scripts/lib/wheels.sh), no library direct. A wheel has the versioned name alone.
    find_library(TROUPE_CUDSS_LIBRARY NAMES libcudss.so.1 cudss
      HINTS ${TROUPE_CUDSS_DIR}/lib ${CMAKE_SOURCE_DIR}/build/wheels/cudss/lib ${CUDAToolkit_LIBRARY_DIR})
    find_path(TROUPE_CUDSS_INCLUDE cudss.h
      HINTS ${TROUPE_CUDSS_DIR}/include ${CMAKE_SOURCE_DIR}/build/wheels/cudss/include ${CUDAToolkit_INCLUDE_DIRS})
    # The same of cuTENSOR and the library tensor.
    find_library(TROUPE_CUTENSOR_LIBRARY NAMES libcutensor.so.2 cutensor
      HINTS ${TROUPE_CUTENSOR_DIR}/lib ${CMAKE_SOURCE_DIR}/build/wheels/cutensor/lib ${CUDAToolkit_LIBRARY_DIR})
    find_path(TROUPE_CUTENSOR_INCLUDE cutensor.h
      HINTS ${TROUPE_CUTENSOR_DIR}/include ${CMAKE_SOURCE_DIR}/build/wheels/cutensor/include ${CUDAToolkit_INCLUDE_DIRS})
  elseif(TROUPE_ENGINE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TROUPE_ENGINE_CUDA=ON needs the CUDA toolkit (nvcc on PATH) and NCCL")
  endif()
endif()
message(STATUS "troupe: engines: cpu ${TROUPE_ENGINE_CPU}, cuda ${TROUPE_HAVE_CUDA}")
if(NOT TROUPE_ENGINE_CPU AND NOT TROUPE_HAVE_CUDA)
  message(FATAL_ERROR "troupe needs at least one engine")
endif()
