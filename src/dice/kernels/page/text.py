"""The page as text: a headline, then labelled blocks. Colour only where it is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from dice.kernels.page.page import Page, Sign, Speed
from dice.kernels.records.explanation import Explanation, KernelUse, Mismatch
from dice.kernels.records.verdict import Timing

_LABEL = 10
_COLOURS = {"good": "32", "bad": "31", "dim": "2", "bold": "1"}
_UNITS = ("", "k", "M", "G", "T", "P")
LEGEND = ". right   + some wrong   # all wrong   ? wrong and never written"


def render(page: Page, colour: bool = False) -> str:
    """The whole page, ending with a newline."""

    def painted(text: str, kind: str) -> str:
        return f"\033[{_COLOURS[kind]}m{text}\033[0m" if colour else text

    mark = painted("right" if page.correct else "WRONG", "good" if page.correct else "bad")
    host = page.verdicts[0].host
    lines = [f"{painted(page.kernel, 'bold')}  {mark}: {page.headline}"]
    lines.append(painted(f"against {page.reference}, on {host.gpu or host.cpu}", "dim"))
    explanation = page.explanation or Explanation()
    for label, block in (
        ("error", _failure(page)),
        ("where", _where(explanation.mismatch)),
        ("time", (line for speed in page.speeds for line in _speed(speed, explanation))),
        ("work", _work(explanation)),
        ("kernels", _kernels(page, explanation.kernels)),
        ("robust", page.conditions),
        ("hazards", page.hazards),
        ("findings", (line for sign in page.signs for line in _sign(sign))),
        ("notes", page.notes),
    ):
        lines += _block(label, block)
    return "\n".join(lines) + "\n"


def _block(label: str, lines: Iterable[str]) -> Iterator[str]:
    """A label in front of the first line, the others below it."""
    texts = [text for line in lines for text in line.rstrip().split("\n")]
    if texts:
        yield ""
    for number, text in enumerate(texts):
        yield f"{label if number == 0 else '':<{_LABEL}}{text}".rstrip()


def _failure(page: Page) -> Iterator[str]:
    """What went wrong, where no other block says it better."""
    failed = next((verdict for verdict in page.verdicts if verdict.status != "correct"), None)
    located = page.explanation is not None and page.explanation.mismatch is not None
    if failed is None or failed.status == "deceptive" or (failed.status == "wrong_value" and located):
        return
    if not page.errors:
        yield page.message.split("; output")[0] if located else page.message  # the rest is drawn
    for error in page.errors:
        yield f"line {error.line}: {error.text}" if error.line else error.text
        if error.source:
            yield f"    {error.source}"


def _where(mismatch: Mismatch | None) -> Iterator[str]:
    if mismatch is None:
        return
    share = 100 * mismatch.wrong / mismatch.total
    shape = " x ".join(map(str, mismatch.shape)) or "scalar"
    yield f"{mismatch.where}, {shape} {mismatch.dtype}: {mismatch.wrong} of {mismatch.total} elements ({share:.3g} %)"
    yield f"first at {mismatch.first}: expected {mismatch.expected}, got {mismatch.got}"
    if mismatch.wrong > 1 and mismatch.shape:
        ranges = zip(mismatch.lowest, mismatch.highest, strict=True)
        yield "within [" + ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in ranges) + "]"
    yield from mismatch.remarks
    if mismatch.total == 1:
        return
    yield ""
    wide = len(mismatch.shape) > 1
    n_rows = math.prod(mismatch.shape[:-1]) if wide else len(mismatch.picture) * mismatch.rows_per_cell
    labels = [_span(i * mismatch.rows_per_cell, mismatch.rows_per_cell, n_rows) for i in range(len(mismatch.picture))]
    width = max(map(len, labels))
    for label, row in zip(labels, mismatch.picture, strict=True):
        yield f"{label:>{width}}  {row}"
    cell = f"{mismatch.rows_per_cell} x {mismatch.columns_per_cell}"
    what = "rows down, the last dimension across" if wide else "the elements in order, line by line"
    yield f"{what}; {cell} elements a character"
    yield LEGEND


def _span(first: int, length: int, end: int) -> str:
    last = min(first + length, end) - 1
    return str(first) if last <= first else f"{first}..{last}"


def _speed(speed: Speed, explanation: Explanation) -> Iterator[str]:
    line = f"{speed.protocol}: {_ms(speed.runtime_ms)}"
    if speed.reference_ms is not None:
        line += f", the reference {_ms(speed.reference_ms)}"
    if (ratio := speed.speedup) is not None:
        interval = (
            "" if ratio.ci_low is None or ratio.ci_high is None else f" [{ratio.ci_low:.3g}, {ratio.ci_high:.3g}]"
        )
        line += f": {ratio.median:.3g} times as fast{interval}"
    yield line
    card = explanation.card
    for value, peak, unit in (
        (speed.bytes_per_s, card.bytes_per_s if card else None, "B/s"),
        (speed.flop_per_s, card.flop_per_s if card else None, "FLOP/s"),
    ):
        if value is not None:
            of_peak = f", {100 * value / peak:.0f} % of the card's {quantity(peak, unit)}" if peak else ""
            yield f"    {quantity(value, unit)}{of_peak}"


def _ms(timing: Timing) -> str:
    return f"{timing.median:.4g} ms (n = {timing.n})"


def _work(explanation: Explanation) -> Iterator[str]:
    if explanation.work is not None:
        flop = explanation.work.flop
        products = f", {quantity(flop, 'FLOP')} in products and convolutions" if flop else ""
        yield f"a call moves at least {quantity(explanation.work.bytes, 'B')} (inputs, weights, outputs once){products}"


def quantity(value: float, unit: str) -> str:
    """`1.23 GB/s`."""
    power = min(len(_UNITS) - 1, int(math.log10(value) // 3)) if value >= 1 else 0
    return f"{value / 1000**power:.3g} {_UNITS[power]}{unit}"


def _kernels(page: Page, uses: list[KernelUse]) -> Iterator[str]:
    launches = next((v.launches for v in page.verdicts if v.launches), None) or {}
    for name, count in launches.items():
        yield f"{name}: {count} launch{'es' if count != 1 else ''} a call"
    for use in uses:
        local = f", {use.local_bytes} B of local memory (spills, or arrays)" if use.local_bytes else ", no spills"
        yield f"{use.kernel}: {use.registers} registers, {use.shared_bytes} B of shared memory{local}"
        sizes = ", ".join(f"{threads}: {100 * share:.0f} %" for threads, share in use.occupancy.items())
        yield f"    occupancy by threads of a block: {sizes}"


def _sign(sign: Sign) -> Iterator[str]:
    place = f"line {sign.line}: " if sign.line else ""
    weight = f"fatal under {' and '.join(sign.fatal_under)}" if sign.fatal_under else "a warning"
    yield f"{place}{sign.name} ({weight}): {sign.meaning}"
    yield f"    {sign.evidence}"
