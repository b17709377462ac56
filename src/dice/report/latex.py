"""LaTeX of tables: booktabs, measured numbers upright, the paper's in grey, so that the two are never mixed up."""

from __future__ import annotations

from dice.report.rows import Row, interval, level_metric, metrics_of

_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_HEADS = {"exec": "Exec", "fast1": r"fast$_1$", "fast2": r"fast$_2$"}


def escape(text: str) -> str:
    """Text with LaTeX's own characters made harmless."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _head(metric: str) -> str:
    found = level_metric(metric)
    return f"L{found[0]} {_HEADS[found[1]]}" if found else escape(metric.replace("_", " "))


def _cell(row: Row, metric: str) -> str:
    measured, reported = row.get(metric, ""), row.get(f"{metric}_reported", "")
    grey = rf"\reported{{{escape(reported)}}}" if reported else ""
    if measured == "":
        return grey
    ends = interval(row, metric)
    between = rf"\interval{{{ends[0]}}}{{{ends[1]}}}" if ends else ""
    return rf"\measured{{{escape(measured)}}}{between} {grey}".rstrip()


def table_tex(number: int, title: str, rows: list[Row]) -> str:
    r"""A `table*` environment; \measured, \interval and \reported are defined in paper/dice.sty."""
    metrics = metrics_of(rows[0])
    lines = [
        r"\begin{table*}[t]\centering",
        rf"\caption{{{escape(title)}. Scale: {escape(rows[0]['scale'])}.}}\label{{tab:{number}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * len(metrics)}l}}\toprule",
        " & ".join(["Row", *(_head(metric) for metric in metrics), "Status"]) + r" \\ \midrule",
    ]
    for row in rows:
        lines.append(
            " & ".join([escape(row["row"]), *(_cell(row, m) for m in metrics), escape(row["status"])]) + r" \\"
        )
    lines += [r"\bottomrule\end{tabular}}", r"\end{table*}", ""]
    return "\n".join(lines)
