"""Comparison rules: each tolerance is shown with a value just inside and one just outside."""

import math

import pytest
import torch

from dice.kernels.compare import compare_outputs, wrong_elements

NAN, INF = math.nan, math.inf


def status(expected, actual, protocol):
    return compare_outputs(expected, actual, protocol).status


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_equal_things_are_correct(protocol):
    x = torch.randn(3, 4)
    for value in (x, (x, x.long()), [x, 2.5, True], {"a": x, "b": None}, x.bool(), torch.empty(0, 3), 7, "name"):
        assert compare_outputs(value, value, protocol).ok


@pytest.mark.parametrize(
    ("protocol", "dtype", "inside", "outside"),
    [
        ("paper", torch.float32, 0.015, 0.03),
        ("paper", torch.int64, 0, 1),
        ("strict", torch.float32, 1.5e-4, 3e-4),
        ("strict", torch.float64, 1e-9, 3e-9),
        ("strict", torch.float16, 0.01, 0.03),
        ("strict", torch.bfloat16, 0.0156, 0.0313),  # two and four of its steps
        ("strict", torch.complex64, 1.5e-4, 3e-4),
        ("strict", torch.complex128, 1e-9, 3e-9),
        ("strict", torch.int32, 0, 1),
    ],
)
def test_tolerances(protocol, dtype, inside, outside):
    expected = torch.ones(1000, dtype=dtype)
    near, far = expected.clone(), expected.clone()
    near[7] += inside
    far[7] += outside
    assert status(expected, near, protocol) == "correct"
    result = compare_outputs(expected, far, protocol)
    assert result.status == "wrong_value"
    assert "[7]" in result.message
    assert result.max_abs_error == pytest.approx(outside, rel=0.1)


def test_paper_is_torch_allclose():
    generator = torch.Generator().manual_seed(0)
    agree = [0, 0]
    for _ in range(300):
        a = torch.randn(5, generator=generator)
        b = a + 0.015 * torch.randn(5, generator=generator)
        want = torch.allclose(a, b, atol=1e-2, rtol=1e-2)
        assert (status(a, b, "paper") == "correct") == want
        agree[want] += 1
    assert min(agree) > 20


@pytest.mark.parametrize(
    ("expected", "actual", "paper", "strict"),
    [
        ([1.0, NAN], [1.0, NAN], "wrong_value", "correct"),
        ([1.0, 2.0], [1.0, NAN], "wrong_value", "wrong_value"),
        ([1.0, NAN], [1.0, 2.0], "wrong_value", "wrong_value"),
        ([1.0, INF], [1.0, INF], "correct", "correct"),
        ([1.0, INF], [1.0, -INF], "wrong_value", "wrong_value"),
        ([1.0, INF], [1.0, 1e30], "wrong_value", "wrong_value"),
        ([1.0, 3.0], [1.0, INF], "wrong_value", "wrong_value"),
    ],
)
def test_nan_and_inf(expected, actual, paper, strict):
    a, b = torch.tensor(expected), torch.tensor(actual)
    assert status(a, b, "paper") == paper
    assert status(a, b, "strict") == strict


def test_all_zeros_for_a_tiny_output_passes_paper_only():
    expected = torch.softmax(0.1 * torch.randn(2, 200_000), dim=1)
    assert status(expected, torch.zeros_like(expected), "paper") == "correct"
    result = compare_outputs(expected, torch.zeros_like(expected), "strict")
    assert result.status == "wrong_value"
    assert "relative norm" in result.message
    assert status(expected, expected * (1 + 1e-5), "strict") == "correct"


def test_rounding_noise_has_no_relative_norm():
    noise = torch.randn(100) * 1e-8
    assert status(noise, -noise, "strict") == "correct"
    assert compare_outputs(noise, -noise, "strict").as_noise
    assert not compare_outputs(noise, noise * (1 + 1e-5), "strict").as_noise
    assert compare_outputs(noise, -noise, "strict", noise_rms=0.0).status == "wrong_value"


def test_the_relative_norm_may_be_ten_tolerances():
    expected = torch.full((1000,), 1e-4)
    assert status(expected, expected * (1 + 9.9e-4), "strict") == "correct"
    assert status(expected, expected * (1 + 10.1e-4), "strict") == "wrong_value"


@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_the_picture_of_mismatches_has_those_that_the_verdict_counts(scale):
    """Elements beyond rtol x (rms, at least 1) + rtol x |expected|, by hand."""
    expected = scale * torch.randn(4, 50, generator=torch.Generator().manual_seed(1))
    wide = expected.double()
    allowed = 1e-4 * max(1.0, float(wide.square().mean().sqrt())) + 1e-4 * wide.abs()
    share = torch.linspace(0.5, 1.5, 200).reshape(4, 50).double()
    actual = (wide + share * allowed).float()
    wrong = wrong_elements(expected, actual, "strict")
    clear = (share - 1).abs() > 0.02  # fp32 rounds the element itself
    assert torch.equal(wrong[clear], (share > 1)[clear])
    assert f"{int(wrong.sum())} of 200 elements differ" in compare_outputs(expected, actual, "strict").message


def test_one_bit_at_the_edge_of_the_paper_tolerance_is_torch_allclose():
    """In fp32, as KernelBench computes it: fp64 decides some of these otherwise."""
    agree, else_in_fp64 = [0, 0], 0
    for a in (0.004 * torch.rand(200, generator=torch.Generator().manual_seed(2)) - 0.003).split(1):
        b = (a + 1e-2) / (1 - 1e-2) * (1 - 2e-7)
        for _ in range(8):
            b = torch.nextafter(b, torch.tensor([INF]))
            want = torch.allclose(a, b, atol=1e-2, rtol=1e-2)
            assert (status(a, b, "paper") == "correct") == want
            agree[want] += 1
            else_in_fp64 += torch.allclose(a.double(), b.double(), atol=1e-2, rtol=1e-2) != want
    assert min(agree) > 20
    assert else_in_fp64 > 5


def test_long_reductions_are_judged_by_their_scale():
    expected = torch.randn(64, 64) * 300
    assert status(expected, expected + 0.01, "strict") == "correct"
    assert status(expected, expected + 0.2, "strict") == "wrong_value"


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize(
    ("expected", "actual", "want"),
    [
        (torch.ones(2, 3), torch.ones(3, 2), "wrong_shape"),
        (torch.ones(1), torch.tensor(1.0), "wrong_shape"),
        (torch.ones(2), torch.ones(2).half(), "wrong_dtype"),
        (torch.ones(2), torch.ones(2).double(), "wrong_dtype"),
        (torch.ones(2), torch.ones(2).long(), "wrong_dtype"),
        (torch.ones(2), None, "wrong_shape"),
        (torch.ones(2), [1.0, 1.0], "wrong_shape"),
        ((torch.ones(2), torch.ones(2)), torch.ones(2), "wrong_shape"),
        ((torch.ones(2), torch.ones(2)), (torch.ones(2),), "wrong_shape"),
        ((torch.ones(2), torch.ones(2)), (torch.ones(2), torch.zeros(2)), "wrong_value"),
        ({"a": torch.ones(2)}, {"b": torch.ones(2)}, "wrong_shape"),
        ({"a": torch.ones(2)}, {"a": torch.zeros(2)}, "wrong_value"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "wrong_value"),
        (1.0, 2.0, "wrong_value"),
        (1.0, "1.0", "wrong_dtype"),
        (3, None, "wrong_dtype"),
        ("a", "b", "wrong_value"),
        (None, torch.ones(1), "wrong_value"),
    ],
)
def test_rejections(expected, actual, want, protocol):
    assert status(expected, actual, protocol) == want


def test_scalars_and_zero_dim_tensors_are_interchangeable_under_paper_only():
    assert status(torch.tensor(2.0), 2.0, "paper") == "correct"
    assert status(torch.tensor(2.0), 2.0, "strict") == "wrong_shape"
    assert status(2.0, torch.tensor(2.0), "paper") == "correct"
    assert status(2.0, torch.tensor(2.0), "strict") == "wrong_dtype"


@pytest.mark.parametrize("actual", [NAN, INF, 2**200])
def test_a_number_that_the_type_does_not_hold_is_wrong(actual):
    assert status(torch.tensor(3), actual, "paper") == "wrong_value"
    assert status(3, actual, "paper") == "wrong_value"


@pytest.mark.parametrize(
    ("expected", "actual", "paper", "strict"),
    [
        (100, 101, "correct", "wrong_value"),
        (100, 103, "wrong_value", "wrong_value"),
        (3.0, torch.tensor(9.0), "wrong_value", "wrong_dtype"),
        (3.0, torch.empty((), device="meta"), "correct", "wrong_dtype"),  # of an outline, only what it is
        (2, 2.0, "correct", "wrong_dtype"),
        (True, 1, "correct", "wrong_dtype"),
        (2**53, 2**53 + 1, "correct", "wrong_value"),  # one number in float64
        (2**62, 2**62 + 1, "correct", "wrong_value"),
        (2**63 - 1, 2**63 - 2, "correct", "wrong_value"),
        (2**63, 2**63 + 1, "wrong_value", "wrong_value"),
        (2**70, 2**70 + 1, "wrong_value", "wrong_value"),
        (3.0, 3.0003, "correct", "correct"),  # 0.0004 are allowed
        (3.0, 3.0005, "correct", "wrong_value"),
        (0, 0.0, "correct", "wrong_dtype"),
        (True, False, "wrong_value", "wrong_value"),
        (-(2**70), -(2**70), "correct", "correct"),
        (3, 10**400, "wrong_value", "wrong_value"),
        (3.0, -(10**400), "wrong_value", "wrong_dtype"),
        (torch.tensor([2**53]), torch.tensor([2**53 + 1]), "correct", "wrong_value"),
        # the tolerance is relative to the candidate's 98.995 under paper: 0.01 + 0.98995 is less than the error of 1.005
        (torch.tensor([100.0]), torch.tensor([98.995]), "wrong_value", "wrong_value"),
        (torch.tensor([100.0]), torch.tensor([101.015]), "correct", "wrong_value"),
    ],
)
def test_numbers_and_the_edges_of_tolerances(expected, actual, paper, strict):
    found = {protocol: compare_outputs(expected, actual, protocol) for protocol in ("paper", "strict")}
    assert {name: one.status for name, one in found.items()} == {"paper": paper, "strict": strict}
    assert not any(one.as_noise for one in found.values())


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_layout_does_not_matter(protocol):
    x = torch.randn(6, 4)
    assert status(x.t(), x.t().contiguous(), protocol) == "correct"
    assert status(x[:1].expand(6, 4), x[:1].repeat(6, 1), protocol) == "correct"
    z = torch.randn(4, dtype=torch.complex64)
    assert status(z, z.clone(), protocol) == "correct"
    assert status(z, z + 0.5j, protocol) == "wrong_value"


def test_chunks_agree_with_one_piece(monkeypatch):
    import dice.kernels.compare as module

    expected = torch.randn(1000)
    actual = expected.clone()
    actual[777] += 1
    whole = compare_outputs(expected, actual, "strict")
    monkeypatch.setitem(module.CHUNK, "cpu", 64)
    assert compare_outputs(expected, actual, "strict") == whole
    assert "[777]" in whole.message


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, 1 + 2j, complex(1, INF), "text", torch.float16, torch.device("cpu"), torch.Size([2])]
)
def test_whatever_a_candidate_can_return_is_compared_with_itself_and_with_others(value, protocol):
    assert compare_outputs(value, value, protocol).ok
    for other in (-7j, "other", torch.zeros(2, dtype=torch.complex64), [None]):
        assert not compare_outputs(value, other, protocol).ok
        assert not compare_outputs(other, value, protocol).ok


def test_complex_numbers_have_the_tolerance_of_floats():
    assert compare_outputs(1 + 1j, 1 + 1.009j, "paper").ok
    assert not compare_outputs(1 + 1j, 1 + 1.009j, "strict").ok
    assert compare_outputs(1 + 1j, 1 + 1.00005j, "strict").ok
    assert compare_outputs(2 + 0j, 2, "paper").ok
    assert compare_outputs(2 + 0j, 2, "strict").status == compare_outputs(2, 2 + 0j, "paper").status == "wrong_dtype"
    assert not compare_outputs(complex(math.nan, 0), complex(math.nan, 0), "paper").ok


def test_unknown_reference_type_is_an_error_not_a_verdict():
    with pytest.raises(TypeError, match="set"):
        compare_outputs({1, 2}, {1, 2}, "paper")


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize("special", [None, INF])
def test_reported_errors_are_those_of_float64(protocol, special):
    """With an infinite element, which both sides have, all others are still measured."""
    expected = torch.linspace(-3, 3, 999)
    actual = expected + torch.linspace(0, 9e-5, 999).flip(0)
    expected[:4], actual[:4] = 0.0, 1e-6
    if special is not None:
        expected[100] = actual[100] = special
    found = compare_outputs(expected, actual, protocol)
    finite = expected.isfinite()
    a, b = expected[finite].double(), actual[finite].double()
    assert found.ok
    assert found.max_abs_error == pytest.approx(float((b - a).abs().max()), rel=1e-5)
    assert found.max_rel_error == pytest.approx(float(((b - a).abs() / a.abs())[a != 0].max()), rel=1e-5)


def test_a_few_large_elements_do_not_excuse_wrong_small_ones():
    expected = torch.exp(4 * torch.randn(512, 512, generator=torch.Generator().manual_seed(0)))
    zeroed = torch.where(expected < 3, 0.0, expected)
    assert status(expected, zeroed, "paper") == status(expected, zeroed, "strict") == "wrong_value"
    noisy = expected + 3e-5 * float(expected.square().mean().sqrt()) * (torch.arange(512) % 32 == 0)
    assert status(expected, noisy, "strict") == "correct"


@pytest.mark.parametrize("chunk", [4, 1000])
def test_the_message_says_how_many_and_where_the_first_one_is(monkeypatch, chunk):
    import dice.kernels.compare as module

    monkeypatch.setitem(module.CHUNK, "cpu", chunk)
    expected = torch.zeros(4, 3)
    actual = expected.clone()
    actual[2, 1], actual[3, 2] = 1.0, -2.0
    found = compare_outputs([expected, {"a": expected}], [expected, {"a": actual}], "paper")
    assert found.message == (
        "output[1]['a']: 2 of 12 elements differ (16.67 %, torch.float32, atol 0.01, rtol 0.01); "
        "first at [2, 1]: expected 0.0, got 1.0"
    )
    assert (found.max_abs_error, found.max_rel_error) == (2.0, 0.0), "nothing is relative to 0"
    one = compare_outputs(torch.tensor(300.0), torch.tensor(301.0), "strict").message
    assert "1 of 1 elements differ (100.00 %, torch.float32, atol 0.03, rtol 0.0001); first at []" in one


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_errors_are_the_largest_of_all_parts(protocol, dtype):
    """Powers of 2, which each type holds: relative to 1/4 in the first part and to 2 in the second; the third is the same."""
    first, second = torch.tensor([0.25, 0.0], dtype=dtype), torch.tensor([2.0], dtype=dtype)
    parts = (first, second, second)
    if dtype is torch.float32 and protocol == "strict":
        off = (first + torch.tensor([2.0**-14, 0]), second + 2.0**-13, second)
        errors = (2.0**-13, 2.0**-12)
    else:
        off = (first + torch.tensor([2.0**-10, 0], dtype=dtype), second + 2.0**-9, second)
        errors = (2.0**-9, 2.0**-8)
    found = compare_outputs(parts, off, protocol)
    assert (found.status, found.max_abs_error, found.max_rel_error) == ("correct", *errors)
    turned = compare_outputs(parts[::-1], off[::-1], protocol)
    assert (turned.max_abs_error, turned.max_rel_error) == errors


def test_numbers_have_errors_too():
    found = compare_outputs([4.0, 1.0], [4.03125, 1.0], "paper")
    assert (found.max_abs_error, found.max_rel_error) == (0.03125, 0.0078125)
    assert compare_outputs("a", "a", "paper").max_abs_error is None
    assert compare_outputs(4.0, 5.0, "paper").message == "output: expected 4.0, got 5.0"


@pytest.mark.parametrize(("far", "want"), [(5, "correct"), (6, "wrong_value")])
def test_up_to_a_twentieth_may_be_outside_of_the_papers_tolerance(far, want):
    """One element of 10,000 among 99 zeros: rms 1,000, so 0.1 is within the tolerance, and 0.05 outside of the paper's."""
    expected = torch.zeros(100)
    expected[0] = 1e4
    actual = expected.clone()
    actual[1 : far + 1] = 0.05
    found = compare_outputs(expected, actual, "strict")
    assert found.status == want
    assert found.ok or found.message == (
        "output: 6 % of the elements are further off than the paper's tolerance of 0.01; "
        "a few much larger elements make the rms of 1e+03"
    )


def test_an_infinite_element_does_not_widen_the_tolerance():
    """Of a hundred elements one is infinite: the rms is 300 x sqrt(0.99) = 298.5, and 0.0598 is allowed."""
    expected = torch.full((100,), 300.0)
    expected[3] = INF
    assert status(expected, expected + 0.055, "strict") == "correct"
    assert status(expected, expected + 0.065, "strict") == "wrong_value"


def test_an_output_of_just_the_noises_rms_is_noise():
    expected = torch.full((4,), 2.0**-20)
    assert compare_outputs(expected, 2 * expected, "strict", noise_rms=2.0**-20).as_noise
    assert compare_outputs(expected, 2 * expected, "strict", noise_rms=2.0**-21).status == "wrong_value"
    part = compare_outputs((expected, torch.ones(3)), (2 * expected, torch.zeros(3)), "strict", noise_rms=1.0)
    assert (part.status, part.as_noise) == ("wrong_value", False)


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_of_tensors_without_data_the_form_is_compared(protocol):
    x = torch.ones(2, 3)
    found = compare_outputs(x, torch.empty(2, 3, device="meta"), protocol)
    assert (found.status, found.max_abs_error) == ("correct", None)
    assert status(x, torch.empty(3, 2, device="meta"), protocol) == "wrong_shape"
    assert status(x, torch.empty(2, 3, dtype=torch.float16, device="meta"), protocol) == "wrong_dtype"


def test_wrong_elements_of_every_type():
    assert wrong_elements(torch.tensor([1, 300]), torch.tensor([2, 302]), "paper").tolist() == [True, False]
    assert wrong_elements(torch.tensor([1, 300]), torch.tensor([1, 301]), "strict").tolist() == [False, True]
    assert wrong_elements(torch.tensor([True, False]), torch.tensor([True, True]), "paper").tolist() == [False, True]
    assert wrong_elements(torch.tensor(1.0), torch.tensor(2.0), "paper").tolist() is True
    assert wrong_elements(torch.zeros(0, 3), torch.zeros(0, 3), "strict").shape == (0, 3)


@pytest.mark.parametrize(
    ("expected", "actual", "sentence"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, "keys differ (missing ['a'], unexpected ['c'])"),
        ({"a": 1}, [1], "expected a dictionary, got list"),
        ([1, 2], 1, "expected 2 outputs, got one int"),
        ([1, 2], [1], "expected 2 outputs, got 1"),
        ("a" * 3, "b" * 100, f"expected 'aaa', got '{'b' * 80}'"),
    ],
)
def test_what_differs_in_form_is_said(expected, actual, sentence):
    assert compare_outputs(expected, actual, "paper").message == f"output: {sentence}"


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_floats_of_eight_bits_are_compared(protocol, dtype):
    value = torch.linspace(0.5, 2.0, 12).reshape(3, 4).to(dtype)
    other = value.clone()
    other.view(torch.uint8)[1, 2] += 8  # at least twice the value
    assert compare_outputs(value, value.clone(), protocol).ok
    assert compare_outputs(value, other, protocol).status == "wrong_value"
    assert wrong_elements(value, other, protocol).nonzero().tolist() == [[1, 2]]


@pytest.mark.parametrize("number", [1.0, -1, 1 << 70, True])
def test_any_number_may_stand_for_a_scalar_of_unsigned_integers(number):
    compare_outputs(torch.tensor(1, dtype=torch.uint64), number, "paper")
