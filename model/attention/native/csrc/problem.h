// What one call of the attention kernel is asked, as plain pointers and sizes.
//
// Shared by the translation units that are compiled for one instruction set each and by the op that
// chooses among them. It has no code that would gain from an instruction set.
//
// Axis legend: B batch, H heads, Nq queries, Nk keys, D head width.
#pragma once

#include <cstdint>

namespace rancast {

constexpr int64_t kMaxHeadWidth = 256;

// Strides in elements; the last axis of every array is dense.
struct Strides {
  int64_t batch, head, row;
};

template <typename T>
struct Array {
  T* data = nullptr;
  Strides strides{0, 0, 0};

  T* row(int64_t b, int64_t h, int64_t n) const {
    return data + b * strides.batch + h * strides.head + n * strides.row;
  }
};

// Who sees whom: `(near or sink) and not later and valid`, as in model/attention/mask.py. Query i
// sits at position Nk - Nq + i.
struct MaskTerms {
  bool causal = false;
  int64_t window = INT64_MAX;       // keys at distance below it are near
  int64_t sinks = 0;                // keys before it are seen from everywhere
  const bool* key_valid = nullptr;  // (B, Nk), dense
  const float* alibi = nullptr;     // (H,)

  // A window of 0 is none. One as wide as the sequence hides nothing, and the kernels count
  // positions in 32 bits, so that it is none to them either.
  static MaskTerms of(bool causal, int64_t window, int64_t sinks, int64_t length) {
    bool narrow = window > 0 && window < length;
    return {causal, narrow ? window : INT64_MAX, narrow ? sinks : 0, nullptr, nullptr};
  }
};

// Norm and rotation of queries and keys before their product; each may be absent.
struct Preparation {
  const float* q_gain = nullptr;  // (D,)
  const float* k_gain = nullptr;  // (D,)
  float eps = 0;
  const float* cos = nullptr;  // (1 or B, max(Nq, Nk), D / 2), right-aligned like the mask
  const float* sin = nullptr;
  int64_t rope_batch_stride = 0;
  int64_t rope_length = 0;
};

template <typename T>
struct Problem {
  int64_t batch, heads, queries, keys, width;
  Array<const T> q, k, v;
  Array<T> output;
  float* lse = nullptr;  // (B, H, Nq), dense; null where it is not asked
  float scale = 1;
  MaskTerms mask;
  Preparation preparation;

  int64_t offset() const { return keys - queries; }
};

// Gradients of an unprepared problem: of its q, k and v for those of its output and log-sum-exp.
template <typename T>
struct BackwardProblem {
  Problem<T> forward;     // whose output and lse are those that it returned
  Array<const T> d_output;
  const float* d_lse = nullptr;  // (B, H, Nq), dense; null where it is zero
  Array<T> d_q, d_k, d_v;
};

using bfloat16 = uint16_t;  // the upper half of a float

// One instruction set's code. A call does the items [begin, end) of the problem; different items
// may run at once.
struct Kernels {
  int64_t (*forward_items_f32)(const Problem<float>&);
  void (*forward_f32)(const Problem<float>&, int64_t begin, int64_t end);
  int64_t (*forward_items_bf16)(const Problem<bfloat16>&);
  void (*forward_bf16)(const Problem<bfloat16>&, int64_t begin, int64_t end);
  // Items are (batch row, head).
  void (*backward_f32)(const BackwardProblem<float>&, int64_t begin, int64_t end);
  void (*backward_bf16)(const BackwardProblem<bfloat16>&, int64_t begin, int64_t end);
  int64_t (*forward_blocks)(const Problem<float>&);
};

Kernels avx2_kernels();
Kernels avx512_kernels();
Kernels avx512_bf16_kernels();
Kernels amx_kernels();

}  // namespace rancast
