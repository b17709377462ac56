"""Which words of memory are taken for addresses."""

from __future__ import annotations

import ctypes

import pytest
import torch

from dice.kernels.candidate.addresses import OF_ANYTHING, OF_PROGRAMS, are_addresses

SMALL, LARGE, BELOW_ZERO = 1000, 1 << 45, -1


@pytest.mark.parametrize(("least", "expected"), [(OF_PROGRAMS, False), (OF_ANYTHING, True)])
def test_a_large_number_is_an_address_only_to_the_wider_guess(least: int, expected: bool) -> None:
    words = torch.tensor([SMALL, LARGE, BELOW_ZERO, 1 << 47])
    assert are_addresses(words, least).tolist() == [False, expected, False, False]


@pytest.mark.parametrize("least", [OF_PROGRAMS, OF_ANYTHING])
def test_the_address_of_a_librarys_function_is_taken_for_one(least: int) -> None:
    function = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    assert are_addresses(torch.tensor([function]), least).all()
