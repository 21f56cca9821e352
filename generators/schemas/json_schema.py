"""Values that a JSON Schema allows, drafts 4 to 2020-12.

A value is made by the keywords that say what is allowed: types, bounds, formats, patterns,
properties and items. Where a schema offers alternatives, one is chosen. Then the whole value is
validated. If a keyword such as `not` or `if` refuses it, another one is made. So each value that
comes out is valid, and a schema that nothing satisfies is refused.

References lead into the document. A reference to another one is refused, and nothing is fetched.
"""

import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from upheld.errors import UsageProblem
from upheld.generators.schemas.likely import Likely
from upheld.generators.schemas.schema import (
    MOST_BYTES,
    MOST_LEVELS,
    Registered,
    Schema,
    compact,
    demand_extra,
)
from upheld.reading import loaded, read_text
from upheld.text import visible

TRIES: Final = 300  # of a whole value
TRIES_OF_A_PART: Final = 40
MOST_DEPTH: Final = 40
MOST_ITEMS: Final = 10_000  # that a list or an object has to have
SHARE_OF_OPTIONALS: Final = 0.8
SHARE_OF_NULLS: Final = 0.1
_SHOWN_CHARS: Final = 200
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

Node = bool | Mapping[str, Any]
# The keywords that say of what type a value is, if `type` does not.
_TYPE_OF: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "minProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "contains": "array",
    "minItems": "array",
    "multipleOf": "number",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
}
_LARGEST: Final = ("minimum", "minLength", "minItems", "minProperties", "minContains")
_SMALLEST: Final = ("maximum", "maxLength", "maxItems", "maxProperties", "maxContains")


class _Dead(Exception):
    """The alternatives that were chosen leave no value; others may."""


class JsonSchema(Schema):
    """A JSON Schema."""

    def __init__(self, file: Path) -> None:
        demand_extra("A JSON Schema")
        import referencing
        import referencing.jsonschema
        from jsonschema import SchemaError, validators

        self._file = file
        self._text = read_text(file, most=MOST_BYTES)
        self._root = self._loaded()
        checker = validators.validator_for(self._root, default=validators.validator_for(True))
        try:
            checker.check_schema(self._root)
        except SchemaError as error:
            raise UsageProblem(
                f"{file} is no valid JSON Schema: at {error.json_path}: {_said(error)}."
            ) from None
        default = referencing.jsonschema.DRAFT202012
        resource = referencing.Resource.from_contents(self._root, default_specification=default)
        uri = resource.id() or ""
        registry = referencing.Registry().with_resource(uri, resource).crawl()
        self._resolver = registry.resolver(uri)
        self._validator = checker(
            self._root, registry=registry, format_checker=checker.FORMAT_CHECKER
        )

    def _loaded(self) -> Any:
        try:
            root = loaded(self._text)
        except ValueError as error:
            said = str(error).split("\n", 1)[0].rstrip(".")
            raise UsageProblem(f"{self._file} is no JSON: {said}.") from None
        if not isinstance(root, bool | dict):
            raise UsageProblem(f"{self._file} is no JSON Schema: it is to be an object.")
        return root

    def make(self, likely: Likely) -> Any:
        """Return a value that the schema allows."""
        last = "the schema allows nothing"
        for _ in range(TRIES):
            try:
                value = _Draft(self, likely).value(self._root, "", 0)
            except _Dead as dead:
                last = str(dead)
                continue
            except re.error as error:
                raise self._misread(error) from None
            last = self.problem(value)
            if not last:
                return value
        raise UsageProblem(
            f"{self._file}: of {TRIES} values that were made, none satisfies it; the last: {last}."
        )

    def problem(self, value: Any) -> str:
        """Return why the schema does not allow a value; empty if it does."""
        try:
            error = next(self._validator.iter_errors(value), None)
        except RecursionError:
            return "its references lead in a circle"
        except re.error as error:
            raise self._misread(error) from None
        return "" if error is None else f"at {error.json_path}: {_said(error)}"

    def _misread(self, error: re.error) -> UsageProblem:
        """Return the problem with a pattern that cannot be read."""
        pattern = visible(str(error.pattern), _SHOWN_CHARS)
        return UsageProblem(f"{self._file}: the pattern {pattern!r} cannot be followed: {error}.")

    def encode(self, value: Any) -> bytes:
        """Return a value as JSON."""
        if said := self.problem(value):
            raise ValueError(said)
        return compact(value)

    def decode(self, data: bytes) -> Any:
        """Return a value that `encode` has written."""
        return loaded(data)

    @property
    def registered(self) -> Registered:
        """The schema as a registry takes it."""
        return Registered("JSON", self._text)

    def target(self, reference: str) -> Node:
        """Return the part of the document to which a reference leads.

        Raises:
            UsageProblem: It leads out of the document.
        """
        import referencing.exceptions

        try:
            found: Node = self._resolver.lookup(reference).contents
        except referencing.exceptions.Unresolvable:
            raise UsageProblem(
                f"{self._file}: the reference {visible(reference, _SHOWN_CHARS)} leads to nothing "
                "in this file, and nothing else is read."
            ) from None
        return found

    def matching(self, pattern: str, likely: Likely) -> str:
        """Return a text that a regular expression matches.

        Raises:
            UsageProblem: It cannot be read.
        """
        import rstr

        try:
            return str(rstr.Rstr(likely.rng).xeger(pattern))
        except (KeyError, ValueError, OverflowError, MemoryError) as error:
            raise UsageProblem(
                f"{self._file}: the pattern {visible(pattern, _SHOWN_CHARS)!r} cannot be followed: "
                f"{error}."
            ) from None


class _Draft:
    """Makes one value, part by part."""

    def __init__(self, schema: JsonSchema, likely: Likely) -> None:
        self._schema = schema
        self._likely = likely

    def value(self, node: Node, name: str, depth: int) -> Any:
        """Return a value for a part of the schema.

        Args:
            node: The part.
            name: The name of the property whose value it is.
            depth: How many lists and objects are around it.
        """
        plain = self._plain(node, depth)
        if "const" in plain:
            return plain["const"]
        if "enum" in plain:
            return self._of(plain["enum"])
        if plain.get("examples") and self._likely.chance(0.5):
            return self._of(plain["examples"])
        return self._typed(plain, name, depth)

    def _typed(self, plain: Mapping[str, Any], name: str, depth: int) -> Any:
        """Return a value of a type that the part allows."""
        made: Any = None
        match self._type(plain):
            case "object":
                made = self._object(plain, depth)
            case "array":
                made = self._array(plain, name, depth)
            case "string":
                made = self._string(plain, name)
            case "integer":
                made = self._integer(plain)
            case "number":
                made = self._number(plain)
            case "boolean":
                made = self._likely.chance(0.5)
        return made

    def _of(self, options: Any) -> Any:
        if not options:
            raise _Dead("there is nothing to choose from")
        return self._likely.rng.choice(options)

    def _plain(self, node: Node, depth: int) -> dict[str, Any]:
        """Return a part with references followed and alternatives chosen."""
        if depth > MOST_DEPTH:
            raise _Dead(f"its references lead in a circle, or deeper than {MOST_DEPTH} levels")
        if isinstance(node, bool):
            if not node:
                raise _Dead("a part of it allows nothing")
            return {}
        plain = dict(node)
        while parts := self._parts(plain):
            for part in parts:
                plain = _both(plain, self._plain(part, depth + 1))
        return plain

    def _parts(self, plain: dict[str, Any]) -> list[Node]:
        """Take from a part the other ones that it is made of."""
        parts = list[Node]()
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in plain:
                parts.append(self._schema.target(plain.pop(keyword)))
        parts += plain.pop("allOf", [])
        for keyword in ("anyOf", "oneOf"):
            if keyword in plain:
                parts.append(self._of(plain.pop(keyword)))
        if "if" in plain:
            condition = plain.pop("if")
            then = plain.pop("then", True)
            otherwise = plain.pop("else", True)
            parts += [condition, then] if self._likely.chance(0.5) else [otherwise]
        return parts

    def _type(self, plain: Mapping[str, Any]) -> str:
        known = plain.get("type")
        if isinstance(known, str):
            return known
        if known is not None:
            full = [each for each in known if each != "null"]
            is_null = not full or ("null" in known and self._likely.chance(SHARE_OF_NULLS))
            return "null" if is_null else str(self._of(full))
        return next((_TYPE_OF[keyword] for keyword in plain if keyword in _TYPE_OF), "string")

    def _object(self, plain: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Node] = plain.get("properties", {})
        required = set(plain.get("required", ()))
        for name, node in properties.items():
            if node is not False and self._is_chosen(depth):
                required.add(name)
        _add_dependents(plain, required)
        names = [name for name in properties if name in required]
        names += sorted(required - set(names))
        made = {
            name: self.value(_property(plain, name), name, depth + 1)
            for name in names[: _most(plain, "maxProperties")]
        }
        return self._filled(plain, made, depth)

    def _is_chosen(self, depth: int) -> bool:
        return depth < MOST_LEVELS and self._likely.chance(SHARE_OF_OPTIONALS)

    def _filled(self, plain: Mapping[str, Any], made: dict[str, Any], depth: int) -> dict[str, Any]:
        """Add properties until there are as many as there have to be."""
        least = _size(plain.get("minProperties", 0))
        for name in plain.get("properties", {}):
            if len(made) < least and name not in made:
                made[name] = self.value(_property(plain, name), name, depth + 1)
        patterns = list(plain.get("patternProperties", {}))
        for _ in range(TRIES_OF_A_PART * least):
            if len(made) >= least:
                break
            if "propertyNames" in plain:
                name = str(self.value(_as_text(plain["propertyNames"]), "", depth + 1))
            elif patterns:
                name = self._new_name(self._of(patterns), made)
            else:
                name = f"{self._likely.fake.word()}{len(made)}"
            made[name] = self.value(_property(plain, name), name, depth + 1)
        return made

    def _new_name(self, pattern: str, made: Mapping[str, Any]) -> str:
        """Return a name that a pattern matches; a longer one, if it may be, than one there is."""
        name = self._schema.matching(pattern, self._likely)
        return self._longer(pattern, name, 5) if name in made else name

    def _longer(self, pattern: str, text: str, by: int) -> str:
        """Return a text with more letters at its end, if a pattern matches that too."""
        longer = text + "".join(self._likely.rng.choices(_LETTERS, k=by))
        return longer if re.search(pattern, longer) else text

    def _array(self, plain: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        items = plain.get("items", True)
        first = plain.get("prefixItems", ())
        if isinstance(items, list):  # as drafts before 2020-12 say it
            first = items
            items = plain.get("additionalItems", True)
        least = _size(plain.get("minItems", 0))
        wanted = _size(plain.get("minContains", 1)) if "contains" in plain else 0
        least = max(least, wanted)
        given = _most(plain, "maxItems")
        most = max(least, len(first)) + 3 if given is None else given
        if items is False:
            most = min(most, len(first))
        if depth >= MOST_LEVELS:
            most = min(most, least)
        count = self._likely.number(min(least, most), most)
        made = list[Any]()
        for number in range(count):
            node = first[number] if number < len(first) else items
            if number >= count - wanted:
                node = {"allOf": [node, plain["contains"]]}
            made.append(self._item(node, name, depth, made if plain.get("uniqueItems") else ()))
        return made

    def _item(self, node: Node, name: str, depth: int, others: Any) -> Any:
        """Return an item that equals no other one."""
        for _ in range(TRIES_OF_A_PART):
            item = self.value(node, name, depth + 1)
            if not others or json.dumps(item) not in map(json.dumps, others):
                return item
        raise _Dead("the items of a list cannot all be different")

    def _string(self, plain: Mapping[str, Any], name: str) -> str:
        least = _size(plain.get("minLength", 0))
        most = _most(plain, "maxLength")
        if "pattern" in plain:
            return self._matching(plain["pattern"], least, most)
        made = self._likely.formatted(plain["format"]) if "format" in plain else None
        if made is not None:
            return made
        text = self._likely.text(name)
        if len(text) < least:
            text += "".join(self._likely.rng.choices(_LETTERS, k=least - len(text)))
        return text[:most]

    def _matching(self, pattern: str, least: int, most: int | None) -> str:
        for _ in range(TRIES_OF_A_PART):
            text = self._schema.matching(pattern, self._likely)
            if len(text) < least:
                text = self._longer(pattern, text, least - len(text))
            if least <= len(text) and (most is None or len(text) <= most):
                return text
        raise _Dead(f"no text was found that {pattern!r} matches and that is as long as it has to")

    def _integer(self, plain: Mapping[str, Any]) -> int:
        least, most = _bounds(plain)
        step = Fraction(str(plain.get("multipleOf", 1)))
        step = Fraction(step.numerator)  # the least multiple that is a whole number
        return int(self._multiple(step, least, most))

    def _number(self, plain: Mapping[str, Any]) -> float | int:
        least, most = _bounds(plain)
        if "multipleOf" in plain:
            step = Fraction(str(plain["multipleOf"]))
            made = self._multiple(step, least, most)
            return int(made) if made.denominator == 1 else float(made)
        low = least.value if least.value is not None else (most.value or Fraction(1000)) - 1000
        high = most.value if most.value is not None else low + 1000
        if low > high:
            raise _Dead("the bounds of a number leave nothing")
        number = self._between(float(low), float(high))
        rounded = round(number, 2)
        return rounded if least.allows(rounded) and most.allows(rounded) else number

    def _between(self, low: float, high: float) -> float:
        """Return a number within bounds, which may be further apart than any number is large."""
        share = self._likely.rng.random()
        return low * (1 - share) + high * share

    def _multiple(self, step: Fraction, least: "_Bound", most: "_Bound") -> Fraction:
        low = None if least.value is None else math.ceil(least.value / step)
        high = None if most.value is None else math.floor(most.value / step)
        if low is not None and least.is_open and low * step == least.value:
            low += 1
        if high is not None and most.is_open and high * step == most.value:
            high -= 1
        if low is not None and high is not None and low > high:
            raise _Dead("the bounds of a number leave nothing")
        return self._likely.number(low, high) * step


class _Bound:
    """A bound of a number."""

    def __init__(self, value: Fraction | None, *, is_open: bool, is_least: bool) -> None:
        self.value = value
        self.is_open = is_open
        self._is_least = is_least

    def allows(self, number: float) -> bool:
        """Return whether a number keeps the bound."""
        if self.value is None:
            return True
        beyond = Fraction(number) - self.value
        if not self._is_least:
            beyond = -beyond
        return beyond > 0 or (beyond == 0 and not self.is_open)


def _bounds(plain: Mapping[str, Any]) -> tuple[_Bound, _Bound]:
    """Return the least and the largest number that is allowed."""
    return (
        _bound(plain, "minimum", "exclusiveMinimum", is_least=True),
        _bound(plain, "maximum", "exclusiveMaximum", is_least=False),
    )


def _bound(plain: Mapping[str, Any], closed: str, opened: str, *, is_least: bool) -> _Bound:
    value = plain.get(closed)
    beyond = plain.get(opened)
    if isinstance(beyond, bool):  # as draft 4 says it
        return _Bound(_exact(value), is_open=beyond, is_least=is_least)
    if beyond is None:
        return _Bound(_exact(value), is_open=False, is_least=is_least)
    if value is not None and (value > beyond if is_least else value < beyond):
        return _Bound(_exact(value), is_open=False, is_least=is_least)
    return _Bound(_exact(beyond), is_open=True, is_least=is_least)


def _exact(number: float | None) -> Fraction | None:
    if number is None:
        return None
    if not math.isfinite(number):
        raise _Dead("a bound of a number is not finite")
    return Fraction(str(number))


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two parts of a schema say together."""
    both = dict(one)
    for keyword, value in other.items():
        both[keyword] = _joined(keyword, both[keyword], value) if keyword in both else value
    return both


def _joined(keyword: str, one: Any, other: Any) -> Any:
    """Return what one keyword says with two values."""
    joined: Any
    match keyword:
        case "properties" | "patternProperties":
            common = {name: {"allOf": [one[name], other[name]]} for name in one if name in other}
            joined = {**one, **other, **common}
        case "required" | "allOf":
            joined = [*one, *other]
        case "type":
            joined = _types(one, other)
        case "enum":
            joined = [each for each in one if each in other]
        case "items" | "additionalProperties" | "contains" if not isinstance(one, list):
            joined = {"allOf": [one, other]}
        case "anyOf" | "oneOf":
            joined = [{"allOf": [{keyword: one}, {keyword: other}]}]
        case _ if keyword in _LARGEST:
            joined = max(one, other)
        case _:
            joined = min(one, other) if keyword in _SMALLEST else other
    return joined


def _types(one: Any, other: Any) -> list[str]:
    """Return the types that two parts allow."""
    first = [one] if isinstance(one, str) else one
    second = [other] if isinstance(other, str) else other
    both = [each for each in first if each in second]
    if "integer" not in both and {"integer", "number"} <= {*first, *second}:
        both.append("integer")
    if not both:
        raise _Dead("two parts of it want different types")
    return both


def _property(plain: Mapping[str, Any], name: str) -> Node:
    """Return what a property has to satisfy."""
    parts = [plain["properties"][name]] if name in plain.get("properties", {}) else []
    parts += [
        node
        for pattern, node in plain.get("patternProperties", {}).items()
        if re.search(pattern, name)
    ]
    if not parts:
        return plain.get("additionalProperties", True)  # type: ignore[no-any-return]
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _add_dependents(plain: Mapping[str, Any], required: set[str]) -> None:
    """Add the properties that others have to come with."""
    dependents = {
        name: wanted
        for keyword in ("dependentRequired", "dependencies")
        for name, wanted in plain.get(keyword, {}).items()
        if isinstance(wanted, list)
    }
    waiting = [name for name in sorted(required) if name in dependents]
    while waiting:
        for name in dependents.pop(waiting.pop(), ()):
            required.add(name)
            if name in dependents:
                waiting.append(name)


def _as_text(node: Node) -> Node:
    return node if isinstance(node, bool) else {"type": "string", **node}


def _most(plain: Mapping[str, Any], keyword: str) -> int | None:
    """Return the most parts that there may be; None if nothing is said."""
    return int(plain[keyword]) if keyword in plain else None


def _size(least: float) -> int:
    if least > MOST_ITEMS:
        raise _Dead(f"a part of it has to have more than {MOST_ITEMS} parts")
    return int(least)


def _said(error: Any) -> str:
    """Return the message of a validator, as it may stand in a sentence."""
    return visible(str(error.message), _SHOWN_CHARS).rstrip(".")
