#pragma once

#include <cudaTypedefs.h>

#include <troupe/error.hpp>

namespace troupe::host::cuda {

/// The driver's functions that the runtime has no counterpart for, or a dearer one. They are looked
/// up in libcuda.so.1 when first needed, so that a program linked with this engine also starts
/// where there is no driver.
struct Driver {
  PFN_cuInit_v2000 cuInit;
  PFN_cuDriverGetVersion_v2020 cuDriverGetVersion;
  PFN_cuDeviceGetCount_v2000 cuDeviceGetCount;
  PFN_cuDeviceGet_v2000 cuDeviceGet;
  PFN_cuDeviceGetName_v2000 cuDeviceGetName;
  PFN_cuDeviceGetUuid_v11040 cuDeviceGetUuid;
  PFN_cuDeviceTotalMem_v3020 cuDeviceTotalMem;
  PFN_cuDeviceGetPCIBusId_v4010 cuDeviceGetPCIBusId;
  PFN_cuDeviceGetAttribute_v2000 cuDeviceGetAttribute;
  PFN_cuMemGetAllocationGranularity_v10020 cuMemGetAllocationGranularity;
  PFN_cuMemCreate_v10020 cuMemCreate;
  PFN_cuMemRelease_v10020 cuMemRelease;
  PFN_cuMemExportToShareableHandle_v10020 cuMemExportToShareableHandle;
  PFN_cuMemImportFromShareableHandle_v10020 cuMemImportFromShareableHandle;
  PFN_cuMemAddressReserve_v10020 cuMemAddressReserve;
  PFN_cuMemAddressFree_v10020 cuMemAddressFree;
  PFN_cuMemMap_v10020 cuMemMap;
  PFN_cuMemUnmap_v10020 cuMemUnmap;
  PFN_cuMemSetAccess_v10020 cuMemSetAccess;
  PFN_cuEventQuery_v2000 cuEventQuery;
};

/// For processes whose commands may wait on the GPU for other ranks. A stream whose work waits
/// takes one of the connections to the GPU, and if there are too few, streams that could go on
/// share one with it and do not (CUDA C++ Programming Guide, environment variables). Before
/// driver(), which is when CUDA reads it; no effect where CUDA_DEVICE_MAX_CONNECTIONS is set.
/// `channels`: how many ends of channels may wait beside all else.
void enough_connections(int channels);
/// Takes from the environment what makes libraries compute less precisely, or more so, than a call
/// asks for. Before they are loaded.
void forget_precision();

/// The driver, loaded and initialised (cuInit); valid until the process ends. Makes no context. Any
/// thread. Errors: Errc::unsupported "no NVIDIA driver: …" or "no GPU"; what cuInit reports
/// otherwise.
Result<const Driver*> driver();

}  // namespace troupe::host::cuda
