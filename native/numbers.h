// Arithmetic of single elements: bits in, bits out, the same on every CPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "job.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {  // every instruction set gets its own copy: the linker must not share them

using ptokit::Op;

template <class To, class From>
inline To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
inline T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
inline void store(char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

#if defined(__F16C__)
inline float half_to_float(std::uint16_t bits) { return _cvtsh_ss(bits); }
inline std::uint16_t float_to_half(float number) { return _cvtss_sh(number, _MM_FROUND_TO_NEAREST_INT); }
#elif defined(__aarch64__)
inline float half_to_float(std::uint16_t bits) { return static_cast<float>(as<__fp16>(bits)); }
inline std::uint16_t float_to_half(float number) { return as<std::uint16_t>(static_cast<__fp16>(number)); }
#else
inline float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) return as<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  // Scaling by a power of two puts subnormal numbers right as well, exactly.
  const float scaled = as<float>(magnitude << 13) * as<float>(0x77800000u);  // 2^112
  return as<float>(as<std::uint32_t>(scaled) | sign);
}

inline std::uint16_t float_to_half(float number) {
  const std::uint32_t bits = as<std::uint32_t>(number), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Below the normal numbers: adding 0.5 makes the FPU round at their last bit.
    const float rounded = as<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (as<std::uint32_t>(rounded) - 0x3F000000u));
  }
  const std::uint32_t even = magnitude >> 13 & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + even) >> 13));
}
#endif

inline float brain_to_float(std::uint16_t bits) { return as<float>(static_cast<std::uint32_t>(bits) << 16); }

inline std::uint16_t float_to_brain(float number) {
  const std::uint32_t bits = as<std::uint32_t>(number);
  const std::uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>(number != number ? (bits >> 16 | 0x40u) : rounded);
}

// The order of sign-and-magnitude numbers as that of integers; both zeros are 0.
inline std::int32_t ordered(std::uint16_t bits) {
  const std::int32_t magnitude = bits & 0x7FFF;
  return bits & 0x8000 ? -magnitude : magnitude;
}

// An element type: what it is stored as, its sum, and whether one is larger (false where either is a NaN).
template <class T>
struct Integer {
  using Stored = T;
  static constexpr bool is_integer = true, is_float32 = false;
  static T sum(T there, T comes) {
    // Through 64 unsigned bits: two's complement wraps, and nothing is promoted to a signed overflow.
    return static_cast<T>(static_cast<std::uint64_t>(there) + static_cast<std::uint64_t>(comes));
  }
  static bool greater(T a, T b) { return a > b; }
};

struct Float32 {
  using Stored = float;
  static constexpr bool is_integer = false, is_float32 = true;
  static float sum(float there, float comes) { return there + comes; }
  static bool greater(float a, float b) { return a > b; }
};

template <std::int32_t infinity>
struct Narrow {
  using Stored = std::uint16_t;
  static constexpr bool is_integer = false, is_float32 = false;
  static bool greater(std::uint16_t a, std::uint16_t b) {
    const bool number = (a & 0x7FFF) <= infinity && (b & 0x7FFF) <= infinity;
    return number && ordered(a) > ordered(b);
  }
};

struct Float16 : Narrow<0x7C00> {
  static std::uint16_t sum(std::uint16_t there, std::uint16_t comes) {
    return float_to_half(half_to_float(there) + half_to_float(comes));
  }
};

struct Brain16 : Narrow<0x7F80> {
  static std::uint16_t sum(std::uint16_t there, std::uint16_t comes) {
    return float_to_brain(brain_to_float(there) + brain_to_float(comes));
  }
};

// What an atomic makes of what is there and what comes. Where a comparison is false the table keeps its value.
template <class T, Op op>
inline typename T::Stored fold(typename T::Stored there, typename T::Stored comes) {
  if constexpr (op == Op::add) return T::sum(there, comes);
  if constexpr (op == Op::max) return T::greater(comes, there) ? comes : there;
  if constexpr (op == Op::min) return T::greater(there, comes) ? comes : there;
}

// The same for an element that stands alone: the compiler would make a jump of the comparison, half of them wrong.
template <class T, Op op>
inline typename T::Stored fold_alone(typename T::Stored there, typename T::Stored comes) {
#if defined(__x86_64__)
  // These instructions give their second operand where the comparison is false.
  if constexpr (op == Op::max && T::is_float32) return _mm_cvtss_f32(_mm_max_ss(_mm_set_ss(comes), _mm_set_ss(there)));
  if constexpr (op == Op::min && T::is_float32) return _mm_cvtss_f32(_mm_min_ss(_mm_set_ss(comes), _mm_set_ss(there)));
#endif
  return fold<T, op>(there, comes);
}

}  // namespace
