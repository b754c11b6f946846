// Memory for large arrays that grow without being copied.
#pragma once

#include <cstddef>

namespace beeline {

// Anonymous memory straight from the system, in large pages where it offers them: filling gigabytes in small pages
// spends more time in page faults than in writing. Only what is touched takes memory, so that room may be
// reserved generously.
class Pages {
 public:
  Pages() = default;
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  // Makes room for at least `bytes`; what was written stays. Throws std::bad_alloc.
  void reserve(std::size_t bytes);
  // Gives back what lies beyond `bytes`.
  void trim(std::size_t bytes);

  std::size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace beeline
