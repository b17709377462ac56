"""The service's routes, in this process: acceptance, order, refusals. The pool is real, its workers do as they are told."""

from __future__ import annotations

import asyncio
import json

import pytest
from service_start import candidate, ended, http, run, service, submission
from verdicts import verdict

from dice.errors import HarnessError
from dice.service.dispatcher import Refused
from dice.service.journal import Finished, job_journal

TOKENS = "ann=0123456789abcdef,bob=fedcba9876543210"
ANN, BOB = ({"Authorization": f"Bearer {part.partition('=')[2]}"} for part in TOKENS.split(","))


def body(*codes: str, **more) -> dict:
    return {"candidates": [{"problem_id": "square", "code": code} for code in codes], **more}


def test_from_submission_to_verdict(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher, http(dispatcher) as client:
            posted = (await client.post("/v1/jobs", json=body("right", "wrong", "right", " "))).json()["jobs"]
            ids = [job["id"] for job in posted]
            assert ids[0] == ids[2]
            assert len(set(ids)) == 3
            assert posted[3]["verdicts"][0]["status"] == "no_code"  # at once: there is nothing to run
            first = (await client.get(f"/v1/jobs/{ids[0]}", params={"wait_s": 60})).json()
            assert (first["state"], first["verdicts"][0]["status"]) == ("done", "correct")
            assert (first["verdicts"][0]["problem_id"], first["verdicts"][0]["sample"]) == ("square", 0)
            async with client.stream("POST", "/v1/jobs/stream", json={"ids": [*ids, "strange"]}) as stream:
                lines = [json.loads(line) async for line in stream.aiter_lines() if line]
            assert {line["id"]: line["verdicts"][0]["status"] for line in lines} == {
                ids[0]: "correct", ids[1]: "wrong_value", ids[3]: "no_code"
            }  # fmt: skip
            again = (await client.post("/v1/jobs", json=body("wrong"))).json()["jobs"][0]
            assert again["verdicts"][0]["status"] == "wrong_value"
            text = (await client.get("/metrics")).text
            assert 'dice_verdicts_total{status="correct"} 1.0' in text
            assert 'dice_submitted_total{answered="known"} 1.0' in text
            assert (await client.get("/health")).json() == {"status": "ready", "waiting": 0, "running": 0}
        assert sorted(path.name for path in tmp_path.glob("*.*")) == ["right.0", "wrong.0"]  # each ran once

    run(test)


def test_problems_are_the_services_unless_clients_may_bring_some(tmp_path):
    async def test():
        theirs = {"candidates": [{"problem_id": "x", "problem_code": "import os", "code": "a"}]}
        async with service(tmp_path / "a") as dispatcher, http(dispatcher) as client:
            by_code = {"problem_id": "any label", "problem_code": "class Model: cube", "code": "a"}
            by_name = [{"problem_id": "cube", "code": "a"}, {"problem_id": "level1/1", "text": "```\na\n```"}]
            known = {"candidates": [by_code, *by_name]}
            jobs = (await client.post("/v1/jobs", json=known)).json()["jobs"]
            assert jobs[0]["id"] == jobs[1]["id"] != jobs[2]["id"]
            unknown = await client.post("/v1/jobs", json={"candidates": [{"problem_id": "x", "code": "a"}]})
            assert (unknown.status_code, "'x' is not one" in unknown.text) == (422, True)
            assert (await client.post("/v1/jobs", json=theirs)).status_code == 403
            assert (await client.get("/v1/info")).json()["client_problems"] is False
        async with service(tmp_path / "b", client_problems=True) as dispatcher, http(dispatcher) as client:
            assert (await client.post("/v1/jobs", json=theirs)).status_code == 202

    run(test)


@pytest.mark.parametrize(
    ("request_body", "told"),
    [
        ("{", "JSON"),
        ({"candidates": []}, "candidates"),
        ({"candidates": [{"problem_id": "square"}]}, "either 'code' or 'text'"),
        ({"candidates": [{"problem_id": "square", "code": "a", "text": "b"}]}, "either 'code' or 'text'"),
        (body("a", priority=1000), "priority"),
        (body("a", prioritty=1), "prioritty"),
    ],
)
def test_a_bad_request_is_one_sentence(tmp_path, request_body, told):
    async def test():
        async with service(tmp_path) as dispatcher, http(dispatcher) as client:
            content = request_body if isinstance(request_body, str) else json.dumps(request_body)
            answer = await client.post("/v1/jobs", content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422
            assert told in answer.json()["detail"]
            assert not dispatcher.journal.open

    run(test)


def test_no_text_is_too_odd(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher, http(dispatcher) as client:
            content = (
                '{"candidates": [{"problem_id": "square", "code": "\\ud800"}, {"problem_id": "square", "code": "odd"}]}'
            )
            posted = await client.post("/v1/jobs", content=content, headers={"Content-Type": "application/json"})
            lone, odd = posted.json()["jobs"]
            assert "lone surrogate" in lone["verdicts"][0]["message"]
            done = (await client.get(f"/v1/jobs/{odd['id']}?wait_s=60")).json()
            assert done["verdicts"][0]["message"] == "?"

    run(test)


def test_without_a_token_nobody_comes_in(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher, http(dispatcher, TOKENS) as client:
            routes = (
                "POST /v1/jobs,GET /v1/info,GET /metrics,GET /v1/jobs/x,DELETE /v1/jobs/x,POST /slime,POST /evaluate"
            )
            for method, path in map(str.split, routes.split(",")):
                answer = await client.request(method, path, json=body("a"))
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert (await client.get("/health")).status_code == 503  # open, and the pool is not
            described = (await client.get("/openapi.json")).json()
            assert {"/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/wait", "/v1/jobs/stream", "/evaluate"} <= set(
                described["paths"]
            )
            assert "Verdict" in described["components"]["schemas"]
            assert (await client.post("/v1/jobs", json=body("a"), headers=ANN)).status_code == 202
            assert next(iter(dispatcher.journal.open.values())).clients == ["ann"]

    run(test)


def test_a_request_has_a_largest_size_however_it_is_sent(tmp_path):
    async def parts():
        yield json.dumps(body("a")).encode()
        yield b" " * 2000

    async def test():
        async with service(tmp_path, request_mib=1000 / 2**20) as dispatcher, http(dispatcher) as client:
            assert (await client.post("/v1/jobs", json=body("a" * 1000))).status_code == 413
            sent = await client.post("/v1/jobs", content=parts(), headers={"Content-Type": "application/json"})
            assert sent.status_code == 413
            assert (await client.post("/v1/jobs", json=body("a"))).status_code == 202
            assert len(dispatcher.journal.open) == 1

    run(test)


def test_a_full_queue_says_when_to_come_again(tmp_path):
    async def test():
        settings = {"most_jobs": 3, "client_jobs": 2, "retry_after_s": 7}
        async with service(tmp_path, **settings) as dispatcher, http(dispatcher, TOKENS) as client:

            async def post(who, *codes):
                return await client.post("/v1/jobs", json=body(*codes), headers=who)

            assert (await post(ANN, "1", "2")).status_code == 202
            third = await post(ANN, "3")
            assert (third.status_code, third.headers["retry-after"]) == (429, "7")
            assert (await post(ANN, "1", "2")).status_code == 202  # joins what there is
            assert (await post(BOB, "1", "2")).status_code == 202  # and costs no room of the service
            assert (await post(BOB, "3")).status_code == 429  # but of his own: he has two
            assert (await post(BOB, "4", "5", "6")).status_code == 413  # that can never be
            await client.delete(f"/v1/jobs/{dispatcher.submit('bob', submission('1'))[0].id}", headers=BOB)
            assert (await post(BOB, "3")).status_code == 202
            assert (await post(BOB, "4")).status_code == 429
            assert [job.job.code for job in dispatcher.journal.open.values()] == ["1", "2", "3"]
            text = (await client.get("/metrics", headers=ANN)).text
            assert 'dice_refused_total{code="429"} 3.0' in text

    run(test)


def test_one_job_too_many_and_none_of_the_request_is_accepted(tmp_path):
    async def test():
        async with service(tmp_path, most_jobs=3) as dispatcher:
            dispatcher.submit("ann", submission("1", "2"))
            with pytest.raises(Refused) as refusal:
                dispatcher.submit("bob", submission("3", "4"))
            assert refusal.value.code == 429
            assert len(dispatcher.journal.open) == 2
            dispatcher.submit("bob", submission("2", "3"))
            assert len(dispatcher.journal.open) == 3

    run(test)


def test_cancelling(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher, http(dispatcher, TOKENS) as client:
            one, two = (job.id for job in dispatcher.submit("ann", submission("1", "2")))
            dispatcher.submit("bob", submission("2"))

            async def cancel(id, who):
                return (await client.delete(f"/v1/jobs/{id}", headers=who)).json()["state"]

            waiting = asyncio.create_task(dispatcher.wait([one], 60))
            await asyncio.sleep(0)
            assert await cancel(one, BOB) == "waiting"  # not his
            assert await cancel(one, ANN) == "cancelled"
            assert [job.state for job in (await waiting).jobs] == ["cancelled"]
            assert await cancel(two, ANN) == "waiting"  # Bob wants it
            assert list(dispatcher.journal.open) == [two]
            assert await cancel(two, BOB) == "cancelled"
            assert (await client.delete("/v1/jobs/strange", headers=ANN)).status_code == 404
            [again] = dispatcher.submit("ann", submission("1"))
            assert (again.id, again.state) == (one, "waiting")

    run(test)


def test_priorities_decide_the_order_and_a_restart_keeps_it(tmp_path, monkeypatch):
    order = []

    async def test():
        async with service(tmp_path) as dispatcher:
            dispatcher.submit("ann", submission("low", "middle"))
            dispatcher.submit("ann", submission("high", priority=5))
            dispatcher.submit("bob", submission("middle", priority=3))
        async with service(tmp_path) as dispatcher:
            while (id := dispatcher._queue.take()) is not None:
                order.append(dispatcher.journal.open[id].job.code)

    run(test)
    assert order == ["high", "middle", "low"]


def test_a_host_error_is_tried_again_told_and_never_kept(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher:

            async def status(code):
                [job] = dispatcher.submit("ann", submission(code))
                verdicts = (await ended(dispatcher, [job.id]))[job.id]
                assert verdicts is not None
                return verdicts[0].status

            assert await status("host_error once") == "correct"
            assert await status("die once") == "correct"
            assert await status("host_error always") == "host_error"
            assert await status("host_error always") == "host_error"
            with pytest.raises(Refused, match="fell off the bus") as refusal:
                await dispatcher.judged("ann", candidate("host_error always"), 60)
            assert refusal.value.code == 503
        assert len(list(tmp_path.glob("host_error-always.*"))) == 6  # each time anew, and twice
        assert len(list(tmp_path.glob("host_error-once.*"))) == 2

    run(test)


def test_a_pool_that_breaks_is_opened_anew_and_loses_nothing(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher:
            stream, broken = dispatcher_pool_stream(), []

            def breaks_once(self, feed):
                for verdicts in stream(self, feed):
                    if not broken:
                        broken.append(verdicts)
                        raise HarnessError("the fork server is gone")
                    yield verdicts

            monkeypatch.setattr("dice.kernels.api.Pool.stream", breaks_once)
            ids = [job.id for job in dispatcher.submit("ann", submission(*map(str, range(12))))]
            assert len(await ended(dispatcher, ids)) == 12
            assert dispatcher.failure is None
            assert "dice_pools_opened_total 2.0" in dispatcher.metrics.text().decode()

    run(test)


def dispatcher_pool_stream():
    from dice.kernels.api import Pool

    return Pool.stream


def test_no_pool_at_all_ends_the_service_and_keeps_its_jobs(tmp_path, monkeypatch):
    def no_gpu(*_):
        raise HarnessError("the card is gone")

    async def test():
        given_up = asyncio.Event()
        async with service(tmp_path) as dispatcher:
            monkeypatch.setattr("dice.service.dispatcher.open_pool", no_gpu)
            dispatcher._give_up = given_up.set
            dispatcher.submit("ann", submission("a"))
            dispatcher.start()
            await given_up.wait()
            assert str(dispatcher.failure) == "the card is gone"
            await dispatcher.stop()
        with job_journal(tmp_path / "state", "identity", 10) as journal:
            assert len(journal.open) == 1

    run(test)


def test_nothing_is_told_that_is_not_on_disk(tmp_path, monkeypatch):
    """What a client is told is what a service that starts from the file knows."""

    async def test():
        async with service(tmp_path, monkeypatch) as dispatcher, http(dispatcher) as client:
            posted = (await client.post("/v1/jobs", json=body("a", "b"))).json()["jobs"]
            ids = {job["id"] for job in posted}
            events = [json.loads(line) for line in dispatcher.journal.path.read_text().splitlines()[1:]]
            assert {event["id"] for event in events if event["event"] == "accepted"} == ids
            await ended(dispatcher, ids)
            events = [json.loads(line) for line in dispatcher.journal.path.read_text().splitlines()[1:]]
            assert sorted(event["id"] for event in events if event["event"] == "finished") == sorted(ids)

    run(test)


def test_a_disk_that_takes_nothing_more_ends_the_service(tmp_path, monkeypatch):
    async def test():
        async with service(tmp_path) as dispatcher, http(dispatcher) as client:

            def full(*rows):
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(dispatcher.journal._journal, "append", full)
            answer = await client.post("/v1/jobs", json=body("a"))
            assert (answer.status_code, "No space left" in answer.text) == (503, True)
            assert "No space left" in str(dispatcher.failure)
            assert not dispatcher.journal.open

    run(test)


def test_verdicts_of_an_earlier_life_are_given_at_once(tmp_path):
    async def test():
        async with service(tmp_path) as dispatcher:
            [job] = dispatcher.submit("ann", submission("a"))
            dispatcher.journal.add(Finished(id=job.id, verdicts=[verdict()]))
        async with service(tmp_path) as dispatcher:
            [job] = dispatcher.submit("ann", submission("a"))
            assert (job.state, job.verdicts) == ("done", [verdict()])

    run(test)
