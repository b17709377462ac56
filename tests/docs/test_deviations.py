"""The page of deviations names each switch, and each setting that is not the authors'."""

from __future__ import annotations

import dataclasses
import re

import pytest
from pages import ROOT

from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.dream import DreamConfig
from dice.decoding.llada import LladaConfig
from dice.decoding.window import WindowConfig
from dice.evaluation.generate import GenerateConfig
from dice.evaluation.prompts import PromptConfig
from dice.training.rl_config import ReleasedBehaviour, RlConfig
from dice.training.sft_config import SftConfig

PAGE = (ROOT / "docs" / "reference" / "deviations.md").read_text(encoding="utf-8")
CONFIGS = {"rl": RlConfig, "sft": SftConfig, "generate": GenerateConfig, "prompt": PromptConfig}


def test_each_switch_of_the_authors_behaviour_is_on_the_page():
    for field in dataclasses.fields(ReleasedBehaviour):
        assert f"`rl.released_behaviour.{field.name}`" in PAGE


@pytest.mark.parametrize("config", [BlockDiffusionConfig, DreamConfig, LladaConfig, WindowConfig])
def test_no_sampler_repeats_the_vendor_unless_it_is_asked_to(config):
    assert config().compat == "none"
    assert "`compat: released` of each sampler" in PAGE


def test_each_switch_on_the_page_is_a_setting():
    found = re.findall(r"`(rl|sft|generate|prompt)\.([a-z_0-9.]+)", PAGE)
    assert len(found) > 15
    for stage, path in found:
        kind: type | None = CONFIGS[stage]
        for name in path.split("."):
            assert kind is not None, f"{stage}.{path}"
            fields = {field.name: field for field in dataclasses.fields(kind)}
            assert name in fields, f"{stage}.{path}"
            default = fields[name].default
            kind = type(default) if dataclasses.is_dataclass(default) and not isinstance(default, type) else None


@pytest.mark.parametrize(
    "words",
    [
        "`normaliser: tokens`",
        "four updates a step",
        "`think: none`",
        "Figure 1 is said to show speed",
        "`nano` Table 12 counts both stand-ins",
        "the steps of its scale (`rl_steps`). Only at `paper`",
    ],
)
def test_what_an_audit_missed_is_on_the_page(words):
    assert words in " ".join(PAGE.split())
