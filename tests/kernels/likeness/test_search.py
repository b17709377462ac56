"""Where an answer stands in memory, whatever its form; and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dice.kernels.likeness.search import find_answer


def memory(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Each tensor's storage, in its own order, as bytes."""
    return [tensor.contiguous().clone().reshape(-1).view(torch.uint8) for tensor in tensors]


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def padded(x: torch.Tensor, columns: int, fill: float) -> torch.Tensor:
    out = torch.full((x.shape[0], columns), fill)
    out[:, : x.shape[1]] = x
    return out


def shuffled(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)[torch.randperm(x.numel(), generator=torch.Generator().manual_seed(5))]


HIDDEN: dict[str, tuple[str, Callable[[torch.Tensor], list[torch.Tensor]]]] = {
    "as it is": ("equal", lambda x: memory(x)),
    "as double": ("equal", lambda x: memory(x.double())),
    "transposed": ("equal", lambda x: memory(x.t())),
    "behind a header": ("equal", lambda x: memory(torch.cat([noise(77, seed=9), x.reshape(-1)]))),
    "before other things": ("equal", lambda x: memory(torch.cat([x.reshape(-1), noise(5000, seed=9)]))),
    "in padded rows": ("equal", lambda x: memory(padded(x, 96, 3.0))),
    "in rows of a power of two": ("equal", lambda x: memory(padded(x, 128, float("nan")))),
    "in two halves": ("equal", lambda x: memory(*x.chunk(2))),
    "in columns": ("equal", lambda x: memory(*x.chunk(5, dim=1))),
    "doubled": ("scaled", lambda x: memory(2 * x)),
    "negated": ("scaled", lambda x: memory(-x)),
    "shifted": ("scaled", lambda x: memory(x + 1.0)),
    "halved and transposed": ("scaled", lambda x: memory(0.5 * x.t())),
    "doubled in padded rows": ("scaled", lambda x: memory(padded(2 * x, 96, 0.0))),
    "shuffled": ("rearranged", lambda x: memory(shuffled(x))),
    "rolled and scaled": ("rearranged", lambda x: memory(3 * x.roll(17, 1) - 1)),
    "reversed and negated": ("rearranged", lambda x: memory(-x.flip(0, 1))),
    "shuffled among zeros": ("rearranged", lambda x: memory(torch.cat([shuffled(x), torch.zeros(4000)]))),
    "in every second element": ("equal", lambda x: memory(torch.stack([x, noise(*x.shape, seed=9)], dim=-1))),
    "transposed in every fourth": (
        "equal",
        lambda x: memory(torch.stack([x.t()] * 4, dim=-1) * torch.tensor([2, 3, 1, 4])),
    ),
    "at an odd byte": ("equal", lambda x: [torch.cat([torch.zeros(1027, dtype=torch.uint8), *memory(x)])]),
    "as upper words of doubles": ("equal", lambda x: memory(x.double().view(torch.int32).view(*x.shape, 2)[..., 1])),
    "as upper halves": ("equal", lambda x: memory(x.view(torch.int16).view(*x.shape, 2)[..., 1])),
    "in fixed point": ("scaled", lambda x: memory((x * 2.0**30).round().long())),
    "tripled behind a header": ("scaled", lambda x: memory(torch.cat([noise(77, seed=9), 3 * x.reshape(-1)]))),
    "halved within longer rows": ("scaled", lambda x: memory(torch.cat([noise(120, 5), x / 2, noise(120, 32)], dim=1))),
    "doubled, each twenty rows apart": ("scaled", lambda x: memory(*(2 * x).split(20))),
    "doubled, parts with some more behind": (
        "scaled",
        lambda x: memory(*(padded(2 * p, 4802, 0.5) for p in x.view(2, 1, -1))),
    ),
    "logarithms": ("transformed", lambda x: memory(x.log())),
    "exponentials": ("transformed", lambda x: memory(x.exp().double())),
    "doubled reciprocals": ("transformed", lambda x: memory(2 / x)),
    "differences of neighbours": ("transformed", lambda x: memory(x.diff(dim=1, prepend=torch.zeros(len(x), 1)))),
    "running sums": ("transformed", lambda x: memory(x.double().cumsum(1))),
    "running sums before each": ("transformed", lambda x: memory(x.double().cumsum(1) - x)),
    "under noise that is there too": (
        "combined",
        lambda x: memory(x + noise(*x.shape, seed=9), noise(*x.shape, seed=9)),
    ),
    "a sum of three": (
        "combined",
        lambda x: memory(
            x + noise(*x.shape, seed=9),
            2 * noise(*x.shape, seed=9) - x.t().reshape(x.shape).sin(),
            x.t().reshape(x.shape).sin(),
        ),
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_the_answer_is_found_in_each_form(name: str) -> None:
    form, hide = HIDDEN[name]
    answer = noise(120, 80).exp()  # not symmetric: a distribution that equals its mirror would hide a wrong sign
    found = find_answer(answer, hide(answer))
    assert found.get(form, 0.0) > 0.99, found  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("name", HIDDEN)
def test_another_answer_of_the_same_distribution_is_not_found(name: str) -> None:
    _, hide = HIDDEN[name]
    found = find_answer(noise(120, 80).exp(), hide(noise(120, 80, seed=2).exp()))
    assert all(share < 0.05 for share in found.values()), found


@pytest.mark.parametrize("dim", [0, 1])
def test_a_product_beside_its_bias_is_no_sum_of_pieces(dim: int) -> None:
    product, bias = noise(120, 80), noise(120, 80, seed=3).mean(dim, keepdim=True).expand(120, 80) * 9
    pieces = [*memory(product, bias), *memory(torch.cat([product.reshape(-1), torch.zeros(7)]))]
    assert find_answer(product + bias, pieces).get("combined", 0.0) == 0.0
    halves = noise(120, 80, seed=4)
    assert find_answer(product + bias, memory(product - halves, halves, bias))["combined"] > 0.99


def test_a_piece_of_tiny_numbers_does_not_hide_a_sum() -> None:
    """Memory that is no number at all, read as one: its square is zero."""
    left, right = noise(40, 50, seed=3), noise(40, 50, seed=4)
    tiny = torch.full((40, 50), 7, dtype=torch.int64).view(torch.float64) * torch.arange(1, 51)
    assert find_answer(left + right, memory(left, right))["combined"] > 0.99
    assert find_answer(left + right, memory(left, tiny, right))["combined"] > 0.99


def test_whole_numbers_as_their_running_sums() -> None:
    counts = (noise(64) * 20 + 90).round().long()
    begins = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
    assert find_answer(counts, memory(begins))["transformed"] > 0.99
    assert find_answer(counts, memory(begins.int()))["transformed"] > 0.99
    assert find_answer(counts.cumsum(0), memory(counts))["transformed"] > 0.99
    others = (noise(64, seed=3) * 20 + 90).round().long()
    assert find_answer(counts, memory(others.cumsum(0), others.cumsum(0) - others)).get("transformed", 0.0) < 0.05


def test_a_share_is_a_share() -> None:
    answer = noise(100, 30)
    most = noise(100, 30, seed=2)
    most[:94] = answer[:94]
    assert find_answer(answer, memory(most))["equal"] == pytest.approx(0.94, abs=0.01)
    assert find_answer(answer, memory(1 - 2 * most))["scaled"] == pytest.approx(0.94, abs=0.01)


def test_elements_that_say_nothing_do_not_count() -> None:
    answer = noise(100, 30).relu()
    assert find_answer(answer, memory(torch.zeros(100, 30))) == {}
    assert find_answer(torch.full((64, 64), 7.0), memory(torch.full((64, 64), 7.0))) == {}
    mostly = torch.full((64, 64), 7.0)
    mostly[5] = noise(64)
    assert find_answer(mostly, memory(torch.full((64, 64), 7.0))) == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.float8_e5m2])
def test_answers_of_other_dtypes(dtype: torch.dtype) -> None:
    answer = noise(64, 64).to(dtype)
    assert find_answer(answer, memory(answer.float()))["equal"] > 0.99
    assert find_answer(answer, memory(noise(64, 64, seed=2))).get("equal", 0.0) < 0.05


def test_whole_numbers_must_be_equal() -> None:
    answer = torch.randint(1000, (50, 20), generator=torch.Generator().manual_seed(3))
    assert find_answer(answer, memory(answer))["equal"] == 1.0
    assert find_answer(answer, memory(answer.int()))["equal"] == 1.0
    assert find_answer(answer, memory(answer.float()))["equal"] == 1.0
    assert find_answer(answer, memory(answer + 1)).get("equal", 0.0) < 0.05


def test_a_single_number_is_looked_for_in_small_pieces_only() -> None:
    answer = torch.tensor(0.73512)
    assert find_answer(answer, memory(torch.tensor([1.0, 0.73512, 2.0])))["equal"] == 1.0
    assert find_answer(answer, memory(torch.tensor([1.0, 0.7352, 2.0]))) == {}
    assert find_answer(answer, memory(torch.linspace(0, 1, 1_000_000))) == {}


def test_what_follows_the_answer_is_not_it() -> None:
    """Softmax of the same logits, a row's normalised values, a product: near relatives of the answer."""
    x = noise(64, 200)
    for relative in (
        x.sin(),
        x.relu() + noise(64, 200, seed=4),
        x * noise(200, seed=5),
        (x.t() / x.norm(dim=1)).t(),
        x**3,
    ):
        found = find_answer(x, memory(relative))
        assert all(share < 0.3 for share in found.values()), found


def test_a_rectified_answer_stands_in_what_it_was_made_from() -> None:
    """So whoever asks must ask the same of the reference's own steps."""
    x = noise(64, 200)
    assert find_answer(x.relu(), memory(x))["equal"] > 0.99


def test_parts_that_need_different_factors_are_no_whole() -> None:
    """Rows before they are normalised, each in memory of its own."""
    x = noise(8, 200)
    rows = [row.clone() for row in x]
    assert find_answer((x.t() / x.norm(dim=1)).t(), memory(*rows))["scaled"] < 0.2
    assert find_answer(x / 3, memory(*rows))["scaled"] == 1.0


def test_an_answer_of_a_few_values_must_be_there_as_a_whole() -> None:
    signs = noise(40, 60).sign()
    assert find_answer(signs, memory(signs)) == {"equal": 1.0}
    for other in (torch.ones(40, 60), -torch.ones(40, 60), noise(40, 60, seed=2).sign(), signs.relu()):
        assert find_answer(signs, memory(other)) == {}
    rare = torch.zeros(64, 50)
    rare[range(64), torch.arange(64) % 50] = 1.0
    assert find_answer(rare, memory(rare)) == {"equal": 1.0}
    assert find_answer(rare, memory(torch.zeros(64, 50), rare.roll(1, 1))) == {}
    mask = noise(40, 60) > 0
    assert find_answer(mask, memory(mask)) == {"equal": 1.0}
    assert find_answer(mask, memory(noise(40, 60, seed=2) > 0, torch.ones(40, 60, dtype=torch.bool))) == {}


@pytest.mark.parametrize("count", [64, 40])
def test_memory_full_of_one_value_holds_no_answer_of_two(count: int) -> None:
    answer = torch.ones(count)
    answer[3::4] = -1.0
    poison = torch.full((4096,), 0xFF, dtype=torch.uint8)  # as whole numbers: -1
    assert find_answer(answer, [poison]) == {}
    assert find_answer(answer, [*memory(torch.full((500,), -1.0))]) == {}
    found = find_answer(answer, memory(torch.cat((noise(7), answer, noise(9)))))
    assert found == ({"equal": 1.0} if count >= 64 else {})


def test_many_pieces_of_noise_do_not_add_up_to_an_answer() -> None:
    pieces = [noise(20, 30, seed=seed) for seed in range(2, 80)]
    assert find_answer(noise(20, 30), memory(*pieces)) == {}


def test_large_values_far_from_zero_need_their_own_closeness() -> None:
    """A few huge values must not make all others look alike."""
    answer = noise(100, 50)
    answer[3] = 1e9 * noise(50, seed=8)
    assert find_answer(answer, memory(noise(100, 50, seed=2))) == {}


def test_odd_memory_is_taken() -> None:
    answer = noise(40, 40)
    pieces = [
        torch.zeros(0, dtype=torch.uint8),
        torch.zeros(3, dtype=torch.uint8),
        torch.full((9000,), 255, dtype=torch.uint8),
    ]
    assert find_answer(answer, pieces) == {}
    assert find_answer(torch.zeros(0), memory(answer)) == {}
    assert find_answer(torch.full((4, 4), float("nan")), memory(answer)) == {}
    assert find_answer(answer.to(torch.complex64), memory(answer)) == {}
