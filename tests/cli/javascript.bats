#!/usr/bin/env bats
# JavaScript as people wrote it: the calls that V8 inlined, by its code log, and scripts by their source maps.
#
# Judges: the same program without inlining; the lines of inlined code in V8's own dump; the map's own text.
# bats file_tags=live
load helper

setup() {
    require_perf
    mkdir "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/tmp"
    cd "$BATS_TEST_TMPDIR/run" || return
    export TMPDIR=$BATS_TEST_TMPDIR/tmp HOME=$BATS_TEST_TMPDIR/tmp
    cat >work.js <<'END'
class Vec { constructor(x, y) { this.x = x; this.y = y; } len() { return Math.sqrt(sq(this.x) + sq(this.y)); } }
function sq(v) { return v * v; }
function mix(a, b) {
    let s = a;
    for (let i = 0; i < 50; i++) s = (s * 31 + b + i) | 0;
    return s;
}
function total(n) {
    let t = 0;
    for (let i = 0; i < n; i++) {
        t += mix(i, t);
        if (i % 16 === 0) t += new Vec(i, t & 255).len();
    }
    return t;
}
let r = 0;
for (let i = 0; i < 1200; i++) r += total(20000);
END
}

record_it() { # WORD...
    run --separate-stderr perfjit record "$@"
    exits 0
    [ -z "$(ls -A "$TMPDIR")" ] || complain "left in TMPDIR: $(find "$TMPDIR")"
}

# self NAME [RECORDING]: its own samples in 1000 of those in JavaScript's functions of work.js, and what it is.
self() {
    perfjit report --json "${2:-perfjit.perf.data}" | jq -r --arg name "$1" '
        [.functions[] | select((.file // "") | endswith("/work.js") or endswith("/work.ts"))] as $ours
        | ($ours | map(.self) | add) as $all
        | ($ours[] | select(.name == $name)) | "\(.self * 1000 / $all | floor) \(.kind) \(.file | sub(".*/"; "")):\(.line)"'
}

# inlined_share LEAST WORD...: a run in which mix is inlined nearly everywhere
inlined_share() {
    local least=$1 share kind
    shift
    record_it "$@"
    read -r share kind < <(self mix)
    [ "${share:-0}" -ge "$least" ] || complain "$*: mix has $share of 1000: $(self mix) total: $(self total)"
    [[ $kind == *inlined* ]] || complain "$*: $kind"
}

@test "node: inlined calls have their share, as in a run in which nothing is inlined" {
    local mix other
    inlined_share 850 node work.js
    read -r mix _ < <(self mix)
    record_it node --no-turbo-inlining --no-maglev-inlining work.js 2>/dev/null || record_it node --no-turbo-inlining work.js
    read -r other _ < <(self mix)
    [ $((mix - other)) -le 60 ] && [ $((other - mix)) -le 60 ] || complain "mix: $mix of 1000 inlined, $other not"
}

@test "node: by way of a shell, a first line, a script's child, a fork, a worker" {
    inlined_share 850 sh -c 'node work.js; :'
    printf '#!/usr/bin/env node\nrequire("./work.js");\n' >first.js && chmod +x first.js
    inlined_share 850 ./first.js
    echo 'require("child_process").spawnSync("node", ["work.js"]);' >child.js
    inlined_share 850 node child.js
    echo 'require("child_process").fork("./work.js");' >fork.js
    inlined_share 850 node fork.js
    echo 'new (require("worker_threads").Worker)("./work.js");' >worker.js
    inlined_share 850 node worker.js
}

@test "node: started with an environment of its own, by its path and by its name" {
    local -A calls=([path]='spawn(process.execPath, ["work.js"], { env: {} })' [sync]='spawnSync(process.execPath, ["work.js"], { env: {} })'
        [name]='spawn("node", ["work.js"], { env: { PATH: process.env.PATH } })' [fork]='fork("./work.js", [], { env: {} })'
        [words]='spawn(process.execPath, ["fork.js"], { env: {} })')
    echo 'require("child_process").fork("./work.js");' >fork.js
    for call in "${!calls[@]}"; do
        echo "require('child_process').${calls[$call]}" >by-path.js
        inlined_share 850 node by-path.js
    done
    echo 'console.log(process.execArgv.join(" "));' >words.js
    record_it node words.js
    [[ $output != *--perf-prof* ]] || complain "$output"
}

@test "node: started by its path, with words of its own, synchronously and not" {
    local -A calls=([spawn]='spawn(process.execPath, ["work.js"])' [fork]='fork("./work.js", [], { execArgv: ["--no-warnings"] })'
        [sync]='spawnSync(process.execPath, ["work.js"])' [file]='execFileSync(process.execPath, ["work.js"])')
    for call in "${!calls[@]}"; do
        echo "require('child_process').${calls[$call]}" >by-path.js
        inlined_share 850 node by-path.js
    done
    echo 'import { spawnSync } from "child_process"; spawnSync(process.execPath, ["work.js"]);' >by-path.mjs
    inlined_share 850 sh -c 'node by-path.mjs; :'
}

# As yarn 1: a script in front of PATH, which starts node by its path.
@test "node: by a script that a package manager puts into PATH" {
    cat >manager.js <<'END'
const fs = require("fs"), [call, program] = process.argv.slice(2), env = { ...process.env, PATH: `${__dirname}/shims:${process.env.PATH}` };
fs.mkdirSync("shims", { recursive: true });
fs.writeFileSync("shims/node", `#!/bin/sh\n\nexec "${program || process.execPath}" "$@"\n`, { mode: 0o755 });
require("child_process")[call]("sh", ["-c", "node work.js; :"], { env, stdio: "inherit" });
END
    inlined_share 850 node manager.js spawn
    inlined_share 850 node manager.js spawnSync
    record_it node manager.js spawn "$(type -P echo)"
    [ "$output" = work.js ] || complain "$output"
}

# The folder of the run is gone: what is started then is as without perfjit, also by a thread with words of its own.
@test "node: what a service starts after the run has no words of the run, and logs nothing" {
    cat >service.js <<'END'
const { Worker } = require("worker_threads"), fs = require("fs"), { spawn, fork, execSync, spawnSync } = require("child_process");
const stdio = ["ignore", 3, 3], after = call => {
    const at = setInterval(() => fs.existsSync(process.env.JITDUMPDIR) || call(clearInterval(at)), 20);
};
new Worker(`const { Worker } = require("worker_threads"), fs = require("fs"), after = ${after};
    fs.writeFileSync("ready", "");
    after(() => new Worker('require("fs").writeSync(3, "inner\\\\n")', { eval: true }));`, { eval: true, execArgv: ["--no-warnings"] });
after(() => {
    for (const more of [{}, { execArgv: ["--no-warnings"] }])
        new Worker('require("fs").writeSync(3, "thread\\n")', { eval: true, ...more });
    execSync("node kid.js", { stdio, env: { ...process.env } });
    spawnSync(process.execPath, ["kid.js"], { stdio });
    spawn("sh", ["-c", "node kid.js"], { stdio });
    fork("./kid.js", [], { stdio: [...stdio, "ipc"] }).on("exit", () => spawn(process.execPath, ["kid.js"], { stdio }));
});
END
    echo 'console.log(JSON.stringify([process.execArgv, process.env.NODE_OPTIONS])); if (process.disconnect) process.disconnect();' >kid.js
    NODE_OPTIONS=--no-deprecation record_it sh -c 'node service.js 3>late >printed 2>&1 & until [ -e ready ]; do sleep 0.05; done'
    await eval '[ "$(wc -l <late)" -ge 8 ] || [ -s printed ]'
    [ ! -s printed ] || complain "printed: $(head -c 400 printed)"
    [ "$(sort late)" = "$(printf '[[],"--no-deprecation"]\n%.0s' 1 2 3 4 5)"$'\ninner\nthread\nthread' ] || complain "$(head -c 400 late)"
    [ -z "$(find . -name 'jit-*.dump' -o -name '*v8*.log')" ] || complain "left: $(find . -name 'jit-*.dump' -o -name '*v8*.log')"
}

@test "a script that is compiled in memory: names and lines of its own text's map" {
    cat >loader.js <<'END'
const text = 'function m(a,b){let s=a;for(let i=0;i<50;i++)s=(s*31+b+i)|0;return s}function t(n){let r=0;for(let i=0;i<n;i++)r+=m(i,r);return r}for(let i=0;i<1200;i++)t(20000);';
const map = { version: 3, sources: ["work.ts"], names: ["mixNumbers"], mappings: ";AAEA,SAASA" };
const url = "data:application/json;base64," + Buffer.from(JSON.stringify(map)).toString("base64");
new (require("vm").Script)(`(()=>{\n${text}\n//# sourceMappingURL=${url}\n})()`, { filename: __dirname + "/work.ts" }).runInThisContext();
END
    echo '// what people wrote' >work.ts
    record_it node loader.js
    [[ $(self mixNumbers) == [89]??\ *inlined*work.ts:3 ]] || complain "$(self mixNumbers) $stderr"
}

@test "what the run does not reach is told: node by its path in a shell, a script in memory without a map" {
    # shellcheck disable=SC2016 # for the shell
    NODE=$(type -P node) record_it sh -c '"$NODE" work.js; :'
    says "1 x process of V8 without V8's code log"
    [[ $(self total) == [89]??\ *work.js:8 ]] || complain "$(self total)"
    record_it node work.js
    [[ $stderr != *"code log"* && $stderr != *"not the text"* ]] || complain "$stderr"
    cat >loader.js <<'END'
const text = require("fs").readFileSync("work.ts", "utf8"), plain = text.replace(": number", "        "), made = process.argv[2] ? plain.replace(/.*\n.*\n/, "") : plain;
new (require("vm").Script)(made, { filename: __dirname + "/work.ts" }).runInThisContext();
END
    (echo // one && echo // two && cat work.js && echo 'let typed: number = 1;') >work.ts
    record_it node loader.js
    [[ $stderr != *"not the text"* ]] || complain "$stderr"
    record_it node loader.js made
    says "1 x script whose file is not the text that ran" "work.ts: that text has no source map"
}

@test "a script of eval: the name that it gives itself, and its map" {
    cat >loader.js <<'END'
const text = 'function m(a,b){let s=a;for(let i=0;i<50;i++)s=(s*31+b+i)|0;return s}function t(n){let r=0;for(let i=0;i<n;i++)r+=m(i,r);return r}for(let i=0;i<1200;i++)t(20000);';
const map = { version: 3, sources: ["webpack:///./work.ts"], sourcesContent: ["\n\nfunction mixNumbers(a, b) {\n"], names: [], mappings: ";AAEA" };
const url = "data:application/json;base64," + Buffer.from(JSON.stringify(map)).toString("base64");
const mapped = process.argv[2] === "mapped" ? `//# sourceMappingURL=${url}\n` : "";
(0, eval)(`{\n${text}\n//# sourceURL=[module]\n${mapped}//# sourceURL=webpack-internal:///./work.ts\n\n}`);
END
    record_it node loader.js mapped
    [[ $(self mixNumbers) == @([89]??|1000)\ *inlined*work.ts:3 ]] || complain "$(self mixNumbers) $stderr"
    record_it node loader.js
    [[ $(self m) == @([89]??|1000)\ *inlined*work.ts:2 ]] || complain "$(self m) $stderr"
}

# Whatever the command finds in PATH without perfjit it finds with it, and it sees its own words and variables.
# shellcheck disable=SC2016 # for the shells and the programs
@test "node in PATH: another one in front, a version manager, its words and variables" {
    mkdir own manager
    printf '#!/bin/sh\necho own\n' >own/node && chmod +x own/node
    for path in ./own "$PWD/own"; do
        PATH=$path:$PATH record_it sh -c 'node work.js'
        [ "$output" = own ] || complain "$path: $output"
        record_it env PATH="$path:$PATH" sh -c 'node work.js'
        [ "$output" = own ] || complain "env PATH=$path: $output"
    done
    # It takes itself out of PATH, and calls what is there then.
    printf '#!/bin/sh\nPATH=${PATH#%s:}\necho managed\nnode "$@"\n' "$PWD/manager" >manager/node && chmod +x manager/node
    PATH=$PWD/manager:$PATH record_it timeout 20 sh -c 'node -p 6*7'
    [ "$output" = $'managed\n42' ] || complain "$output"
    plain=$(env a.b=7 sh -c 'exec node -p "[process.argv0, process.execPath, process.env.PATH, process.argv.length]" one')
    record_it sh -c 'exec node -p "[process.argv0, process.execPath, process.env.PATH.replace(/[^:]*perfjit-[^:]*:/, \"\"), process.argv.length]" one'
    [ "$output" = "$plain" ] || complain "$output instead of $plain"
    record_it env a.b=7 node -e 'require("child_process").spawnSync("node", ["-p", "process.env[\"a.b\"]"], { stdio: "inherit" })'
    [ "$output" = 7 ] || complain "$output"
    record_it sh -c 'mv "$JITDUMPDIR" away; node -p 6*7; mv away "$JITDUMPDIR"'
    [ "$output" = 42 ] || complain "${output:0:200}"
}

@test "a recording made by hand: --v8-log of a directory and of a file; a log of another run is told" {
    mkdir logs other
    PERF=(perf record -q -k mono -F 999 -g -e cpu-clock:u -o in.data)
    NODE=(node --perf-prof --log-code --log-source-code)
    "${PERF[@]}" "${NODE[@]}" --logfile="$PWD/logs/v8-%p.log" work.js
    "${NODE[@]}" --logfile="$PWD/other/v8.log" work.js
    for log in logs logs/*.log; do
        perfjit inject -f -q -i in.data -o out.data --v8-log "$log"
        [[ $(self mix out.data) == [89]??\ *inlined*work.js:3 ]] || complain "$log: $(self mix out.data)"
    done
    perfjit inject -f -q -i in.data -o out.data --v8-log logs --inlines frames
    [ "$(perf script --no-inline -i out.data -F ip,sym 2>/dev/null | grep -cE 'JS:\*mix .*work.js:3:13 \(inlined\)')" -ge 100 ] ||
        complain "perf script shows no inlined calls"
    run --separate-stderr perfjit inject -f -i in.data -o out.data --v8-log other
    exits 3
    says "with inlined calls is in a dump of this recording"
    for log in nowhere work.js; do
        run --separate-stderr perfjit inject -f -i in.data -o out.data --v8-log $log
        exits 1
        says "$log"
    done
}

# V8's dump has line and column of what is inlined, by another way: each sampled place has the line of the function that
# the log says is there.
@test "node: each inlined call lies in the lines of its function" {
    mkdir logs
    perf record -q -k mono -F 999 -g -e cpu-clock:u -o in.data node --perf-prof --log-code --log-source-code --logfile="$PWD/logs/v8.log" work.js
    perfjit inject -f -q -i in.data -o out.data --v8-log logs
    elf=$(find out.data.dso -name '*.so')
    # perf prints addresses of the file where it prints call chains; the first of each is what ran.
    perf script -i out.data -F ip,sym,dso --no-inline 2>/dev/null |
        awk 'NF == 0 { n = 0; next } !n++ && /jit-[^ ]*so\)$/ { print "0x" $1 }' | sort -u | head -400 >places.at
    llvm-symbolizer --obj="$elf" --functions=short --inlines <places.at >places
    awk '/^JS:\*(mix|sq|len|Vec|total) / { split($0, w, " "); sub(/^JS:\*/, "", w[1]); name = w[1]; next }
        /work\.js:[0-9]+:[0-9]+$/ && name { n = split($0, p, ":"); line = p[n - 1]
            low = name == "mix" ? 3 : name == "sq" ? 2 : name == "total" ? 8 : 1; high = name == "mix" ? 7 : name == "sq" ? 2 : name == "total" ? 15 : 1
            if (line < low || line > high) { print name, line; bad = 1 } seen++; name = "" }
        END { exit bad || seen < 20 }' places || complain "$(head -50 places)"
}

# A script of one line as a minifier writes it, with the map of what it was made of.
minified() {
    printf 'function m(a,b){let s=a;for(let i=0;i<50;i++)s=(s*31+b+i)|0;return s}const t=n=>{let r=0;for(let i=0;i<n;i++)r+=m(i,r);return r};for(let i=0;i<1200;i++)t(20000);\n%s' "$1" >work.min.js
    node -e '
        const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const vlq = n => { let v = n < 0 ? -n * 2 + 1 : n * 2, s = ""; do { let d = v & 31; v >>= 5; s += digits[v ? d | 32 : d]; } while (v); return s; };
        // generated column, line, column, name: "function m(" at 9, "(" at 10, its loop, t at 77 and its "n"
        const at = s => require("fs").readFileSync("work.min.js", "utf8").indexOf(s);
        const segments = [[0, 2, 0], [9, 2, 9, 0], [10, 2, 12], [at("for(let i=0;i<50"), 4, 4], [at("t=n=>"), 9, 6, 1], [at("n=>"), 9, 14], [at("for(let i=0;i<n"), 11, 4], [at("for(let i=0;i<1200"), 15, 0]];
        let column = 0, line = 0, sourceColumn = 0, name = 0;
        const mappings = segments.map(([c, l, s, n]) => {
            let text = vlq(c - column) + vlq(0) + vlq(l - line) + vlq(s - sourceColumn);
            column = c; line = l; sourceColumn = s;
            if (n !== undefined) { text += vlq(n - name); name = n; }
            return text;
        }).join(",");
        require("fs").writeFileSync("work.min.js.map", JSON.stringify({ version: 3, sources: ["src/work.ts"], names: ["mixNumbers", "arrowTotal"], mappings }));'
}

@test "a minified script: names, files and lines are those of its source map; inlined calls too" {
    minified '//# sourceMappingURL=work.min.js.map'
    record_it node work.min.js
    [[ $(self mixNumbers) == [89]??\ *inlined*work.ts:3 ]] || complain "$(self mixNumbers)"
    perfjit report --json perfjit.perf.data | jq -e '.functions[] | select(.name == "arrowTotal" and (.file | endswith("/src/work.ts")) and .line == 10)' >/dev/null ||
        complain "no arrowTotal"
    perf report -i perfjit.perf.data --stdio --no-children -g none 2>/dev/null | grep -q 'JS:\*arrowTotal .*/src/work.ts:10:' || complain "perf report has no arrowTotal"
    perfjit flamegraph --svg -o out.svg perfjit.perf.data && grep -q 'arrowTotal' out.svg
}

@test "a map that is elsewhere, that is not there, and that is not wanted" {
    minified ''
    mkdir maps && mv work.min.js.map maps/
    perf record -q -k mono -F 999 -g -e cpu-clock:u -o in.data node --perf-prof work.min.js
    perfjit report --json in.data | jq -e '.functions[] | select(.name == "t" and (.file | endswith("/work.min.js")))' >/dev/null || complain "no t"
    perfjit report --json --source-maps maps in.data | jq -e '.functions[] | select(.name == "arrowTotal" and .line == 10)' >/dev/null || complain "no arrowTotal"
    perfjit report --json --source-maps maps --no-source-maps in.data | jq -e '.functions[] | select(.name == "t")' >/dev/null || complain "no t"
    echo '//# sourceMappingURL=gone.map' >>work.min.js
    run --separate-stderr perfjit inject -f -i in.data -o out.data
    exits 0
    says "gone.map: No such file or directory" "--source-maps DIR"
    [ "$(grep -c 'gone.map' <<<"$stderr")" = 1 ] || complain "$stderr"
}

@test "diff of a minified build with the next one, whose letters are others: the same names" {
    for build in base new; do
        mkdir $build
        (
            cd $build || exit
            minified '//# sourceMappingURL=work.min.js.map'
            [ $build = base ] || sed -i 's/\bm(/q(/g; s/\bt=n/z=n/; s/\bt(20000)/z(20000)/' work.min.js
            for i in 1 2; do perfjit record -q -o $i node work.min.js; done
        )
        [ $build = base ] || grep -q 'function q(.*const z=' new/work.min.js || complain "$(cat new/work.min.js)"
    done
    perfjit diff --json=diff.json --base base/1.perf.data base/2.perf.data --new new/1.perf.data new/2.perf.data >/dev/null
    jq -e '[.functions[] | select(.name == "mixNumbers")] | length == 1 and all(.presence == "both" and .file == "work.ts")' diff.json >/dev/null ||
        complain "$(jq -c '.functions[0:5]' diff.json)"
    jq -e '[.functions[] | select(.name | IN("m", "q", "t", "z"))] | length == 0' diff.json >/dev/null || complain "letters are left"
}
