#pragma once

#include "CUDAContext.h"
