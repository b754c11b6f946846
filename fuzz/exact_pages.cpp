// `Pages` with not one byte more than asked for, from malloc, so that the address sanitizer guards its end.
#include <cstdlib>
#include <new>
#include <utility>

#include "pages.h"

namespace beeline {

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::~Pages() { std::free(data_); }

void Pages::reserve(std::size_t bytes) {
  if (size_ && bytes <= size_) return;
  data_ = std::realloc(data_, bytes ? bytes : 1);
  if (!data_) throw std::bad_alloc();
  size_ = bytes ? bytes : 1;
}

void Pages::trim(std::size_t) {}

}  // namespace beeline
