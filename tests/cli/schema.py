# SPDX-License-Identifier: BSL-1.0
"""As much of JSON Schema as docs/cli.schema.json uses. A word that is not known is a complaint, so that nothing is
checked only in appearance."""

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
WORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "$ref", "anyOf", "description"}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def complaints(value, schema, root, path="$"):
    found = [f"{path}: the schema's word {word} is unknown" for word in set(schema) - WORDS]
    if "$ref" in schema:
        found += complaints(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "anyOf" in schema and all(complaints(value, one, root, path) for one in schema["anyOf"]):
        found.append(f"{path}: {value!r} is none of those allowed")
    types = schema.get("type", [])
    if types and not any(is_of(value, name) for name in ([types] if isinstance(types, str) else types)):
        return [*found, f"{path}: {value!r} is no {types}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r} is not {schema['const']!r}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{path}: no {name}" for name in schema.get("required", []) if name not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{path}: {name} is not described" for name in value if name not in known]
        for name, inner in known.items():
            if name in value:
                found += complaints(value[name], inner, root, f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += complaints(item, schema["items"], root, f"{path}[{number}]")
    return found
