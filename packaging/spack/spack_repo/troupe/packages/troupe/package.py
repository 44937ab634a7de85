from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Troupe(CMakePackage, CudaPackage):
    """Actors over the CUDA libraries for MPI programs that outlive their GPUs' faults.

    It is built from a source tree that is there: see docs/launching.md. Spack has no package of
    cuDNN's frontend, nor cuTENSOR and cuDSS as new as troupe needs them: on GPUs the libraries dnn,
    tensor and direct are left out.
    """

    license("Apache-2.0")

    version("0.1.0")

    variant("kernels", default=True, description="Kernels of programs on the CPU engine")
    variant("direct", default=True, description="Direct solvers on the CPU engine, by Eigen")
    variant("dnn", default=True, description="Convolutions on the CPU engine, by oneDNN")
    variant("fft", default=True, description="Fourier transforms on the CPU engine, by FFTW (GPL), which is loaded, not linked")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi")
    depends_on("boost+program_options")
    depends_on("fmt@9:")
    depends_on("spdlog")
    depends_on("nlohmann-json")
    depends_on("hwloc")
    depends_on("zlib-api")
    depends_on("gloo@2023-01-17: ~cuda")
    depends_on("openblas")
    depends_on("boost+context", when="+kernels")
    depends_on("eigen", when="+direct")
    depends_on("onednn", when="+dnn")
    depends_on("fftw precision=float,double", when="+fft")
    # NCCL is compiled for the same GPUs, and Spack's does not build without their names.
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs, for instance cuda_arch=90")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")

    conflicts("%gcc@:11", msg="troupe is C++20, as g++ has it from 12 on")

    def cmake_args(self):
        openblas = self.spec["openblas"].libs[0]
        args = [
            self.define("TROUPE_TESTS", False),
            self.define("TROUPE_BENCHMARKS", False),
            self.define("TROUPE_ENGINE_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define("TROUPE_OPENBLAS_LIBRARY", openblas),
            self.define("TROUPE_LAPACKE_LIBRARY", openblas),  # Spack's has LAPACKE in it
        ]
        if self.spec.satisfies("+cuda"):
            architectures = list(self.spec.variants["cuda_arch"].value)
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return args
