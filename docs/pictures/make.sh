#!/usr/bin/env bash
# The pictures of docs/, made by the commands themselves:  docs/pictures/make.sh BUILD_DIR
#
# Needs node, perf, chromium, and pngquant if it is there.
set -euo pipefail
build=$(realpath "${1:?usage: docs/pictures/make.sh BUILD_DIR}")
here=$(dirname "$(realpath "$0")")
browser=$(command -v chromium || command -v chromium-headless-shell || true)
for need in node perf "${browser:-chromium}"; do
    command -v "$need" >/dev/null || { echo "docs-pictures: install $need" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/app.js" "$work"
cd "$work"
"$build/perfjit" record -q -F 2500 -o app node app.js
"$build/perfjit" flamegraph -q --title "node app.js" -o app.html app.perf.data

# picture NAME HASH [OPTION...]: the page at HASH, as a PNG.
picture() {
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,720 --virtual-time-budget=4000 "${@:3}" \
        --screenshot="$work/$1.png" "file://$work/app.html#$2" >/dev/null 2>&1
    ! command -v pngquant >/dev/null || pngquant --force --output "$work/$1.png" "$work/$1.png"
    cp "$work/$1.png" "$here/$1.png"
}

picture search "search=multiply&hide=native.runtime"
picture time "view=time&hide=native.runtime.kernel"

# README's: of a run that is so long that what happens at its start is too narrow to be drawn.
"$build/perfjit" record -q -F 997 -o long node app.js 10
"$build/perfjit" flamegraph -q --svg --title "node app.js" -o - long.perf.data | sed "s:$work/::g" >"$here/flamegraph.svg"
