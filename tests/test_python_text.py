import ast

import pytest

from dice.jsonl import RowError
from dice.python_text import check_python, parse_python


@pytest.mark.parametrize("code", ["def f(:", "\0", "(" * 500 + ")" * 500])
def test_what_is_not_python_is_a_syntax_error(code):
    with pytest.raises(SyntaxError):
        parse_python(code)


def test_a_byte_order_mark_is_passed_over():
    assert ast.unparse(parse_python("\ufeffx = 1")) == "x = 1"


def test_bad_code_is_named_with_its_field_and_line():
    with pytest.raises(RowError, match=r"field 'cuda_code' does not parse as Python at its line 2"):
        check_python("x = 1\ny =\n", "cuda_code")
