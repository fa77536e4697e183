// Which instruction set's kernels this machine runs.
#pragma once

#include "problem.h"

namespace rancast {

// The best that the processor and its system support, or what RANCAST_CPU_ISA names if they do.
const char* chosen_isa();
const Kernels& chosen_kernels();

}  // namespace rancast
