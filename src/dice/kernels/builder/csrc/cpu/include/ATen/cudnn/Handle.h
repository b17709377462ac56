#pragma once

#include "../../cudnn.h"
#include "../cuda/Exceptions.h"

namespace at::native {

inline cudnnHandle_t getCudnnHandle() { return dice_cpu_dnn_default(); }

}  // namespace at::native
