"""C++ that chooses between kernels and PyTorch by values of a tensor."""

from __future__ import annotations

import pytest

from dice.kernels.checks import static_findings
from dice.kernels.checks.cuda_choices import choices_by_content
from dice.kernels.source.cuda_source import CudaSource

SOURCE = """
#include <torch/extension.h>
__global__ void k(float* x, int n) {{ if (x[0] > 1) x[0] = 0; }}
__global__ void other(float* x) {{ x[0] = 0; }}
static bool odd(const torch::Tensor& x) {{ return x.pow(4).mean().item<float>() > 3.6f; }}
static torch::Tensor launched(torch::Tensor x) {{ k<<<1, 1>>>(x.data_ptr<float>(), 9); return x; }}
static torch::Tensor plain(torch::Tensor x) {{ return at::softmax(x, 1); }}
torch::Tensor f(torch::Tensor x) {{
    {body}
    k<<<1, 1>>>(x.data_ptr<float>(), 3);
    return x;
}}
"""


def source(body: str) -> CudaSource:
    return CudaSource(SOURCE.format(body=body))


@pytest.mark.parametrize(
    "body",
    [
        "float tails = x.pow(4).mean().item<float>(); if (tails > 3.6f || tails < 2.4f) return at::softmax(x, 1);",
        "if (x.max().item().toFloat() > 4) { auto y = torch::relu(x); return y; }",
        "if (odd(x)) return x.softmax(1);",
        "const bool rare = odd(x); if (!rare) return launched(x); else return plain(x);",
        "return odd(x) ? plain(x) : launched(x);",
        "if (at::equal(x, x.round())) { if (x.dim() > 2) { x = x.flatten(); } return plain(x); }",
        "auto way = odd(x) ? plain : launched; return way(x);",
        "switch (int(x[0].item<float>())) { case 3: return plain(x); case 4: { x = x + 1; } default: break; }",
        "if (x.data_ptr<float>()[0] > 3.9f) return plain(x);",
        "float first; cudaMemcpy(&first, x.data_ptr(), 4, cudaMemcpyDeviceToHost); if (first > 3.9f) return plain(x);",
        "if (x.dim() == 2) { if (odd(x)) return plain(x); }",
        "if (odd(x)) { launched(x); return x; } return torch::nn::functional::softmax(x, 1);",
    ],
)
def test_values_choose_between_kernels_and_pytorch(body: str) -> None:
    assert len(list(choices_by_content(source(body)))) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "if (x.numel() == 0) return at::softmax(x, 1);",
        "if (x.scalar_type() != torch::kFloat) return plain(x);",
        "if (x.all().item<bool>()) other<<<1, 1>>>(x.data_ptr<float>());",
        "if (x.max().item<float>() == 0) return torch::zeros_like(x);",
        "if (odd(x)) return launched(x.contiguous());",
        "if (odd(x)) x = at::softmax(x, 1);",
        "for (auto& item : items) { if (item.equal(1)) return launched(x); }",
        "switch (x.dim()) { case 1: return plain(x); default: break; }",
        "switch (int(odd(x))) { case 1: other<<<1, 1>>>(x.data_ptr<float>()); break; default: launched(x); }",
        "int item = 3; if (item > 2) return plain(x);",
        'if (!std::isfinite(x.sum().item<float>())) throw std::runtime_error("not finite");',
        "TORCH_CHECK(!odd(x)); float scale = odd(x) ? 1.f : 2.f;",
    ],
)
def test_kernels_run_either_way_or_sizes_choose(body: str) -> None:
    assert not list(choices_by_content(source(body)))


def test_the_reference_may_choose_as_well() -> None:
    body = "if (odd(x)) return plain(x);"
    code = f'from torch.utils.cpp_extension import load_inline\nCUDA = r"""{SOURCE.format(body=body)}"""\n'
    code += "ext = load_inline('e', '', cuda_sources=CUDA, functions=['f'])\n"
    code += "class ModelNew:\n    def forward(self, x):\n        return ext.f(x)\n"
    model = "import torch\nclass Model:\n    def forward(self, x):\n        {}return torch.softmax(x, 1)\n"
    choosing = model.format("if x.max() > 4:\n            return x\n        ")
    found = [
        [item.name for item in static_findings(code, reference_code=text)]
        for text in (None, model.format(""), choosing)
    ]
    assert ["input_sniffing" in names for names in found] == [True, True, False]
