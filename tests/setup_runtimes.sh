#!/usr/bin/env bash
# The runtimes that tests/cli/runtimes.bats records: Debian's where this release has them; node 24 and Bun from npm, and CPython 3.13 from
# Debian 13, in BUILD_DIR/runtimes.  Needs root and the network.  What is there stays as it is.
#
#     tests/setup_runtimes.sh BUILD_DIR
set -euo pipefail
runtimes=$(realpath -m "${1:?usage: tests/setup_runtimes.sh BUILD_DIR}")/runtimes
mkdir -p "$runtimes"

missing=()
for need in node:nodejs npm:npm lli-14:llvm-14 php8.2:php8.2-cli /etc/php/8.2/mods-available/opcache.ini:php8.2-opcache javac:openjdk-17-jdk-headless \
    erlc:erlang-base mono:mono-runtime mcs:mono-mcs luajit:luajit /usr/lib/postgresql/15/bin/postgres:postgresql-15 debootstrap:debootstrap; do
    case $need in
    /*) [ -e "${need%:*}" ] ;;
    *) command -v "${need%:*}" >/dev/null ;;
    esac || missing+=("${need#*:}")
done
[ ${#missing[@]} -eq 0 ] || { apt-get -q update && apt-get -q -y install --no-install-recommends "${missing[@]}"; }

if [ ! -x "$runtimes/node_modules/.bin/node" ] || [ ! -x "$runtimes/node_modules/.bin/bun" ]; then
    npm install --prefix "$runtimes" --no-audit --no-fund node@24 bun
fi
[ -x "$runtimes/trixie/usr/bin/python3.13" ] ||
    debootstrap --variant=minbase --include=python3 trixie "$runtimes/trixie" http://deb.debian.org/debian >"$runtimes/debootstrap.log"
