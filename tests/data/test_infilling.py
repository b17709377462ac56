"""The infilling split: byte-exact on every form, or refused with a reason; and the cut of a model's response."""

import ast
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice.cli import main
from dice.data.infilling import assemble, split_candidate
from dice.data.middle import extract_middle
from dice.data.pair import Pair
from dice.data.source_string import InfillingRefused, has_kernel
from dice.jsonl import read_jsonl, write_jsonl
from dice.manifest import manifest_path

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] *= 2.f; }\ntorch::Tensor f(torch::Tensor x) { return x; }\n"
HEAD = "import torch\nfrom torch.utils.cpp_extension import load_inline\n\n"
TAIL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.f(x)
"""
CALL = 'ext = load_inline(name="ext", cpp_sources=decl, cuda_sources={}, functions=["f"])' + TAIL
DECL = 'decl = "torch::Tensor f(torch::Tensor x);"\n'
LITERAL = f'"""\n{KERNEL}"""'

AUTHORS = f"{HEAD}source = {LITERAL}\n\n{DECL}{CALL.format('source')}"


def in_class(body, use):
    return (
        f"{HEAD}class ModelNew(torch.nn.Module):\n{body}\n    def forward(self, x):\n"
        f'        ext = load_inline(name="ext", cpp_sources="", cuda_sources={use}, functions=["f"])\n'
        f"        return ext.f(x)\n"
    )


FORMS = {
    "as the authors write it": (AUTHORS, f"source = {LITERAL}", "source"),
    "another name, annotated": (
        HEAD + DECL + f"cuda_src: str = r'''{KERNEL}'''  # the kernel\n" + CALL.format("cuda_src"),
        f"cuda_src: str = r'''{KERNEL}'''",
        "cuda_src",
    ),
    "literal in the call": (HEAD + DECL + CALL.format(LITERAL), LITERAL, None),
    "positional arguments": (
        HEAD + f'src = {LITERAL}\next = load_inline("ext", "", src, ["f"])' + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "pieces inside the call's parentheses": (
        HEAD + DECL + CALL.format('(\n    "__global__ void k() {}"  # one\n    "void f() {}"\n)'),
        '"__global__ void k() {}"  # one\n    "void f() {}"',
        None,
    ),
    "list of one": (HEAD + DECL + f"src = {LITERAL}\n" + CALL.format("[src]"), f"src = {LITERAL}", "src"),
    "list of which one holds the kernel": (
        HEAD + DECL + f'host = "void g() {{}}"\nsrc = {LITERAL}\n' + CALL.format("[host, src]"),
        f"src = {LITERAL}",
        "src",
    ),
    "assigned list": (
        HEAD + DECL + f"srcs = [{LITERAL}]\n" + CALL.format("srcs"),
        f"srcs = [{LITERAL}]",
        "srcs",
    ),
    "one source given as cpp and cuda": (
        HEAD + f'src = {LITERAL}\next = load_inline(name="e", cpp_sources=[src], cuda_sources=[src])' + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "CUDA passed as C++": (
        HEAD + f'src = {LITERAL}\next = load_inline(name="e", cpp_sources=src, functions=["f"])' + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "f-string": (
        HEAD + DECL + f'B = 256\nsrc = f"""{KERNEL.replace("{", "{{").replace("}", "}}")}// {{B:>4}} {{B * 2}}"""\n'
        "" + CALL.format("src"),
        f'src = f"""{KERNEL.replace("{", "{{").replace("}", "}}")}// {{B:>4}} {{B * 2}}"""',
        "src",
    ),
    "formatted template": (
        HEAD + DECL + f'template = """{KERNEL}// %d"""\nsrc = template % 256\n' + CALL.format("src"),
        f'template = """{KERNEL}// %d"""',
        "template",
    ),
    "format call": (
        HEAD + DECL + 'src = """__global__ void k() {{}} // {n}""".format(n=4)\n' + CALL.format("src"),
        'src = """__global__ void k() {{}} // {n}""".format(n=4)',
        "src",
    ),
    "concatenation of which one part holds the kernel": (
        HEAD + DECL + f'head = "#include <cuda.h>\\n"\nbody = {LITERAL}\n' + CALL.format("head + body"),
        f"body = {LITERAL}",
        "body",
    ),
    "concatenation in the assignment": (
        HEAD + DECL + f'head = "#include <cuda.h>\\n"\nsrc = head + {LITERAL}\n' + CALL.format("src"),
        f"src = head + {LITERAL}",
        "src",
    ),
    "attribute of the instance": (
        in_class(f"    def __init__(self):\n        super().__init__()\n        self.src = {LITERAL}\n", "self.src"),
        f"self.src = {LITERAL}",
        "self.src",
    ),
    "attribute of the class": (in_class(f"    src = {LITERAL}\n", "self.src"), f"src = {LITERAL}", "src"),
    "local of a function": (
        HEAD
        + f'def build():\n    src = {LITERAL}\n    return load_inline("e", "", src, ["f"])\n\next = build()'
        + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "returned by a function": (
        HEAD + DECL + f"def text():\n    return {LITERAL}\n\n" + CALL.format("text()"),
        LITERAL,
        None,
    ),
    "passed through a helper": (
        HEAD + f'def build(code, name="e"):\n    return load_inline(name, "", cuda_sources=code)\n\n'
        f"src = {LITERAL}\next = build(src)" + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "element of a dictionary": (
        HEAD + f'srcs = {{"cpp": "void f();", "cuda": {LITERAL}}}\n'
        'ext = load_inline("e", srcs["cpp"], srcs["cuda"])' + TAIL,
        LITERAL,
        None,
    ),
    "packed keyword arguments": (
        HEAD + f'src = {LITERAL}\noptions = dict(name="e", cpp_sources="", cuda_sources=src)\n'
        "ext = load_inline(**options)" + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "two names on one line": (
        HEAD + DECL + f"a = 1; src = {LITERAL}; b = 2\n" + CALL.format("src"),
        f"src = {LITERAL}",
        "src",
    ),
    "two extensions from one source": (
        HEAD + f'src = {LITERAL}\ntry:\n    ext = load_inline("e", "", src)\nexcept RuntimeError:\n'
        '    ext = load_inline("e", "", src, with_cuda=True)\n' + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "own pybind module": (
        HEAD + f'src = """{KERNEL}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f); }}"""\n'
        'ext = load_inline("e", [], [src])' + TAIL,
        f'src = """{KERNEL}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f); }}"""',
        "src",
    ),
    "file written for load": (
        "import torch\nfrom torch.utils.cpp_extension import load\n"
        f'src = {LITERAL}\nwith open("k.cu", "w") as file:\n    file.write(src)\next = load("e", ["k.cu"])' + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "imported under another name": (
        f'from torch.utils.cpp_extension import load_inline as build\nsrc = {LITERAL}\next = build("e", "", src)',
        f"src = {LITERAL}",
        "src",
    ),
    "another compiler": (
        f"import cupy, torch\nsrc = {LITERAL}\next = cupy.RawModule(code=src)" + TAIL,
        f"src = {LITERAL}",
        "src",
    ),
    "library calls and no kernel": (
        HEAD + DECL + 'src = """\nvoid f() { cublasSgemm(); }\n"""\n' + CALL.format("src"),
        'src = """\nvoid f() { cublasSgemm(); }\n"""',
        "src",
    ),
    "literal given to a function of the candidate's own": (
        HEAD + DECL + f"def clean(text):\n    return text.lower()\n\nsrc = clean({LITERAL})\n" + CALL.format("src"),
        LITERAL,
        None,
    ),
    "literal in a condition": (
        HEAD + DECL + f'src = {LITERAL} if torch.cuda.is_available() else ""\n' + CALL.format("src"),
        LITERAL,
        None,
    ),
    "name and attribute in an f-string": (
        HEAD
        + DECL
        + 'B = {"x": 8}\nsrc = f"""__global__ void k(); {B[\'x\']} {torch.__name__.x}"""\n'
        + CALL.format("src"),
        'src = f"""__global__ void k(); {B[\'x\']} {torch.__name__.x}"""',
        "src",
    ),
    "a name that is not imported elsewhere in the file": (
        AUTHORS + "\ndef unused():\n    return math.pi\n",
        f"source = {LITERAL}",
        "source",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_forms_are_split_at_the_source(form, newline):
    code, middle, variable = FORMS[form]
    code, middle = ("# grüße, 世界 🚀\n" + code).replace("\n", newline), middle.replace("\n", newline)
    split = split_candidate(code)
    assert (split.middle, split.variable) == (middle, variable)
    assert assemble(split.prefix, split.middle, split.suffix).encode() == code.encode()


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


# -- responses --

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
    whole = assemble(SPLIT.prefix, found.middle, SPLIT.suffix)
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
    assert split_candidate(assemble(split.prefix, found.middle, split.suffix)).middle == found.middle
    with pytest.raises(InfillingRefused):
        extract_middle(split.prefix, split.suffix, "sorry, no string here")


def test_reasoning_tags_inside_a_candidate_are_text():
    code = AUTHORS.replace("*= 2.f", "*= 2.f /* <think> </think> */")
    assert "</think>" in split_candidate(code).middle


def test_an_indented_middle_is_cut_without_its_indentation():
    split = split_candidate(FORMS["attribute of the instance"][0])
    found = extract_middle(split.prefix, split.suffix, "        self.src = '''__global__ void b() {}'''\n")
    compile(assemble(split.prefix, found.middle, split.suffix), "candidate", "exec")


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


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(alphabet="source=\"'\\\n\r\t ()[]{}f#;,x1"))
def test_any_response_is_cut_or_refused(text):
    for split in (SPLIT, split_candidate(FORMS["literal in the call"][0])):
        try:
            found = extract_middle(split.prefix, split.suffix, text)
        except InfillingRefused:
            continue
        assert found.before + found.middle + found.after == text
        ast.parse(assemble(split.prefix, found.middle, split.suffix))


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text(alphabet="load_inline(cuda_sources=x)\n 'global__"))
def test_any_candidate_is_split_or_refused(text):
    try:
        split = split_candidate(text)
    except InfillingRefused:
        return
    assert split.prefix + split.middle + split.suffix == text


# -- the stage --


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
    ]
    write_jsonl(tmp_path / "pairs.jsonl", pairs)
    out = tmp_path / "infilling.jsonl"
    assert main(["infill", "--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(out)]) == 0
    done = list(read_jsonl(out, Pair))
    assert [row.id for row in done] == ["plain", "given", "elsewhere"]
    assert (done[0].prefix, done[0].middle, done[0].suffix) == (SPLIT.prefix, SPLIT.middle, SPLIT.suffix)
    assert done[2] == pairs[2]
    report = json.loads((tmp_path / "infilling.jsonl.report.json").read_text())
    assert (report["pairs"], report["split"], report["kept"]) == (4, 3, 2)
    assert report["kept_differing"] == ["elsewhere"]
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
