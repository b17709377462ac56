# problem: conv_relu
# mechanism: convolution and ReLU in one kernel, nn.Conv2d only holds the weights
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="conv_direct",
    cpp_sources="torch::Tensor conv_relu(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_relu_kernel(const float* x, const float* w, const float* b, float* y,
                                 int batch, int cin, int cout, int h, int wd) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * cout * h * wd) return;
    int col = i % wd, row = i / wd % h, oc = i / (wd * h) % cout, n = i / (wd * h * cout);
    float sum = b[oc];
    for (int ic = 0; ic < cin; ++ic)
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
                int yy = row + dy, xx = col + dx;
                if (yy < 0 || yy >= h || xx < 0 || xx >= wd) continue;
                sum += x[((n * cin + ic) * h + yy) * wd + xx] * w[((oc * cin + ic) * 3 + dy + 1) * 3 + dx + 1];
            }
    y[i] = fmaxf(sum, 0.f);
}

torch::Tensor conv_relu(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int batch = x.size(0), cin = x.size(1), h = x.size(2), wd = x.size(3), cout = w.size(0);
    auto y = torch::empty({batch, cout, h, wd}, x.options());
    int n = y.numel();
    conv_relu_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                               y.data_ptr<float>(), batch, cin, cout, h, wd);
    return y;
}
""",
    functions=["conv_relu"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        return ext.conv_relu(x, self.conv.weight, self.conv.bias)
