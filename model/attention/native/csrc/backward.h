// The backward pass: scores are worked out again, block by block, from the log-sum-exp.
//
// With P the weights, dP = dO V^T, and one number a query, D = sum(dO * O) - dlse:
// dS = P * (dP - D), dV = P^T dO, dQ = scale * dS K, dK = scale * dS^T Q (Dao 2023). Lanes are queries
// for the scores and dQ, and channels for dK and dV, which are summed up over all panels of a
// (batch row, head) by one thread: the same order on any number of threads.
#pragma once

#include "forward.h"

namespace rancast {
namespace RANCAST_ISA {

class BackwardScratch {
 public:
  BackwardScratch(int64_t keys, int64_t width)
      : padded(ceil_div(width, kPanel) * kPanel),
        memory_(allocate(3 * width * kPanel + 2 * kPanel * padded + 2 * kPanel +
                         2 * kBlock * kPanel + 2 * keys * padded + 2 * kBlock * width +
                         kPanel * width)) {
    float* next = memory_.get();
    auto take = [&next](int64_t floats) {
      float* start = next;
      next += floats;
      return start;
    };
    q = take(width * kPanel);
    d_output = take(width * kPanel);
    d_q = take(width * kPanel);
    q_rows = take(kPanel * padded);
    d_output_rows = take(kPanel * padded);
    lse = take(kPanel);
    shared = take(kPanel);
    weights = take(kBlock * kPanel);
    d_scores = take(kBlock * kPanel);
    d_k = take(keys * padded);
    d_v = take(keys * padded);
    block = take(2 * kBlock * width);
    rows = take(kPanel * width);
  }

  int64_t padded;       // head width, whole vectors
  float *q, *d_output;  // (D, kPanel), q in powers of two
  float* d_q;           // (D, kPanel)
  float *q_rows, *d_output_rows;  // (kPanel, padded)
  float *lse, *shared;            // (kPanel,)
  float *weights, *d_scores;      // (kBlock, kPanel)
  float *d_k, *d_v;               // (Nk, padded)
  float* block;  // where keys and values are staged
  int32_t positions[kBlock];
  float* rows;  // (kPanel, D)

 private:
  std::unique_ptr<float[], Release> memory_;
};

template <typename T>
inline void load_backward_panel(const BackwardProblem<T>& p, int64_t b, int64_t h, int64_t first,
                                int64_t count, BackwardScratch& s) {
  const Problem<T>& forward = p.forward;
  int64_t width = forward.width, row = (b * forward.heads + h) * forward.queries + first;
  std::fill_n(s.q_rows, kPanel * s.padded, 0.0f);
  std::fill_n(s.d_output_rows, kPanel * s.padded, 0.0f);
  std::fill_n(s.q, width * kPanel, 0.0f);
  std::fill_n(s.d_output, width * kPanel, 0.0f);
  std::fill_n(s.d_q, width * kPanel, 0.0f);
  std::fill_n(s.lse, kPanel, 0.0f);
  std::fill_n(s.shared, kPanel, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    float* q = s.q_rows + i * s.padded;
    float* d_output = s.d_output_rows + i * s.padded;
    widen(forward.q.row(b, h, first + i), q, width);
    widen(p.d_output.row(b, h, first + i), d_output, width);
    [[maybe_unused]] const T* output = forward.output.row(b, h, first + i);
    float shared = p.d_lse ? -p.d_lse[row + i] : 0.0f;
    if constexpr (sizeof(T) == sizeof(float))
      for (int64_t d = 0; d < width; ++d) shared += d_output[d] * output[d];
    s.shared[i] = shared;
    float lse = forward.lse[row + i];
    s.lse[i] = lse == -__builtin_inff() ? 0.0f : lse * kLog2E;
  }
  transpose(s.q_rows, s.padded, count, width, s.q, kPanel);
  transpose(s.d_output_rows, s.padded, count, width, s.d_output, kPanel);
  Vec scale = broadcast(forward.scale * kLog2E);
  for (int64_t at = 0; at < width * kPanel; at += kLanes) store(s.q + at, load(s.q + at) * scale);
}

// Weights (keys, lanes) of a block, and gradients of weights, zero in lanes without a query.
template <typename T>
inline void block_weights(const Problem<T>& p, int64_t h, const Staged<float>& staged,
                          int64_t first, int64_t count, BackwardScratch& s) {
  int64_t first_position = first + p.offset(), last_position = first_position + count - 1;
  product<Floats, 2, true, Into::kOverwrite>(staged.count, staged.k, staged.k_stride, s.q, kPanel,
                                             s.weights, kPanel, p.width);
  product<Floats, 2, true, Into::kOverwrite>(staged.count, staged.v, staged.v_stride, s.d_output,
                                             kPanel, s.d_scores, kPanel, p.width);
  Range block{staged.positions[0], staged.positions[staged.count - 1] + 1};
  bool partial = !all_visible(p.mask, block, first_position, last_position);
  float slope = p.mask.alibi ? p.mask.alibi[h] * kLog2E : 0.0f;
  if (partial || slope != 0)
    adjust_scores<2>(p.mask, 1.0f, slope, partial, first_position, staged.positions, staged.count,
                     s.weights);
  for (int64_t x = 0; x < kPanel; x += kLanes) {
    Vec lse = load(s.lse + x);
    IntVec real = lane_numbers() + int32_t(x) < int32_t(count);
    for (int64_t at = x; at < staged.count * kPanel; at += kPanel)
      store(s.weights + at, select(real, exp2_of_negative(load(s.weights + at) - lse), Vec{}));
  }
}

// Gradients of weights to gradients of scores.
inline void finish_scores(int64_t keys, BackwardScratch& s) {
  for (int64_t at = 0; at < keys * kPanel; at += kLanes) {
    Vec shared = load(s.shared + at % kPanel);
    store(s.d_scores + at, load(s.weights + at) * (load(s.d_scores + at) - shared));
  }
}

inline void add_shared(int64_t keys, BackwardScratch& s) {
  for (int64_t at = 0; at < keys * kPanel; at += kLanes) {
    float* shared = s.shared + at % kPanel;
    store(shared, load(shared) + load(s.weights + at) * load(s.d_scores + at));
  }
}

// Calls `visit` with every block of keys that the queries [first, first + count) see, and its weights.
template <typename T, typename Visit>
inline void for_each_weighted(const Problem<T>& p, int64_t b, int64_t h, int64_t first,
                              int64_t count, BackwardScratch& s, Visit visit) {
  int64_t begin = first + p.offset();
  for_each_block(p.mask, p.keys, begin, begin + count - 1, [&](Range keys) {
    auto staged = FloatMath::stage(p, b, h, keys.begin, keys.end, s.block, s.positions);
    if (staged.count == 0) return;
    block_weights(p, h, staged, first, count, s);
    visit(staged);
  });
}

// Sums of rows (keys, padded) += (keys, lanes) x (lanes, padded).
inline void add_outer(const float* left, const float* right, int64_t padded, int64_t count,
                      int64_t keys, float* sums) {
  for (int64_t d = 0; d < padded; d += kPanel)
    product<Floats, 2, true, Into::kAdd>(keys, left, kPanel, right + d, padded, sums + d, padded,
                                         count);
}

template <typename T>
inline void backward_row(const BackwardProblem<T>& p, int64_t row, BackwardScratch& s) {
  const Problem<T>& forward = p.forward;
  int64_t b = row / forward.heads, h = row % forward.heads, width = forward.width;
  std::fill_n(s.d_k, forward.keys * s.padded, 0.0f);
  std::fill_n(s.d_v, forward.keys * s.padded, 0.0f);
  for (int64_t first = 0; first < forward.queries; first += kPanel) {
    int64_t count = std::min(kPanel, forward.queries - first);
    load_backward_panel(p, b, h, first, count, s);
    // An output in bfloat16 is too coarse for sum(dO * O); sum(P * dP) is the same number.
    if constexpr (sizeof(T) != sizeof(float))
      for_each_weighted(forward, b, h, first, count, s,
                        [&](const Staged<float>& staged) { add_shared(staged.count, s); });
    for_each_weighted(forward, b, h, first, count, s, [&](const Staged<float>& staged) {
      finish_scores(staged.count, s);
      product<Floats, 2, false, Into::kAdd>(width, staged.k, staged.k_stride, s.d_scores, kPanel,
                                            s.d_q, kPanel, staged.count);
      // Runs of neighbouring keys, so that sums are added where they lie.
      for (int64_t i = 0, j; i < staged.count; i = j) {
        for (j = i + 1; j < staged.count && staged.positions[j] == staged.positions[j - 1] + 1;)
          ++j;
        int64_t to = staged.positions[i] * s.padded;
        add_outer(s.weights + i * kPanel, s.d_output_rows, s.padded, count, j - i, s.d_v + to);
        add_outer(s.d_scores + i * kPanel, s.q_rows, s.padded, count, j - i, s.d_k + to);
      }
    });
    transpose(s.d_q, kPanel, width, count, s.rows, width);
    for (int64_t i = 0; i < count; ++i) {
      T* to = p.d_q.row(b, h, first + i);
      for (int64_t d = 0; d < width; ++d) from_float(s.rows[i * width + d] * forward.scale, to + d);
    }
  }
  for (int64_t key = 0; key < forward.keys; ++key) {
    T* d_k = p.d_k.row(b, h, key);
    T* d_v = p.d_v.row(b, h, key);
    for (int64_t d = 0; d < width; ++d) {
      from_float(s.d_k[key * s.padded + d] * forward.scale, d_k + d);
      from_float(s.d_v[key * s.padded + d], d_v + d);
    }
  }
}

template <typename T>
void backward(const BackwardProblem<T>& p, int64_t begin, int64_t end) {
  BackwardScratch scratch(p.forward.keys, p.forward.width);
  for (int64_t row = begin; row < end; ++row) backward_row(p, row, scratch);
}

}  // namespace RANCAST_ISA
}  // namespace rancast
