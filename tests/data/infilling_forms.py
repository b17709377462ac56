"""Forms of candidates: the code, its middle, and the name of what `load_inline` gets."""

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
