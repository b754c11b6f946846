// How the C library's heap deals with memory that was freed.
#include <nanobind/nanobind.h>

#include <cstdlib>
#include <cstring>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace nb = nanobind;

namespace beeline {
namespace {

// Vectors of a megabyte lie in the heap, whose end glibc gives back to the system when it is free: at the end of a
// training, say. The next one then has a page fault for every 4 KB of them, which made training on text a tenth slower.
// What is set here is what glibc comes to by itself once an array of 32 MB has been freed: smaller ones stay in the
// heap, and up to 64 MB at its end stay with the process.
//
// Within a budget it is the other way round: blocks of some megabytes that come and go on two threads leave holes in
// the heap, which took twice what was in use. There all that is larger than 4 MB goes back when it is freed.
// Who has said something else is right.
bool keep_freed_memory(bool keep) {
#ifdef __GLIBC__
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  const bool told = std::getenv("MALLOC_MMAP_THRESHOLD_") || std::getenv("MALLOC_TRIM_THRESHOLD_") ||
                    (tunables && std::strstr(tunables, "glibc.malloc"));
  return !told && mallopt(M_MMAP_THRESHOLD, keep ? 32 << 20 : 4 << 20) &&
         mallopt(M_TRIM_THRESHOLD, keep ? 64 << 20 : 8 << 20);
#else
  static_cast<void>(keep);
  return false;
#endif
}

}  // namespace

void bind_heap(nb::module_& m) { m.def("keep_freed_memory", &keep_freed_memory, nb::arg("keep")); }

}  // namespace beeline
