"""cuBLAS on the CPU computes what the formulas of its documentation say."""

from __future__ import annotations

import itertools
from types import ModuleType

import pytest
import torch
from cpu_fixtures import Load, close

INVALID_VALUE = 7
NAN = float("nan")


@pytest.fixture(scope="module")
def blas(load: Load) -> ModuleType:
    return load("blas")


def taken(x: torch.Tensor, n: int, step: int) -> torch.Tensor:
    """The vector that BLAS reads with an increment: of a negative one, from the last element on."""
    return x[[(i if step > 0 else i - n + 1) * step for i in range(n)]]


def put(x: torch.Tensor, step: int, values: torch.Tensor) -> torch.Tensor:
    """`x` with a vector written as BLAS does."""
    new, n = x.clone(), len(values)
    new[[(i if step > 0 else i - n + 1) * step for i in range(n)]] = values
    return new


def matrix(a: torch.Tensor, leading: int, rows: int, columns: int, first: int = 0) -> torch.Tensor:
    """A column-major matrix in memory."""
    return torch.as_strided(a, (rows, columns), (1, leading), first)


@pytest.mark.parametrize(("n", "incx", "incy"), [*itertools.product((0, 1, 5), (1, 2, -1, -3), (1, -2))])
def test_vectors_of_every_increment(blas: ModuleType, n: int, incx: int, incy: int) -> None:
    x, y = torch.randn(2, 20, dtype=torch.double)
    left, right = taken(x, n, incx), taken(y, n, incy)
    added, copied, first, second, dot = blas.vectors(x, y, n, incx, incy, 2.0)
    close(added, put(y, incy, right + 2 * left))
    close(copied, put(y, incy, left))
    close(first, put(x, incx, right))
    close(second, put(y, incy, left))
    close(dot, (left * right).sum()[None])
    scaled, found = blas.sizes(x, n, incx)
    if not n or incx < 0:  # these take no negative increments, and say 0
        assert torch.equal(scaled, x)
        assert found.tolist() == [0, 0, 0, 0]
        return
    close(scaled, put(x, incx, 2 * left))
    close(found, torch.stack([left.norm(), left.abs().sum(), left.abs().argmax() + 1, left.abs().argmin() + 1]))


@pytest.mark.parametrize(
    ("transposed", "incx", "incy", "beta"), [*itertools.product((False, True), (1, -2), (1, -3), (0.0, 0.5))]
)
def test_matrices_and_vectors_of_every_increment(
    blas: ModuleType, transposed: bool, incx: int, incy: int, beta: float
) -> None:
    m, n, lda = 3, 5, 4
    a, x, y = torch.randn(lda * n, dtype=torch.double), *torch.randn(2, 20, dtype=torch.double)
    whole = matrix(a, lda, m, n)
    rows, columns = (n, m) if transposed else (m, n)
    right, left = taken(x, columns, incx), taken(y, rows, incy)
    start = y if beta else torch.full_like(y, NAN)  # is not read
    found = blas.matrix_and_vectors(a, lda, transposed, m, n, x, incx, start, incy, 2.0, beta)
    product = 2 * ((whole.T if transposed else whole) @ right) + beta * left
    torch.testing.assert_close(found[0], put(start, incy, product), equal_nan=True)
    assert not found[-1].any()
    if beta:
        u, v = (right, left) if transposed else (left, right)
        close(matrix(found[1], lda, m, n), whole + 2 * torch.outer(u, v))
        close(matrix(found[2], lda, m, n), whole * u[:, None])
        close(matrix(found[3], lda, m, n), whole * v)
    refused = blas.matrix_and_vectors(a, m - 1, transposed, m, n, x, incx, y, incy, 2.0, beta)
    assert refused[-1].tolist() == [INVALID_VALUE] * 4


COMPUTE_32F, COMPUTE_64F, COMPUTE_32I, R_32F, R_32I = 68, 70, 72, 0, 10


@pytest.mark.parametrize(
    ("of", "to", "compute"),
    [
        (torch.float32, torch.float32, COMPUTE_32F),
        (torch.float32, torch.float32, R_32F),
        (torch.float64, torch.float64, COMPUTE_64F),
        (torch.half, torch.float32, COMPUTE_32F),
        (torch.bfloat16, torch.bfloat16, COMPUTE_32F),
        (torch.int8, torch.int32, COMPUTE_32I),
        (torch.int8, torch.int32, R_32I),
        (torch.int8, torch.float32, COMPUTE_32F),
    ],
)
def test_products_of_every_type(blas: ModuleType, of: torch.dtype, to: torch.dtype, compute: int) -> None:
    for ta, tb, beta, batches, k in itertools.product((False, True), (False, True), (0, 1), (1, 3), (0, 5, 2048)):
        m, n, pad = 3, 4, 2
        (ra, ca), (rb, cb) = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
        lda, ldb, ldc = ra + pad, rb + pad, m + pad
        drawn = (torch.randint(90, 127, (batches, size)) for size in (lda * max(ca, 1), ldb * max(cb, 1), ldc * n))
        scale = 1 if of == torch.int8 else 1 / 128
        a, b, c = (scale * each for each in drawn)
        a, b, c = a.to(of), b.to(of), (c + 0.5).to(to)
        ours = blas.products(a, lda, ta, b, ldb, tb, c, ldc, m, n, k, batches, 1.0, beta, compute)
        for i in range(batches):
            left, right = matrix(a, lda, ra, ca, i * a.shape[1]), matrix(b, ldb, rb, cb, i * b.shape[1])
            left, right = (left.T if ta else left).double(), (right.T if tb else right).double()
            expected = left @ right + beta * matrix(c, ldc, m, n, i * c.shape[1]).double()
            close(matrix(ours, ldc, m, n, i * c.shape[1]), expected.to(to), 1e-2 if to == torch.bfloat16 else 1e-4)
            if to == torch.int32:
                assert torch.equal(matrix(ours, ldc, m, n, i * c.shape[1]).double(), expected)


@pytest.mark.parametrize(
    ("left", "lower", "transposed", "unit"),
    [*itertools.product((False, True), repeat=4)],
)
def test_triangles_and_symmetric_matrices(
    blas: ModuleType, left: bool, lower: bool, transposed: bool, unit: bool
) -> None:
    m, n, pad, alpha, beta = 4, 3, 2, 2.0, 0.5
    order = m if left else n
    lda, ldb, ldc = order + pad, m + pad, m + pad
    a, b, c = (torch.randn(size, dtype=torch.double) for size in (lda * order, ldb * n, ldc * n))
    whole, other, start = matrix(a, lda, order, order), matrix(b, ldb, m, n), matrix(c, ldc, m, n)
    whole += 3 * torch.eye(order)
    found = blas.special(a, lda, b, ldb, c, ldc, m, n, left, lower, transposed, unit, alpha, beta)
    triangle = whole.tril() if lower else whole.triu()
    symmetric = triangle + triangle.T - triangle.diag().diag()
    close(matrix(found[0], ldc, m, n), alpha * (symmetric @ other if left else other @ symmetric) + beta * start)
    if unit:
        triangle = triangle.clone().fill_diagonal_(1)
    inverse = (triangle.T if transposed else triangle).inverse()
    close(matrix(found[1], ldb, m, n), alpha * (inverse @ other if left else other @ inverse))
    square = alpha * (other @ other.T if left else other.T @ other) + beta * whole
    of_result = torch.ones(order, order).tril().bool() if lower else torch.ones(order, order).triu().bool()
    close(matrix(found[2], lda, order, order), torch.where(of_result, square, whole))
    close(matrix(found[3], ldc, m, n), alpha * other + beta * start)


def nothing(like: torch.Tensor) -> torch.Tensor:
    return torch.full_like(like, NAN)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.0, 0.0), (2.0, 0.5)])
@pytest.mark.parametrize(("ta", "tb"), [*itertools.product((False, True), repeat=2)])
def test_no_product_reads_what_a_scalar_of_zero_multiplies(
    blas: ModuleType, ta: bool, tb: bool, alpha: float, beta: float
) -> None:
    m, n, k, batches = 3, 4, 5, 2
    (ra, ca), (rb, cb) = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    lda, ldb, ldc = ra + 2, rb + 1, m + 3
    a, b, c = (torch.randn(batches, size) for size in (lda * ca, ldb * cb, ldc * n))
    given = (a, b) if alpha else (nothing(a), nothing(b))
    found, statuses = blas.every_gemm(
        given[0], lda, ta, given[1], ldb, tb, c if beta else nothing(c), ldc, m, n, k, alpha, beta
    )
    assert statuses.tolist() == [0] * 8
    for results in found:
        for i in range(batches):
            left, right = matrix(a, lda, ra, ca, i * a.shape[1]), matrix(b, ldb, rb, cb, i * b.shape[1])
            product = (left.T if ta else left) @ (right.T if tb else right)
            expected = alpha * product + beta * matrix(c, ldc, m, n, i * c.shape[1])
            close(matrix(results, ldc, m, n, results.storage_offset() + i * c.shape[1]), expected)


def test_no_vector_is_read_that_a_scalar_of_zero_multiplies(blas: ModuleType) -> None:
    m, n = 3, 5
    a, x, y = torch.randn(m * n, dtype=torch.double), *torch.randn(2, 5, dtype=torch.double)
    assert torch.equal(blas.vectors(nothing(x), y, n, 1, 1, 0.0)[0], y)
    product = blas.matrix_and_vectors(nothing(a), m, False, m, n, nothing(x), 1, y, 1, 0.0, 0.5)[0]
    close(product, torch.cat([0.5 * y[:m], y[m:]]))
    updated = blas.matrix_and_vectors(a, m, False, m, n, nothing(x), 1, nothing(y), 1, 0.0, 0.5)[1]
    assert torch.equal(updated, a)


@pytest.mark.parametrize(("left", "lower"), [*itertools.product((False, True), repeat=2)])
def test_no_special_matrix_is_read_that_a_scalar_of_zero_multiplies(blas: ModuleType, left: bool, lower: bool) -> None:
    m, n = 4, 3
    order = m if left else n
    a, b, c = (torch.randn(size, dtype=torch.double) for size in (order * order, m * n, m * n))
    side = torch.ones(order, order).T.tril().bool() if lower else torch.ones(order, order).triu().bool()
    written = side.T.flatten()  # of the memory of a, which is column-major

    def results(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> list[torch.Tensor]:
        return blas.special(a, order, b, m, c, m, m, n, left, lower, False, False, alpha, beta)

    symmetric, solved, _, added, _ = results(nothing(a), nothing(b), c, 0.0, 0.5)
    close(symmetric, 0.5 * c)
    close(added, 0.5 * c)
    assert torch.equal(solved, torch.zeros_like(b))
    close(results(a, nothing(b), c, 0.0, 0.5)[2], torch.where(written, 0.5 * a, a))
    whole = results(a, b, c, 2.0, 0.5)
    symmetric, _, _, added, _ = results(a, b, nothing(c), 2.0, 0.0)
    close(symmetric, whole[0] - 0.5 * c)
    close(added, 2 * b)
    squared = results(nothing(a), b, c, 2.0, 0.0)[2]
    close(squared[written], (whole[2] - 0.5 * a)[written])
    assert bool(squared[~written].isnan().all())


@pytest.mark.parametrize(("ta", "tb"), [*itertools.product((False, True), repeat=2)])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 4, 5), (0, 4, 5), (3, 0, 5), (3, 4, 0)])
def test_products_refuse_a_leading_dimension_in_which_columns_overlap(
    blas: ModuleType, ta: bool, tb: bool, m: int, n: int, k: int
) -> None:
    lengths = [max(1, k if ta else m), max(1, n if tb else k), max(1, m)]
    a, b, c = (torch.randn(2, 40) for _ in range(3))
    for short in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]):
        lda, ldb, ldc = (length - less for length, less in zip(lengths, short, strict=True))
        found, statuses = blas.every_gemm(a, lda, ta, b, ldb, tb, c, ldc, m, n, k, 1.0, 0.5)
        assert statuses.tolist() == [INVALID_VALUE if any(short) else 0] * 8
        assert not any(short) or torch.equal(found, c.expand_as(found))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(
    ("short", "refused"),
    [("a", (True, True, True, False)), ("b", (True,) * 4), ("c", (True, False, False, True)), ("", (False,) * 4)],
)
def test_special_matrices_refuse_a_leading_dimension_in_which_columns_overlap(
    blas: ModuleType, left: bool, short: str, refused: tuple[bool, ...]
) -> None:
    m, n = 4, 3
    order = m if left else n
    a, b, c = (torch.randn(20, dtype=torch.double) for _ in range(3))
    lda, ldb, ldc = order - (short == "a"), m - (short == "b"), m - (short == "c")
    *found, statuses = blas.special(a, lda, b, ldb, c, ldc, m, n, left, True, False, False, 2.0, 0.5)
    assert statuses.tolist() == [INVALID_VALUE * each for each in refused]
    for result, start, untouched in zip(found, (c, b, a, c), refused, strict=True):
        assert torch.equal(result, start) == untouched


def test_a_scalar_by_a_null_pointer_is_refused(blas: ModuleType) -> None:
    assert blas.without_scalars().tolist() == [INVALID_VALUE] * 9


def test_whole_numbers_are_added_exactly(blas: ModuleType) -> None:
    a, b = torch.randint(-128, 128, (2, 4, 4), dtype=torch.int8)
    c = torch.randint(1 << 25, 1 << 26, (4, 4), dtype=torch.int32)  # more digits than a float has
    expected = (a.T.int() @ b.T.int()).T + c  # column-major
    assert torch.equal(blas.whole_numbers(a, b, c), expected)
