"""The clients: what they do when the service is full, forgets, breaks off, or cannot tell."""

from __future__ import annotations

import asyncio
import contextlib

import httpx2
import pytest
from service_start import candidate, ended, run, service, transport

from dice.errors import DiceError, HarnessError
from dice.service.client import _SHARED, AsyncClient, shared_client


class Faulty(httpx2.AsyncBaseTransport):
    """A way to the service on which the first answers are other ones, or are lost after the service has acted."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *faults: httpx2.Response | Exception):
        self.inner, self.faults = inner, list(faults)
        self.requests = 0

    async def handle_async_request(self, request):
        self.requests += 1
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, httpx2.Response):
            return fault
        answer = await self.inner.handle_async_request(request)
        if fault is not None:
            raise fault
        return answer


@contextlib.asynccontextmanager
async def client(dispatcher, *faults, **settings):
    way = Faulty(transport(dispatcher), *faults)
    async with AsyncClient("http://service", transport=way, **settings) as made:
        yield made


def way_of(asked: AsyncClient) -> Faulty:
    way = asked._http._transport
    assert isinstance(way, Faulty)
    return way


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Pauses of the client take no time here."""
    real = asyncio.sleep
    monkeypatch.setattr("dice.service.client.asyncio.sleep", lambda seconds: real(0))


def test_many_at_once_and_each_once(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher, client(dispatcher) as asked:
            wanted = [candidate("wrong" if number % 3 == 0 else f"{number % 5}", "cube") for number in range(40)]
            found = {number: verdicts[0] async for number, verdicts in asked.verify_all(wanted)}
            assert sorted(found) == list(range(40))
            assert all((found[number].status == "wrong_value") == (number % 3 == 0) for number in found)
            assert {verdict.problem_id for verdict in found.values()} == {"cube"}
        assert sorted(path.name for path in tmp_path.glob("*.*")) == ["0.0", "1.0", "2.0", "3.0", "4.0", "wrong.0"]

    run(test)


def test_an_answer_that_is_lost_costs_nothing(tmp_path, monkeypatch):
    async def test():
        faults = [httpx2.ReadError("cut off"), httpx2.Response(502), httpx2.Response(429, headers={"retry-after": "5"})]
        async with service(tmp_path, monkeypatch) as dispatcher, client(dispatcher, *faults) as asked:
            verdicts = await asked.verify(candidate("a"))
            assert verdicts[0].status == "correct"
            assert dispatcher.metrics.text().decode().count('answered="new"} 1.0') == 1
        assert len(list(tmp_path.glob("a.*"))) == 1

    run(test)


def test_what_the_service_forgot_is_submitted_again(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch, keep_verdicts=1) as dispatcher, client(dispatcher) as asked:
            [job] = await asked.submit([candidate("a")])
            await ended(dispatcher, [job.id])
            await asked.verify(candidate("b"))
            assert (await asked.wait([job.id])).unknown == [job.id]
            assert await asked._ended(job.id) is None
            assert (await asked.verify(candidate("a")))[0].status == "correct"
        assert len(list(tmp_path.glob("a.*"))) == 2

    run(test)


def test_a_host_error_is_no_verdict(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch, retries=0) as dispatcher, client(dispatcher) as asked:
            assert (await asked.verify(candidate("host_error once")))[0].status == "correct"
            with pytest.raises(HarnessError, match="host error on square: the card fell off"):
                await asked.verify(candidate("host_error always"))
            assert len(list(tmp_path.glob("host_error-always.*"))) == 2  # retries=1: twice, and no more
            assert (await asked.verdicts(candidate("host_error always")))[0].status == "host_error"

    run(test)


def test_what_is_refused_is_not_tried_again(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher, client(dispatcher) as asked:
            with pytest.raises(DiceError, match="422: problem 'x' is not one of this service"):
                await asked.verify(candidate("a", "x"))
            assert way_of(asked).requests == 1

    run(test)


def test_what_no_service_of_ours_answers_is_one_sentence(tmp_path):
    async def test():
        page = httpx2.Response(200, text="<html>a proxy's page</html>")
        async with service(tmp_path) as dispatcher, client(dispatcher, page) as asked:
            with pytest.raises(DiceError, match="is no Info of this version"):
                await asked.info()

    run(test)


def test_a_date_for_the_next_try_is_no_number(tmp_path):
    async def test():
        later = httpx2.Response(429, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"})
        async with service(tmp_path) as dispatcher, client(dispatcher, later) as asked:
            assert (await asked.info()).backend == "cpu"

    run(test)


def test_the_client_of_a_closed_loop_is_dropped():
    async def made():
        assert shared_client("http://a") is shared_client("http://a") is not shared_client("http://b")
        return len(_SHARED)

    assert [asyncio.run(made()) for _ in range(3)] == [2, 2, 2]
    _SHARED.clear()


def test_a_service_that_does_not_answer_is_a_fault_of_the_machine(tmp_path):
    async def test():
        faults = [httpx2.ConnectError("refused")] * 3
        async with service(tmp_path) as dispatcher, client(dispatcher, *faults, patience_s=0) as asked:
            with pytest.raises(HarnessError, match=r"no answer for 0 s \(ConnectError refused\)"):
                await asked.info()
        async with service(tmp_path) as dispatcher, client(dispatcher, *faults) as asked:
            assert (await asked.info()).backend == "cpu"

    run(test)


def test_a_broken_service_ends_all_that_wait(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher, client(dispatcher, patience_s=0) as asked:
            jobs = [asyncio.create_task(asked.verify(candidate(code))) for code in "ab"]
            while len(asked._watched) < 2:
                await asyncio.sleep(0)
            way_of(asked).faults[:] = [httpx2.ReadError("cut off")] * 9
            for id in list(dispatcher.journal.open):
                dispatcher.cancel("testclient", id)
                dispatcher._wake(id)
            for job in jobs:
                with pytest.raises(HarnessError, match="cut off"):
                    await job

    run(test)


def test_a_cancelled_job_ends_its_wait(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher, client(dispatcher) as asked:
            job = asyncio.create_task(asked.verify(candidate("a")))
            while not asked._watched:
                await asyncio.sleep(0)
            [id] = asked._watched
            assert (await asked.cancel(id)).state == "cancelled"
            with pytest.raises(DiceError, match="was cancelled"):
                await job

    run(test)
