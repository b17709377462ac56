"""The plan of a scale, and every config that it has for a stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dice.data.curate import CurateConfig
from dice.data.infilling import InfillConfig
from dice.data.kernelbench import ProblemsConfig
from dice.data.leakage.stage import LeaksConfig
from dice.data.synthetic.stage import SynthConfig
from dice.data.tokenizer import TokenizerConfig
from dice.evaluation.generate import GenerateConfig
from dice.evaluation.prompts.stage import PromptsConfig
from dice.evaluation.reread import RereadConfig
from dice.evaluation.score import ScoreConfig
from dice.hub import FetchConfig
from dice.kernels.api import VerifyConfig
from dice.report.check import CheckConfig
from dice.report.claims import ClaimsConfig
from dice.report.exams import ExamsConfig
from dice.report.explorer import ExplorerConfig
from dice.report.figures import FigureConfig
from dice.report.strata import StrataConfig
from dice.report.tables import TableConfig
from dice.servers.ask import AskConfig
from dice.standins.stage import StandInsConfig
from dice.study.claims import claims_spec
from dice.study.exams import exams_spec
from dice.study.plan import Plan
from dice.study.reports import check_spec, explorer_spec, figure_spec, table_spec
from dice.study.strata import leaks_spec, strata_spec
from dice.study.units import RECORDED, SERVED
from dice.training.rl_config import RlConfig
from dice.training.sft_config import SftConfig


def specs(one: Plan) -> Iterator[tuple[type, dict[str, Any]]]:
    """Every config that the plan has for a stage; where the rule gives `out`, so does this."""
    for exam in (None, *one.study.exams):
        yield ProblemsConfig, one.problems_spec(exam)
        yield PromptsConfig, one.prompts_spec(exam)
    yield PromptsConfig, one.messages_spec()
    if one.study.stand_ins is not None:
        yield StandInsConfig, one.stand_ins_spec()
    for name in one.datasets("synth"):
        yield SynthConfig, one.synth_spec(name)
        yield InfillConfig, one.infill_spec(name)
        yield TokenizerConfig, one.tokenizer_spec(name)
    for name in one.datasets("curate"):
        yield CurateConfig, one.curate_spec(name)
    for name in one.datasets("file"):
        yield LeaksConfig, leaks_spec(one, name)
    for unit in one.models_by("fetch"):
        yield FetchConfig, one.fetch_spec(unit) | {"out": "x"}
    for unit in one.models_by("sft"):
        yield SftConfig, one.training_spec(unit) | {"out": "x"}
    for unit in one.models_by("rl"):
        yield RlConfig, one.training_spec(unit) | {"out": "x"}
    for unit in one.units:
        if unit.startswith((SERVED, RECORDED)):
            yield AskConfig, one.ask_spec(unit, 0)
        elif unit in one.rereads:
            yield RereadConfig, one.reread_spec(unit, 0)
        elif unit not in one.supplied:
            yield GenerateConfig, one.generate_spec(unit, 0)
        for shard in (None, *range(one.study.shards)):
            yield VerifyConfig, one.verify_spec(unit, 0, shard)
        yield ScoreConfig, one.score_spec(unit)
    for number in one.registry.tables:
        yield TableConfig, table_spec(one, number)
        yield StrataConfig, strata_spec(one, number)
    for number in one.registry.figures:
        yield FigureConfig, figure_spec(one, number)
    yield ExamsConfig, exams_spec(one)
    yield CheckConfig, check_spec(one)
    yield ClaimsConfig, claims_spec(one)
    yield ExplorerConfig, explorer_spec(one)
