"""What a finding carries, and which of several of one name is kept."""

from __future__ import annotations

from dice.kernels.checks.finding import finding, one_of_each


def test_a_finding_that_warns_is_fatal_under_no_protocol() -> None:
    assert finding("no_custom_kernel", "static", "no kernel").fatal == {"paper": True, "strict": True}
    assert finding("timer_patched", "static", "line 3").fatal == {"paper": False, "strict": True}
    assert finding("no_custom_kernel", "static", "no kernel", warns=True).fatal == {"paper": False, "strict": False}


def test_evidence_is_cut() -> None:
    assert finding("timer_patched", "static", "x" * 500).evidence == "x" * 300


def test_evidence_is_text_whatever_a_literal_says() -> None:
    said = finding("timer_patched", "static", "name '\udfff'")
    assert said.evidence == r"name '\udfff'"
    assert said.model_dump_json()


def test_the_first_that_condemns_is_kept_or_else_the_first() -> None:
    warning, fatal = finding("cuda_graph", "static", "a"), finding("timer_patched", "static", "c")
    warned = [finding("timer_patched", "static", text, warns=True) for text in "ab"]
    later = finding("timer_patched", "dynamic", "d")
    assert one_of_each([*warned, warning, fatal, later]) == [fatal, warning]
    assert one_of_each(warned) == warned[:1]
