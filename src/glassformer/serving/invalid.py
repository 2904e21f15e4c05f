"""What is wrong with a request that does not fit its path, in words for its sender.

Pydantic names each kind of error; what it says about a kind that is not listed here is passed on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from glassformer.wording import counted

MUST_BE = {  # what a field must be, by kind of error
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a text",
}
NO_JSON_HEADER = "the header Content-Type: application/json is missing"
EMPTY = "the body is empty; send a JSON object"
NO_OBJECT = 'the body is not a JSON object, such as {"model": ...}'
TOO_DEEP = "the body is not valid JSON: it is nested too deeply"
TOO_LARGE = "the body is not valid JSON: a number in it has too many digits"


def what_is_wrong(errors: Sequence[Mapping[str, Any]]) -> str:
    """A sentence about a field, from all that was found at its place.

    >>> what_is_wrong([{"type": "string_type"}, {"type": "list_type"}])
    'must be a text or a list'
    >>> what_is_wrong([{"type": "less_than_equal", "ctx": {"le": 16}}])
    'must be at most 16'
    """
    first = errors[0]
    kind, values = first.get("type", ""), first.get("ctx") or {}
    if kind == "missing":
        return "this field is missing"
    if kind == "extra_forbidden":
        return "unknown field; /docs lists those of this path"
    if kind == "too_long":
        return f"must have at most {counted(values['max_length'], 'item')}"
    if kind == "value_error":
        return str(values["error"])
    if kind not in MUST_BE:
        return str(first.get("msg", "the request is not valid"))
    kinds = [one for one in errors if one.get("type") in MUST_BE]
    found = [MUST_BE[one["type"]].format(**limits_of(one)) for one in kinds]
    return f"must be {' or '.join(dict.fromkeys(found))}"


def limits_of(error: Mapping[str, Any]) -> dict[str, Any]:
    """The values that an error names; whole numbers without a fraction."""
    values = error.get("ctx") or {}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
    }


def unreadable(error: BaseException | None) -> str | None:
    """Why a body could not even be read as JSON, from what Python says; None for another reason."""
    if isinstance(error, UnicodeDecodeError):
        return f"the body is not valid UTF-8: error at byte {error.start}"
    if isinstance(error, RecursionError):
        return TOO_DEEP
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return TOO_LARGE
    return None
