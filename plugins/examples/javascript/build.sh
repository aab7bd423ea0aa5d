#!/bin/sh
# Builds region-only.wasm with componentize-qjs (from npm): QuickJS and the plugin in one component.
set -eu
cd "$(dirname "$0")"
WIT=${WIT:-../../../plugin-sdk/wit/0.1.0}
[ -x node_modules/.bin/componentize-qjs ] || npm install --no-audit --no-fund --silent
node_modules/.bin/componentize-qjs --wit "$WIT" --world record-transform --js filter.js --module-root . \
  --stub-wasi --sync --minify --output region-only.wasm
