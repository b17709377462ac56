"""The infilling split: byte-exact on every form, or refused with a reason."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from infilling_forms import AUTHORS, CALL, DECL, FORMS, HEAD, KERNEL, LITERAL

from dice.cli import main
from dice.data.infilling import split_candidate
from dice.data.middle import extract_middle
from dice.data.pair import Pair
from dice.data.source_string import InfillingRefused, has_kernel
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import manifest_path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_forms_are_split_at_the_source(form, newline):
    code, middle, variable = FORMS[form]
    code, middle = ("# grüße, 世界 🚀\n" + code).replace("\n", newline), middle.replace("\n", newline)
    split = split_candidate(code)
    assert (split.middle, split.variable) == (middle, variable)
    assert (split.prefix + split.middle + split.suffix).encode() == code.encode()


REFUSED = {
    "syntax": [AUTHORS[:-3] + "(", "x\0", "\ud800"],
    "no_extension": [
        "import torch\nclass ModelNew: pass\n",
        f'"""{KERNEL}"""\nclass ModelNew: pass\n',
        f"unused = {LITERAL}\n",
    ],
    "no_kernel_source": [
        HEAD + 'ext = load_inline("e", "void f() {}")',
        HEAD + 'ext = load_inline("e", "", open("k.cu").read())',
        HEAD + 'src = """// __global__ void k() in a comment"""\next = load_inline("e", "", src)',
    ],
    "several_sources": [
        HEAD + DECL + f"a = {LITERAL}\nb = {LITERAL}\n" + CALL.format("[a, b]"),
        HEAD + DECL + CALL.format(f"[{LITERAL}, {LITERAL}]"),
        HEAD + DECL + f"a = {LITERAL}\na = {LITERAL}\n" + CALL.format("a"),
        HEAD + f'a = {LITERAL}\nb = {LITERAL}\nx = load_inline("x", "", a)\ny = load_inline("y", "", b)',
    ],
    "appended": [HEAD + DECL + f'src = "#include <cuda.h>"\nsrc += {LITERAL}\n' + CALL.format("src")],
    "not_a_string": [
        HEAD + DECL + 'src = f"""__global__ void k(); {torch.cuda.device_count()}"""\n' + CALL.format("src"),
    ],
    "hidden_variable": [HEAD + DECL + f'src = ""\nsrc = {LITERAL}\n' + CALL.format("src")],
}


@pytest.mark.parametrize(("reason", "code"), [(reason, code) for reason, codes in REFUSED.items() for code in codes])
def test_what_cannot_be_split_is_refused_with_the_reason(reason, code):
    with pytest.raises(InfillingRefused) as caught:
        split_candidate(code)
    assert caught.value.reason == reason


def test_kernels_in_comments_do_not_count():
    assert has_kernel("template <int N>\n__global__ void k();")
    assert not has_kernel("// __global__ void k();\n/* __global__\n void k(); */ int f();")


# -- any text at all --

LINES = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\"'\\{}<"), max_size=12), max_size=4
)


@settings(max_examples=300, deadline=None)
@given(
    comments=st.tuples(LINES, LINES, LINES),
    text=LINES,
    literal=st.sampled_from(['"""{}"""', "'''{}'''", 'r"""{}"""', 'f"""{}"""', '("{}")', '"" """{}"""']),
    name=st.sampled_from(["source", "cuda_src", "größe", "_x"]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    bom=st.booleans(),
)
def test_split_is_exact_for_any_text(comments, text, literal, name, newline, bom):
    before, between, after = (["# " + line for line in lines] for lines in comments)
    body = " ".join(text) if "(" in literal else newline.join(text)
    middle = f"{name} = " + literal.format(f"__global__ void k(); {body}")
    file = [*before, "from torch.utils.cpp_extension import load_inline", *between]
    rest = [f"  # {''.join(text)}", *after, f"ext = load_inline('e', '', {name})", "class ModelNew: pass"]
    code = ("\ufeff" if bom else "") + newline.join([*file, middle]) + newline.join(rest)
    split = split_candidate(code)
    assert split.middle == middle
    assert (split.prefix + split.middle + split.suffix).encode() == code.encode()
    again = extract_middle(split.prefix, split.suffix, f"Sure{newline}```{newline}{code}{newline}```")
    assert again.middle == middle


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="load_inline(cuda_sources=x)\n 'global__"))
def test_any_candidate_is_split_or_refused(text):
    try:
        split = split_candidate(text)
    except InfillingRefused:
        return
    assert split.prefix + split.middle + split.suffix == text


# -- the stage --

SPLIT = split_candidate(AUTHORS)
IN_A_CALL = """from torch.utils.cpp_extension import load_inline
ext = load_inline('e', '', '__global__ void k() {}')
"""


def test_the_stage_splits_reports_and_keeps_given_splits(tmp_path):
    def pair(name, code, **parts):
        return Pair(id=name, pytorch_code="class Model: pass", cuda_code=code, source="test", **parts)

    given_parts = {"prefix": SPLIT.prefix, "middle": SPLIT.middle, "suffix": SPLIT.suffix}
    elsewhere = {"prefix": AUTHORS[:5], "middle": AUTHORS[5:9], "suffix": AUTHORS[9:]}
    pairs = [
        pair("plain", AUTHORS),
        pair("given", AUTHORS, **given_parts),
        pair("elsewhere", AUTHORS, **elsewhere),
        pair("torch only", "class ModelNew: pass"),
        pair("in a call", IN_A_CALL),
        pair("again", AUTHORS),
        pair("refused and given", "class ModelNew: pass", prefix="class", middle=" ModelNew", suffix=": pass"),
    ]
    write_jsonl(tmp_path / "pairs.jsonl", pairs)
    out = tmp_path / "infilling.jsonl"
    assert main(["infill", "--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(out)]) == 0
    done = list(read_jsonl(out, Pair))
    assert [row.id for row in done] == ["plain", "given", "elsewhere", "in a call", "again", "refused and given"]
    assert (done[0].prefix, done[0].middle, done[0].suffix) == (SPLIT.prefix, SPLIT.middle, SPLIT.suffix)
    assert (done[2], done[5]) == (pairs[2], pairs[6])
    report = json.loads((tmp_path / "infilling.jsonl.report.json").read_text())
    assert (report["pairs"], report["split"], report["kept"]) == (7, 6, 3)
    assert report["kept_differing"] == ["elsewhere", "refused and given"]
    assert report["variables"] == {SPLIT.variable: 4, "(expression)": 1}
    assert report["found_by"] == {"cuda_sources": 5}
    assert report["reasons"] == {"no_extension": 1}
    assert report["refused"][0]["id"] == "torch only"
    assert json.loads(manifest_path(out).read_text())["extra"]["reasons"] == {"no_extension": 1}


def test_the_stage_reads_the_authors_array(tmp_path):
    row = {"id": 74, "pytorch_code": "class Model: pass", "cuda_code": AUTHORS, "prefix": SPLIT.prefix}
    row |= {"middle": SPLIT.middle, "suffix": SPLIT.suffix}
    (tmp_path / "items.json").write_text(json.dumps([row]))
    assert main(["infill", "--pairs", str(tmp_path / "items.json"), "--out", str(tmp_path / "out.jsonl")]) == 0
    done = next(read_jsonl(tmp_path / "out.jsonl", Pair))
    assert (done.id, done.source, done.middle) == ("74", "dice", SPLIT.middle)


@pytest.mark.parametrize("number", [2, 400, 1500])
def test_a_source_of_many_strings_that_are_added_is_split(number):
    source = " + ".join(["'__global__ void k() {}'"] * number)
    head, tail = "from torch.utils.cpp_extension import load_inline\n", "\next = load_inline('e', '', source)\n"
    assert split_candidate(f"{head}source = {source}{tail}").middle == f"source = {source}"
