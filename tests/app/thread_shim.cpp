#include <mpi.h>

// Preloaded, makes any MPI one that has no MPI_THREAD_MULTIPLE.

extern "C" int MPI_Init_thread(int* argc, char*** argv, int, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, provided);
  *provided = MPI_THREAD_SERIALIZED;
  return result;
}

extern "C" int MPI_Query_thread(int* provided) {
  *provided = MPI_THREAD_SERIALIZED;
  return MPI_SUCCESS;
}
