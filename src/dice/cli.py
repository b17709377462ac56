"""`dice <stage> ...`: one subcommand per stage.

Each stage module has `add_arguments(parser)` and `run(args) -> int`; it is imported only when its stage is named,
so `dice --help` needs no torch. A DiceError becomes one sentence on stderr and its exit code.
"""

from __future__ import annotations

import argparse
import atexit
import errno
import gc
import importlib
import os
import sys

from dice import __version__
from dice.errors import DISK_FULL, DiceError, HarnessError

STAGES = {
    "verify": ("dice.kernels.verify", "build, run, judge and time CUDA kernels"),
    "serve": ("dice.service.stage", "verify for others over HTTP"),
    "mini": ("dice.kernels.problems.mini", "write the mini benchmark as a folder of problem files"),
    "problems": ("dice.data.kernelbench", "load a benchmark's problems into JSON lines"),
    "synth": ("dice.data.synthetic.stage", "write synthetic pairs of PyTorch and CUDA programs"),
    "structural": ("dice.data.structural", "write attention and MLP blocks of language models as problems"),
    "curate": ("dice.data.curate", "make the training set from its sources"),
    "difficulty": ("dice.data.difficulty", "label programs by difficulty"),
    "leaks": ("dice.data.leakage.stage", "find exam problems in data, leave them out, print the reports"),
    "infill": ("dice.data.infilling", "split pairs into prefix, middle and suffix"),
    "schedule": ("dice.data.schedule", "plan which problems each RL step takes"),
    "tokenizer": ("dice.data.tokenizer", "train a small byte-level BPE on pairs"),
    "prompts": ("dice.evaluation.prompts.stage", "write the prompts of problems or pairs"),
    "fetch": ("dice.hub", "fetch a released checkpoint by commit"),
    "standins": ("dice.standins.stage", "write what the scale rehearsal takes in the place of others' files"),
    "sft": ("dice.training.sft", "fine-tune a model on pairs"),
    "rl": ("dice.training.rl", "train on execution rewards: infilling, then end to end"),
    "generate": ("dice.evaluation.generate", "answer prompts with a model"),
    "ask": ("dice.servers.ask", "answer prompts with a model behind a server, or take recorded answers"),
    "reread": ("dice.evaluation.reread", "take the code of answers as the authors' script does"),
    "gather": ("dice.evaluation.gather", "join the verdicts of several verification jobs"),
    "score": ("dice.evaluation.score", "count verdicts: Exec and fast_p with intervals"),
    "table": ("dice.report.tables", "write one table of the paper: measured beside reported"),
    "exams": ("dice.report.exams", "write what each model gets in each benchmark: Exec and pass@k"),
    "strata": ("dice.report.strata", "count a table's rows by how new the problems are to the models"),
    "figure": ("dice.report.figures", "write one figure of the paper"),
    "check": ("dice.report.check", "compare what was measured with what the paper reports"),
    "claims": ("dice.report.claims", "test the paper's claims on what was measured"),
    "explorer": ("dice.report.explorer", "write the static site from cells to kernels"),
    "tex": ("dice.report.tex", "write the numbers and tables that the paper inputs"),
    "audit": ("dice.evidence.audit", "print the chain of evidence behind one cell of a table"),
    "record": ("dice.evidence.record", "keep a finished study as a small folder that makes its tables again"),
    "regenerate": ("dice.evidence.regenerate", "make the tables and figures of recorded studies again and compare"),
    "crate": ("dice.evidence.crate", "write a recorded study as a Workflow Run RO-Crate"),
    "embed": ("dice.report.embed", "write tables of recorded studies into Markdown pages"),
    "publish": ("dice.study.publish", "put a finished model where the study reads it, with the hashes of its files"),
    "fingerprint": ("dice.study.fingerprint", "print a digest of files and folders"),
    "lease": ("dice.gpus", "run a command on GPUs that nobody else holds"),
    "schema": ("dice.schema", "write the JSON Schemas of rows and configuration"),
}

EXTRAS = {
    "dice.data": "data",
    "dice.evaluation": "train",
    "dice.evidence": "workflow",
    "dice.hub": "data",
    "dice.report": "workflow",
    "dice.schema": "data,train,workflow",
    "dice.servers": "api",
    "dice.service": "serve",
    "dice.standins": "data",
    "dice.study": "workflow",
    "dice.training": "train",
}
"""Package -> the extra that brings what its stages need. The verifier, `dice.kernels`, needs none."""

NO_SUCH_PLACE = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
"""What is wrong with a path that somebody named: a folder that is a file, a file that is a folder, no right to it."""


def main(argv: list[str] | None = None) -> int:
    """Entry point of the console script; returns the exit code."""
    if argv is None:  # The process is ours. In what its imports make there is no garbage: to look for some, while they
        gc.disable()  # run and again when the process ends, took a second or more of each command with PyTorch.
        atexit.register(gc.freeze)
    try:
        return _run(argv)
    except KeyboardInterrupt:  # at any moment, the imports of a stage included
        print("dice: interrupted; run the same command again to resume.", file=sys.stderr)
        return 130


def make_parser(*stages: str) -> argparse.ArgumentParser:
    """The parser that knows every stage by name, and the arguments of `stages`, whose modules it imports."""
    parser = argparse.ArgumentParser(
        prog="dice",
        description="The reproduction of DICE (arXiv 2602.11715), one subcommand per stage.",
        epilog="`pip install .` alone is the kernel verifier: verify and mini. The other stages need the extras api, data, "
        "serve, train or workflow, and say which.",
    )
    parser.add_argument("--version", action="version", version=f"dice {__version__}")
    subparsers = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for name, (module_name, summary) in STAGES.items():
        stage_parser = subparsers.add_parser(name, help=summary, description=summary)
        if name in stages:
            module = importlib.import_module(module_name)
            module.add_arguments(stage_parser)
            stage_parser.set_defaults(run=module.run)
    return parser


def _run(argv: list[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    named = next((word for word in arguments if not word.startswith("-")), "")
    try:
        args = make_parser(named).parse_args(arguments)
        gc.enable()
        return args.run(args)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "dice":
            raise
        module = STAGES[named][0]
        extra = next((extra for package, extra in EXTRAS.items() if module.startswith(package)), "")
        install = f"dice-repro[{extra}]" if extra else error.name
        print(f"dice {named}: needs the package '{error.name}': pip install '{install}'.", file=sys.stderr)
        return DiceError.exit_code
    except DiceError as error:
        print(f"dice {named}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 1
    except OSError as error:
        if error.errno not in (*DISK_FULL, *NO_SUCH_PLACE):
            raise
        place = f" ({error.filename})" if error.filename else ""
        remedy = "make room, then run it again" if error.errno in DISK_FULL else "name a path that can be used"
        print(f"dice {named}: {os.strerror(error.errno)}{place}; {remedy}.", file=sys.stderr)
        return (HarnessError if error.errno in DISK_FULL else DiceError).exit_code


if __name__ == "__main__":
    sys.exit(main())
