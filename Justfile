# Every command that a person types. `./justw RECIPE` fetches `just` where it is missing.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Real brokers take both cores of a small machine: scenarios run two at a time.
export RUST_TEST_THREADS := env("RUST_TEST_THREADS", "2")

# The recipes.
default:
    @{{ just_executable() }} --justfile {{ justfile() }} --list --unsorted

# Two clusters in memory, a flow between them, and a live view of it; needs nothing but the build.
demo *ARGUMENTS: _rust
    cargo run --bin tidegate -- demo {{ ARGUMENTS }}

# Every test: units, the broker in memory, and real Kafka 4.3.1 and 2.7.1 with the real MirrorMaker 2.
test *FILTER: _rust _java _languages
    cargo build --workspace
    cargo test --workspace -- {{ FILTER }}

# The tests that need no JVM.
test-fast *FILTER: _rust _languages
    cargo build --workspace
    cargo test --workspace -- --skip kafka:: {{ FILTER }}

# Builds the binary and all plugins: target/debug/tidegate.
build *ARGUMENTS: _rust
    cargo build --workspace {{ ARGUMENTS }}

# Copies by a MirrorMaker 2 file, optimised: `run mm2.properties`.
run FILE *ARGUMENTS: _rust
    cargo run --release --bin tidegate -- run {{ FILE }} {{ ARGUMENTS }}

# Formatting, clippy (warnings are errors), and licences where cargo-deny is installed.
lint: _rust
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    if cargo deny --version >/dev/null 2>&1; then cargo deny --all-features check; else echo "cargo-deny is not installed: licences not checked"; fi

# Tidegate against MirrorMaker 2 on two real clusters, with figures in bench-results/: `bench`, `bench quick`, `bench latency`.
bench *ARGUMENTS: _rust _java
    cargo build --release --workspace --bins
    cargo run --release --bin bench -- {{ ARGUMENTS }}

# The documentation of all crates: target/doc/tidegate/index.html.
doc: _rust
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Puts all sources into their one format.
format: _rust
    cargo fmt --all

# What a build needs beside Rust: a C compiler and two libraries for librdkafka, and the target of the plugins.
_rust:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v cargo >/dev/null || { echo "Rust is missing: install it from https://rustup.rs" >&2; exit 69; }
    if command -v rustup >/dev/null; then
        rustup target list --installed | grep -qx wasm32-unknown-unknown || rustup target add wasm32-unknown-unknown
    fi
    missing=()
    command -v gcc >/dev/null || missing+=(gcc libc6-dev)
    command -v g++ >/dev/null || missing+=(g++)
    command -v make >/dev/null || missing+=(make)
    command -v pkg-config >/dev/null || missing+=(pkg-config)
    [ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
    [ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
    [ "${#missing[@]}" -eq 0 ] || ./tests/install-packages "${missing[@]}"

# Real brokers need Java, and Maven once, to fetch them.
_java:
    #!/usr/bin/env bash
    set -euo pipefail
    missing=()
    command -v java >/dev/null || missing+=(openjdk-17-jdk-headless)
    command -v mvn >/dev/null || missing+=(maven)
    if [ "${#missing[@]}" -gt 0 ] && ! ./tests/install-packages "${missing[@]}"; then
        echo "tests on real brokers will be SKIPPED (with CI=true: fail)" >&2
    fi

# The plugins in C, JavaScript and Python are built with tools from npm and PyPI.
_languages:
    #!/usr/bin/env bash
    set -euo pipefail
    missing=()
    node -e 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
    if [ "${#missing[@]}" -gt 0 ] && ! ./tests/install-packages "${missing[@]}"; then
        echo "tests of plugins in C, JavaScript and Python will be SKIPPED (with CI=true: fail)" >&2
    fi
