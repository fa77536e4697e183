// bfloat16 products with sums in float, where the processor has them: by pairs in vectors
// (AVX512-BF16), or by tiles of 16 x 16 sums (AMX). Elsewhere bfloat16 is widened to floats.
//
// Queries and weights are (pairs, lanes), keys (keys, pairs of channels) as they lie in memory.
#pragma once

#include "stage.h"
#if defined(RANCAST_AMX)
#include "tiles.h"
#endif

namespace rancast {
namespace RANCAST_ISA {

#if defined(__AVX512BF16__)

// Rows of widened, prepared floats to rows of pairs, the last one filled up with zero.
inline void narrow(const float* from, int64_t width, Pair* to) {
  int64_t i = 0;
  for (; 2 * i + kLanes <= width; i += kLanes / 2)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        __m256i(_mm512_cvtneps_pbh(load(from + 2 * i))));
  for (; i < width / 2; ++i) to[i] = pair_of(from[2 * i], from[2 * i + 1]);
  if (width % 2) to[width / 2] = pair_of(from[width - 1], 0);
}

inline int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

struct PairMath {
  using Element = Pair;
  using Block = Staged<Pair>;
  static constexpr bool kScalesQueries = false;  // so that queries are exact
#if defined(RANCAST_AMX)
  // Weights are read by tiles of kTile pairs, so a run of keys begins at a tile of values too.
  static constexpr int64_t kRowStep = 2 * kTile, kKeyStep = kTile;
  static constexpr int64_t kDepthStep = kTile, kChannelStep = kTile;
#else
  static constexpr int64_t kRowStep = 2, kKeyStep = 1, kDepthStep = 1, kChannelStep = 1;
#endif

  static int64_t query_rows(int64_t width) { return round_up((width + 1) / 2, kDepthStep); }
  static int64_t sum_rows(int64_t width) { return round_up(width, kChannelStep); }
  static int64_t block_elements(int64_t width) {
    return kBlock * query_rows(width) + kBlock / 2 * sum_rows(width) + 2 * width;
  }

  static void pack_queries(const float* rows, int64_t width, int64_t count, float, Pair* q) {
    int64_t depth = query_rows(width), lanes = count > kLanes ? kPanel : kLanes;
    Pair narrowed[kPanel * kMaxHeadWidth / 2];
    std::fill_n(narrowed, lanes * depth, 0);
    for (int64_t i = 0; i < count; ++i) narrow(rows + i * width, width, narrowed + i * depth);
    transpose(narrowed, depth, lanes, depth, q, kPanel);
  }

  static Block stage(const Problem<bfloat16>& p, int64_t b, int64_t h, int64_t begin, int64_t end,
                     Pair* scratch, int32_t* positions) {
    int64_t depth = query_rows(p.width), channels = sum_rows(p.width);
    int64_t count = valid_keys(p, b, begin, end, positions);
    Pair* own_k = scratch;
    Pair* own_v = own_k + kBlock * depth;
    float* row = reinterpret_cast<float*>(own_v + kBlock / 2 * channels);
    Block block{own_k, own_v, depth, channels, count, positions};
    const bfloat16* first = p.k.row(b, h, begin);
    bool in_place = count == end - begin && p.width == 2 * depth && p.k.strides.row % 2 == 0 &&
                    !p.preparation.k_gain && !p.preparation.cos && count % kKeyStep == 0;
    if (in_place) {
      block.k = reinterpret_cast<const Pair*>(first);
      block.k_stride = p.k.strides.row / 2;
    } else {
      std::fill_n(own_k, round_up(count, kKeyStep) * depth, 0);
      for (int64_t i = 0; i < count; ++i) {
        load_key(p, b, h, positions[i], row);
        narrow(row, p.width, own_k + i * depth);
      }
    }
    stage_values(p, b, h, count, positions, channels, own_v);
    return block;
  }

  template <typename Weight>
  static void store_weights(Weight weight, int64_t count, int vector, float* to) {
    Pair* pairs = reinterpret_cast<Pair*>(to) + vector * kLanes;
    for (int64_t i = 0; i + 1 < count; i += 2)
      store_pairs(pairs + i / 2 * kPanel, weight(i), weight(i + 1));
    if (count % 2) store_pairs(pairs + count / 2 * kPanel, weight(count - 1), Vec{});
    for (int64_t i = (count + 1) / 2; i % kDepthStep; ++i)
      store_pairs(pairs + i * kPanel, Vec{}, Vec{});
  }

#if defined(RANCAST_AMX)
  static void begin() { configure_tiles(); }
  static void end() { release_tiles(); }

  template <int kVectors>
  static void scores(const Block& block, int64_t begin, int64_t count, const Pair* q,
                     int64_t width, float* to) {
    tile_product<kVectors, Into::kOverwrite>(count, block.k + begin * block.k_stride,
                                             block.k_stride, q, kPanel, to, kPanel,
                                             query_rows(width));
  }

  // Values are staged as (channels, pairs of keys), rows of kBlock / 2.
  template <int kVectors, Into kInto>
  static void add_values(const Block& block, int64_t begin, int64_t count, const Pair* weights,
                         int64_t width, float* sum) {
    tile_product<kVectors, kInto>(width, block.v + begin / 2, kBlock / 2, weights, kPanel,
                                       sum, kPanel, round_up((count + 1) / 2, kTile));
  }

  static void stage_values(const Problem<bfloat16>& p, int64_t b, int64_t h, int64_t count,
                           const int32_t* positions, int64_t channels, Pair* to) {
    std::fill_n(to, channels * (kBlock / 2), 0);
    Pair pairs[kMaxHeadWidth];
    for (int64_t i = 0; i < count; i += 2) {
      interleave(p, b, h, i, count, positions, pairs);
      for (int64_t d = 0; d < p.width; ++d) to[d * (kBlock / 2) + i / 2] = pairs[d];
    }
  }
#else
  static void begin() {}
  static void end() {}

  template <int kVectors>
  static void scores(const Block& block, int64_t begin, int64_t count, const Pair* q,
                     int64_t width, float* to) {
    product<Pairs, kVectors, true, Into::kOverwrite>(count, block.k + begin * block.k_stride,
                                                     block.k_stride, q, kPanel, to, kPanel,
                                                     query_rows(width));
  }

  // Values are staged as (pairs of keys, channels).
  template <int kVectors, Into kInto>
  static void add_values(const Block& block, int64_t begin, int64_t count, const Pair* weights,
                         int64_t width, float* sum) {
    product<Pairs, kVectors, false, kInto>(width, block.v + begin / 2 * block.v_stride,
                                                block.v_stride, weights, kPanel, sum, kPanel,
                                                (count + 1) / 2);
  }

  static void stage_values(const Problem<bfloat16>& p, int64_t b, int64_t h, int64_t count,
                           const int32_t* positions, int64_t channels, Pair* to) {
    for (int64_t i = 0; i < count; i += 2)
      interleave(p, b, h, i, count, positions, to + i / 2 * channels);
  }
#endif

 private:
  // The values of the keys i and i + 1, channel by channel.
  static void interleave(const Problem<bfloat16>& p, int64_t b, int64_t h, int64_t i,
                         int64_t count, const int32_t* positions, Pair* to) {
    const bfloat16* low = p.v.row(b, h, positions[i]);
    if (i + 1 < count) {
      const bfloat16* high = p.v.row(b, h, positions[i + 1]);
      for (int64_t d = 0; d < p.width; ++d) to[d] = Pair(low[d]) | Pair(high[d]) << 16;
    } else {
      for (int64_t d = 0; d < p.width; ++d) to[d] = low[d];
    }
  }
};

using NarrowMath = PairMath;

#else

using NarrowMath = FloatMath;

#endif

}  // namespace RANCAST_ISA
}  // namespace rancast
