/*
 * igrt.hpp - what the C++ headers of all models share: spans, memory, errors. C++17, header only.
 *
 * Errors are exceptions (igrt::error), unless IGRT_NO_EXCEPTIONS is defined or the compiler has
 * none: then every function returns the status, and a model that could not be made is false.
 */
#ifndef IGRT_HPP
#define IGRT_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "igrt.hpp needs C++17; the C headers do with C++98"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "igrt.h"

#if !defined(IGRT_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define IGRT_NO_EXCEPTIONS 1
#endif
#if defined(IGRT_NO_EXCEPTIONS)
#define IGRT_STATUS [[nodiscard]] igrt_status
#else
#include <stdexcept>
#include <string>
#define IGRT_STATUS igrt_status
#endif

namespace igrt
{

/* Elements that lie side by side and belong to somebody else: made of arrays, vectors, std::span,
 * or a pointer and a number. */
template <class T> class span
{
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N)
    {
    }
    template <class C, class P = decltype(std::declval<C &>().data()),
              class = std::enable_if_t<
                  std::is_convertible<std::remove_pointer_t<P> (*)[], T (*)[]>::value>,
              class = decltype(std::declval<C &>().size())>
    constexpr span(C &&container) noexcept : data_(container.data()), size_(container.size())
    {
    }

    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* A block of its own, aligned for arenas and weights; empty where there was no memory. */
class memory
{
  public:
    memory() noexcept = default;
    explicit memory(std::size_t bytes) noexcept
        : data_(static_cast<unsigned char *>(
              ::operator new (bytes ? bytes : 1, std::align_val_t{IGRT_ALIGN}, std::nothrow))),
          size_(data_ ? bytes : 0)
    {
    }

    unsigned char *data() const noexcept
    {
        return data_.get();
    }
    std::size_t size() const noexcept
    {
        return size_;
    }

  private:
    struct release {
        void operator()(unsigned char *p) const noexcept
        {
            ::operator delete (p, std::align_val_t{IGRT_ALIGN});
        }
    };
    std::unique_ptr<unsigned char, release> data_;
    std::size_t size_ = 0;
};

#if !defined(IGRT_NO_EXCEPTIONS)
/* What a model's functions throw. */
class error : public std::runtime_error
{
  public:
    error(const std::string &text, igrt_status status) : std::runtime_error(text), status_(status)
    {
    }
    igrt_status status() const noexcept
    {
        return status_;
    }

  private:
    igrt_status status_;
};
#endif

/* The contents of a file, as weights are wanted. One that cannot be read is an error, which names
 * it; without exceptions, an empty block. */
inline memory load(const char *path)
{
    std::FILE *f = std::fopen(path, "rb");
    const long end = !f || std::fseek(f, 0, SEEK_END) ? -1 : std::ftell(f);
    memory m(end > 0 ? static_cast<std::size_t>(end) : 0);
    if (f)
        std::rewind(f);
    const bool whole = f && m.data() && std::fread(m.data(), 1, m.size(), f) == m.size();
    if (f)
        std::fclose(f);
    if (whole && end >= 0)
        return m;
#if !defined(IGRT_NO_EXCEPTIONS)
    throw error(std::string(path) + ": the file cannot be read", IGRT_ERR_WEIGHTS_MISSING);
#else
    return memory();
#endif
}

/* Gives the status back, or throws it. */
inline igrt_status checked(const char *model, igrt_status status, const igrt_fault &fault)
{
#if defined(IGRT_NO_EXCEPTIONS)
    (void)model;
    (void)fault;
#else
    if (status != IGRT_OK) {
        std::string text = std::string(model) + ": " + igrt_status_text(status);
        if (fault.what) {
            text += std::string(": ") + fault.what;
            if (fault.least <= fault.greatest && (fault.value || fault.least || fault.greatest)) {
                text += " is " + std::to_string(fault.value) + "; it has to be ";
                if (fault.least == fault.greatest)
                    text += std::to_string(fault.least);
                else if (fault.greatest == INT64_MAX)
                    text += "at least " + std::to_string(fault.least);
                else
                    text += "between " + std::to_string(fault.least) + " and " +
                            std::to_string(fault.greatest);
            }
        }
        throw error(text, status);
    }
#endif
    return status;
}

/* Whether a span has that many elements, or room for them; if not, the fault says of what. */
template <class T>
bool has(const span<T> &s, std::int64_t elements, const char *what, igrt_fault &fault)
{
    if (elements >= 0 && static_cast<std::uint64_t>(elements) == s.size())
        return true;
    fault = igrt_fault{what, static_cast<std::int64_t>(s.size()), elements, elements};
    return false;
}

template <class T>
bool has_room(const span<T> &s, std::int64_t elements, const char *what, igrt_fault &fault)
{
    if (static_cast<std::uint64_t>(elements) <= s.size())
        return true;
    fault = igrt_fault{what, static_cast<std::int64_t>(s.size()), elements, INT64_MAX};
    return false;
}

/* A tensor without elements has a pointer too. */
template <class T, class E> void point(T *&pointer, const span<E> &s)
{
    static std::remove_const_t<T> nothing{};
    pointer = s.data() ? s.data() : &nothing;
}

template <std::size_t N> std::int64_t elements(const std::int64_t (&dims)[N]) noexcept
{
    std::int64_t n = 1;
    for (const std::int64_t d : dims)
        n = d >= 0 && (d == 0 || n <= INT64_MAX / d) ? n * d : -1;
    return n;
}

} // namespace igrt

#endif
