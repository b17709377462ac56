"""Memory that follows two elements of an input apart, mixed, or not at all."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import torch

from dice.kernels.candidate.mixing import Mixture, Step, mixture, staged

INPUT = torch.arange(1.0, 65.0).view(4, 16)
FACTOR = torch.linspace(-1.0, 1.0, 16 * 12).view(16, 12)


def memory(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().reshape(-1).view(torch.uint8).clone()


def forwards(made, count: int = 4) -> list[list[torch.Tensor]]:
    """Pieces that `made` gives for the input, twice, and with one of two elements of its second row changed."""
    inputs = [INPUT.clone() for _ in range(count)]
    for index, column in ((2, 3), (3, 11)):
        inputs[index][1, column] = 100.0
    return [made(each) for each in inputs]


def test_an_input_is_followed_apart() -> None:
    assert mixture(forwards(lambda x: [memory(x)])) == Mixture(apart=1)


@pytest.mark.parametrize(
    "changed", [torch.Tensor.t, torch.Tensor.double, torch.Tensor.half, lambda x: x.expand(3, 4, 16)]
)
def test_copies_in_other_forms_are_followed_apart(changed) -> None:
    assert mixture(forwards(lambda x: [memory(changed(x))])) == Mixture(apart=1)


def test_two_pieces_that_follow_an_element_each_are_apart_together() -> None:
    assert mixture(forwards(lambda x: [memory(x[:, :8]), memory(x[:, 8:])])) == Mixture(apart=1)


def test_a_piece_that_follows_one_of_the_elements_says_nothing() -> None:
    coarse = forwards(lambda x: [memory(torch.cat([(x @ FACTOR)[1].round() * (x[1, 3] == 100), torch.zeros(40)]))])
    assert mixture(forwards(lambda x: [memory(x[:, :8])])) == Mixture(sided=1)
    assert mixture(coarse) == Mixture(sided=1)


def test_a_product_is_mixed() -> None:
    assert mixture(forwards(lambda x: [memory(x @ FACTOR)])) == Mixture(mixed=1, shared=12)


def test_a_product_in_any_code_is_mixed() -> None:
    pattern = torch.arange(48, dtype=torch.int32).view(4, 12) * 40503 + 7
    coded = forwards(lambda x: [memory((x @ FACTOR).view(torch.int32) ^ pattern)])
    text = forwards(
        lambda x: [memory(torch.tensor([*"".join(f"{v:20.9f}" for v in (x @ FACTOR)[1].tolist()).encode()]).byte())]
    )
    assert mixture(coded) == Mixture(mixed=1, shared=12)
    of_text = mixture(text)
    assert of_text is not None
    assert of_text.mixed == 1
    assert of_text.shared > 12


def test_a_sum_is_mixed_although_it_is_one_number() -> None:
    sums = forwards(lambda x: [memory(torch.cat([x.sum(1), torch.zeros(40)]))])
    assert mixture(sums) == Mixture(mixed=1, shared=1)


def test_a_product_beside_the_input_counts_for_itself() -> None:
    assert mixture(forwards(lambda x: [memory(x @ FACTOR), memory(x)])) == Mixture(apart=1, mixed=1, shared=12)


def test_a_statistic_of_the_row_in_the_same_piece_does_not_mix_it() -> None:
    both = forwards(lambda x: [memory(torch.cat([x, x.sum(1, keepdim=True)], dim=1))])
    assert mixture(both) == Mixture(apart=1, shared=1)


def test_a_product_behind_the_input_is_counted() -> None:
    both = forwards(lambda x: [memory(torch.cat([x.reshape(-1), (x @ FACTOR).reshape(-1)]))])
    found = mixture(both)
    assert found is not None
    assert found.shared == 12


def test_a_product_in_several_pieces_is_counted_whole() -> None:
    columns = forwards(lambda x: [memory(x), *(memory((x @ FACTOR)[:, i::3]) for i in range(3))])
    found = mixture(columns)
    assert found is not None
    assert found.shared == 12


def test_numbers_that_follow_both_elements_alike_are_not_counted() -> None:
    marked = forwards(lambda x: [memory(torch.cat([x.reshape(-1), (x == 100).any().float().view(1)]))])
    assert mixture(marked) == Mixture(apart=1)


def test_freed_memory_is_not_counted() -> None:
    draw = torch.Generator().manual_seed(1)
    freed = forwards(lambda x: [memory(torch.cat([(x @ FACTOR).reshape(-1), torch.rand(40, generator=draw)]))])
    assert mixture(freed) == Mixture(mixed=1)


def test_what_follows_nothing_is_neither() -> None:
    assert mixture(forwards(lambda x: [memory(FACTOR)])) == Mixture()


def test_what_is_another_each_time_says_nothing() -> None:
    draw = torch.Generator().manual_seed(1)
    assert mixture(forwards(lambda x: [memory(torch.rand(12, generator=draw))])) == Mixture()


def test_addresses_say_nothing() -> None:
    addresses = iter([0x7F0000001000, 0x7F0000001000, 0x7F0000002000, 0x7F0000003000])
    moved = forwards(lambda x: [torch.tensor([*struct.pack("=q", next(addresses))] * 12, dtype=torch.uint8)])
    assert mixture(moved) == Mixture()


def test_blocks_that_are_longer_another_time_are_the_same() -> None:
    lengths = iter([0, 32, 16, 48])
    longer = forwards(lambda x: [memory(torch.cat([x.view(-1), torch.zeros(next(lengths) // 4)]))])
    assert mixture(longer) == Mixture(apart=1)


def test_a_piece_that_is_not_there_every_time_is_lost() -> None:
    extra = iter([True, False, False, True])
    pieces = forwards(lambda x: ([memory(torch.zeros(5000))] if next(extra) else []) + [memory(x)])
    assert mixture(pieces) == Mixture(apart=1, lost=1)


def test_pieces_of_one_size_that_change_places_are_not_taken_for_each_other() -> None:
    other = torch.rand(4, 16, generator=torch.Generator().manual_seed(1))
    first = iter([True, True, False, False])
    pieces = forwards(lambda x: [memory(x), memory(other)] if next(first) else [memory(other), memory(x)])
    assert mixture(pieces) == Mixture(lost=2)


def test_without_memory_there_is_no_result() -> None:
    assert mixture(forwards(lambda x: [])) is None
    assert mixture(forwards(lambda x: [memory(x)])[:3]) is None


def test_what_lies_behind_an_input_hides_it_unless_it_is_overwritten() -> None:
    """On a GPU a piece reaches past its tensor: to a block that was fresh twice, and then to what earlier calls have left."""
    behind = [torch.zeros(24), torch.zeros(24), torch.arange(24.0) + 1, torch.arange(24.0) + 2]
    left = iter(behind)
    assert mixture(forwards(lambda x: [memory(torch.cat([x.reshape(-1), next(left)]))])) == Mixture(mixed=1, shared=16)
    poison = torch.full((24,), torch.nan)
    assert mixture(forwards(lambda x: [memory(torch.cat([x.reshape(-1), poison]))])) == Mixture(apart=1)


def steps(*launches: Any, cut: bool = False) -> list[list[Step]]:
    """Four forwards of launches, each with what makes the memory before it and after it."""
    made = [(forwards(lambda x, f=f: [memory(f(x))]), forwards(lambda x, g=g: [memory(g(x))])) for f, g in launches]
    return [[Step(before[i], after[i], cut) for before, after in made] for i in range(4)]


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ FACTOR


def coded(x: torch.Tensor) -> torch.Tensor:
    return x * 3.0 + 1.0


def test_what_is_mixed_between_launches() -> None:
    assert staged(steps((lambda x: x, coded), (product, product))) == 12


def test_what_an_earlier_launch_has_mixed() -> None:
    assert staged(steps((lambda x: x, product), (product, coded))) == 0


def test_what_no_launch_is_led_to_mixed() -> None:
    assert staged(steps((lambda x: x, coded), (coded, product))) == 0


def test_a_launch_may_have_left_more_than_is_seen() -> None:
    assert staged(steps((lambda x: x, coded), (product, product), cut=True)) is None


def test_what_is_seen_of_a_launch_that_left_more_counts() -> None:
    assert staged(steps((lambda x: x, product), (product, coded), cut=True)) == 0


def test_other_launches_in_each_forward_say_nothing() -> None:
    many = steps((lambda x: x, coded), (product, product))
    assert staged([*many[:3], many[3][:1]]) == 0
