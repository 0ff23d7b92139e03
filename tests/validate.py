#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""validate.py SCHEMA FOLDER: hold every *.json below the folder against the schema."""
import json
import pathlib
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
bad = 0
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.json")):
    with open(path, encoding="utf-8") as file:
        for error in validator.iter_errors(json.load(file)):
            print(f"{path.name}: {'/'.join(map(str, error.path))}: {error.message}")
            bad += 1
sys.exit(1 if bad else 0)
