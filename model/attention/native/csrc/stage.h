// Rows of queries and keys made ready for the products: widened, normed, turned; and blocks of keys
// with the invalid ones left out.
#pragma once

#include <algorithm>
#include <cmath>

#include "product.h"

namespace rancast {
namespace RANCAST_ISA {

constexpr int64_t kBlock = 64;  // keys that are staged at once

inline float sum_of_squares(const float* x, int64_t width) {
  Vec sum{};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    Vec part = load(x + i);
    sum += part * part;
  }
  float total = sum_lanes(sum);
  for (; i < width; ++i) total += x[i] * x[i];
  return total;
}

template <typename T>
inline void norm_row(float* x, int64_t width, const float* gain, float eps) {
  float inverse_rms = 1.0f / std::sqrt(sum_of_squares(x, width) / float(width) + eps);
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    store(x + i, round_lanes<T>(load(x + i) * inverse_rms * load(gain + i)));
  for (; i < width; ++i) x[i] = round_to<T>(x[i] * inverse_rms * gain[i]);
}

template <typename T>
inline void turn_row(float* x, int64_t width, const float* cos, const float* sin) {
  int64_t half = width / 2, i = 0;
  float* y = x + half;
  for (; i + kLanes <= half; i += kLanes) {
    Vec a = load(x + i), b = load(y + i), c = load(cos + i), s = load(sin + i);
    store(x + i, round_lanes<T>(a * c - b * s));
    store(y + i, round_lanes<T>(b * c + a * s));
  }
  for (; i < half; ++i) {
    float a = x[i], b = y[i];
    x[i] = round_to<T>(a * cos[i] - b * sin[i]);
    y[i] = round_to<T>(b * cos[i] + a * sin[i]);
  }
}

// Norm and rotation of one row in place; each result is rounded to T, as the formula in torch does.
template <typename T>
inline void prepare_row(float* x, int64_t width, const float* gain, float eps, const float* cos,
                        const float* sin) {
  if (gain) norm_row<T>(x, width, gain, eps);
  if (cos) turn_row<T>(x, width, cos, sin);
}

// Row of angles of the token at `place` of `length` right-aligned ones.
inline const float* angles(const float* table, const Preparation& how, int64_t width,
                           int64_t batch, int64_t place, int64_t length) {
  if (!table) return nullptr;
  int64_t row = how.rope_length - length + place;
  return table + batch * how.rope_batch_stride + row * (width / 2);
}

template <typename T>
inline void load_query(const Problem<T>& p, int64_t b, int64_t h, int64_t query, float* to) {
  const Preparation& how = p.preparation;
  widen(p.q.row(b, h, query), to, p.width);
  prepare_row<T>(to, p.width, how.q_gain, how.eps,
                 angles(how.cos, how, p.width, b, query, p.queries),
                 angles(how.sin, how, p.width, b, query, p.queries));
}

template <typename T>
inline void load_key(const Problem<T>& p, int64_t b, int64_t h, int64_t key, float* to) {
  const Preparation& how = p.preparation;
  widen(p.k.row(b, h, key), to, p.width);
  prepare_row<T>(to, p.width, how.k_gain, how.eps, angles(how.cos, how, p.width, b, key, p.keys),
                 angles(how.sin, how, p.width, b, key, p.keys));
}

constexpr int64_t kPanel = 2 * kLanes;  // queries of a panel, one a lane

// A block of keys with their values, and where they are.
template <typename Key, typename Value = Key>
struct Staged {
  const Key* k;
  const Value* v;
  int64_t k_stride, v_stride;
  int64_t count;
  const int32_t* positions;
};

// The valid keys of [begin, end). What is invalid is not even read, so that a NaN there stays there.
template <typename T>
inline int64_t valid_keys(const Problem<T>& p, int64_t b, int64_t begin, int64_t end,
                          int32_t* positions) {
  const bool* valid = p.mask.key_valid ? p.mask.key_valid + b * p.keys : nullptr;
  int64_t count = 0;
  for (int64_t key = begin; key < end; ++key)
    if (!valid || valid[key]) positions[count++] = int32_t(key);
  return count;
}

// All in floats, whatever the type of the tensors. Keys and values are read where they lie if they
// are floats, all valid and need no preparation.
struct FloatMath {
  using Element = float;
  using Block = Staged<float>;
  static constexpr bool kScalesQueries = true;
  static constexpr int64_t kRowStep = 1;

  static void begin() {}
  static void end() {}
  static int64_t query_rows(int64_t width) { return width; }
  static int64_t sum_rows(int64_t width) { return width; }
  static int64_t block_elements(int64_t width) { return 2 * kBlock * width; }

  // (count, D) to (query_rows, kPanel). Lanes from `count` on are never read from.
  static void pack_queries(float* rows, int64_t width, int64_t count, float scale, float* q) {
    int64_t lanes = count > kLanes ? kPanel : kLanes;
    if (count == 1) {
      for (int64_t d = 0; d < width; ++d) store(q + d * kPanel, broadcast(rows[d] * scale));
      return;
    }
    std::fill_n(rows + count * width, (lanes - count) * width, 0.0f);
    transpose(rows, width, lanes, width, q, kPanel);
    for (int64_t d = 0; d < width; ++d)
      for (int64_t x = 0; x < lanes; x += kLanes)
        store(q + d * kPanel + x, load(q + d * kPanel + x) * scale);
  }

  template <typename T>
  static Block stage(const Problem<T>& p, int64_t b, int64_t h, int64_t begin, int64_t end,
                     float* scratch, int32_t* positions) {
    int64_t count = valid_keys(p, b, begin, end, positions);
    float* own_k = scratch;
    float* own_v = scratch + kBlock * p.width;
    Block block{own_k, own_v, p.width, p.width, count, positions};
    if constexpr (sizeof(T) == sizeof(float)) {
      if (count == end - begin) {
        block.v = p.v.row(b, h, begin);
        block.v_stride = p.v.strides.row;
        if (!p.preparation.k_gain && !p.preparation.cos) {
          block.k = p.k.row(b, h, begin);
          block.k_stride = p.k.strides.row;
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      if (block.k == own_k) load_key(p, b, h, positions[i], own_k + i * p.width);
      if (block.v == own_v) widen(p.v.row(b, h, positions[i]), own_v + i * p.width, p.width);
    }
    return block;
  }

  template <int kVectors>
  static void scores(const Block& block, int64_t begin, int64_t count, const float* q,
                     int64_t width, float* to) {
    product<Floats, kVectors, true, Into::kOverwrite>(count, block.k + begin * block.k_stride,
                                                      block.k_stride, q, kPanel, to, kPanel,
                                                      width);
  }

  // Weights of `count` keys for the lanes of one vector of the panel.
  template <typename Weight>
  static void store_weights(Weight weight, int64_t count, int vector, float* to) {
    for (int64_t i = 0; i < count; ++i) store(to + i * kPanel + vector * kLanes, weight(i));
  }

  template <int kVectors, Into kInto>
  static void add_values(const Block& block, int64_t begin, int64_t count, const float* weights,
                         int64_t width, float* sum) {
    product<Floats, kVectors, false, kInto>(width, block.v + begin * block.v_stride,
                                                 block.v_stride, weights, kPanel, sum, kPanel,
                                                 count);
  }
};

}  // namespace RANCAST_ISA
}  // namespace rancast
