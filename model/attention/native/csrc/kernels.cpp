// One instruction set's kernels; compiled once for each, with its flags and RANCAST_ISA.
#include "backward.h"
#include "forward.h"

#define RANCAST_CONCAT_(a, b) a##b
#define RANCAST_CONCAT(a, b) RANCAST_CONCAT_(a, b)

namespace rancast {

Kernels RANCAST_CONCAT(RANCAST_ISA, _kernels)() {
  using namespace RANCAST_ISA;
  return {
      forward_items<float>, forward<FloatMath, float>, forward_items<bfloat16>,
      forward<NarrowMath, bfloat16>, backward<float>, backward<bfloat16>,
      forward_blocks<float>,
  };
}

}  // namespace rancast
