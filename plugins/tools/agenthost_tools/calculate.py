"""Do arithmetic: the tool ``calculate``. Nothing is evaluated but numbers."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable

from agenthost import Effect, InvalidInput, ToolContext, ToolResult, ToolSpec, hookimpl
from pydantic import BaseModel, Field

LONGEST = 500
BITS = 10_000
LARGEST_FACTORIAL = 500
MOST_DIGITS = 400
"""To round to: no float has more, and Python works out ten to their power."""


Number = int | float


class Calculate(BaseModel, extra="forbid", defer_build=True):
    """Arguments of ``calculate``."""

    expression: str = Field(
        description="Such as (2 + 3) * 4 ** 2, sqrt(2) or max(1, 2)",
        min_length=1,
        max_length=LONGEST,
    )


async def calculate(context: ToolContext, call: Calculate) -> ToolResult:  # noqa: ARG001
    """Return the value of an expression.

    Raises:
        InvalidInput: It is not arithmetic, or its value is not a number of sane size.
    """
    return ToolResult(shown(value_of(call.expression)))


def value_of(expression: str) -> Number:
    """Evaluate an expression of numbers, operators and the functions listed here.

    Raises:
        InvalidInput: As ``calculate``.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _wrong("it is not an arithmetic expression") from error
    except ZeroDivisionError as error:
        raise _wrong("it divides by zero") from error
    except (ValueError, TypeError, OverflowError) as error:
        raise _wrong("it has no value") from error


def shown(value: Number) -> str:
    """Write a number without the noise of binary fractions."""
    return str(value) if isinstance(value, int) else format(value, ".15g")


def _wrong(problem: str) -> InvalidInput:
    return InvalidInput("expression", problem)


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if type(value) is not bool:
            return _bounded(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
            name in _FUNCTIONS
        ):
            return _bounded(_FUNCTIONS[name](*(_value(item) for item in args)))
    raise _wrong(
        "only numbers, + - * / // % **, parentheses and "
        + ", ".join(sorted((*_FUNCTIONS, *_CONSTANTS)))
    )


def _bounded(value: object) -> Number:
    if isinstance(value, int) and value.bit_length() <= BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (int, float)):
        raise _wrong("a value in it is too large")
    raise _wrong("its value is not a real number")


def _power(base: Number, exponent: Number) -> object:
    """Raise, once the size of the outcome is known to be sane."""
    if isinstance(base, int) and isinstance(exponent, int):
        size = base.bit_length() * abs(exponent)
        if size > BITS and abs(base) > 1:
            raise _wrong("a power in it is too large")
    return base**exponent


def _factorial(value: Number) -> int:
    if not isinstance(value, int) or value > LARGEST_FACTORIAL:
        raise _wrong(f"factorial takes whole numbers up to {LARGEST_FACTORIAL}")
    return math.factorial(value)


def _rounded(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
        raise _wrong(f"round takes whole numbers of digits up to {MOST_DIGITS}")
    return round(value, digits) if digits else round(value)


_CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_BINARY: dict[type[ast.operator], Callable[[Number, Number], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "exp": math.exp,
    "factorial": _factorial,
    "floor": math.floor,
    "ln": math.log,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": _rounded,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``calculate``."""
    yield ToolSpec(
        "calculate",
        "Work out an arithmetic expression exactly.",
        Calculate,
        Effect.READ,
        calculate,
        idempotent=True,
        timeout=5.0,
    )
