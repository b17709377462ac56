"""Groups, updates, and the effect of each switch that restores what the authors' code does."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing

import numpy as np
import pytest
import torch
import torch.distributed as dist
from test_tracerl_loss import MASK, decode
from tiny_models import make_config, make_model
from waiting import PATIENCE_S

from dice.config import parse_config
from dice.decoding.decoder import Completion, Request, Trace
from dice.training.local_engine import LocalEngine
from dice.training.losses import target_log_probs
from dice.training.rl_config import RlConfig
from dice.training.rl_update import Updater, compare, learning_rate, rows_of, trajectory_of
from dice.training.tracerl_loss import PolicyObjective, Trajectory, policy_rows


def config_of(released=None, rate=1e-3, seed=0, **objective) -> RlConfig:
    values = {"model": "m", "out": "o", "phases": [{"problems": ["p"]}]}
    values |= {"released_behaviour": released or {}, "objective": {"updates_per_step": 2} | objective}
    return parse_config(RlConfig, values | {"optimizer": {"learning_rate": rate}, "seed": seed}, "test")


def updater_of(config: RlConfig, model=None) -> Updater:
    model = (model or make_model(make_config())).train()
    objective = PolicyObjective(
        model, MASK, clip=config.objective.clip, beta=config.objective.beta, chunk=64, attention="auto"
    )
    engine = LocalEngine(objective, config.optimizer)
    return Updater(config, engine, objective, step_start=model, reference=None, block_size=4)


def trained(released=None, steps=2, **objective) -> tuple[torch.Tensor, list]:
    """Weights after some steps on the same answers, and the reports."""
    updater = updater_of(config_of(released, **objective))
    trajectories = decode(make_model(make_config()), prompts=(3, 8, 13, 5))
    reports = [updater.update(trajectories, step) for step in range(1, steps + 1)]
    weights = torch.cat([p.detach().flatten() for p in updater.objective.model.parameters()])
    return weights, reports


def test_groups_without_a_difference_are_dropped_and_counted():
    groups = compare(
        [
            [1, 0, 0, 0],
            [1, 1, 1, 1],
            [0, 0, 0, 0],
            [1, None, 0, None],
            [None, None, None, None],
            [1, None],
            [0, 1],
            [None, 0],
            [1, 1],
        ]
    )
    assert (groups.with_signal, groups.all_right, groups.all_wrong) == (3, 3, 2)
    assert groups.advantages[0] == pytest.approx([3**0.5] + [-(3**-0.5)] * 3)
    assert groups.advantages[3] == [1.0, None, -1.0, None]  # what is left out counts neither way
    assert groups.advantages[6] == [-1.0, 1.0]
    assert all(score is None for number in (1, 2, 4, 5, 7, 8) for score in groups.advantages[number])


def test_an_update_raises_what_was_better_and_the_ratio_starts_at_1():
    config = config_of(beta=0.0, updates_per_step=1)
    model = make_model(make_config())
    trajectories = decode(make_model(make_config()))
    batch = policy_rows(trajectories, block_size=4, mask_id=MASK)
    updater = updater_of(config, model)
    with torch.no_grad():
        before = updater.objective.log_probs(batch.rows)
    report = updater.update(trajectories, 1)
    with torch.no_grad():
        after = updater.objective.log_probs(batch.rows)
    assert float(((after - before) * batch.advantage).sum()) > 0
    assert report.mismatch is not None
    assert report.mismatch < 1e-4  # the sampler's own log-probabilities are those of the trainer
    assert report.targets == sum(one.answer for one in trajectories)
    assert report.kl == pytest.approx(0, abs=1e-6)


def test_kl_holds_the_policy_at_its_reference():
    """A large beta pulls back to the model that the run started from; measured from the step's start it does not."""
    reference = make_model(make_config())
    moved = make_model(make_config())
    with torch.no_grad():
        for number, parameter in enumerate(moved.parameters()):
            parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
    trajectories = [dataclasses.replace(one, advantage=0.0) for one in decode(moved)]
    kl = {}
    for anchor in (reference, None):
        updater = updater_of(config_of(beta=1.0, updates_per_step=1), copy.deepcopy(moved))
        updater.reference = anchor
        kl[anchor is None] = [updater.update(trajectories, step).kl for step in (1, 2, 3)]
    assert kl[True][0] == pytest.approx(0, abs=1e-5)
    assert kl[False][0] > 1e-3
    assert kl[False][2] < kl[False][0]


def test_no_signal_changes_nothing():
    updater = updater_of(config_of())
    before = torch.cat([p.detach().flatten().clone() for p in updater.objective.model.parameters()])
    assert updater.update([], 1).updates == 0
    assert torch.equal(before, torch.cat([p.detach().flatten() for p in updater.objective.model.parameters()]))


def test_micro_batches_do_not_change_the_update():
    assert torch.allclose(trained()[0], trained(micro_batch_rows=1)[0], atol=1e-5)
    assert not torch.allclose(trained()[0], trained(clip=0.0001)[0], atol=1e-5)


def test_old_log_probs_recomputed_are_the_samplers():
    assert torch.allclose(trained(steps=1)[0], trained(steps=1, old_log_probs="recomputed")[0], atol=1e-4)


@pytest.mark.parametrize(
    "switch",
    ["reset_optimizer", "weights_16bit", "cosine_within_step", "response_aligned_blocks", "unshuffled_updates"],
)
def test_each_switch_changes_the_weights(switch):
    plain, _ = trained()
    changed, _ = trained({switch: True})
    assert torch.isfinite(changed).all()
    assert not torch.equal(plain, changed)


def test_reset_optimizer_forgets_the_moments():
    first, both = trained(steps=1)[0], trained({"reset_optimizer": True}, steps=1)[0]
    assert torch.equal(first, both)  # nothing to forget in the first step


def test_16_bit_weights_lose_small_changes():
    """A change of 1e-6 on a weight of 0.02 is lost: bfloat16 keeps about three digits."""
    updater = updater_of(config_of({"weights_16bit": True}))
    engine = updater.engine
    assert isinstance(engine, LocalEngine)
    engine.round_masters(torch.bfloat16)
    before = [p.detach().clone() for p in updater.objective.model.parameters()]
    with torch.no_grad():
        for parameter in updater.objective.model.parameters():
            parameter *= 1 + 5e-5
    engine.round_masters(torch.bfloat16)
    after = list(updater.objective.model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_released_cosine_by_hand():
    config = config_of({"cosine_within_step": True})
    factors = [round(learning_rate(config, update, 8) / 1e-3, 2) for update in range(8)]
    assert factors == [0.03, 0.88, 0.25, 0.59, 0.59, 0.25, 0.88, 0.03]  # facts sheet, section 4.5
    assert {learning_rate(config_of(), update, 8) for update in range(8)} == {1e-3}


def test_loss_scale_scales_the_gradient():
    plain, scaled = (trained(released, steps=1)[1][0] for released in (None, {"loss_scale": 1 / 32}))
    assert scaled.grad_norm == pytest.approx(plain.grad_norm / 32, rel=0.2)  # the second update starts elsewhere


def test_unshuffled_updates_follow_the_problems():
    assert updater_of(config_of({"unshuffled_updates": True})).permutation(6, 1, 0) == list(range(6))
    shuffled = updater_of(config_of()).permutation(6, 1, 0)
    assert sorted(shuffled) == list(range(6))
    assert shuffled != list(range(6))


class SpellsOut:
    """A tokenizer that does not come back from text to the same tokens: 7 becomes 3, 4."""

    def decode(self, ids):
        return " ".join(map(str, ids))

    def encode_plain(self, text):
        return [part for number in map(int, text.split()) for part in ([3, 4] if number == 7 else [number])]


def test_text_round_trip_shifts_the_trace():
    ids, order = (7, 9, 5), (2, 1, 3)
    done = Completion(
        Request((1, 2), 8), ids, order, (0.0,) * 3, 3, 0.0, "stop", Trace((*ids, 0), (*order, 3), (0.0,) * 4)
    )
    kept = trajectory_of(done, 1.0, config_of().released_behaviour, SpellsOut())  # pyright: ignore[reportArgumentType]
    assert (kept.response.tolist(), kept.step_map.tolist(), kept.answer) == ([7, 9, 5, 0], [2, 1, 3, 3], 3)
    released = config_of({"text_round_trip": True}).released_behaviour
    moved = trajectory_of(done, 1.0, released, SpellsOut())  # pyright: ignore[reportArgumentType]
    assert (moved.response.tolist(), moved.step_map.tolist()) == ([3, 4, 9, 5], [2, 1, 3, 4])


def test_rows_of_bounds_what_the_model_sees():
    for one in decode(make_model(make_config())):
        rows = policy_rows([one], block_size=4, mask_id=MASK).rows
        assert len(rows.ids) <= rows_of(one, 4, "position") <= len(rows.ids) + 4 * 4


def test_micro_batches_divide_all_answers():
    updater = updater_of(config_of(micro_batch_rows=40))
    trajectories = decode(make_model(make_config()), prompts=(3, 8, 13, 5))
    total, batches = updater._micro_batches(trajectories, trajectories)
    assert sum(len(batch.rows.rows.targets) for batch in batches) == total
    assert len(batches) > 1
    assert not any(batch.silent for batch in batches)


def test_attention_in_one_batch_is_the_same_replay():
    trajectories = decode(make_model(make_config()), prompts=(3, 8, 13))
    rows = policy_rows(trajectories, block_size=4, mask_id=MASK).rows
    with torch.no_grad():
        alone, beside = (
            target_log_probs(make_model(make_config()), rows, attention=name, never=MASK)
            for name in ("auto", "batched")
        )
    torch.testing.assert_close(alone, beside, atol=1e-4, rtol=1e-4)


def moved_from(model, size: float):
    """A copy of a model, some way from it."""
    found = copy.deepcopy(model)
    with torch.no_grad():
        for number, parameter in enumerate(found.parameters()):
            parameter += size * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
    return found


def literal_report(model, parts, divisors, weights, beta: float, clip: float) -> dict[str, float]:
    """What updates that leave the weights where they are report, target by target."""
    losses, k3, clipped, apart = [], [], [], []
    for part, divisor, weight in zip(parts, divisors, weights, strict=True):
        loss, mine = 0.0, []
        for one in part:
            batch = policy_rows([one], block_size=4, mask_id=MASK)
            with torch.no_grad():
                new = target_log_probs(model, batch.rows, never=MASK).double()
            for log_ratio in (new - batch.old).tolist():
                ratio = np.exp(log_ratio)
                plain, bounded = (one.advantage * value for value in (ratio, np.clip(ratio, 1 - clip, 1 + clip)))
                k3.append(np.exp(-log_ratio) - 1 + log_ratio)
                clipped.append(bounded < plain)
                mine.append(abs(log_ratio))
                loss += (beta * k3[-1] - min(plain, bounded)) * weight(one)
        losses.append(loss / divisor)
        apart.append(np.mean(mine))
    return {
        "loss": float(np.mean(losses)), "kl": float(np.mean(k3)), "clip_share": float(np.mean(clipped)),
        "mismatch": float(apart[0]), "targets": len(k3), "updates": len(parts),
    }  # fmt: skip


@pytest.mark.parametrize("normaliser", ["tokens", "responses", "released"])
@pytest.mark.parametrize("rows", [1, 8192])
def test_the_report_is_made_of_the_updates(normaliser, rows):
    """At a rate of nearly 0 both updates see the same weights; the mismatch is that of the first one alone."""
    drawn = make_model(make_config())
    trajectories = decode(drawn, prompts=(3, 8, 13))
    policy = moved_from(drawn, 0.02)
    config = config_of(
        {"unshuffled_updates": True}, rate=1e-12, beta=0.05, clip=0.1, normaliser=normaliser, micro_batch_rows=rows
    )
    report = updater_of(config, copy.deepcopy(policy)).update(trajectories, 1)
    parts = (trajectories[:2], trajectories[2:])
    longest = max(len(one.response) for one in trajectories)
    divisors, weight = {
        "tokens": ([sum(one.answer for one in part) for part in parts], lambda one: 1.0),
        "responses": ([2, 1], lambda one: 1 / one.answer),
        "released": ([updater_of(config)._micro_batches(part, part)[0] for part in parts], lambda one: 1 / longest),
    }[normaliser]
    expected = literal_report(policy, parts, divisors, (weight, weight), 0.05, 0.1)
    assert 0 < expected["clip_share"] < 1
    for name, value in expected.items():
        assert getattr(report, name) == pytest.approx(value, rel=1e-3), name


def test_the_gradient_norm_is_the_mean_of_the_updates():
    config = config_of({"unshuffled_updates": True}, rate=1e-12, beta=0.0)
    model = make_model(make_config())
    trajectories = decode(model, prompts=(3, 8, 13))
    both = updater_of(config, copy.deepcopy(model)).update(trajectories, 1)
    once = dataclasses.replace(config, objective=dataclasses.replace(config.objective, updates_per_step=1))
    norms = [
        updater_of(once, copy.deepcopy(model)).update(part, 1).grad_norm or 0.0
        for part in (trajectories[:2], trajectories[2:])
    ]
    assert both.grad_norm == pytest.approx(sum(norms) / 2, rel=1e-4)
    assert norms[0] != pytest.approx(norms[1], rel=0.1)
    scaled = dataclasses.replace(
        once, released_behaviour=dataclasses.replace(once.released_behaviour, loss_scale=1 / 32)
    )
    small = updater_of(scaled, copy.deepcopy(model)).update(trajectories[:2], 1)
    assert small.grad_norm == pytest.approx(norms[0] / 32, rel=1e-4)


def test_answers_are_used_as_often_as_there_are_epochs():
    trajectories = decode(make_model(make_config()), prompts=(3, 8, 13))
    report = updater_of(config_of(epochs=3)).update(trajectories, 1)
    assert (report.updates, report.targets) == (6, 3 * sum(one.answer for one in trajectories))
    more = updater_of(config_of(updates_per_step=8)).update(trajectories, 1)
    assert (more.updates, more.targets) == (3, sum(one.answer for one in trajectories)), "no update without an answer"


def test_the_order_is_another_one_in_each_step_and_epoch_and_for_each_seed():
    orders = [
        tuple(updater_of(config_of(seed=seed)).permutation(20, step, epoch))
        for seed, step, epoch in ((0, 1, 0), (0, 2, 0), (0, 1, 1), (1, 1, 0))
    ]
    assert len(set(orders)) == 4
    assert orders[0] == tuple(updater_of(config_of()).permutation(20, 1, 0))


@pytest.mark.parametrize("how", [{"old_log_probs": "recomputed"}, {"released": {"text_round_trip": True}}])
def test_recomputed_log_probs_are_those_of_the_steps_first_weights(how):
    """Also in the second update, when the weights have moved; what the sampler wrote down is not read."""
    drawn = make_model(make_config())
    trajectories = [dataclasses.replace(one, log_probs=one.log_probs - 3) for one in decode(drawn, prompts=(3, 8, 13))]
    updater = updater_of(config_of(rate=0.01, **how), copy.deepcopy(drawn))
    updater.step_start = updater.objective.model
    report = updater.update(trajectories, 1)
    assert report.mismatch == pytest.approx(0, abs=1e-5)
    assert report.kl is not None
    assert report.kl > 1e-5
    assert updater_of(config_of(), copy.deepcopy(drawn)).update(trajectories, 1).mismatch == pytest.approx(3, abs=1e-3)


def of_steps(prompt: int, step_map: list[int], answer: int) -> Trajectory:
    n = len(step_map)
    return Trajectory(
        np.zeros(prompt, np.int64), np.arange(n), np.array(step_map), np.zeros(n, np.float32), answer, 1.0
    )


def test_rows_of_by_hand():
    """Tokens, and four for each round. Blocks of 4: rounds 0 | 0 1 1, or 0 0 1 1 where the response begins a block."""
    assert rows_of(of_steps(3, [1, 1, 2, 2], 4), 4, "position") == 7 + 4 * (1 + 2)
    assert rows_of(of_steps(3, [1, 1, 2, 2], 4), 4, "response") == 7 + 4 * 2
    assert rows_of(of_steps(3, [1, 1, 2, 2], 2), 4, "position") == 7 + 4 * (1 + 1), (
        "rounds behind the answer are not run"
    )


def test_a_micro_batch_is_filled_to_its_last_row():
    """Two answers of 19 rows fit into 38, and not into 37; the next micro-batch begins with nothing in it."""
    five = [of_steps(3, [1, 1, 2, 2], 4)] * 5
    for rows, sizes in ((38, [8, 8, 4]), (37, [4] * 5), (1, [4] * 5), (56, [8, 8, 4]), (57, [12, 8])):
        _, batches = updater_of(config_of(micro_batch_rows=rows))._micro_batches(five, five)
        assert [len(batch.rows.rows.targets) for batch in batches] == sizes, rows


class TellsLast(LocalEngine):
    """Writes down which micro-batches it is told to be the last before a step: a sharding engine needs to know."""

    def __init__(self, objective, optimizer) -> None:
        super().__init__(objective, optimizer)
        self.told: list[list[bool]] = [[]]

    def backward(self, rows, normaliser, last=False):
        self.told[-1].append(last)
        return super().backward(rows, normaliser, last)

    def step(self, learning_rate):
        self.told.append([])
        return super().step(learning_rate)


def test_the_engine_is_told_the_last_micro_batch_of_each_update():
    config = config_of(updates_per_step=2, micro_batch_rows=1)
    updater = updater_of(config)
    updater.engine = engine = TellsLast(updater.objective, config.optimizer)
    updater.update([of_steps(3, [1, 1, 2, 2], 4)] * 5, 1)
    assert engine.told == [[False, False, True], [False, True], []]


def test_a_step_without_answers_updates_nothing():
    report = updater_of(config_of()).update([], 1)
    assert (report.updates, report.targets, report.loss) == (0, 0, None)


def test_a_text_that_ran_out_of_room_is_tokenized_whole():
    def done(ids, order, reason):
        trace = Trace(ids, order, (-0.5,) * len(ids))
        return Completion(Request((1, 2), 8), ids, order, (-0.5,) * len(ids), 3, 0.0, reason, trace)

    released = config_of({"text_round_trip": True}).released_behaviour
    cut = trajectory_of(done((7, 9, 5), (2, 1, 3), "length"), 2.0, released, SpellsOut())  # pyright: ignore[reportArgumentType]
    assert (cut.prompt.tolist(), cut.response.tolist()) == ([1, 2], [3, 4, 9, 5])
    assert (cut.step_map.tolist(), cut.answer, cut.advantage) == ([2, 1, 3, 4], 4, 2.0)
    assert cut.log_probs.tolist() == [0.0] * 4, "nobody drew these tokens"
    longer = trajectory_of(done((7, 7, 5), (2, 1, 1), "stop"), 2.0, released, SpellsOut())  # pyright: ignore[reportArgumentType]
    assert (longer.response.tolist(), longer.step_map.tolist()) == ([3, 4, 3, 4, 5], [2, 1, 1, 3, 3])
    plain = trajectory_of(done((7, 9, 5), (2, 1, 3), "stop"), 2.0, config_of().released_behaviour, SpellsOut())  # pyright: ignore[reportArgumentType]
    assert (plain.prompt.tolist(), plain.log_probs.tolist(), plain.advantage) == ([1, 2], [-0.5] * 3, 2.0)


def _replica(rank: int, folder: str, results) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    results.put((rank, *_three_answers()))
    dist.destroy_process_group()


def _three_answers():
    model = make_model(make_config())
    updater = updater_of(config_of({"unshuffled_updates": True}, updates_per_step=1, micro_batch_rows=1), model)
    report = updater.update(decode(make_model(make_config()), prompts=(3, 8, 13)), 1)
    weights = torch.cat([p.detach().flatten() for p in updater.objective.model.parameters()])
    return dataclasses.asdict(report), weights.numpy()


def test_two_processes_make_the_update_of_one(tmp_path):
    """Of three answers the first process has two; the other one runs a batch without weight beside the second."""
    expected, weights = _three_answers()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    both = [context.Process(target=_replica, args=(rank, str(tmp_path), results), daemon=True) for rank in (0, 1)]
    for process in both:
        process.start()
    found = [results.get(timeout=PATIENCE_S) for _ in both]
    for process in both:
        process.join()
    for rank, report, theirs in found:
        assert report == pytest.approx(expected, rel=1e-3, abs=1e-5), rank
        np.testing.assert_allclose(theirs, weights, atol=1e-4)
