// Warp functions under PyTorch's names.
#pragma once

#include "../../dice_cpu/torch_cuda.h"

template <typename T>
inline T WARP_SHFL(T value, int lane, int width = 32, unsigned mask = 0xffffffff) { return __shfl_sync(mask, value, lane, width); }
template <typename T>
inline T WARP_SHFL_UP(T value, unsigned delta, int width = 32, unsigned mask = 0xffffffff) { return __shfl_up_sync(mask, value, delta, width); }
template <typename T>
inline T WARP_SHFL_DOWN(T value, unsigned delta, int width = 32, unsigned mask = 0xffffffff) { return __shfl_down_sync(mask, value, delta, width); }
template <typename T>
inline T WARP_SHFL_XOR(T value, int lane_mask, int width = 32, unsigned mask = 0xffffffff) { return __shfl_xor_sync(mask, value, lane_mask, width); }
inline unsigned WARP_BALLOT(int predicate, unsigned mask = 0xffffffff) { return __ballot_sync(mask, predicate); }
inline void WARP_SYNC(unsigned mask = 0xffffffff) { __syncwarp(mask); }
template <typename T>
inline T doLdg(const T* p) { return *p; }
