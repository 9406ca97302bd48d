# How the forms of forms.bats are recorded, and what is asked of each.
#
# READER is the perf that reads recordings and perfjit's output (tests/new_perf.sh names a newer one).  The perf that records is
# always this machine's.

# ---- Recording: a way leaves in.* and what really ran, in the file `truth` or the files in truth/ ----

# Stored recordings are shorter, and have less of each stack.
rate=4000 stack_bytes=1024 part=1 usual_seconds=0.1 long_seconds=0.2 leaving_seconds=0.5
[ "$RECORDINGS" = live ] || rate=3000 stack_bytes=384 part=4 usual_seconds=0.04 long_seconds=0.12 leaving_seconds=0.15
export part

# record_with TOOL [OPTION...] [-- COMMAND...]: $medium and $graph are the form's; its own event or rate replaces the usual one.
record_with() {
    local tool=(record) options=(-q -N --no-bpf-event "${clock[@]}")
    [ "$1" = record ] || tool=("$1" record)
    [[ " $* " =~ \ (-e|--event)\  ]] || options+=(-e cpu-clock)
    [[ " $* " =~ \ (-F|-c)\  || ${tool[0]} != record ]] || options+=(-F $rate)
    case $graph in
    fp) options+=(-g) ;;
    dwarf) options+=(--call-graph "dwarf,$stack_bytes") ;;
    esac
    case $medium in
    file) perf "${tool[@]}" "${options[@]}" -o in.data "${@:2}" >/dev/null ;;
    stream) perf "${tool[@]}" "${options[@]}" -o - "${@:2}" >in.stream ;;
    esac || return
    [ "$RECORDINGS" != anew ] || [ -z "$is_wide" ] || "$here/../recordings/own_records.py" in.*
}

# churn [OPTION...]: the command that is recorded where the form asks for no other.
churn() {
    echo "$BUILD/producers/address_churn" -s "$seconds" "$@" truth
}

by_run() {
    record_with record "$@" -- $(churn)
}

by_tool() { # sched, trace, ...: it brings its own events
    record_with "$1" -e cpu-clock/period=$((1000000000 / rate))/ "${@:2}" -- $(churn)
}

by_one_processor() {
    record_with record "$@" -- taskset -c 0 $(churn)
}

by_made_apart() {
    record_with record "$@" -- taskset -c 0 $(churn -a)
}

by_main_thread_gone() {
    record_with record "$@" -- $(churn -x)
}

# Until all threads of process PID are there, or it has ended.
await_threads() {
    until [ ! -e "/proc/$1" ] || [ "$(ls "/proc/$1/task" | wc -l)" -ge 3 ]; do sleep 0.01; done
}

# by_attaching OPTION...: to the process, whose pid stands for PID.  It goes on when perf says that it records.
by_attaching() {
    local status=0 pid
    mkfifo go control ack
    $(churn -w go) 3>&- &
    pid=$!
    await_threads "$pid"
    timeout 60 bash -c 'echo ping >control; read -r _ <ack; echo >go' &
    record_with record --control fifo:control,ack "${@/PID/$pid}" || status=$?
    wait && return $status
}

# By attaching, too, and perf ends first: it sees what the process has mapped then.  If that is over, what is left need not name the dump.
by_leaving() {
    local status=0 pid
    mkfifo go control ack
    "$BUILD/producers/address_churn" -s $leaving_seconds -n -w go truth 3>&- &
    pid=$!
    await_threads "$pid"
    # shellcheck disable=SC2016 # for the inner shell
    timeout 60 bash -c 'echo ping >control; read -r _ <ack; echo >go; await_use "$0" $((200 / part)); echo stop >control' "$pid" &
    record_with record --control fifo:control,ack "${@/PID/$pid}" || status=$?
    wait && name_dumps && return $status
}

# by_script SCRIPT [OPTION...]: when all threads run, the script does something to $perf; then the program goes on.  It has no children:
# of these the recording may lack the fork.
by_script() {
    mkfifo go
    # shellcheck disable=SC2016 # for the inner shell
    record_with record "${@:2}" -- bash -c 'perf=$PPID
        (until [ ! -e /proc/$$ ] || [ "$(ls /proc/$$/task | wc -l)" -ge 3 ]; do sleep 0.01; done; eval "$0"; [ ! -e /proc/$$ ] || echo >go) >/dev/null 2>&1 & exec "$@"' \
        "$1" $(churn -n -w go)
}

new_piece='kill -USR2 $perf; until [ ! -e /proc/$perf ] || ls in.data.*; do sleep 0.01; done'

# In two pieces.  The second one begins with what the process has mapped.
by_pieces() {
    by_script "await_use \$\$ $((100 / part)); $new_piece"'; until [ ! -e /proc/$perf ] || [ "$(stat -c %s in.data)" -gt 2000 ]; do sleep 0.01; done' --no-buildid --switch-output "$@"
}

# The remaining pieces need not name the dump.
by_snapshots() {
    by_script "await_use \$\$ $((100 / part)); $new_piece" --overwrite --switch-output "$@" && name_dumps
}

by_overwriting() {
    record_with record --overwrite "$@" -- $(churn -n) && name_dumps
}

# At once: of two dumps it may have lost one's name.
name_dumps() {
    inject_with jitdump-*/jit-*.dump second/jitdump-*/jit-*.dump
}

# inject_with DUMP...: belongs to the recording.
inject_with() {
    printf "$PWD/%s\n" "$@" >given
}

# perf is stopped, and the kernel throws away what its buffers can't hold: those of 200 ms of a processor.
by_losing() {
    local pages=2
    [ "$graph" != dwarf ] || pages=16
    by_script 'kill -STOP $perf; await_use $$ $((200 / part)); kill -CONT $perf; await_use $$ 50' -m $pages "$@" || return
    read_with script in.* --show-lost-events >events.txt 2>/dev/null
    grep -q PERF_RECORD_LOST events.txt || complain "nothing was lost" || return
    read_with script in.* --show-mmap-events 2>/dev/null | grep -oE '[^ ]*jit-[0-9]+\.dump' | grep -v stage/ | sort -u >dumps.txt
    [ "$(wc -l <dumps.txt)" -eq 2 ] || name_dumps # what was lost had one's name
    rm events.txt dumps.txt
}

# perf answers when it has done what it was told.
by_control() {
    mkfifo control ack
    # shellcheck disable=SC2016 # for the inner shell
    by_script 'tell() { echo "$1" >control; read -r _ <ack; }
        for i in 1 2 3; do tell enable; await_use $$ $((50 / part)); tell disable; await_use $$ 20; done; tell enable' \
        -D -1 --control fifo:control,ack "$@"
}

# It answers when the delay is over.
by_delayed() {
    mkfifo control ack
    by_script 'echo ping >control; read -r _ <ack' -D 100 --control fifo:control,ack "$@"
}

# by_lives [OPTION...] -- STEP...
by_lives() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    mkdir -p truth
    record_with record "${options[@]}" -- setarch -R "$lives" truth "${@:2}"
}

by_forks() { # DEPTH
    local depth steps=()
    for ((depth = 0; depth < $1; depth++)); do
        steps+=(life "deep$depth" load 2 run 8)
        ((depth + 1 == $1)) || steps+=(fork "{")
    done
    for ((depth = 1; depth < $1; depth++)); do steps+=("}" wait); done
    by_lives "${@:2}" -- "${steps[@]}"
}

by_exec() {
    by_lives "$@" -- life before load 5 run 40 dumps other exec life after load 8 flip run 40
}

by_pid_again() {
    local pid
    pid=$(free_pid)
    in_own_pids by_lives "$@" -- life parent load 2 run 20 pid "$pid" fork "{" exec life first load 5 run 40 "}" wait \
        dumps other pid "$pid" fork "{" exec life second load 7 flip run 40 "}" wait
}

# in_own_pids COMMAND...: where it may choose pids.
in_own_pids() {
    if [ "$RECORDINGS" = anew ]; then "$@"; return; fi
    export -f perf record_with by_lives complain
    export RECORDINGS medium graph rate stack_bytes lives
    # shellcheck disable=SC2016 # for the inner shell
    clock=${clock[*]} unshare --pid --fork --mount-proc bash -c 'clock=($clock); "$@"' bash "$@"
}

by_containers() {
    mkdir truth
    export -f container
    export lives
    record_with record "$@" -- bash -c \
        'container red life red load 5 run 60 & container blue life blue load 9 run 60 & wait'
    inject_with red/mnt/jitdump-1/jit-1.dump blue/mnt/jitdump-1/jit-1.dump
}

# ---- Reading ----

# In a subshell.  As helper.bash's perf: without a look at processes that live in other mount namespaces, where the C library has other symbols.
reader() {
    local as=()
    export HOME=$BATS_TEST_TMPDIR/home
    if [ "$RECORDINGS" = stored ]; then
        case "$1 ${4:-}" in
        script* | report* | *timehist) set -- "$@" --symfs "$recorded_root" ;;
        lock*) set -- "$@" --kallsyms "$recorded_root/kernel_symbols" ;;
        esac
    else
        [[ $1 != @(script|report) || ! -r ${KERNEL_SYMBOLS:-} ]] || set -- "$1" --kallsyms "$KERNEL_SYMBOLS" "${@:2}"
        [ "$EUID" != 0 ] || as=(unshare --pid --fork --mount-proc)
    fi
    exec "${as[@]}" "${READER:-perf}" "$@"
}

# read_with COMMAND DATA [OPTION...]: a name that ends in .stream is read as a stream.  A sample of a thread that was ending has
# the number -1 for it.  perf shows it with a sign or without, depending on what it read before.
read_with() {
    case $2 in
    *.stream) reader "$1" -i - "${@:3}" <"$2" ;;
    *) reader "$1" -i "$2" "${@:3}" ;;
    esac | sed 's/:4294967295\>/:-1/'
    return "${PIPESTATUS[0]}"
}

# The first lines of each nanosecond, in their order.
by_first_line() {
    awk 'BEGIN { RS = ""; ORS = "\n\n" }
         function first(text) { return substr(text, 1, index(text "\n", "\n")) }
         function flush(i, j, text) {
             for (i = 2; i <= count; i++) {
                 text = held[i]
                 for (j = i - 1; j > 0 && first(held[j]) > first(text); j--) held[j + 1] = held[j]
                 held[j + 1] = text
             }
             for (i = 1; i <= count; i++) print held[i]
             count = 0
         }
         { match($0, / [0-9]+\.[0-9]+: /); now = substr($0, RSTART, RLENGTH); if (now != time) flush(); time = now; held[++count] = $0 }
         END { flush() }'
}

# Each sample with all its frames.
frames_of() {
    local frames=(read_with script "$1" "${only[@]}" -F +pid,+ip,+sym,+symoff,+dso --ns --no-inline --show-lost-events --show-switch-events)
    if [ "$ties" != yes ]; then
        "${frames[@]}" 2>"said.$1"
    else
        "${frames[@]}" 2>"said.$1" | by_first_line
        return "${PIPESTATUS[0]}"
    fi
}

# The address alone that was sampled.  In a call chain perf 6.1 prints addresses relative to the file.
leaves_of() {
    read_with script "$1" -G -F comm,pid,tid,time,ip,sym --ns --no-inline 2>>said.txt
}

# Rows of perf report but for JIT code: before it is known it belongs to memory, or to the file that is mapped there.  With -F alone
# perf 6.1 now and then prints a row in two.  By process: a row of which another test's program has the first sample --pid leaves out.
rows_of() {
    read_with report "$1" "${only[@]}" --stdio --no-children -g none -s pid,comm,dso,sym -F sample,pid,comm,dso,sym --no-inline 2>>said.txt |
        sed -E "s/ +/ /g; /^# ?(\.|\(|$)|^$/d; /\[JIT\] tid|\/\/anon| anon \[|memfd:|\[anon:| loops |\[unknown\]|\[unloaded JIT code\]| jit-.*\.so/d
            ${lossy:+/ \[\.\] 0x[0-9a-f]+ *$/d}" | sort
}

# ---- Judging: each says on stderr what is wrong ----

# All lines are as before but for names of the JIT's.
check_lines() { # IN OUT
    frames_of "$1" >before.txt || complain "perf can't read $1" || return
    frames_of "$2" >after.txt || complain "perf can't read $2" || return
    [ "$graph" != dwarf ] || names_of after.txt >perfs.txt
    if [ -s "said.$2" ]; then
        sed "s/$1/$2/g" "said.$1" | grep -vxFf - "said.$2" >differences.txt
        [ ! -s differences.txt ] || complain "perf says: $(cat differences.txt)" || return
    fi
    awk -v other=after.txt -v any_file="$lossy" -f "$here/only_names_came.awk" before.txt >differences.txt ||
        complain "other lines of perf script differ (< before, > after): $(cat differences.txt)"
}

check_rows() { # IN OUT
    rows_of "$1" >before.txt
    rows_of "$2" >after.txt
    [ -s before.txt ] || complain "perf report says nothing of $1" || return
    diff before.txt after.txt >differences.txt || complain "other rows of perf report: $(head -10 differences.txt)"
}

# Callers of what perf sched timehist shows may be the JIT's: with perf 7 they were [unknown], or their chain ended there.
check_timehist() { # IN OUT: what it printed of them is in before.txt and after.txt
    nm $(elf_files "$2".dso) 2>/dev/null | sed -nE 's/^[0-9a-f]+ [tT] //p' | sort -u >names.txt
    awk -v other=after.txt -v names=names.txt -f "$here/only_callers_came.awk" before.txt >differences.txt
}

# Other output that must be the same to the letter: $also has a perf command in each element.  The lines of perf trace go to
# stderr, and its call chains are in lines that begin far to the right; these are check_lines' affair.  A tip, any, ends perf
# report.  The counts of perf lock contention, by the caller alone.  It makes a row for each call chain.  Chains in which JIT
# frames are unwound now are no longer one: two of a caller's waits in one row are then in two.
by_caller() {
    awk '$1 ~ /^[0-9]+$/ { waits[$(NF - 1) " " $NF] += $1 } END { for (caller in waits) print caller, waits[caller] }' | sort
}

check_also() { # IN OUT
    local command tool rest bad=0
    for command in "${also[@]}"; do
        read -r tool rest <<<"$command"
        [ "$rest" != timehist ] || rest="timehist ${only[*]}"
        # shellcheck disable=SC2086
        read_with "$tool" "$1" $rest 2>&1 | sed -E '/^ {35}|^# \(/d' >before.txt
        # shellcheck disable=SC2086
        read_with "$tool" "$2" $rest 2>&1 | sed -E '/^ {35}|^# \(/d' >after.txt
        [ -s before.txt ] || complain "perf $command says nothing of $1" || bad=1
        case $rest in
        timehist*) check_timehist "$1" "$2" || bad=1 ;;
        contention*) diff <(by_caller <before.txt) <(by_caller <after.txt) >differences.txt || bad=1 ;;
        *) diff before.txt after.txt >differences.txt || bad=1 ;;
        esac
        [ ! -s differences.txt ] || complain "perf $command: $(grep -c '^[<>]' differences.txt) lines differ: $(head -10 differences.txt)"
    done
    return $bad
}

# scored TRUTH [OPTION...] <LINES: counts what truth_check says in $judged and $wrong.  A recording that lacks records may lack
# the record of a file that was mapped over code.  A reader then can't know that the file's code ran.
scored() {
    local score files=0
    score=$("$BUILD/producers/truth_check" "${@:2}" "$1" 2>disagreements.txt) || complain "$(cat disagreements.txt)" || return
    [[ $score =~ ^samples\ ([0-9]+)\ right\ ([0-9]+)\ wrong\ ([0-9]+)\ missing\ ([0-9]+)(\ outside\ ([0-9]+)\ stray\ ([0-9]+))? ]]
    judged=$((judged + BASH_REMATCH[1]))
    [ "$lossy" != yes ] || files=$(awk '$1 ~ /\.file$/ { n += $7 } END { print n + 0 }' <<<"$score")
    [ "${BASH_REMATCH[1]}" -eq $((BASH_REMATCH[2] + files)) ] && [ "${BASH_REMATCH[7]:-0}" -eq 0 ] && return
    complain "${1##*/}: ${score%%$'\n'*}: $(head -3 disagreements.txt)"
}

# The names by the log of what ran.
check_names() { # OUT
    local bad=0 life
    leaves_of "$1" >leaves.txt || complain "perf can't read $1" || return
    if [ ! -d truth ]; then
        scored truth "${margin[@]}" < <(sed -nE 's/^.* ([0-9]+\/[0-9]+ )/ \1/p' leaves.txt)
        return
    fi
    for life in truth/*; do
        awk -v life="${life#*/}" '$1 == life { sub(/^.* [0-9]+\/[0-9]+ /, ""); print }' leaves.txt >life.txt
        [ "$(wc -l <life.txt)" -ge 5 ] || complain "too few samples of ${life#*/}" || bad=1
        scored "$life" <life.txt || bad=1
    done
    return $bad
}

# Frames of functions, by name: images and so addresses and offsets in JIT code are others.
names_of() {
    sed -E 's/^[ \t]+([0-9a-f]{16,}|[0-9a-f]{1,15}) (.*)\+0x[0-9a-f]+ \(.*jit-[^()]*\)$/ 0 \2/' "$1"
}

# The input for the first sample in differences.txt, in IN: the last mappings before it, its registers, and its copy of the stack.
what_it_had() {
    local time
    time=$(sed -nE 's/^.* ([0-9]+)\.([0-9]{9}): .*/\1\2/p' differences.txt | head -1)
    read_with script "$1" -D 2>/dev/null |
        awk -v time="$time" '
            / PERF_RECORD_MMAP2 / { maps[++count] = $0 }
            /: event: / { block = "" }
            { block = block $0 "\n" }
            !at && ($1 == time || $2 == time) && / PERF_RECORD_SAMPLE/ { at = NR; for (i = count > 40 ? count - 40 : 1; i <= count; i++) print maps[i]; printf "%s", block; next }
            at && NF == 0 { exit }
            at { print }'
}

# Stacks that perfjit itself unwinds have no frame less than perf's stacks of OUT, whose names are in perfs.txt, and the same
# names.
check_unwound() { # IN OUT
    local status=0 out=unwound.${2#out.}
    inject "$1" "$out" "${inject_options[@]}" || status=$?
    [ $status -eq 0 ] || [ "$status$is_wide" = 3yes ] || complain "perfjit inject ends with $status: $(cat inject.txt)" || return
    frames_of "$out" >unwound.txt || complain "perf can't read $out" || return
    names_of unwound.txt >ours.txt
    awk -v ours=ours.txt "${rough[@]}" -f "$here/no_frame_lost.awk" perfs.txt >differences.txt ||
        complain "chains: $(head -40 differences.txt; what_it_had "$1"; cat inject.txt)" || return
    [ -z "${FIGURES:-}" ] || sed "s/^# /# $medium: /" differences.txt >&3
    check_names "$out"
}

# check_form IN OUT
check_form() {
    local bad=0
    check_lines "$1" "$2" || bad=1
    # One stored file of each form is reported.
    [[ $RECORDINGS$1 == stored*.stream ]] || check_rows "$1" "$2" || bad=1
    [[ $1 == *.stream ]] || check_also "$1" "$2" || bad=1
    check_names "$2" || bad=1
    return $bad
}

# ---- A line of the table ----

clock=(-k mono) margin=(-m 1) rough=()

require_two_processors() {
    [ "$RECORDINGS" != stored ] || return 0
    taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null || skip "processors 0 and 1 are not both to be used"
}

require_tracepoints() {
    [ "$RECORDINGS" != stored ] || return 0
    record "$BATS_TEST_TMPDIR/try.data" -e sched:sched_switch true 2>/dev/null || skip "no tracepoints here"
}

# For forms that record a part of the samples, or of the time.
long() {
    seconds=$long_seconds
}

wide() {
    is_wide=yes
}

# perf trace has the numbers of system calls from the kernel that runs: of a stored recording perf script says what they were.
also() {
    also=("$@")
    [ "$RECORDINGS/$1" != stored/trace ] || also=()
}

# If perf loses records or overwrites them, the record of JIT code's memory may be gone.  For perf the memory is then the file
# that was mapped there before, ld.so.cache, say (perf records such mappings, too, if it copies stacks).
lossy() {
    lossy=yes
}

# If perf reads several files side by side, their records of one nanosecond come in any order.
ties() {
    ties=yes
}

# Samples have perf's clock then, and perfjit has to find out how far it is from the dump's.
own_clock() {
    clock=() margin=(-p -m 100) rough=(-v rough=3)
}

# forms_of ALL: which of the forms are judged now.  make check-live has one of the four, and the next row another.  Two of the four are
# stored of each row of forms.bats, each kind of chain and each kind of file once; of each row of other_forms.bats one form.
forms_of() {
    local two=('file/fp stream/dwarf' 'file/dwarf stream/fp') one=(file/fp stream/dwarf file/dwarf stream/fp)
    local odd=$((${#BATS_TEST_DESCRIPTION} % 2)) all
    case $1/$RECORDINGS in
    files/live) all='file/fp file/dwarf' ;;
    files/*) all=file/dwarf ;;
    chains/*) all=file/fp ;;
    mixed/*) all='file/dwarf stream/fp' ;;
    plain/*) all='file/none file/fp file/dwarf stream/none stream/fp stream/dwarf' ;;
    all/live) [ -n "${BRIEF:-}" ] && all=${one[BATS_TEST_NUMBER % 4]} || all='file/fp file/dwarf stream/fp stream/dwarf' ;;
    all/*) all=${two[odd]} ;;
    esac
    all=($all)
    [[ $RECORDINGS = live || $BATS_TEST_FILENAME != */other_forms.bats ]] || all=(${all[BATS_TEST_NUMBER % ${#all[@]}]})
    echo "${all[@]}"
}

# name_form: to $name, of its stored recording, by the test's name.
name_form() {
    name=${BATS_TEST_DESCRIPTION#forms: }-$medium-$graph
    name=${name//[^A-Za-z0-9]/ }
    read -ra name <<<"$name"
    name=${name[*]}
    name=${name// /-}
}

# perf lock asks for the kernel's symbols, of which those of the machine that reads are none.
prepare_reading() {
    use_programs
    printf '%s\n' 'ffffffff80000000 T _text' 'ffffffff81000000 T _stext' 'ffffffff83000000 T _etext' >"$recorded_root/kernel_symbols"
}

# form FORMS WAY [OPTION...]: recorded one after the other, and judged meanwhile.
form() {
    local form forms medium graph bad=0 also=("${also[@]}")
    forms=$(forms_of "$1")
    [ "$RECORDINGS" != stored ] || prepare_reading
    for form in $forms; do
        medium=${form%/*} graph=${form#*/}
        mkdir -p "$BATS_TEST_TMPDIR/$form"
        (cd "$BATS_TEST_TMPDIR/$form" && check_recorded "${@:2}" 2>../why.$graph && touch good) &
    done
    wait
    for form in $forms; do
        [ -e "$BATS_TEST_TMPDIR/$form/good" ] || complain "$form: $(head -300 "$BATS_TEST_TMPDIR/${form%/*}/why.${form#*/}")" || bad=1
    done
    return $bad
}

# recorded_by WAY [OPTION...]
recorded_by() {
    mkdir -p other
    "by_$1" "${@:2}"
}

# process_of DUMP IN: whose it is by its name, or, of a container, by that of its folder, which its process is called.
process_of() {
    local folder=${1%/mnt/*} name=${1##*/jit-}
    if [ "$folder" = "$1" ]; then
        echo "${name%.dump}"
    else
        leaves_of "$2" | sed -nE "s,^ *${folder##*/} +([0-9]+)/[0-9]+ .*,\\1,p" | sort -u
    fi
}

check_recorded() { # WAY [OPTION...]
    local seconds=${seconds:-$usual_seconds} in bad=0 judged=0 inject_options=() only=() recording name dump stored_below=
    [ "$RECORDINGS" != stored ] || stored_below=$recorded_root
    export PERFJIT=dump JITDUMPDIR=$PWD
    exec {recording}>"$BATS_TEST_TMPDIR/recording"
    [ "$RECORDINGS" = stored ] || flock $recording
    name_form
    recording "$name" recorded_by "$@" || complain "could not be recorded" || return
    flock -u $recording
    # As if of another day: the clocks of the machine that reads are no evidence, not even those of the machine that recorded.
    [ "$RECORDINGS" != stored ] || touch -d '2001-01-01' in.*
    [ -z "$is_wide" ] || only=(--pid "$(awk '$1 == "run" && !seen[$2]++ { printf all++ ? "," $2 : $2 }' truth)")
    for in in in.*; do
        inject_options=()
        [ ! -e given ] || while read -r dump; do inject_options+=(--jitdump "$(process_of "$dump" "$in"):$stored_below$dump"); done <given
        check_injected "$in" "out.${in#in.}" || bad=1
    done
    [ $judged -ge 100 ] || complain "only $judged samples to judge" || bad=1
    [ -z "${FIGURES:-}" ] || echo "# $medium, $graph: $judged samples judged" >&3
    return $bad
}

# inject IN OUT [OPTION...]: at the home of the perf that reads, in whose cache images may be needed.
inject() {
    local -x HOME=$BATS_TEST_TMPDIR/home
    mkdir -p "$HOME"
    case $1 in
    *.stream) perfjit inject -i - -o - --dso-dir out.dso "${@:3}" <"$1" >"$2" 2>inject.txt ;;
    *) perfjit inject -i "$1" -o "$2" "${@:3}" 2>inject.txt ;;
    esac
}

# A recording in which no JIT ran needs no dump.  Stacks are unwound by perf, as in the recording itself, and last by perfjit.
check_injected() { # IN OUT
    local status=0 bad=0
    inject "$1" "$2" --stacks keep "${inject_options[@]}" || status=$?
    if [ $status -eq 1 ] && grep -qE 'no jitdump found|is not in this recording' inject.txt; then
        check_names "$1"
        return
    fi
    [ $status -eq 0 ] || [ "$status$is_wide" = 3yes ] || complain "perfjit inject ends with $status: $(cat inject.txt)" || bad=1
    [ ! -e "$2" ] || check_form "$1" "$2" || bad=1
    [ ! -e "$2" ] || [ "$graph" != dwarf ] || check_unwound "$1" "$2" || bad=1
    return $bad
}
