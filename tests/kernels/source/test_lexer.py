"""Tokens as [lex] of the C++ standard defines them, brackets' partners, and any text at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice.kernels.source.lexer import (
    SplitRefused,
    at_commas,
    identifiers,
    matching,
    partner,
    read_tokens,
    shallow,
    tokenize,
)


def texts(source, **options):
    return [token.text for token in read_tokens(source, **options)]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("x1_$", "identifier"),
        ("__global__", "identifier"),
        ("0x1p-3f", "number"),
        ("1'000'000u", "number"),
        (".5e+10f", "number"),
        ("1e5", "number"),
        ("0b1011", "number"),
        ('"a\\"b"', "string"),
        ('u8"x"', "string"),
        ('L"// no comment"', "string"),
        ('R"x(a)" )y" )x"', "string"),
        ('R"(two\nlines)"', "string"),
        ("'\\''", "char"),
        ("u'x'", "char"),
        ("'\"'", "char"),
    ],
)
def test_one_token(source, kind):
    (token,) = read_tokens(source)
    assert (token.kind, token.text, token.start, token.end) == (kind, source, 0, len(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a+++b", ["a", "++", "+", "b"]),
        ("a->*b", ["a", "->*", "b"]),
        ("a<=>b", ["a", "<=>", "b"]),
        ("x>>=1", ["x", ">", ">", "=", "1"]),  # each > stands alone
        ("f<g<int>>()", ["f", "<", "g", "<", "int", ">", ">", "(", ")"]),
        ("k<<<1,2>>>(x)", ["k", "<<<", "1", ",", "2", ">", ">", ">", "(", "x", ")"]),
        ("a<<b", ["a", "<<", "b"]),
        ("a<<=b", ["a", "<<=", "b"]),
        ("a...", ["a", "..."]),
        ("a/*b*/c//d\ne", ["a", "c", "e"]),
        ("a/**/b", ["a", "b"]),
        ("// one \\\n still one\nx", ["x"]),
        ('"/*" x "*/"', ['"/*"', "x", '"*/"']),
        ("a \\\n b", ["a", "b"]),
        ("1.f+2", ["1.f", "+", "2"]),
        ("x.y", ["x", ".", "y"]),
        ("::a::b", ["::", "a", "::", "b"]),
        ("'a' 'b'", ["'a'", "'b'"]),
        ('R"(a)" "b)"', ['R"(a)"', '"b)"']),
    ],
)
def test_a_sequence_of_tokens(source, expected):
    assert texts(source) == expected


def test_a_line_splice_does_not_cut_an_identifier():
    (name, *_) = read_tokens("sys\\\ntem(1)")
    assert (name.text, name.start, name.end) == ("system", 0, 8)
    assert texts("__glo\\  \n\\\r\nbal__ x") == ["__global__", "x"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#define A(x) x\ny", ["#define A(x) x", "y"]),
        ("  # if 1\ny", ["# if 1", "y"]),
        ("#define A \\\n  b\nc", ["#define A \\\n  b", "c"]),
        ("#define A /* over\n two lines */ b\nc", ["#define A /* over\n two lines */ b", "c"]),
        ('#define A "/*"\nb /* c */ d', ['#define A "/*"', "b", "d"]),
        ("#define Q '\"' /* x\n */\nb", ["#define Q '\"' /* x\n */", "b"]),
        ("#define A // b \\\n c\nd", ["#define A // b \\\n c", "d"]),
        ("/* first */ #if 1\nx", ["#if 1", "x"]),
        ("x #y", ["x", "#", "y"]),
        ("#error don't\nx", ["#error don't", "x"]),
    ],
)
def test_a_directive_is_one_token(source, expected):
    assert texts(source) == expected


def test_the_body_of_a_macro_is_read_without_directives():
    assert texts("#define A(x) #x a##b", directives=False)[-5:] == ["#", "x", "a", "##", "b"]
    assert [token.start for token in read_tokens("a b", offset=10)] == [10, 12]


def test_what_ends_nowhere_is_unknown_and_hides_as_little_as_possible():
    tokens = read_tokens("a don't\nb \\ c")
    assert [(t.text, t.kind) for t in tokens if t.kind == "unknown"] == [("'t", "unknown"), ("\\", "unknown")]
    assert [t.text for t in tokens if t.kind == "identifier"] == ["a", "don", "b", "c"]
    assert [t.kind for t in read_tokens('x R"(never )x" y')] == ["identifier", "unknown"]
    assert [t.kind for t in read_tokens("x /* never")] == ["identifier", "unknown"]
    for source in ('"abc', "'", "/* x", "\\", 'R"(x'):
        with pytest.raises(SplitRefused, match="line 2"):
            tokenize(f"x;\n{source}")


def test_words_in_directives_count_and_words_in_strings_do_not():
    assert identifiers('#define A b\nc("d") // e') == {"define", "A", "b", "c"}


# ---- partners


def pairs(source):
    tokens = read_tokens(source)
    return {(tokens[i].start, tokens[i + t.reach].start) for i, t in enumerate(tokens) if t.reach > 0}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("(a[b]{c})", {(0, 8), (2, 4), (5, 7)}),
        ("a<b<c>>", {(1, 6), (3, 5)}),
        ("a < b; c > d", set()),
        ("f(a < b, c > d)", {(1, 14), (4, 11)}),
        ("(a < b) > c", {(0, 6)}),
        ("x<(a > b)>", {(1, 9), (2, 8)}),
        ("( '(' \"(\" /* ( */ )", {(0, 18)}),
        ("{ ( }", {(0, 4)}),  # a } ends what is open in its block
        ("{ ) }", {(0, 4)}),
        ("{ [ ( ] }", {(0, 8)}),
        (")(", set()),
        ("( ]", set()),
        ("{{}", {(1, 2)}),
    ],
)
def test_partners(source, expected):
    assert pairs(source) == expected


@pytest.mark.parametrize(
    ("source", "opening", "closing"),
    [
        ("void f() {\n#if A\n if (x) {\n#else\n {\n#endif\n } }", 9, -1),  # both branches open one
        ("void f() {\n#if A\n )\n#endif\n g(); }", 9, -1),
        ("void f() {\n#if A\n }\n#endif\n g(); }", 9, -1),
        ("void f() {\n#ifdef A\n if (x) {\n#endif\n g();\n#ifdef A\n }\n#endif\n}", 9, -1),
        ("f(\n#if A\n a\n#elif B\n (b\n#else\n c\n#endif\n)", 1, -1),
        ("{\n#if A\n#if B\n {\n#endif\n {\n#else\n {\n#endif\n } }", 0, -1),
    ],
)
def test_branches_of_a_conditional_begin_with_the_same_brackets_open(source, opening, closing):
    tokens = read_tokens(source)
    first = next(i for i, token in enumerate(tokens) if token.start == opening)
    assert partner(tokens, first) == len(tokens) + closing


def test_a_partner_outside_of_the_tokens_is_none():
    tokens = read_tokens("(a)")
    assert partner(tokens, 0) == matching(tokens, 0) == 2
    assert partner(tokens[:2], 0) is None
    with pytest.raises(SplitRefused, match="bracket"):
        matching(tokens[:2], 0)
    with pytest.raises(SplitRefused, match="template list"):
        matching(read_tokens("a < b"), 1)


def test_commas_inside_brackets_and_template_lists_do_not_separate():
    tokens = read_tokens("a, f(b, c), std::map<int, g<h, i>>{1, 2}, j < k, l")
    groups = ["".join(token.text for token in group) for group in at_commas(tokens)]
    assert groups == ["a", "f(b,c)", "std::map<int,g<h,i>>{1,2}", "j<k", "l"]
    assert at_commas([]) == []
    assert [tokens[i].text for i in shallow(tokens)][:4] == ["a", ",", "f", "("]


# ---- any text

PIECES = st.sampled_from(
    (
        *"()[]{}<>;,\"'\\# \n",
        "<<<",
        ">>>",
        "//",
        "/*",
        "*/",
        "\\\n",
        'R"(',
        ')"',
        "\n#if A\n",
        "\n#else\n",
        "\n#endif\n",
        "\n#define X ",
        "__global__ ",
        "template ",
        "struct ",
        "k",
        "1",
    )
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=40)


@settings(deadline=None, derandomize=True)
@given(TEXTS)
def test_every_text_is_read_and_nothing_is_lost(source):
    tokens = read_tokens(source)
    position = 0
    for token in tokens:
        assert position <= token.start < token.end
        gap = source[position : token.start]
        assert not gap.strip() or gap.lstrip().startswith(("//", "/*", "\\"))
        spelt = source[token.start : token.end]
        assert token.text == spelt or (token.kind == "identifier" and "\\" in spelt)
        position = token.end
    rest = source[position:]
    assert not rest.strip() or rest.lstrip().startswith(("//", "/*", "\\"))


@settings(deadline=None, derandomize=True)
@given(TEXTS)
def test_partners_are_mutual_of_a_kind_and_never_cross(source):
    tokens = read_tokens(source)
    closers = {"(": ")", "[": "]", "{": "}", "<": ">"}
    conditional = "#" in source
    for i, token in enumerate(tokens):
        if token.reach > 0:
            other = tokens[i + token.reach]
            assert closers[token.text] == other.text
            assert conditional or other.reach == -token.reach
    open_ones = []
    for i, token in enumerate(tokens if not conditional else []):
        if token.reach > 0:
            open_ones.append(i + token.reach)
        elif token.reach < 0:
            assert open_ones.pop() == i


def test_a_string_over_many_spliced_lines_that_never_ends_is_read_once():
    source = '"' + "\\\n" * 10_000
    assert texts(source) == [source]
