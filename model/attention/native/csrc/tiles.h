// Products by AMX tiles: 16 rows of 16 pairs of bfloat16 times 16 pairs of 16 lanes.
//
// Where RANCAST_EMULATE_TILES is defined the tile instructions are plain loops with the meaning that
// Intel's architecture manual gives them, so that everything around them is tested on any machine.
#pragma once

#include "product.h"

namespace rancast {
namespace RANCAST_ISA {

constexpr int64_t kTile = 16;

#if defined(RANCAST_EMULATE_TILES)

struct Tile {
  uint32_t row[kTile][kTile];
};

inline Tile& tile(int number) {
  static thread_local Tile tiles[8];
  return tiles[number];
}

inline void configure_tiles() {}
inline void release_tiles() {}

template <int kNumber>
inline void zero_tile() {
  std::memset(&tile(kNumber), 0, sizeof(Tile));
}

template <int kNumber>
inline void load_tile(const void* from, int64_t stride) {
  for (int i = 0; i < kTile; ++i)
    std::memcpy(tile(kNumber).row[i], static_cast<const char*>(from) + i * stride * 4, 64);
}

template <int kNumber>
inline void store_tile(void* to, int64_t stride) {
  for (int i = 0; i < kTile; ++i)
    std::memcpy(static_cast<char*>(to) + i * stride * 4, tile(kNumber).row[i], 64);
}

template <int kSum, int kLeft, int kRight>
inline void add_tile_product() {
  for (int i = 0; i < kTile; ++i)
    for (int k = 0; k < kTile; ++k)
      for (int j = 0; j < kTile; ++j) {
        uint32_t left = tile(kLeft).row[i][k], right = tile(kRight).row[k][j];
        float sum;
        std::memcpy(&sum, &tile(kSum).row[i][j], 4);
        sum += to_float(bfloat16(left)) * to_float(bfloat16(right));
        sum += to_float(bfloat16(left >> 16)) * to_float(bfloat16(right >> 16));
        std::memcpy(&tile(kSum).row[i][j], &sum, 4);
      }
}

#else

// The compiler's own intrinsics take tile numbers as text, which a template has not, and name only
// the first bytes of the configuration as read.

inline void configure_tiles() {
  struct {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("ldtilecfg %0" : : "m"(config));
}

inline void release_tiles() { asm volatile("tilerelease"); }

template <int kNumber>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kNumber));
}

template <int kNumber>
inline void load_tile(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride * 4), "i"(kNumber) : "memory");
}

template <int kNumber>
inline void store_tile(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride * 4), "i"(kNumber) : "memory");
}

template <int kSum, int kLeft, int kRight>
inline void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
}

#endif

// Tiles 0 to 3 are sums (row tile, vector), 4 and 5 the left factors, 6 and 7 the right ones.
template <int kRowTiles, int kVectors, Into kInto>
inline void tile_rows(const Pair* a, int64_t a_stride, const Pair* b, int64_t b_stride, float* c,
                      int64_t c_stride, int64_t depth) {
  constexpr bool kLower = kRowTiles == 2, kSecond = kVectors == 2;
  float* lower = c + kTile * c_stride;
  if constexpr (kInto == Into::kAdd) {
    load_tile<0>(c, c_stride);
    if constexpr (kSecond) load_tile<1>(c + kTile, c_stride);
    if constexpr (kLower) load_tile<2>(lower, c_stride);
    if constexpr (kLower && kSecond) load_tile<3>(lower + kTile, c_stride);
  } else {
    zero_tile<0>();
    if constexpr (kSecond) zero_tile<1>();
    if constexpr (kLower) zero_tile<2>();
    if constexpr (kLower && kSecond) zero_tile<3>();
  }
  for (int64_t k = 0; k < depth; k += kTile) {
    load_tile<4>(a + k, a_stride);
    load_tile<6>(b + k * b_stride, b_stride);
    add_tile_product<0, 4, 6>();
    if constexpr (kSecond) {
      load_tile<7>(b + k * b_stride + kTile, b_stride);
      add_tile_product<1, 4, 7>();
    }
    if constexpr (kLower) {
      load_tile<5>(a + kTile * a_stride + k, a_stride);
      add_tile_product<2, 5, 6>();
      if constexpr (kSecond) add_tile_product<3, 5, 7>();
    }
  }
  store_tile<0>(c, c_stride);
  if constexpr (kSecond) store_tile<1>(c + kTile, c_stride);
  if constexpr (kLower) store_tile<2>(lower, c_stride);
  if constexpr (kLower && kSecond) store_tile<3>(lower + kTile, c_stride);
}

// As `product` with a row-major left factor, for whole tiles: rows of both sides are there up to
// the next multiple of kTile, and depth is one.
template <int kVectors, Into kInto>
inline void tile_product(int64_t rows, const Pair* a, int64_t a_stride, const Pair* b,
                         int64_t b_stride, float* c, int64_t c_stride, int64_t depth) {
  for (int64_t m = 0; m < rows; m += 2 * kTile) {
    if (rows - m > kTile)
      tile_rows<2, kVectors, kInto>(a + m * a_stride, a_stride, b, b_stride, c + m * c_stride,
                                    c_stride, depth);
    else
      tile_rows<1, kVectors, kInto>(a + m * a_stride, a_stride, b, b_stride, c + m * c_stride,
                                    c_stride, depth);
  }
}

}  // namespace RANCAST_ISA
}  // namespace rancast
