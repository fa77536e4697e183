// The two products that attention is made of, for a few rows and one or two vectors of columns.
//
// Lanes are queries (or channels, backward); the other operand is read float by float where it lies,
// so keys and values need no packing, whatever their strides and head width.
#pragma once

#include <utility>

#include "vector.h"

namespace rancast {
namespace RANCAST_ISA {

enum class Into { kOverwrite, kAdd };

// What is multiplied: floats, or pairs of bfloat16 that lie next to each other along the sum, of
// which a product is two products and their sum.
struct Floats {
  using Element = float;
  static Vec spread(const float* x) { return broadcast(*x); }
  static Vec right(const float* x) { return load(x); }
  static Vec add_product(Vec sum, Vec left, Vec right) { return sum + left * right; }
};

#if defined(__AVX512BF16__)
struct Pairs {
  using Element = Pair;
  static Vec spread(const Pair* x) { return Vec(_mm512_castsi512_ps(_mm512_set1_epi32(*x))); }
  static Vec right(const Pair* x) { return load(reinterpret_cast<const float*>(x)); }
  static Vec add_product(Vec sum, Vec left, Vec right) {
    return _mm512_dpbf16_ps(sum, __m512bh(left), __m512bh(right));
  }
};
#endif

// C(m, :) = or += sum over k of A(m, k) B(k, :), for m < rows. A lies as (rows, depth) where it is
// row-major, else as (depth, rows).
template <typename Kind, int kCount, int kVectors, bool kRowMajor, Into kInto, typename Element>
inline void product_rows(const Element* a, int64_t a_stride, const Element* b, int64_t b_stride,
                         float* c, int64_t c_stride, int64_t depth) {
  Vec sum[kCount][kVectors];
#pragma GCC unroll 16
  for (int m = 0; m < kCount; ++m)
#pragma GCC unroll 2
    for (int x = 0; x < kVectors; ++x)
      sum[m][x] = kInto == Into::kAdd ? load(c + m * c_stride + x * kLanes) : Vec{};
  for (int64_t k = 0; k < depth; ++k) {
    Vec right[kVectors];
#pragma GCC unroll 2
    for (int x = 0; x < kVectors; ++x) right[x] = Kind::right(b + x * kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < kCount; ++m) {
      Vec left = Kind::spread(kRowMajor ? a + m * a_stride : a + m);
#pragma GCC unroll 2
      for (int x = 0; x < kVectors; ++x) sum[m][x] = Kind::add_product(sum[m][x], left, right[x]);
    }
    a += kRowMajor ? 1 : a_stride;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int m = 0; m < kCount; ++m)
#pragma GCC unroll 2
    for (int x = 0; x < kVectors; ++x) store(c + m * c_stride + x * kLanes, sum[m][x]);
}

template <typename Kind, int kCount, int kVectors, bool kRowMajor, Into kInto, typename Element>
inline void product_tail(int64_t rows, const Element* a, int64_t a_stride, const Element* b,
                         int64_t b_stride, float* c, int64_t c_stride, int64_t depth) {
  if constexpr (kCount > 0) {
    if (rows == kCount)
      return product_rows<Kind, kCount, kVectors, kRowMajor, kInto>(a, a_stride, b, b_stride, c,
                                                                    c_stride, depth);
    product_tail<Kind, kCount - 1, kVectors, kRowMajor, kInto>(rows, a, a_stride, b, b_stride, c,
                                                               c_stride, depth);
  }
}

template <typename Kind, int kVectors, bool kRowMajor, Into kInto>
inline void product(int64_t rows, const typename Kind::Element* a, int64_t a_stride,
                    const typename Kind::Element* b, int64_t b_stride, float* c, int64_t c_stride,
                    int64_t depth) {
  int64_t m = 0, a_step = kRowMajor ? a_stride : 1;
  for (; m + kRows <= rows; m += kRows)
    product_rows<Kind, kRows, kVectors, kRowMajor, kInto>(a + m * a_step, a_stride, b, b_stride,
                                                          c + m * c_stride, c_stride, depth);
  product_tail<Kind, kRows - 1, kVectors, kRowMajor, kInto>(rows - m, a + m * a_step, a_stride, b,
                                                            b_stride, c + m * c_stride, c_stride,
                                                            depth);
}

}  // namespace RANCAST_ISA
}  // namespace rancast
