"""The adapters, called as the other projects call them. What is said of a project's call is copied by hand from its source:
verl 0.9.1, TRL 1.16.0, verifiers 0.4.0, slime and KernelGYM as of November 2026."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from service_start import PROBLEMS, http, run, service, transport
from verdicts import verdict

from dice.errors import HarnessError
from dice.service.adapters import trl, verl
from dice.service.adapters.kernelgym import result
from dice.service.adapters.reward import reward
from dice.service.client import AsyncClient


def answer(code: str) -> str:
    return f"<think>hm</think>\n```python\n{code}\n```"


@contextlib.asynccontextmanager
async def asked_by(module: str, tmp_path, monkeypatch, **settings):
    """A service that the adapter `module` finds under any URL."""
    async with contextlib.AsyncExitStack() as stack:
        dispatcher = await stack.enter_async_context(service(tmp_path, monkeypatch, **settings))
        asked = AsyncClient("http://service", transport=transport(dispatcher), retries=0)
        client = await stack.enter_async_context(asked)
        monkeypatch.setattr(f"{module}.shared_client", lambda url: client)
        yield dispatcher


def test_verl(tmp_path, monkeypatch):
    """verl loads the function, merges `reward_kwargs` into each call, and awaits it (`NaiveRewardManager.run_single`)."""

    async def merged(raw, extra, **given):
        return await raw(**{**given, **extra})

    async def test():
        assert inspect.iscoroutinefunction(verl.compute_score)
        score = functools.partial(merged, verl.compute_score, {"url": "http://service"})
        row = {"data_source": "cuke", "extra_info": {"num_turns": None, "rollout_reward_scores": {}}}
        router = {"reward_router_address": None, "reward_model_tokenizer": None}
        async with asked_by(verl.__name__, tmp_path, monkeypatch):
            found = [
                await score(solution_str=answer(code), ground_truth=truth, **row, **router)
                for code, truth in [("right", "square"), ("wrong", "square"), ("right", PROBLEMS["cube"])]
            ]
            assert [one["score"] for one in found] == [1.0, 0.0, 1.0]
            assert found[1]["status"] == "wrong_value"
            assert (await score(solution_str="no", ground_truth="cube", **row))["status"] == "no_code"
            with pytest.raises(HarnessError, match="fell off the bus"):
                await score(solution_str=answer("host_error always"), ground_truth="square", **row)

    run(test)


def test_trl(tmp_path, monkeypatch):
    """`GRPOTrainer._calculate_rewards` awaits the function with every column as a list, and makes NaN of None."""

    async def test():
        function = trl.kernel_reward("http://service")
        assert inspect.iscoroutinefunction(function)
        assert function.__name__ == "verified_kernel"
        codes = ["right", "wrong", "host_error always", "right"]
        more = {"trainer_state": None, "log_extra": print, "log_metric": print}
        async with asked_by(trl.__name__, tmp_path, monkeypatch, retries=0):
            texts = [answer(code) for code in codes]
            asked = {
                "prompts": ["p"] * 4,
                "completion_ids": [[1]] * 4,
                "problem_id": ["square", "square", "cube", "cube"],
            }
            assert await function(completions=texts, **asked, **more) == [1.0, 0.0, None, 1.0]
            messages = [[{"role": "assistant", "content": text}] for text in texts]
            code = [None, None, None, PROBLEMS["square"]]
            assert await function(completions=messages, problem_code=code, **asked, **more) == [1.0, 0.0, None, 1.0]

    run(test)


def test_slime(tmp_path, monkeypatch):
    """`remote_rm` posts three fields, raises for any status but success, and takes the JSON for the reward."""

    async def test():
        async with service(tmp_path, monkeypatch, retries=0) as dispatcher, http(dispatcher) as client:

            async def remote_rm(response, label):
                posted = await client.post("/slime", json={"prompt": "p", "response": response, "label": label})
                posted.raise_for_status()
                return posted.json()

            assert await remote_rm(answer("right"), "square") == 1.0
            assert await remote_rm(answer("wrong"), "square") == 0.0
            assert await remote_rm("no code", {"problem_id": "x", "problem_code": PROBLEMS["cube"]}) == 0.0
            failed = await client.post("/slime", json={"response": answer("host_error always"), "label": "cube"})
            assert (failed.status_code, "retry-after" in failed.headers) == (503, True)
            for label in ("", {"problem_id": ""}):
                refused = await client.post("/slime", json={"response": answer("right"), "label": label})
                assert refused.status_code == 422

    run(test)


def test_kernelgym(tmp_path, monkeypatch):
    """Its clients post a task, poll its status until `completed`, and read the result; 503 makes them ask again."""
    task = {"task_id": "rl_000001", "reference_code": PROBLEMS["cube"], "toolkit": "kernelbench", "backend": "cuda",
            "num_correct_trials": 5, "timeout": 300, "priority": "normal", "entry_point": "Model"}  # fmt: skip

    async def test():
        async with service(tmp_path, monkeypatch, retries=0) as dispatcher, http(dispatcher) as client:
            assert (await client.get("/status/rl_000001")).status_code == 404
            assert (await client.post("/evaluate", json=task | {"kernel_code": "wrong"})).status_code == 200
            assert (await client.get("/status/rl_000001")).json()["status"] == "completed"
            found = (await client.get("/results/rl_000001")).json()
            assert {name: found[name] for name in ("task_id", "compiled", "correctness", "decoy_kernel", "speedup")} == {
                "task_id": "rl_000001", "compiled": True, "correctness": False, "decoy_kernel": False, "speedup": None
            }  # fmt: skip
            failed = await client.post("/evaluate", json=task | {"kernel_code": "host_error always"})
            assert failed.status_code == 503

    run(test)


@pytest.mark.parametrize(
    ("status", "functional", "compiled", "correct", "decoy"),
    [
        ("correct", "correct", True, True, False),
        ("deceptive", "correct", True, True, True),
        ("wrong_value", "wrong_value", True, False, False),
        ("compile_error", "compile_error", False, False, False),
        ("import_error", "import_error", False, False, False),
        ("timeout", "timeout", True, False, False),
    ],
)
def test_a_verdict_in_kernelgyms_words(status, functional, compiled, correct, decoy):
    times = {
        "runtime_ms": {"median": 1, "mean": 2, "std": 0, "n": 1},
        "reference_ms": {"median": 3, "mean": 4, "std": 0, "n": 1},
    }
    speed: dict[str, Any] = {"speedup": {"median": 2.0, "ci_low": None, "ci_high": None}} | times
    found = result("t", verdict(status=status, functional_status=functional, launches={"a": 2, "b": 1}, **speed))
    assert (found["compiled"], found["correctness"], found["decoy_kernel"]) == (compiled, correct, decoy)
    assert (found["kernel_runtime"], found["reference_runtime"], found["speedup"]) == (2, 4, 2.0)
    assert found["metadata"]["num_custom_kernel"] == 3


def test_the_first_protocol_decides():
    assert reward([verdict(), verdict(status="deceptive", protocol="strict")]) == 1.0
    assert reward([verdict(status="deceptive"), verdict(protocol="strict")]) == 0.0


def test_trls_own_trainer(tmp_path, monkeypatch):
    """The method of the real trainer that calls reward functions, where TRL is installed."""
    grpo = pytest.importorskip("trl.trainer.grpo_trainer")
    accelerate = pytest.importorskip("accelerate")

    async def test():
        function = trl.kernel_reward("http://service")
        texts = [answer(code) for code in ("right", "wrong", "host_error always")]
        trainer = SimpleNamespace(
            accelerator=accelerate.Accelerator(cpu=True),
            args=SimpleNamespace(report_to=[]),
            state=SimpleNamespace(global_step=0),
            reward_funcs=[function],
            reward_processing_classes=[None],
            reward_func_names=[function.__name__],
            environments=None,
            async_loop=asyncio.get_running_loop(),
            _log_completion_extra=print,
            _log_metric=print,
        )
        rows = [{"prompt": "p", "problem_id": "square"}] * 3
        async with asked_by(trl.__name__, tmp_path, monkeypatch, retries=0):
            calculate = functools.partial(grpo.GRPOTrainer._calculate_rewards, trainer)
            found = await asyncio.to_thread(calculate, rows, ["p"] * 3, texts, [[1]] * 3)
        assert found[:2, 0].tolist() == [1.0, 0.0]
        assert found[2, 0].isnan()

    run(test)


def test_verifiers(tmp_path, monkeypatch):
    """Its own way from the task set to the reward, where it is installed."""
    vf = pytest.importorskip("verifiers.v1")
    from verifiers.v1.utils.loaders import _plugin_class  # pyright: ignore[reportMissingImports]

    from dice.service.adapters import verifiers

    module = SimpleNamespace(__name__="dice_kernels", __all__=["KernelTaskset"], KernelTaskset=verifiers.KernelTaskset)
    taskset = _plugin_class(module, vf.Taskset, "taskset")
    config = {"problems": "mini", "backend": "cpu", "task": {"url": "http://service"}}
    tasks = list(taskset(verifiers.KernelConfig.model_validate(config)))
    assert len(tasks) == 72
    assert "class Model(" in tasks[0].data.prompt
    assert tasks[0].config.url == "http://service"

    async def test():
        async with asked_by(verifiers.__name__, tmp_path, monkeypatch, retries=0):
            [correct] = tasks[0].with_data(name="square").hooks("reward")
            assert [await correct(SimpleNamespace(last_reply=answer(code))) for code in ("right", "wrong")] == [
                1.0,
                0.0,
            ]
            with pytest.raises(HarnessError):
                await correct(SimpleNamespace(last_reply=answer("host_error always")))

    run(test)
