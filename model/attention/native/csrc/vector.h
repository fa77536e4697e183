// One vector of floats in the instruction set that this translation unit is compiled for.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "problem.h"

namespace rancast {
namespace RANCAST_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kRows = 8;  // rows of a product that are summed at once: 8 x 2 accumulators
#else
constexpr int kLanes = 8;
constexpr int kRows = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVec __attribute__((vector_size(kLanes * 4), aligned(2), may_alias));
// Two bfloat16 that lie next to each other, the first in the lower half; at any address.
typedef uint32_t Pair __attribute__((aligned(2), may_alias));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4)));

inline Vec load(const float* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
inline void store(float* to, Vec x) { *reinterpret_cast<UnalignedVec*>(to) = x; }
inline Vec broadcast(float x) { return x - Vec{}; }

inline IntVec lane_numbers() {
  IntVec lanes;
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane;
  return lanes;
}

// The larger of both; where one of them is no number, the second.
inline Vec max(Vec a, Vec b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#else
  return _mm256_max_ps(a, b);
#endif
}

// 2^x for x <= 0 with a relative error below 2e-7; exactly 0 below 2^-126, NaN for NaN.
//
// 2^x = 2^n 2^f with n the nearest whole number; the polynomial is the minimax one of degree 5 for
// 2^f on [-1/2, 1/2] that is exact at 0.
inline Vec exp2_of_negative(Vec x) {
  x = max(broadcast(-200.0f), x);  // in this order a NaN stays one
#if defined(__AVX512F__)
  Vec n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  Vec n = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#endif
  Vec f = x - n;
  Vec p = 1.326472731e-03f * f + 9.671512991e-03f;
  p = p * f + 5.550733581e-02f;
  p = p * f + 2.402224243e-01f;
  p = p * f + 6.931470037e-01f;
  p = p * f + 1.0f;
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, broadcast(-126.0f), _CMP_NLT_UQ), p, n);
#else
  __m256i exponent = _mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  Vec scaled = p * Vec(_mm256_castsi256_ps(exponent));
  return _mm256_and_ps(scaled, _mm256_cmp_ps(x, broadcast(-126.0f), _CMP_NLT_UQ));
#endif
}

inline bool any_below(Vec a, Vec b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) != 0;
#else
  return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) != 0;
#endif
}

inline IntVec select(IntVec where, IntVec yes, IntVec no) { return (where & yes) | (~where & no); }

inline Vec select(IntVec where, Vec yes, Vec no) {
  return reinterpret_cast<Vec>((where & reinterpret_cast<IntVec>(yes)) |
                               (~where & reinterpret_cast<IntVec>(no)));
}

inline Vec to_float(IntVec x) { return __builtin_convertvector(x, Vec); }

// kLanes rows of kLanes floats, row `i` at `from + i * from_stride`, to columns.
inline void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#if defined(__AVX512F__)
  __m512 r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = load(from + i * from_stride);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + j + 2]);
      r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  for (int i = 0; i < 16; i += 8) {
    for (int j = 0; j < 4; ++j) {
      t[i + j] = _mm512_shuffle_f32x4(r[i + j], r[i + j + 4], 0x88);
      t[i + j + 4] = _mm512_shuffle_f32x4(r[i + j], r[i + j + 4], 0xdd);
    }
  }
  for (int j = 0; j < 8; ++j) {
    store(to + j * to_stride, _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88));
    store(to + (j + 8) * to_stride, _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd));
  }
#else
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = load(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
      r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
  }
  for (int j = 0; j < 4; ++j) {
    store(to + j * to_stride, _mm256_permute2f128_ps(r[j], r[j + 4], 0x20));
    store(to + (j + 4) * to_stride, _mm256_permute2f128_ps(r[j], r[j + 4], 0x31));
  }
#endif
}

// (rows, columns) to (columns, rows), any sizes.
inline void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                      float* to, int64_t to_stride) {
  int64_t whole_rows = rows - rows % kLanes, whole_columns = columns - columns % kLanes;
  for (int64_t i = 0; i < whole_rows; i += kLanes)
    for (int64_t j = 0; j < whole_columns; j += kLanes)
      transpose_tile(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      std::memcpy(to + j * to_stride + i, from + i * from_stride + j, 4);  // bits, no float
}

// The same of pairs.
inline void transpose(const Pair* from, int64_t from_stride, int64_t rows, int64_t columns,
                      Pair* to, int64_t to_stride) {
  transpose(reinterpret_cast<const float*>(from), from_stride, rows, columns,
            reinterpret_cast<float*>(to), to_stride);
}

inline float to_float(float x) { return x; }
inline float to_float(bfloat16 x) {
  uint32_t bits = uint32_t(x) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline void from_float(float x, float* to) { *to = x; }
inline void from_float(float x, bfloat16* to) {  // to nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  *to = is_nan ? 0x7fc0 : uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Rows of either type to floats.
inline void widen(const float* from, float* to, int64_t width) { std::copy_n(from, width, to); }
inline void widen(const bfloat16* from, float* to, int64_t width) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + kLanes <= width; i += kLanes) {
    __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
#endif
  for (; i < width; ++i) to[i] = to_float(from[i]);
}

inline Pair pair_of(float first, float second) {
  bfloat16 halves[2];
  from_float(first, halves);
  from_float(second, halves + 1);
  return Pair(halves[0]) | Pair(halves[1]) << 16;
}

#if defined(__AVX512BF16__)
// Lane by lane, pair_of.
inline void store_pairs(Pair* to, Vec first, Vec second) {
  __m512i low = _mm512_cvtepu16_epi32(__m256i(_mm512_cvtneps_pbh(first)));
  __m512i high = _mm512_cvtepu16_epi32(__m256i(_mm512_cvtneps_pbh(second)));
  _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}
#endif

template <typename T>
inline float round_to(float x) {
  T narrow;
  from_float(x, &narrow);
  return to_float(narrow);
}

// Lane by lane, round_to.
template <typename T>
inline Vec round_lanes(Vec x) {
  if constexpr (sizeof(T) == sizeof(float)) return x;
#if defined(__AVX512BF16__)
  __m256i halves = __m256i(_mm512_cvtneps_pbh(x));
  return Vec(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)));
#else
  IntVec bits = reinterpret_cast<IntVec>(x);
  IntVec rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & ~0xffff;
  return select(x == x, reinterpret_cast<Vec>(rounded), x);
#endif
}

inline float sum_lanes(Vec x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(x);
#else
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#endif
}

}  // namespace RANCAST_ISA
}  // namespace rancast
