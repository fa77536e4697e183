// The tokeniser as one plain function, called through ctypes. Tensors are dense, in the order of
// their axes: B windows, K KPIs, T samples of history, N patches, M future samples, F inputs of a
// token, C candidates.

#include "tokens.h"

#include <new>

// What the caller's idea of a plan has to be as large as.
extern "C" int64_t rancast_plan_bytes() { return sizeof(rancast::Plan); }

// 0, or 1 where there is not enough memory.
extern "C" int rancast_tokens(
    const rancast::Plan* plan, int64_t windows, int64_t kpis,
    const float* values,    // (B, K, T)
    const float* calendar,  // (B, N, calendar_width)
    const float* planned,   // (B, N, planned_stride)
    const float* lower,     // (B, K)
    const float* upper,     // (B, K)
    const bool* present,    // (B, K)
    float* inputs,          // (B, K, N, F), zeros
    bool* visible,          // (B, K, N)
    double* mean,           // (B, K)
    double* spread,         // (B, K)
    float* copies,          // (B, K, M, C), zeros
    bool* known) try {      // (B, K, M, C), false
  rancast::Tokeniser tokeniser(*plan);
  const int64_t patches = plan->context_patches + plan->future_patches;
  const int64_t offered = plan->future() * plan->candidates;
  for (int64_t window = 0; window < windows; ++window) {
    for (int64_t s = window * kpis; s < (window + 1) * kpis; ++s) {
      const rancast::Series series{
          values + s * plan->steps,
          calendar + window * patches * plan->calendar_width,
          planned + window * patches * plan->planned_stride,
          lower[s], upper[s], present[s]};
      const rancast::Answer answer{
          inputs + s * patches * plan->width, visible + s * patches,
          mean + s, spread + s, copies + s * offered, known + s * offered};
      tokeniser.run(series, answer);
    }
  }
  return 0;
} catch (const std::bad_alloc&) {
  return 1;
}
