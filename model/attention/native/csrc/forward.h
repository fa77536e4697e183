// The forward pass: exact online softmax over blocks of keys, for a few panels of queries at a time.
//
// A panel is up to two vectors of queries, one a lane. Its scores are (keys, lanes), so maximum and
// sum of the softmax run down the rows, and no lane ever has to be added to another. Of each lane
// are kept the largest score so far, the sum of exponentials and the weighted sum of values, all of
// them in powers of two: scores are scaled by scale * log2(e), with the queries or afterwards.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "pair_math.h"
#include "stage.h"
#include "visible.h"

namespace rancast {
namespace RANCAST_ISA {

constexpr int64_t kGroup = 4;  // panels for which a block of keys is staged once
constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.69314718055994530942f;

struct Release {
  void operator()(float* memory) const { std::free(memory); }
};

inline std::unique_ptr<float[], Release> allocate(int64_t floats) {
  size_t bytes = (size_t(floats) * 4 + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, bytes ? bytes : 64);
  if (!memory) throw std::bad_alloc();
#if defined(RANCAST_FILL_SCRATCH)
  std::memset(memory, 0xff, bytes);  // so that a test sees what is read before it is written
#endif
  return std::unique_ptr<float[], Release>(static_cast<float*>(memory));
}

// What is kept of a panel between blocks of keys.
template <typename Math>
struct Panel {
  int64_t first, count;      // queries
  typename Math::Element* q;  // (query_rows, kPanel)
  float* sum;                // (sum_rows, kPanel), weighted values
  float* largest;            // (kPanel,)
  float* total;              // (kPanel,)
  bool fresh;                // has seen no block yet: the three above mean nothing

  Range positions(int64_t offset) const { return {first + offset, first + count + offset}; }
  int vectors() const { return count > kLanes ? 2 : 1; }
};

template <typename Math>
class ForwardScratch {
 public:
  using Element = typename Math::Element;

  explicit ForwardScratch(int64_t width)
      : memory_(allocate(kGroup * (Math::query_rows(width) + Math::sum_rows(width) + 2) * kPanel +
                         Math::block_elements(width) + 2 * kBlock * kPanel + kPanel * width)) {
    float* next = memory_.get();
    auto take = [&next](int64_t floats) {
      float* start = next;
      next += floats;
      return start;
    };
    for (Panel<Math>& panel : panels) {
      panel.q = reinterpret_cast<Element*>(take(Math::query_rows(width) * kPanel));
      panel.sum = take(Math::sum_rows(width) * kPanel);
      panel.largest = take(kPanel);
      panel.total = take(kPanel);
    }
    block = reinterpret_cast<Element*>(take(Math::block_elements(width)));
    scores = take(kBlock * kPanel);
    weights = take(kBlock * kPanel);
    rows = take(kPanel * width);
  }

  Panel<Math> panels[kGroup];
  Element* block;  // where keys and values are staged
  int32_t positions[kBlock];
  float* scores;   // (kBlock, kPanel)
  float* weights;  // the same, in the elements of the product
  float* rows;     // (kPanel, D)

 private:
  std::unique_ptr<float[], Release> memory_;
};

template <typename Math, typename T>
inline void load_panel(const Problem<T>& p, int64_t b, int64_t h, Panel<Math>& panel,
                       float* rows) {
  for (int64_t i = 0; i < panel.count; ++i)
    load_query(p, b, h, panel.first + i, rows + i * p.width);
  Math::pack_queries(rows, p.width, panel.count, p.scale * kLog2E, panel.q);
  panel.fresh = true;
}

// Scale, bias and mask of `count` rows of scores; `positions` are those of the keys.
template <int kVectors>
inline void adjust_scores(const MaskTerms& mask, float scale, float slope, bool partial,
                          int64_t first_position, const int32_t* positions, int64_t count,
                          float* scores) {
  for (int x = 0; x < kVectors; ++x) {
    IntVec queries = lane_numbers() + int32_t(first_position + x * kLanes);
    for (int64_t i = 0; i < count; ++i) {
      float* row = scores + i * kPanel + x * kLanes;
      Vec score = load(row) * scale;
      if (slope != 0) {
        IntVec distance = queries - positions[i];
        score -= slope * to_float(select(distance < 0, -distance, distance));
      }
      store(row, partial ? hide(mask, score, queries, positions[i]) : score);
    }
  }
}

// Scores, times `scale`, to weights; the panel's sums are brought to the new maximum first.
template <int kVectors, typename Math>
inline void soften(Panel<Math>& panel, int64_t width, int64_t count, float scale,
                   const float* scores, float* weights) {
  for (int x = 0; x < kVectors; ++x) {
    const float* column = scores + x * kLanes;
    float* largest_at = panel.largest + x * kLanes;
    float* total_at = panel.total + x * kLanes;
    auto score = [&](int64_t i) {
      Vec raw = load(column + i * kPanel);
      return Math::kScalesQueries ? raw : raw * scale;
    };
    Vec before = panel.fresh ? broadcast(-__builtin_inff()) : load(largest_at), largest = before;
    for (int64_t i = 0; i < count; ++i) largest = max(largest, score(i));
    // A lane that has seen nothing yet has -inf; -inf less -inf would be NaN, -inf less 0 is not.
    Vec pivot = select(largest == -__builtin_inff(), Vec{}, largest);
    Vec total = panel.fresh ? Vec{} : load(total_at);
    if (panel.fresh) {
      store(largest_at, largest);
    } else if (any_below(before, largest)) {
      Vec shrink = exp2_of_negative(before - pivot);
      total *= shrink;
      for (int64_t d = 0; d < width; ++d) {
        float* row = panel.sum + d * kPanel + x * kLanes;
        store(row, load(row) * shrink);
      }
      store(largest_at, largest);
    }
    auto weight = [&](int64_t i) {
      Vec one = exp2_of_negative(score(i) - pivot);
      total += one;
      return one;
    };
    Math::store_weights(weight, count, x, weights);
    store(total_at, total);
  }
}

template <int kVectors, typename Math, typename T>
inline void attend(const Problem<T>& p, int64_t h, Panel<Math>& panel,
                   const typename Math::Block& block, ForwardScratch<Math>& scratch) {
  Range at = panel.positions(p.offset());
  int64_t first = at.begin, last = at.end - 1;
  Range near = near_keys(p.mask, p.keys, first, last);
  Range sinks = sink_keys(p.mask, p.keys, last);
  // Rows between the first and the last key that some query of the panel sees.
  auto seen = [&](int64_t key) {
    return (key >= near.begin && key < near.end) || (key >= sinks.begin && key < sinks.end);
  };
  int64_t begin = 0, end = block.count;
  while (begin < end && !seen(block.positions[begin])) ++begin;
  while (end > begin && !seen(block.positions[end - 1])) --end;
  if (begin == end) return;
  begin -= begin % Math::kRowStep;
  int64_t count = end - begin;
  const int32_t* positions = block.positions + begin;
  Math::template scores<kVectors>(block, begin, count, panel.q, p.width, scratch.scores);
  bool partial = !all_visible(p.mask, {positions[0], positions[count - 1] + 1}, first, last);
  float slope = p.mask.alibi ? p.mask.alibi[h] * kLog2E : 0.0f;
  float scale = Math::kScalesQueries ? 1.0f : p.scale * kLog2E;
  if (partial || slope != 0) {
    adjust_scores<kVectors>(p.mask, scale, slope, partial, first, positions, count,
                            scratch.scores);
    scale = 1;
  }
  soften<kVectors>(panel, p.width, count, scale, scratch.scores, scratch.weights);
  auto* weights = reinterpret_cast<typename Math::Element*>(scratch.weights);
  if (panel.fresh)
    Math::template add_values<kVectors, Into::kOverwrite>(block, begin, count, weights, p.width,
                                                          panel.sum);
  else
    Math::template add_values<kVectors, Into::kAdd>(block, begin, count, weights, p.width,
                                                    panel.sum);
  panel.fresh = false;
}

template <typename Math, typename T>
inline void store_panel(const Problem<T>& p, int64_t b, int64_t h, const Panel<Math>& panel,
                        float* rows) {
  if (panel.fresh) {
    std::fill_n(panel.sum, Math::sum_rows(p.width) * kPanel, 0.0f);
    std::fill_n(panel.largest, kPanel, -__builtin_inff());
    std::fill_n(panel.total, kPanel, 0.0f);
  }
  for (int64_t x = 0; x < panel.vectors() * kLanes; x += kLanes) {
    Vec total = load(panel.total + x);
    Vec inverse = 1.0f / select(total == 0.0f, broadcast(1.0f), total);
    for (int64_t d = 0; d < p.width; ++d) {
      float* row = panel.sum + d * kPanel + x;
      store(row, load(row) * inverse);
    }
  }
  T* output = p.output.row(b, h, panel.first);
  int64_t stride = p.output.strides.row;
  if constexpr (sizeof(T) == sizeof(float)) {
    transpose(panel.sum, kPanel, p.width, panel.count, output, stride);
  } else {
    transpose(panel.sum, kPanel, p.width, panel.count, rows, p.width);
    for (int64_t i = 0; i < panel.count; ++i)
      for (int64_t d = 0; d < p.width; ++d)
        from_float(rows[i * p.width + d], output + i * stride + d);
  }
  if (!p.lse) return;
  float* lse = p.lse + (b * p.heads + h) * p.queries + panel.first;
  for (int64_t i = 0; i < panel.count; ++i)
    lse[i] = (panel.largest[i] + std::log2(panel.total[i])) * kLn2;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
inline int64_t groups(const Problem<T>& p) {
  return ceil_div(p.queries, kGroup * kPanel);
}

template <typename Math, typename T>
inline void forward_item(const Problem<T>& p, int64_t item, ForwardScratch<Math>& scratch) {
  int64_t group = item % groups(p), row = item / groups(p);
  int64_t b = row / p.heads, h = row % p.heads;
  int64_t first = group * kGroup * kPanel, end = std::min(first + kGroup * kPanel, p.queries);
  int64_t panels = ceil_div(end - first, kPanel);
  for (int64_t i = 0; i < panels; ++i) {
    Panel<Math>& panel = scratch.panels[i];
    panel.first = first + i * kPanel;
    panel.count = std::min(kPanel, end - panel.first);
    load_panel(p, b, h, panel, scratch.rows);
  }
  int64_t offset = p.offset();
  for_each_block(p.mask, p.keys, first + offset, end - 1 + offset, [&](Range keys) {
    auto block = Math::stage(p, b, h, keys.begin, keys.end, scratch.block, scratch.positions);
    if (block.count == 0) return;
    for (int64_t i = 0; i < panels; ++i) {
      Panel<Math>& panel = scratch.panels[i];
      if (panel.vectors() == 2)
        attend<2>(p, h, panel, block, scratch);
      else
        attend<1>(p, h, panel, block, scratch);
    }
  });
  for (int64_t i = 0; i < panels; ++i) store_panel(p, b, h, scratch.panels[i], scratch.rows);
}

template <typename T>
int64_t forward_items(const Problem<T>& p) {
  return p.batch * p.heads * groups(p);
}

// Blocks of keys that one (batch row, head) reads, for a test to count.
template <typename T>
int64_t forward_blocks(const Problem<T>& p) {
  int64_t blocks = 0, offset = p.offset();
  for (int64_t first = 0; first < p.queries; first += kGroup * kPanel) {
    int64_t end = std::min(first + kGroup * kPanel, p.queries);
    for_each_block(p.mask, p.keys, first + offset, end - 1 + offset, [&](Range) { ++blocks; });
  }
  return blocks;
}

template <typename Math, typename T>
void forward(const Problem<T>& p, int64_t begin, int64_t end) {
  ForwardScratch<Math> scratch(p.width);
  Math::begin();
  for (int64_t item = begin; item < end; ++item) forward_item(p, item, scratch);
  Math::end();
}

}  // namespace RANCAST_ISA
}  // namespace rancast
