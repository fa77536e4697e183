// Which keys a run of queries may see, by positions: the tile skipper.
#pragma once

#include <algorithm>
#include <array>

#include "stage.h"

namespace rancast {
namespace RANCAST_ISA {

struct Range {
  int64_t begin, end;
  bool empty() const { return begin >= end; }
};

// Keys near enough to some of the positions [first, last], sinks aside.
inline Range near_keys(const MaskTerms& mask, int64_t keys, int64_t first, int64_t last) {
  Range range{0, keys};
  if (mask.causal) range.end = std::min(range.end, last + 1);
  if (mask.window < INT64_MAX) {
    range.begin = std::max(range.begin, first - mask.window + 1);
    range.end = std::min(range.end, last + mask.window);
  }
  return range;
}

// Sinks that come no later than `last`, where order matters.
inline Range sink_keys(const MaskTerms& mask, int64_t keys, int64_t last) {
  int64_t end = std::min(mask.sinks, keys);
  return {0, mask.causal ? std::min(end, last + 1) : end};
}

// All keys that some of the positions [first, last] see, as ranges in order that do not overlap.
inline std::array<Range, 2> seen_keys(const MaskTerms& mask, int64_t keys, int64_t first,
                                      int64_t last) {
  Range near = near_keys(mask, keys, first, last), sinks = sink_keys(mask, keys, last);
  if (sinks.empty() || near.empty()) return {sinks, near};
  if (near.begin > sinks.end) return {sinks, near};
  return {Range{0, std::max(near.end, sinks.end)}, Range{0, 0}};
}

// Calls `visit` with every block of keys that some of the positions [first, last] see, in order.
template <typename Visit>
inline void for_each_block(const MaskTerms& mask, int64_t keys, int64_t first, int64_t last,
                           Visit visit) {
  for (Range range : seen_keys(mask, keys, first, last))
    for (int64_t key = range.begin; key < range.end; key += kBlock)
      visit(Range{key, std::min(key + kBlock, range.end)});
}

// Whether every one of the positions [first, last] sees every key of a block.
inline bool all_visible(const MaskTerms& mask, Range block, int64_t first, int64_t last) {
  if (mask.causal && block.end - 1 > first) return false;
  if (mask.window == INT64_MAX || block.end <= mask.sinks) return true;
  return last - block.begin < mask.window && block.end - 1 - first < mask.window;
}

// Scores of one key for kLanes queries at `positions`: -inf where it is hidden.
inline Vec hide(const MaskTerms& mask, Vec scores, IntVec positions, int64_t key) {
  Vec hidden = broadcast(-__builtin_inff());
  IntVec distance = positions - int32_t(key);
  if (mask.causal) scores = select(distance >= 0, scores, hidden);
  if (mask.window < INT64_MAX && key >= mask.sinks) {
    int32_t window = int32_t(mask.window);
    scores = select((distance < window) & (-distance < window), scores, hidden);
  }
  return scores;
}

}  // namespace RANCAST_ISA
}  // namespace rancast
