import pytest

from dice.data.interpretation import operators_of_source
from dice.data.tracing import NotTraced, TracingWorker

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
TAIL = "\ndef get_inputs():\n    return [torch.randn(2, 4)]\n\ndef get_init_inputs():\n    return []\n"


def module(forward, init="pass"):
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, x):\n        {forward}\n{TAIL}"
    )


@pytest.fixture(scope="module")
def worker():
    with TracingWorker(timeout_s=20) as worker:
        yield worker


@pytest.mark.parametrize(
    "code",
    [
        module("return torch.relu(x).sum(dim=1)"),
        module("return self.net(x) * 2", "self.net = nn.Sequential(nn.Linear(4, 4), nn.GELU())"),
        module("return -(x @ x.T) / 2"),
        module("return nn.MSELoss()(x, x)"),
    ],
)
def test_fx_and_the_source_agree(worker, code):
    traced = worker.operators(code)
    assert traced
    read = operators_of_source(code) or []
    assert sorted(traced) == sorted(name for name in read if name != "t")  # fx has an attribute for x.T


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (module("return x if x.sum() > 0 else -x"), "TraceError"),
        ("x = 1\n", "KeyError"),
        (module("return x").replace("import torch\n", "import torch\nraise SystemExit(3)\n", 1), "SystemExit"),
        (module("return x", "open('/tmp/leak', 'w').write('x' * 10**7)"), "Error"),
        (module("return x", "import os; os._exit(0)"), "the program ended its process"),
    ],
)
def test_what_cannot_be_traced_is_given_up_with_a_reason(worker, code, reason):
    with pytest.raises(NotTraced, match=reason):
        worker.operators(code)
    assert worker.operators(module("return x.exp()")) == ["exp"]


def test_a_program_changes_nothing_for_the_next(worker):
    plain = module("return torch.relu(x)")
    worker.operators(module("return x", "torch.relu = torch.exp"))
    assert worker.operators(plain) == ["relu"]


def test_a_program_that_hangs_is_ended():
    with TracingWorker(timeout_s=8) as worker:
        worker.operators(module("return x.exp()"))
        with pytest.raises(NotTraced, match=r"no answer in 8 s"):
            worker.operators(module("return x", "while True: pass"))


def test_programs_cannot_see_files_or_the_network(worker, tmp_path):
    if "jail" not in worker.isolation and "no_network" not in worker.isolation:
        pytest.skip("this machine has no user namespaces")
    secret = tmp_path / "secret"
    secret.write_text("mine")
    with pytest.raises(NotTraced, match="FileNotFoundError"):
        worker.operators(module("return x", f"open({str(secret)!r})"))
    with pytest.raises(NotTraced, match=r"OSError|PermissionError"):
        worker.operators(module("return x", "import socket; socket.create_connection(('1.1.1.1', 53), 2)"))
