"""A candidate of one stream gets a CUDA context with one hardware queue."""

import pytest

from dice.kernels.grader.sequence import connections
from dice.kernels.sandbox.isolation import SandboxSpec, environment

ONE_STREAM = "k<<<g, b, 0, at::cuda::getCurrentCUDAStream()>>>(x); // threadIdx.x, __syncthreads(), cudaStream_t stream"


@pytest.mark.parametrize(
    "code",
    [
        "cudaStreamCreate(&s);",
        "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);",
        "auto s = at::cuda::getStreamFromPool();",
        "side = torch.cuda.Stream()",
        "with torch.cuda.stream(side):",
        "torch.cuda.CUDAGraph()",
        "cudaStreamBeginCapture(s, m);",
        "std::thread (work)",
        "threading.Thread(target=work)",
    ],
)
def test_whoever_works_on_several_streams_keeps_the_default(code):
    assert connections(code) is None
    assert connections(ONE_STREAM) == 1


@pytest.mark.parametrize("queues", [None, 1])
def test_the_environment_says_so(queues, monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    spec = SandboxSpec(
        scratch_bytes=1, file_bytes=1, processes=1, data_bytes=None, cuda_visible_devices="0",
        cuda_connections=queues, threads=1,
    )  # fmt: skip
    expected = None if queues is None else "1"
    assert environment(spec, "/scratch").get("CUDA_DEVICE_MAX_CONNECTIONS") == expected
