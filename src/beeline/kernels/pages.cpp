#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // mremap
#endif
#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace beeline {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
const std::size_t kSmallPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// To whole pages, and at least one: an empty array has an address too.
std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes < 2 * kLargePage ? kSmallPage : kLargePage;
  return (bytes / unit + (bytes % unit != 0 || bytes == 0)) * unit;
}

void unmap(void* data, std::size_t size) {
  if (size) ::munmap(data, size);
}

// `size` as `rounded` gives it. Large pages need an aligned start, which older kernels do not choose by themselves.
void* map(std::size_t size) {
  const bool large = size >= 2 * kLargePage;
  const std::size_t asked = large ? size + kLargePage : size;
  void* data = ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  if (!large) return data;
  char* const begin = static_cast<char*>(data);
  const std::size_t before = (kLargePage - reinterpret_cast<std::uintptr_t>(begin) % kLargePage) % kLargePage;
  unmap(begin, before);
  unmap(begin + before + size, asked - before - size);
#ifdef MADV_HUGEPAGE
  ::madvise(begin + before, size, MADV_HUGEPAGE);
#endif
  return begin + before;
}

}  // namespace

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Pages::~Pages() { unmap(data_, size_); }

void Pages::reserve(std::size_t bytes) {
  if (size_ && bytes <= size_) return;
  const std::size_t size = rounded(bytes);
  void* data = map(size);
  if (size_) {
#ifdef __linux__
    // Moves the pages, not their contents.
    if (::mremap(data_, size_, size, MREMAP_MAYMOVE | MREMAP_FIXED, data) == MAP_FAILED) {
      unmap(data, size);
      throw std::bad_alloc();
    }
#ifdef MADV_HUGEPAGE
    if (size >= 2 * kLargePage) ::madvise(data, size, MADV_HUGEPAGE);
#endif
#else
    std::memcpy(data, data_, size_);
    unmap(data_, size_);
#endif
  }
  data_ = data;
  size_ = size;
}

void Pages::trim(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  if (size >= size_) return;
  unmap(static_cast<char*>(data_) + size, size_ - size);
  size_ = size;
}

}  // namespace beeline
