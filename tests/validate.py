#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""validate.py SCHEMA FOLDER: hold every document in every *.json below the folder against the schema. Readers must take
keys that they do not know; here, where the tool and its schema are of one version, none may be missing in the schema."""
import json
import pathlib
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)


def close(part):
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        close(inner)
    if isinstance(part, dict) and "properties" in part:
        part.setdefault("additionalProperties", False)


close(schema)
validator = jsonschema.Draft7Validator(schema)


def documents(text):
    """A file may hold several, one behind the other."""
    while text := text.lstrip():
        document, end = json.JSONDecoder().raw_decode(text)
        yield document
        text = text[end:]


def complaint(document):
    """Of a document that is none of the kinds there are: what it lacks to be the nearest one."""
    return jsonschema.exceptions.best_match(validator.iter_errors(document))


bad = 0
for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.json")):
    for document in documents(path.read_text(encoding="utf-8")):
        error = complaint(document)
        if error:
            print(f"{path.name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
            bad += 1
sys.exit(1 if bad else 0)
