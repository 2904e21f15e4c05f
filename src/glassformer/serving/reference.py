"""The OpenAPI document as a page that needs no network, and no script."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

Document = Mapping[str, Any]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { background: #8881; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
h2 code { font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
         border-bottom: 1px solid #8884; }
"""


def reference_page(document: Document) -> str:
    """The page."""
    title = escape(document["info"]["title"])
    sections = "\n".join(
        section(document, path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"<p>{escape(document['info']['description'])} "
        f'The same for programs: <a href="openapi.json">openapi.json</a>.</p>\n'
        f"{sections}\n</body></html>\n"
    )


def section(document: Document, path: str, method: str, operation: Document) -> str:
    """One path: what it does, what it takes, and an example."""
    parts = [
        f"<h2><code>{method.upper()} {escape(path)}</code></h2>",
        f"<p>{escape(operation.get('summary', ''))}</p>",
    ]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = resolved(document, content["schema"])
        if schema.get("description") not in (None, operation.get("summary")):
            parts.append(f"<p>{escape(schema['description'])}</p>")
        parts += [
            fields_table(document, schema),
            f"<pre>{escape(example(path, media, schema))}</pre>",
        ]
    return "\n".join(parts)


def fields_table(document: Document, schema: Document) -> str:
    """The fields of a request."""
    needed = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind(document, field))}</td>"
        f"<td>{escape(purpose(field, needed=name in needed))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<table><tr><th>field</th><th>type</th><th>meaning</th></tr>{rows}</table>"


def purpose(field: Document, *, needed: bool) -> str:
    text = str(field.get("description", ""))
    if needed:
        return f"{text} Required.".strip()
    default = field.get("default")
    return text if default in (None, "", []) else f"{text} Default: {json.dumps(default)}.".strip()


def kind(document: Document, field: Document) -> str:
    """The type of a field, in words."""
    if "anyOf" in field:
        kinds = [kind(document, one) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in field:
        inside = resolved(document, field).get("properties", {})
        return f"object ({', '.join(inside)})"
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {kind(document, field.get('items', {}))}"
    bounds = " ".join(bounds_of(field))
    return f"{field.get('type', 'any')} {bounds}".strip()


def bounds_of(field: Document) -> Iterator[str]:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    yield from (f"{sign} {field[name]:,}" for name, sign in signs.items() if name in field)


def example(path: str, media: str, schema: Document) -> str:
    """A command that sends a request."""
    needed = schema.get("required", ())
    if media == "multipart/form-data":
        fields = [f"-F {name}={'@recording.wav' if name == 'file' else 'NAME'}" for name in needed]
        return f"curl http://127.0.0.1:8000{path} {' '.join(fields)}"
    values = {name: "NAME" if name == "model" else "..." for name in (*needed, "prompt")}
    known = {name: value for name, value in values.items() if name in schema.get("properties", {})}
    return (
        f"curl http://127.0.0.1:8000{path} -H 'Content-Type: application/json' \\\n"
        f"    -d '{json.dumps(known)}'"
    )


def resolved(document: Document, schema: Document) -> Document:
    """A schema, where another part of the document is referred to."""
    if "$ref" not in schema:
        return schema
    found: Any = document
    for name in schema["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return resolved(document, found)
