#include "dispatch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace rancast {
namespace {

struct Choice {
  const char* name;
  bool supported;
  Kernels (*kernels)();
};

[[maybe_unused]] bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

[[maybe_unused]] bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

// Linux gives a process the tiles' registers only when it asks; a container may be refused them.
[[maybe_unused]] bool has_amx() {
#if defined(RANCAST_EMULATE_TILES)
  return has_avx512_bf16();
#endif
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return has_avx512_bf16() && __builtin_cpu_supports("amx-tile") &&
         __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Choice choose() {
  const Choice choices[] = {
#if defined(RANCAST_HAS_AMX)
      {"amx", has_amx(), amx_kernels},
#endif
#if defined(RANCAST_HAS_AVX512_BF16)
      {"avx512_bf16", has_avx512_bf16(), avx512_bf16_kernels},
#endif
#if defined(RANCAST_HAS_AVX512)
      {"avx512", has_avx512(), avx512_kernels},
#endif
      {"avx2", has_avx2(), avx2_kernels},
  };
  const char* wanted = std::getenv("RANCAST_CPU_ISA");
  for (const Choice& choice : choices)
    if (choice.supported && (!wanted || !*wanted || std::strcmp(wanted, choice.name) == 0))
      return choice;
  return {"none", false, nullptr};
}

struct Chosen {
  Choice choice = choose();
  Kernels kernels = choice.kernels ? choice.kernels() : Kernels{};
};

const Chosen& chosen() {
  static const Chosen once;
  return once;
}

}  // namespace

const char* chosen_isa() { return chosen().choice.name; }
const Kernels& chosen_kernels() { return chosen().kernels; }

}  // namespace rancast

extern "C" {

__attribute__((visibility("default"))) const char* rancast_attention_isa() { return rancast::chosen_isa(); }

// How many blocks of keys a forward pass of one head reads; 0 where no kernel runs. For tests.
__attribute__((visibility("default"))) int64_t rancast_attention_blocks(int64_t queries, int64_t keys, bool causal,
                                                                        int64_t window, int64_t sinks) {
  const rancast::Kernels& kernels = rancast::chosen_kernels();
  if (!kernels.forward_blocks) return 0;
  rancast::Problem<float> p;
  p.queries = queries;
  p.keys = keys;
  p.mask = rancast::MaskTerms::of(causal, window, sinks, std::max(queries, keys));
  return kernels.forward_blocks(p);
}
}
