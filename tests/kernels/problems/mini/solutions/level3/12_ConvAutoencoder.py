"""Two direct kernels: strided convolution with ReLU, and its transpose in gather form with sigmoid."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void encode_kernel(const float* x, const float* weight, const float* bias, float* y, int n, int in_channels,
                              int out_channels, int height, int width, int out_height, int out_width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = i % out_width, r = i / out_width % out_height;
    int o = i / (out_width * out_height) % out_channels, image = i / (out_width * out_height * out_channels);
    float sum = bias[o];
    for (int c = 0; c < in_channels; ++c) {
        const float* in = x + (size_t)(image * in_channels + c) * height * width;
        for (int a = 0; a < 3; ++a) {
            for (int b = 0; b < 3; ++b) {
                int row = 2 * r + a - 1, column = 2 * q + b - 1;
                if (row >= 0 && row < height && column >= 0 && column < width)
                    sum += in[row * width + column] * weight[(o * in_channels + c) * 9 + a * 3 + b];
            }
        }
    }
    y[i] = fmaxf(sum, 0.0f);
}

__global__ void decode_kernel(const float* x, const float* weight, const float* bias, float* y, int n, int in_channels,
                              int out_channels, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int out_width = 2 * width, out_height = 2 * height;
    int q = i % out_width, r = i / out_width % out_height;
    int o = i / (out_width * out_height) % out_channels, image = i / (out_width * out_height * out_channels);
    float sum = bias[o];
    for (int a = (r + 1) % 2; a < 4; a += 2) {
        int row = (r + 1 - a) / 2;
        if (r + 1 < a || row >= height) continue;
        for (int b = (q + 1) % 2; b < 4; b += 2) {
            int column = (q + 1 - b) / 2;
            if (q + 1 < b || column >= width) continue;
            for (int c = 0; c < in_channels; ++c)
                sum += x[((size_t)(image * in_channels + c) * height + row) * width + column] *
                       weight[(c * out_channels + o) * 16 + a * 4 + b];
        }
    }
    y[i] = 1.0f / (1.0f + expf(-sum));
}

torch::Tensor autoencode(torch::Tensor x, torch::Tensor encoder_weight, torch::Tensor encoder_bias,
                         torch::Tensor decoder_weight, torch::Tensor decoder_bias) {
    int batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
    int hidden = encoder_weight.size(0), code_height = (height + 1) / 2, code_width = (width + 1) / 2;
    auto code = torch::empty({batch, hidden, code_height, code_width}, x.options());
    auto y = torch::empty({batch, channels, 2 * code_height, 2 * code_width}, x.options());
    int n = code.numel(), m = y.numel();
    encode_kernel<<<(n + 127) / 128, 128>>>(
        x.data_ptr<float>(), encoder_weight.data_ptr<float>(), encoder_bias.data_ptr<float>(), code.data_ptr<float>(),
        n, channels, hidden, height, width, code_height, code_width);
    decode_kernel<<<(m + 127) / 128, 128>>>(
        code.data_ptr<float>(), decoder_weight.data_ptr<float>(), decoder_bias.data_ptr<float>(), y.data_ptr<float>(),
        m, hidden, channels, code_height, code_width);
    return y;
}
"""

cpp_source = """
torch::Tensor autoencode(torch::Tensor x, torch::Tensor encoder_weight, torch::Tensor encoder_bias,
                         torch::Tensor decoder_weight, torch::Tensor decoder_bias);
"""

kernels = load_inline(
    name="mini_autoencoder", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["autoencode"]
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, hidden_channels):
        super().__init__()
        self.encoder = nn.Conv2d(in_channels, hidden_channels, 3, stride=2, padding=1)
        self.decoder = nn.ConvTranspose2d(hidden_channels, in_channels, 4, stride=2, padding=1)
        nn.init.normal_(self.encoder.bias, std=0.3)
        nn.init.normal_(self.decoder.weight, std=(4 * hidden_channels) ** -0.5)
        nn.init.normal_(self.decoder.bias, std=0.5)

    def forward(self, x):
        encoder, decoder = self.encoder, self.decoder
        return kernels.autoencode(x.contiguous(), encoder.weight, encoder.bias, decoder.weight, decoder.bias)
