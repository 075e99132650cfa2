"""JSON Schemas of tools, read within bounds: whoever wrote one may be hostile.

jsonschema is used because it is complete and, being Python, can be counted: every
keyword takes from an allowance, so that a schema whose references multiply ends with an
error after a known amount of work. Where it uses ``re``, re2 stands in here, whose
time is linear. Nothing is fetched: a reference leads within its own document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from agenthost import InvalidInput, Json, JsonObject

from .patterns import found, readable

if TYPE_CHECKING:
    from jsonschema import SchemaError, ValidationError

MOST_NODES = 10_000
DEEPEST = 64
MOST_CHARACTERS = 200_000
MOST_WORK = 50_000
CHARACTERS_A_UNIT = 500
MOST_PROBLEMS = 10
PROBLEM_CHARACTERS = 200
PATTERNED = frozenset({"patternProperties", "additionalProperties"})
SQUARE = frozenset({"unevaluatedItems", "unevaluatedProperties"})
"""What the library looks up in lists, item by item."""
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$id"})
SPECIFICATIONS = ("http://json-schema.org/", "https://json-schema.org/")
Keyword = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]


class JsonSchema:
    """A schema that values are held against.

    Args:
        schema: A JSON Schema of draft 2020-12, 2019-09 or 7, as its ``$schema`` says;
            2020-12 when it says nothing. It is copied.

    Attributes:
        schema: The copy.

    Raises:
        InvalidInput: It is none, or uses what is not taken here.
    """

    def __init__(self, schema: JsonObject) -> None:
        _bounded(schema, "the schema")
        self.schema = schema = _copied(schema)
        _scan(schema)
        from jsonschema import SchemaError
        from referencing.exceptions import Unresolvable

        draft = _draft(str(schema.get("$schema", "")))
        # Below a $schema the library would go on with its own, uncounted keywords.
        own = {key: value for key, value in schema.items() if key != "$schema"}
        try:
            draft.check_schema(own, format_checker=None)
            _look_up(draft, own)
        except SchemaError as error:
            raise InvalidInput("schema", _told(error)) from error
        except Unresolvable as error:
            missing = f"$ref {error.ref!r} leads nowhere; nothing is fetched"
            raise InvalidInput("schema", missing) from error
        except RecursionError as error:
            raise InvalidInput("schema", "it is nested too deeply") from error
        self._draft, self._own = _counting(draft), own

    def problems(self, value: Json) -> str:
        """Say what of a value does not fit; nothing when all of it does."""
        problems: list[str] = []
        try:
            _bounded(value, "the value")
            problems.extend(map(_told, islice(self._errors(value), MOST_PROBLEMS)))
        except InvalidInput as error:
            problems.append(error.message)
        except RecursionError:
            problems.append("the schema refers to itself without end")
        except UnicodeError:
            problems.append("it holds half a surrogate pair; write plain text")
        return "; ".join(problems)

    def _errors(self, value: Json) -> Iterator[ValidationError]:
        from referencing import Registry

        # The one thing that a validator hands to all that it makes below it.
        allowance = _Allowance(value)
        validator = self._draft(
            self._own, registry=Registry(), format_checker=allowance
        )
        errors: Iterator[ValidationError] = validator.iter_errors(value)
        return errors


def _copied(schema: JsonObject) -> dict[str, Any]:
    try:
        written = json.dumps(dict(schema), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput("schema", f"it is no JSON: {error}") from error
    if len(written) > MOST_CHARACTERS:
        # All of it goes into every prompt.
        raise InvalidInput("schema", f"it is over {MOST_CHARACTERS} characters long")
    copied: dict[str, Any] = json.loads(written)
    return copied


def _told(error: ValidationError | SchemaError) -> str:
    place = ".".join(map(str, error.absolute_path)) or "the whole"
    return f"{place}: {error.message[:PROBLEM_CHARACTERS]}"


def _bounded(value: Json, what: str) -> None:
    """Refuse what is larger or deeper than anybody needs, without recursion."""
    level, nodes = [value], 0
    for _ in range(DEEPEST):
        nodes += len(level)
        if nodes > MOST_NODES:
            raise InvalidInput("", f"{what} has more than {MOST_NODES} values in it")
        if not level:
            return
        level = [inner for outer in level for inner in _inside(outer)]
    raise InvalidInput("", f"{what} is nested more than {DEEPEST} deep")


def _inside(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def _scan(schema: JsonObject) -> None:
    """Refuse keywords that would lead out of the bounds, wherever they stand.

    A reference may lead anywhere in the document, into a default value too, so that
    nothing in it is safe because no keyword seems to point there.
    """
    met: set[str] = set()
    waiting: list[Json] = [schema]
    while waiting:
        value = waiting.pop()
        waiting.extend(_inside(value))
        if isinstance(value, Mapping):
            met.update(map(str, value))
            for key, inner in value.items():
                _check_keyword(key, inner, top=value is schema)
    if {"unevaluatedProperties", "patternProperties"} <= met:
        # The library looks for the former's names with backtracking patterns.
        both = "unevaluatedProperties beside patternProperties is not taken"
        raise InvalidInput("schema", f"{both}; use additionalProperties")


def _check_keyword(key: str, value: Json, *, top: bool) -> None:
    if key == "patternProperties" and isinstance(value, Mapping):
        for pattern in value:
            readable(pattern)
    if not isinstance(value, str):
        return
    if key == "pattern":
        readable(value)
    elif key == "$schema" and not top:
        raise InvalidInput("schema", "$schema may stand at the top alone")
    elif key in REFERENCES and value.startswith(SPECIFICATIONS):
        raise InvalidInput("schema", f"{key} {value!r} names a specification")


def _draft(written: str) -> Any:
    from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator

    drafts = (Draft202012Validator, Draft201909Validator, Draft7Validator)
    named = {str(each.META_SCHEMA["$schema"]).rstrip("#"): each for each in drafts}
    draft = named.get(written.rstrip("#")) if written else Draft202012Validator
    if draft is None:
        known = ", ".join(named)
        raise InvalidInput("schema", f"$schema {written!r} is not known; use {known}")
    return draft


def _look_up(draft: Any, schema: JsonObject) -> None:
    """Find what every reference names, lest a call is the first to miss it."""
    from referencing import Registry
    from referencing.jsonschema import specification_with

    specification = specification_with(str(draft.META_SCHEMA["$schema"]))
    whole = specification.create_resource(schema)

    def look(resource: Any, resolver: Any) -> None:
        if isinstance(resource.contents, Mapping):
            for key in ("$ref", "$dynamicRef"):
                if isinstance(reference := resource.contents.get(key), str):
                    resolver.lookup(reference)
        for inner in resource.subresources():
            look(inner, resolver.in_subresource(inner))

    look(whole, Registry().resolver_with_root(whole))


class _Allowance:
    """The work that is left to one value; as a checker of formats it asserts none.

    A unit is about what a keyword takes, some microseconds.
    """

    def __init__(self, value: Json) -> None:
        self._left = MOST_WORK
        # An error quotes the value it is about, which may be all of it.
        self._error = _size_of(value)

    def check(self, instance: object, format: str) -> None:  # noqa: A002
        """Let every format pass."""

    def begin(self, keyword: str, value: Any, instance: Any, schema: Any) -> None:
        """Take what a keyword costs before it is asked."""
        cost = 1 + (len(value) if isinstance(value, list | dict) else 0)
        if isinstance(instance, str):
            cost += len(instance) // CHARACTERS_A_UNIT
        elif keyword in PATTERNED and isinstance(instance, dict):
            patterns = schema.get("patternProperties", {})
            cost += len(patterns) * _size_of(list(instance)) * 20
        elif keyword in SQUARE and isinstance(instance, list | dict):
            cost += len(instance) ** 2 // 50
        self.take(cost)

    def failed(self) -> None:
        """Take what an error has cost."""
        self.take(self._error)

    def take(self, cost: int) -> None:
        """Take so much.

        Raises:
            InvalidInput: There is not so much left.
        """
        self._left -= cost
        if self._left < 0:
            raise InvalidInput("", "to hold it against its schema takes too long")


def _size_of(value: Json) -> int:
    """What it takes to look at a whole value once, in units."""
    waiting, nodes, characters = [value], 0, 0
    while waiting:
        inner = waiting.pop()
        nodes += 1
        if isinstance(inner, str):
            characters += len(inner)
        elif isinstance(inner, Mapping):
            characters += sum(map(len, inner))
        waiting.extend(_inside(inner))
    return 1 + nodes // 20 + characters // CHARACTERS_A_UNIT


@cache
def _counting(draft: Any) -> Any:
    """The draft with keywords that count, and without backtracking patterns."""
    from jsonschema import validators

    keywords = dict(draft.VALIDATORS) | {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    counted = {name: _counted(name, keyword) for name, keyword in keywords.items()}
    extend: Callable[..., Any] = validators.extend
    return extend(draft, counted)


def _counted(name: str, keyword: Keyword) -> Keyword:
    def counted(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        allowance = validator.format_checker
        allowance.begin(name, value, instance, schema)
        for error in keyword(validator, value, instance, schema) or ():
            allowance.failed()
            yield error

    return counted


def _wrong(message: str) -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError(message)


def _pattern(
    validator: Any, pattern: str, instance: Any, _: Any
) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not found(pattern, instance):
        yield _wrong(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in patterns.items():
        for name, value in instance.items():
            if found(pattern, name):
                yield from validator.descend(
                    value, schema, path=name, schema_path=pattern
                )


def _additional_properties(
    validator: Any, additional: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    listed, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [
        name
        for name in instance
        if name not in listed and not any(found(p, name) for p in patterns)
    ]
    if validator.is_type(additional, "object"):
        for name in extra:
            yield from validator.descend(instance[name], additional, path=name)
    elif additional is False and extra:
        names = ", ".join(map(repr, extra[:MOST_PROBLEMS]))
        yield _wrong(f"there is no {names}; known: {', '.join(listed) or 'nothing'}")


def _unique_items(
    validator: Any, unique: Any, instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not unique or not validator.is_type(instance, "array"):
        return
    if len(set(map(_key, instance))) < len(instance):
        yield _wrong("it has equal elements")


def _key(value: Json) -> Any:
    """Something to tell JSON values apart by: 1 is 1.0, and neither is true."""
    if isinstance(value, dict):
        return "object", frozenset((name, _key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_key, value))
    return isinstance(value, bool), value
