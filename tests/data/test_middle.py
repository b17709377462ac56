"""The cut of a model's response to the middle of a candidate, or a refusal with the reason."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from infilling_forms import AUTHORS, FORMS

from dice.data.infilling import split_candidate
from dice.data.middle import extract_middle
from dice.data.source_string import InfillingRefused

SPLIT = split_candidate(AUTHORS)
ANSWER = 'source = """\n__global__ void better() {}\n"""'
ACCEPTED = {
    "the middle": ANSWER,
    "fenced": f"```python\n{ANSWER}\n```",
    "after prose": f"Here's the kernel, don't panic:\n\n```\n{ANSWER}\n```\nIt's fast.",
    "after reasoning with a draft": f"<think>\nsource = 'draft'\n</think>\n{ANSWER}",
    "the whole file": SPLIT.prefix + ANSWER + SPLIT.suffix,
    "a file with another scaffold": f"import os\nos._exit(0)\n{ANSWER}\nclass ModelNew: pass\n",
    "followed by a cut-off suffix": f'{ANSWER}\n\ncpp_src = """ torch::Ten',
    "followed by a second assignment": f"{ANSWER}\nsource = 'other'\n",
    "statements on its line": f"{ANSWER}; import os; os._exit(0)",
}


@pytest.mark.parametrize("form", ACCEPTED)
def test_a_response_is_cut_to_the_middle(form):
    response = ACCEPTED[form]
    found = extract_middle(SPLIT.prefix, SPLIT.suffix, response)
    assert found.middle == ANSWER
    assert found.before + found.middle + found.after == response
    whole = SPLIT.prefix + found.middle + SPLIT.suffix
    assert split_candidate(whole).middle == ANSWER
    assert "_exit" not in whole


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "no_middle"),
        ("I cannot write this kernel.", "no_middle"),
        ("__global__ void k() {}", "no_middle"),
        ("cuda_source = '''__global__ void k() {}'''", "no_middle"),
        ("if source == 'x': pass", "no_middle"),
        (f"<think>\n{ANSWER}", "no_middle"),
        ('source = """\n__global__ void k() {', "unfinished"),
        ("source = (", "unfinished"),
        ("source = __import__('os').system('id') or '''x'''", "not_a_string"),
        ("source = open('/etc/passwd').read()", "not_a_string"),
        ("source = f'''{open(1)}'''", "not_a_string"),
        ("source = (lambda: '''x''')()", "not_a_string"),
        ("source = decl", "not_a_string"),
        ("source = 5", "not_a_string"),
        ("source = source = [c for c in 'abc']", "not_a_string"),
        ("source = 'x' if decl else 'y'", "not_a_string"),
        ("source = (evil := 'x')", "not_a_string"),
    ],
)
def test_a_response_that_leaves_the_middle_is_refused(response, reason):
    with pytest.raises(InfillingRefused) as caught:
        extract_middle(SPLIT.prefix, SPLIT.suffix, response)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "response",
    [
        '"__global__ void b() {}"',
        '```python\nr"""__global__ void b() {}"""\n```',
        "cuda_sources='''__global__ b''',\n x=1",
    ],
)
def test_a_response_for_a_hole_inside_a_call(response):
    code, _, _ = FORMS["literal in the call"]
    split = split_candidate(code)
    found = extract_middle(split.prefix, split.suffix, response)
    assert "__global__" in ast.literal_eval(found.middle)
    assert split_candidate(split.prefix + found.middle + split.suffix).middle == found.middle
    with pytest.raises(InfillingRefused):
        extract_middle(split.prefix, split.suffix, "sorry, no string here")


def test_reasoning_tags_inside_a_candidate_are_text():
    code = AUTHORS.replace("*= 2.f", "*= 2.f /* <think> </think> */")
    assert "</think>" in split_candidate(code).middle


def test_an_indented_middle_is_cut_without_its_indentation():
    split = split_candidate(FORMS["attribute of the instance"][0])
    found = extract_middle(split.prefix, split.suffix, "        self.src = '''__global__ void b() {}'''\n")
    compile(split.prefix + found.middle + split.suffix, "candidate", "exec")


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(alphabet="source=\"'\\\n\r\t ()[]{}f#;,x1"))
def test_any_response_is_cut_or_refused(text):
    for split in (SPLIT, split_candidate(FORMS["literal in the call"][0])):
        try:
            found = extract_middle(split.prefix, split.suffix, text)
        except InfillingRefused:
            continue
        assert found.before + found.middle + found.after == text
        ast.parse(split.prefix + found.middle + split.suffix)
