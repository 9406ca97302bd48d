#!/usr/bin/env bash
# The pictures of docs/, made by the commands themselves:  docs/pictures/make.sh BUILD_DIR
#
# Needs node, perf, chromium (tests/cli/browser.js finds it), and pngquant if it is there.
set -euo pipefail
build=$(realpath "${1:?usage: docs/pictures/make.sh BUILD_DIR}")
here=$(dirname "$(realpath "$0")")
for need in node perf; do
    command -v "$need" >/dev/null || { echo "docs-pictures: install $need" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/app.js" "$work"
cd "$work"
"$build/perfjit" record -q -F 2500 -o app node app.js
"$build/perfjit" flamegraph -q --title "node app.js" -o app.html app.perf.data

# picture NAME HASH: the page at HASH, as a PNG.
picture() {
    node -e '
const { openPage } = require(process.argv[1]), [file, to, hash] = process.argv.slice(2);
(async () => {
    const page = await openPage(file, { hash, width: 1000, height: 600 });
    await new Promise((resolve) => setTimeout(resolve, 2000)); // moments come while nobody waits
    await page.screenshot(to);
    await page.close();
})();' "$here/../../tests/cli/browser.js" "$work/app.html" "$work/$1.png" "#$2"
    ! command -v pngquant >/dev/null || pngquant --force --output "$work/$1.png" "$work/$1.png"
    cp "$work/$1.png" "$here/$1.png"
}

picture search "search=multiply&hide=native.runtime"
picture time "view=time&hide=native.runtime.kernel"

# README's: of a run that is so long that what happens at its start is too narrow to be drawn.
"$build/perfjit" record -q -F 997 -o long node app.js 10
"$build/perfjit" flamegraph -q --svg --title "node app.js" -o - long.perf.data | sed "s:$work/::g" >"$here/flamegraph.svg"
