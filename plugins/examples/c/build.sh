#!/bin/sh
# Builds region-only.wasm: zig (from PyPI) compiles, jco-transpile (from npm) makes the component.
set -eu
cd "$(dirname "$0")"
WIT=${WIT:-../../../plugin-sdk/wit/0.1.0}
mkdir -p build
[ -x build/venv/bin/python ] || python3 -m venv build/venv
build/venv/bin/python -c 'import ziglang' 2>/dev/null || build/venv/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
[ -f node_modules/@bytecodealliance/jco-transpile/package.json ] || npm install --no-audit --no-fund --silent
build/venv/bin/python -m ziglang cc -target wasm32-freestanding -mcpu=mvp+bulk_memory -Oz -nostdlib -fno-builtin \
  -Wall -Wextra -Werror -Wl,--no-entry -Wl,--strip-all -o build/region-only.core.wasm filter.c tidegate.c
node component.mjs build/region-only.core.wasm "$WIT/plugin.wit" record-transform region-only.wasm
