#pragma once

#include "../../dice_cpu/torch_cuda.h"
