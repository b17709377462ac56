r"""`dice tex`: the generated parts of the paper: numbers.tex and generated.tex.

numbers.tex has a macro for every measured or reported number, generated.tex the list of tables and figures with their
captions. A number in prose is `\num{table1}{DICE-8B}{l1_exec}`; it prints the measured value, or the paper's one marked as
reported, or `n/a`. Nothing in the text is typed by hand.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dice.config import add_options, config_from, stage_config, to_spec
from dice.jsonl import write_text
from dice.manifest import Stopwatch, write_manifest
from dice.report.figures import caption_of
from dice.report.latex import escape
from dice.report.rows import metrics_of, read_table


@stage_config
class TexConfig:
    """What `dice tex` reads and writes."""

    tables: tuple[str, ...]
    """CSV files of tables."""
    figures: tuple[str, ...]
    """CSV files of figures."""
    out: str
    """numbers.tex to write; generated.tex (the tables and figures) goes beside it."""


def numbers(tables: list[str]) -> list[str]:
    r"""A definition for each cell: \dice@table1@DICE-8B@l1_exec."""
    lines = []
    for path in tables:
        rows = read_table(path)
        for row in rows:
            for metric in metrics_of(row):
                measured, reported = row[metric], row[f"{metric}_reported"]
                text = escape(measured) if measured else rf"{escape(reported)}\reportedmark{{}}"
                lines.append(
                    rf"\expandafter\def\csname dice@{Path(path).stem}@{row['row']}@{metric}\endcsname{{{text}}}"
                )
        lines.append(rf"\expandafter\def\csname dice@{Path(path).stem}@scale\endcsname{{{escape(rows[0]['scale'])}}}")
    return lines


def write_tex(config: TexConfig) -> int:
    """Run the stage; returns the number of macros."""
    watch = Stopwatch()
    lines = numbers(list(config.tables))
    out = Path(config.out)
    inputs = []
    for path in config.tables:
        inputs.append(rf"\input{{{Path(path).with_suffix('.tex').resolve()}}}")
    for path in config.figures:
        number = Path(path).stem.removeprefix("figure")
        place = Path(path).with_suffix(".pdf").resolve()
        inputs += [
            r"\begin{figure}[t]\centering",
            rf"\includegraphics[width=\linewidth]{{{place}}}",
            rf"\caption{{{escape(caption_of(path))}}}\label{{fig:{number}}}",
            r"\end{figure}",
        ]
    write_text(out.with_name("generated.tex"), "\n".join(inputs) + "\n")
    write_text(out, "\n".join(["% made by `dice tex`", r"\makeatletter", *lines, r"\makeatother"]) + "\n")
    read = [*config.tables, *config.figures]
    write_manifest(out, stage="tex", spec=to_spec(config), watch=watch, inputs=read)
    return len(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice tex`."""
    add_options(parser, TexConfig, "tables", "figures", "out")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice tex`."""
    config = config_from(args, TexConfig)
    print(f"{write_tex(config)} numbers written to {config.out}")
    return 0
