#include "threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace beeline {
namespace {

int default_threads() {
  if (const char* text = std::getenv("BEELINE_NUM_THREADS")) {
    const int n = std::atoi(text);
    if (n > 0) return n;
  }
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::atomic<int> chosen_threads{0};
std::atomic<std::size_t> n_shared{0};

constexpr int kSpin = 50;  // microseconds

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

struct Job {
  Job(std::size_t n, const std::function<void(std::size_t)>& f, int helpers) : n_tasks(n), task(f), seats(helpers) {}

  const std::size_t n_tasks;
  const std::function<void(std::size_t)>& task;
  int seats;  // how many pool threads may still join (guarded by the pool's mutex)
  std::atomic<std::size_t> next{0};
  std::atomic<int> working{0};  // pool threads inside work() (changed under the pool's mutex)
  std::exception_ptr error;
  std::mutex error_mutex;

  void work() {
    for (std::size_t i; (i = next.fetch_add(1)) < n_tasks;) {
      try {
        task(i);
      } catch (...) {
        next.store(n_tasks);
        std::lock_guard<std::mutex> lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  }
};

// Waits a little for something that is about to happen, which is faster than to sleep and be woken: kernels follow each
// other within microseconds.
template <class Happened>
void spin_until(Happened happened) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(kSpin);
  while (!happened() && std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 8; ++i) relax();
}

class Pool {
 public:
  void run(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      grow(job.seats);
      jobs_.push_back(&job);
      posted_.fetch_add(1);
    }
    wake_.notify_all();
    job.work();
    spin_until([&] { return job.working.load() == 0; });
    std::unique_lock<std::mutex> lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    done_.wait(lock, [&] { return job.working == 0; });
  }

 private:
  // Where the system gives no more threads, those that are there have to do: the caller works in any case.
  void grow(int wanted) {
    try {
      for (; n_workers_ < wanted; ++n_workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  Job* next_job() {
    for (Job* job : jobs_)
      if (job->seats > 0 && job->next.load() < job->n_tasks) return job;
    return nullptr;
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      if (!(job = next_job())) {
        const unsigned seen = posted_.load();
        lock.unlock();
        spin_until([&] { return posted_.load() != seen; });
        lock.lock();
        wake_.wait(lock, [&] { return (job = next_job()) != nullptr; });
      }
      --job->seats;
      ++job->working;
      lock.unlock();
      job->work();
      lock.lock();
      ++job->seats;
      if (--job->working == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<Job*> jobs_;
  std::atomic<unsigned> posted_{0};
  int n_workers_ = 0;
};

// The pool is never destroyed: its threads sleep until the process ends. A forked child has none of its parent's
// threads and possibly a locked mutex, so it starts with a pool of its own. All of this is settled when the library is
// loaded: a fork in the middle of it would leave a child that waits forever.
Pool* pool = new Pool;
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });

}  // namespace

int num_threads() {
  const int n = chosen_threads.load();
  if (n > 0) return n;
  const int fallback = default_threads();
  chosen_threads.store(fallback);
  return fallback;
}

void set_num_threads(int n) { chosen_threads.store(n); }

std::size_t shared_jobs() { return n_shared.load(); }

void parallel_for(std::size_t n_tasks, const std::function<void(std::size_t)>& task, int threads) {
  if (n_tasks > 1 && threads != 1) n_shared.fetch_add(1, std::memory_order_relaxed);
  const std::size_t limit = threads > 0 ? threads : num_threads();
  const int helpers = static_cast<int>(std::min(limit, n_tasks)) - 1;
  Job job(n_tasks, task, std::max(helpers, 0));
  if (helpers <= 0) {
    job.work();
  } else {
    pool->run(job);
  }
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace beeline
