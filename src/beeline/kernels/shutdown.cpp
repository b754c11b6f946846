// The end of the process while daemon threads are at work.
//
// Once the interpreter shuts down, Python ends every other thread that asks for the GIL, by pthread_exit. That unwinds
// the stack as an exception would, and ends in std::terminate where it meets a function that promises not to throw: the
// destructor that takes the GIL back after a kernel, after a call of NumPy or of HiGHS. The process then aborts, though
// nothing is wrong. Python 3.14 lets such threads sleep until the process is gone. We let them go without unwinding: a
// library that waits for its threads when it is unloaded, as Arrow does, would wait for one that sleeps for ever.
#include <cxxabi.h>
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

namespace beeline {
namespace {

std::terminate_handler former = nullptr;

using IsFinalizing = int (*)();
IsFinalizing is_finalizing = nullptr;

// By name, because one build serves several versions of Python, and it is public only from 3.13 on.
IsFinalizing find_is_finalizing() {
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"})
    if (void* found = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<IsFinalizing>(found);
  return nullptr;
}

bool is_shutting_down() { return is_finalizing && is_finalizing(); }

// The thread that shuts down is the main one, and what ends that, or an exception in any thread, is a fault.
bool is_ended_by_python() {
  return is_shutting_down() && !abi::__cxa_current_exception_type() && ::syscall(SYS_gettid) != ::getpid();
}

[[noreturn]] void terminate() {
  if (is_ended_by_python()) ::syscall(SYS_exit, 0);
  if (former) former();
  std::abort();
}

}  // namespace

void survive_shutdown() {
  is_finalizing = find_is_finalizing();  // now: a process that ends is no place to look for it
  former = std::set_terminate(terminate);
  // What such a thread works with stays alive with its stack: nothing that the user need be told.
  nanobind::set_leak_warnings(false);
}

}  // namespace beeline
