// One small thread pool for every kernel.
//
// Work is cut into tasks by the shape of the data alone, never by the number of threads, and results are combined
// in the order of the tasks: the same data gives the same bits for any number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace beeline {

// The number of threads that `parallel_for` uses when it is not told: BEELINE_NUM_THREADS, or the cores that this
// process may run on.
int num_threads();
void set_num_threads(int n);

// How many jobs had several tasks so far: a test that compares numbers of threads must see some.
std::size_t shared_jobs();

// Calls task(0) … task(n_tasks - 1), each once, on up to `threads` threads (0: num_threads()). The caller works
// too, so calls may nest and may come from several Python threads at once. The first exception is rethrown here
// after the tasks under way have ended. Must be called without the GIL.
void parallel_for(std::size_t n_tasks, const std::function<void(std::size_t)>& task, int threads = 0);

}  // namespace beeline
