"""Arithmetic is exact, and no expression keeps the event loop."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from agenthost import InvalidInput
from agenthost_tools import calculate
from agenthost_tools.calculate import _BINARY, _CONSTANTS, _FUNCTIONS, LONGEST
from hypothesis import given, settings
from hypothesis import strategies as st

LONGEST_TIME = 0.05
"""Seconds of CPU that any expression may take."""


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("2 ** 10", "1024"),
        ("-2 ** 2", "-4"),
        ("7 // 2 + 7 % 2", "4"),
        ("7 / 2", "3.5"),
        ("8 / 2", "4"),
        ("0.1 + 0.2", "0.3"),
        ("1e3", "1000"),
        ("sqrt(16)", "4"),
        ("max(1, 2, 3) - min(4, 5)", "-1"),
        ("round(2.567, 2)", "2.57"),
        ("factorial(20)", "2432902008176640000"),
        ("2 * pi", "6.28318530717959"),
        ("log(e)", "1"),
        (" 1_000 * 1 ", "1000"),
        ("2 ** -1", "0.5"),
        ("1 ** 99999999", "1"),
        ("(-1) ** 99999999", "-1"),
    ],
)
def test_arithmetic(expression: str, value: str) -> None:
    assert calculate.shown(calculate.value_of(expression)) == value


@pytest.mark.parametrize(
    "expression",
    [
        "x",
        "1 +",
        "__import__('os')",
        "().__class__",
        "'a' * 9",
        "[1]",
        "1 if 1 else 2",
        "lambda: 1",
        "True + 1",
        "1j",
        "1 < 2",
        "1; 2",
        "1 and 2",
        "1 or 2",
        "1or 2",
        "~1",
        "1 << 99",
        "2 ^ 3",
        "f'{1}'",
        "print(1)",
        "sqrt(x=4)",
        "sqrt(*[4])",
        "sqrt()",
        "sqrt(1, 2)",
        "abs(1)(2)",
        "(x := 3)",
        "sqrt(-1)",
        "(-8) ** 0.5",
        "1 / 0",
        "1 // 0",
        "1 % 0",
        "0 ** -1",
        "9 ** 9 ** 9",
        "9 ** 9 ** 9 ** 9 ** 9",
        "10.0 ** 999",
        "factorial(501)",
        "factorial(-1)",
        "factorial(2.5)",
        "exp(1000)",
        "floor(1e999)",
        "1e999",
        "round(1, 2, 3)",
        "(" * 250 + "1" + ")" * 249,
        "-" * 499 + "1",
        "9" * 499 + "**9",
        "\0",
        "\ud800",
    ],
)
def test_what_is_not_arithmetic_is_refused(expression: str) -> None:
    if expression == "-" * 499 + "1":
        assert calculate.value_of(expression) == -1
        return
    with pytest.raises(InvalidInput):
        calculate.value_of(expression)


BOMBS = {
    "a power of a power": "9 ** 9 ** 9",
    "a large power": "2 ** 10001",
    "a power of a large number": "9" * 490 + " ** 9",
    "a power of a negative number": "(-9) ** 99999",
    "a large negative power": "3 ** -10001",
    "a power in the exponent": "9 ** (9 ** 5)",
    "round to a negative million": "round(1, -10**6)",
    "round to a negative billion": "round(1, -10**9)",
    "round to a billion": "round(1, 10**9)",
    "round to just too many": "round(1, -401)",
    "round a float to many": "round(1.5, 401)",
    "round to a large number": "round(7 ** 3000, -(10 ** 3000))",
    "round to a fraction": "round(1, 2.5)",
    "a large factorial": "factorial(501)",
    "a factorial of a factorial": "factorial(factorial(9))",
    "a factorial of a float": "factorial(1e9)",
    "a power of a product": "(" + "*".join(["9" * 50] * 8) + ") ** 9",
    "a product of factorials": "*".join(["factorial(500)"] * 9),
    "a sum that outgrows the bound": "2 ** 9999 * 2 + 2 ** 9999",
    "a shift": "1 << 10 ** 9",
    "repeated text": "'a' * 10 ** 9",
    "a float too large": "10.0 ** 400",
    "an integer of a float": "ceil(1e308 * 10)",
}


@pytest.mark.parametrize("expression", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput):
        calculate.value_of(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("round(1, -400)", "0"),
        ("round(1.25, 400)", "1.25"),
        ("round(2.5)", "2"),
        ("round(1234, -2)", "1200"),
        ("round(factorial(500), -400)", None),
    ],
)
def test_round_takes_digits_within_reason(expression: str, value: str | None) -> None:
    shown = calculate.shown(calculate.value_of(expression))
    assert value is None or shown == value


SYMBOLS = ["**", "*", "/", "//", "%", "+", "-"]
LARGE = ["10**9", "9**3000", "2**9999", "1e308", "1e-308", "-10**6", "500", "400"]
LEAVES = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from([*_CONSTANTS, *LARGE]),
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions made of these, by every rule of the grammar."""
    calls = st.builds(
        lambda name, arguments: f"{name}({', '.join(arguments)})",
        st.sampled_from(sorted(_FUNCTIONS)),
        st.lists(inner, min_size=1, max_size=3),
    )
    pairs = st.builds("({}) {} ({})".format, inner, st.sampled_from(SYMBOLS), inner)
    return st.one_of(calls, pairs, inner.map("-({})".format))


GRAMMAR = st.recursive(LEAVES, grown, max_leaves=40).filter(
    lambda expression: len(expression) <= LONGEST
)
PIECES = st.sampled_from([*"0123456789.+-*/%()e ", "**", "//", "sqrt(", "factorial("])
ANYTHING = st.lists(PIECES, max_size=LONGEST).map(lambda p: "".join(p)[:LONGEST])


def test_the_grammar_that_is_tried_has_every_operator() -> None:
    assert len(SYMBOLS) == len(_BINARY)


@given(GRAMMAR | ANYTHING)
def test_any_expression_has_a_short_value_or_a_clear_error(expression: str) -> None:
    with suppress(InvalidInput):
        assert len(calculate.shown(calculate.value_of(expression))) < 4_000


@pytest.mark.faults
@settings(max_examples=3_000, deadline=None)
@given(GRAMMAR | ANYTHING | st.sampled_from(sorted(BOMBS.values())))
def test_no_expression_takes_long(expression: str) -> None:
    began = time.thread_time()
    with suppress(InvalidInput):
        calculate.shown(calculate.value_of(expression))
    assert time.thread_time() - began < LONGEST_TIME, expression
