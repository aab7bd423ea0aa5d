#!/bin/sh
# Builds region-only.wasm with componentize-py (from PyPI).
set -eu
cd "$(dirname "$0")"
WIT=${WIT:-../../../plugin-sdk/wit/0.1.0}
[ -x build/venv/bin/python ] || python3 -m venv build/venv
build/venv/bin/componentize-py --version >/dev/null 2>&1 ||
  build/venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
# The contract's host functions must all be stubbed or ours: a plugin has no clock, files or network.
build/venv/bin/componentize-py --quiet -d "$WIT" -w record-transform componentize --stub-wasi -o region-only.wasm filter
