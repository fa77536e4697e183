// The kernels as torch operators, on torch's stable ABI: one binary for torch 2.10 and later.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <tuple>

#include "dispatch.h"
#include "problem.h"

namespace {

using rancast::Array;
using rancast::BackwardProblem;
using rancast::Problem;
using torch::stable::Tensor;
using MaybeTensor = std::optional<Tensor>;

int32_t dtype(const Tensor& tensor) {
  int32_t type;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &type));
  return type;
}

template <typename T>
Array<T> array(const Tensor& tensor) {
  auto strides = tensor.strides();
  return {static_cast<T*>(tensor.data_ptr()), {strides[0], strides[1], strides[2]}};
}

template <typename T>
const T* data(const MaybeTensor& tensor) {
  return tensor ? static_cast<const T*>(tensor->data_ptr()) : nullptr;
}

struct Terms {
  const MaybeTensor &key_valid, &alibi_slopes;
  bool causal;
  int64_t window, sinks;
  double scale;
};

template <typename T>
Problem<T> problem(const Tensor& q, const Tensor& k, const Tensor& v, const Terms& terms) {
  Problem<T> p;
  p.batch = q.size(0);
  p.heads = q.size(1);
  p.queries = q.size(2);
  p.width = q.size(3);
  p.keys = k.size(2);
  p.q = array<const T>(q);
  p.k = array<const T>(k);
  p.v = array<const T>(v);
  p.scale = static_cast<float>(terms.scale);
  p.mask = rancast::MaskTerms::of(terms.causal, terms.window, terms.sinks,
                                  std::max(p.queries, p.keys));
  p.mask.key_valid = data<bool>(terms.key_valid);
  p.mask.alibi = data<float>(terms.alibi_slopes);
  return p;
}

using Sizes = std::initializer_list<int64_t>;

// Straight from the C shim: a call through the dispatcher takes as long as a small attention.
Tensor allocate(Sizes sizes, Sizes strides, int32_t dtype) {
  AtenTensorHandle handle;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      int64_t(sizes.size()), sizes.begin(), strides.begin(), dtype, aoti_torch_device_type_cpu(),
      0, &handle));
  return Tensor(handle);
}

// (B, H, N, D) whose memory is (B, N, H, D), so that the heads of a token lie side by side.
Tensor empty_tokens(const Tensor& like, int64_t rows) {
  int64_t batch = like.size(0), heads = like.size(1), width = like.size(3);
  return allocate({batch, heads, rows, width},
                  {rows * heads * width, width, heads * width, 1}, dtype(like));
}

Tensor empty_lse(const Tensor& q, bool asked) {
  int64_t batch = asked ? q.size(0) : 0, heads = q.size(1), rows = q.size(2);
  return allocate({batch, heads, rows}, {heads * rows, rows, 1}, aoti_torch_dtype_float32());
}

bool is_bfloat16(const Tensor& tensor) { return dtype(tensor) == aoti_torch_dtype_bfloat16(); }

bool has_sizes(const Tensor& tensor, Sizes sizes) {
  if (tensor.dim() != int64_t(sizes.size())) return false;
  int64_t axis = 0;
  for (int64_t size : sizes)
    if (tensor.size(axis++) != size) return false;
  return true;
}

bool is_dense(const MaybeTensor& tensor, int32_t type, Sizes sizes) {
  return !tensor || (dtype(*tensor) == type && tensor->is_contiguous() && has_sizes(*tensor, sizes));
}

bool has_dense_rows(const Tensor& tensor) {
  return tensor.stride(3) == 1 || tensor.size(3) == 1 || tensor.numel() == 0;
}

// What the kernels take for granted. The caller says in full what is wrong, or mends it.
void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const Terms& terms) {
  STD_TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, "expected four axes");
  int64_t batch = q.size(0), heads = q.size(1), keys = k.size(2), width = q.size(3);
  STD_TORCH_CHECK(has_sizes(k, {batch, heads, keys, width}), "expected k to fit q");
  STD_TORCH_CHECK(has_sizes(v, {batch, heads, keys, width}), "expected v to fit k");
  STD_TORCH_CHECK(dtype(q) == aoti_torch_dtype_float32() || is_bfloat16(q), "expected its types");
  STD_TORCH_CHECK(dtype(k) == dtype(q) && dtype(v) == dtype(q), "expected one type");
  STD_TORCH_CHECK(k.is_cpu() && v.is_cpu(), "expected one device");
  STD_TORCH_CHECK(has_dense_rows(q) && has_dense_rows(k) && has_dense_rows(v), "expected rows");
  STD_TORCH_CHECK(1 <= width && width <= rancast::kMaxHeadWidth, "expected a narrower head");
  STD_TORCH_CHECK(is_dense(terms.key_valid, aoti_torch_dtype_bool(), {batch, keys}), "key_valid");
  STD_TORCH_CHECK(is_dense(terms.alibi_slopes, aoti_torch_dtype_float32(), {heads}), "slopes");
  STD_TORCH_CHECK(terms.window >= 0 && terms.sinks >= 0, "expected a window and sinks");
  STD_TORCH_CHECK(std::isfinite(float(terms.scale)), "expected a finite scale");
}

// What backward reads of its own forward pass.
void check_forward(const Tensor& q, const Tensor& output, const Tensor& lse,
                   const Tensor& d_output, const MaybeTensor& d_lse) {
  Sizes rows = {q.size(0), q.size(1), q.size(2)};
  Sizes tokens = {q.size(0), q.size(1), q.size(2), q.size(3)};
  STD_TORCH_CHECK(is_dense(lse, aoti_torch_dtype_float32(), rows) && lse.is_cpu(),
                  "expected a forward pass that kept its log-sum-exp, and did not norm or rotate");
  STD_TORCH_CHECK(is_dense(d_lse, aoti_torch_dtype_float32(), rows), "expected d_lse as lse");
  for (const Tensor& tensor : {output, d_output})
    STD_TORCH_CHECK(has_sizes(tensor, tokens) && dtype(tensor) == dtype(q) && tensor.is_cpu() &&
                        has_dense_rows(tensor),
                    "expected outputs as q");
}

// The library may be older than its processor, and be called without being asked first.
const rancast::Kernels& usable_kernels() {
  const rancast::Kernels& kernels = rancast::chosen_kernels();
  STD_TORCH_CHECK(kernels.forward_f32 != nullptr,
                  "expected a processor with AVX2, or one that has what RANCAST_CPU_ISA names");
  return kernels;
}

void check_preparation(const Tensor& q, const Tensor& k, const MaybeTensor& q_gain,
                       const MaybeTensor& k_gain, const MaybeTensor& cos, const MaybeTensor& sin) {
  int32_t type = aoti_torch_dtype_float32();
  int64_t width = q.size(3), length = std::max(q.size(2), k.size(2));
  STD_TORCH_CHECK(is_dense(q_gain, type, {width}) && is_dense(k_gain, type, {width}), "gains");
  STD_TORCH_CHECK(q_gain.has_value() == k_gain.has_value(), "expected both gains");
  STD_TORCH_CHECK(cos.has_value() == sin.has_value(), "expected cosines and sines");
  if (!cos) return;
  bool shared = cos->dim() == 2;
  for (const MaybeTensor& table : {cos, sin})
    STD_TORCH_CHECK(shared ? is_dense(table, type, {length, width / 2})
                           : is_dense(table, type, {q.size(0), length, width / 2}),
                    "angles");
}

template <typename T, typename Items, typename Run>
void run(const T& p, Items items, Run kernel) {
  torch::stable::parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
    if (begin < end) kernel(p, begin, end);
  });
}

std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const MaybeTensor& key_valid, const MaybeTensor& alibi_slopes,
                                     const MaybeTensor& q_gain, const MaybeTensor& k_gain,
                                     const MaybeTensor& cos, const MaybeTensor& sin, double eps,
                                     std::optional<double> scale, bool causal, int64_t window,
                                     int64_t sinks, bool with_lse) {
  Terms terms{key_valid, alibi_slopes, causal, window, sinks,
              scale.value_or(1 / std::sqrt(double(q.size(3))))};
  check_inputs(q, k, v, terms);
  check_preparation(q, k, q_gain, k_gain, cos, sin);
  Tensor output = empty_tokens(q, q.size(2));
  Tensor lse = empty_lse(q, with_lse);
  auto answer = [&](auto p) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(p.q.data)>>;
    p.output = array<T>(output);
    p.lse = with_lse ? static_cast<float*>(lse.data_ptr()) : nullptr;
    p.preparation.q_gain = data<float>(q_gain);
    p.preparation.k_gain = data<float>(k_gain);
    p.preparation.eps = static_cast<float>(eps);
    p.preparation.cos = data<float>(cos);
    p.preparation.sin = data<float>(sin);
    if (cos) {
      p.preparation.rope_length = cos->size(cos->dim() - 2);
      p.preparation.rope_batch_stride = cos->dim() == 3 ? cos->stride(0) : 0;
    }
    return p;
  };
  const rancast::Kernels& kernels = usable_kernels();
  if (q.numel() == 0) return {output, lse};
  if (is_bfloat16(q)) {
    auto p = answer(problem<rancast::bfloat16>(q, k, v, terms));
    run(p, kernels.forward_items_bf16(p), kernels.forward_bf16);
  } else {
    auto p = answer(problem<float>(q, k, v, terms));
    run(p, kernels.forward_items_f32(p), kernels.forward_f32);
  }
  return {output, lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(
    const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& output, const Tensor& lse,
    const Tensor& d_output, const MaybeTensor& d_lse, const MaybeTensor& key_valid,
    const MaybeTensor& alibi_slopes, std::optional<double> scale, bool causal, int64_t window,
    int64_t sinks) {
  Terms terms{key_valid, alibi_slopes, causal, window, sinks,
              scale.value_or(1 / std::sqrt(double(q.size(3))))};
  check_inputs(q, k, v, terms);
  check_forward(q, output, lse, d_output, d_lse);
  Tensor d_q = empty_tokens(q, q.size(2));
  Tensor d_k = empty_tokens(k, k.size(2));
  Tensor d_v = empty_tokens(v, v.size(2));
  auto answer = [&](auto forward) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(forward.q.data)>>;
    forward.output = array<T>(output);
    forward.lse = static_cast<float*>(lse.data_ptr());
    BackwardProblem<T> p;
    p.forward = forward;
    p.d_output = array<const T>(d_output);
    p.d_lse = data<float>(d_lse);
    p.d_q = array<T>(d_q);
    p.d_k = array<T>(d_k);
    p.d_v = array<T>(d_v);
    return p;
  };
  const rancast::Kernels& kernels = usable_kernels();
  if (is_bfloat16(q))
    run(answer(problem<rancast::bfloat16>(q, k, v, terms)), q.size(0) * q.size(1),
        kernels.backward_bf16);
  else
    run(answer(problem<float>(q, k, v, terms)), q.size(0) * q.size(1), kernels.backward_f32);
  return {d_q, d_k, d_v};
}

}  // namespace

STABLE_TORCH_LIBRARY(rancast, library) {
  library.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? key_valid, Tensor? alibi_slopes, "
      "Tensor? q_gain, Tensor? k_gain, Tensor? cos, Tensor? sin, float eps, float? scale, "
      "bool causal, int window, int sinks, bool with_lse) -> (Tensor, Tensor)");
  library.def(
      "attention_backward(Tensor q, Tensor k, Tensor v, Tensor output, Tensor lse, "
      "Tensor d_output, Tensor? d_lse, Tensor? key_valid, Tensor? alibi_slopes, float? scale, "
      "bool causal, int window, int sinks) -> (Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(rancast, CPU, library) {
  library.impl("attention", TORCH_BOX(&attention));
  library.impl("attention_backward", TORCH_BOX(&attention_backward));
}
