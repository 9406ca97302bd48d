"""waits.py WHAT DATA [WORD...]: what perf script's lines say of a recording with context switches, as a judge of perfjit.

waits [FROM TO]     "number ns" of all waits, from OUT to IN, by thread: "tid number ns" lines, then "all".  FROM, TO: the part of each
                    that is between, in seconds since the first sample
traced              the same by sched:sched_switch alone
latency             "tid ns": the periods of cpu-clock's samples by how many threads ran, as perf 7 counts these
span MARKER NAME    "number ns" of the waits, and of cpu-clock's samples, in the spans of that NAME in the file MARKER
"""
import collections
import os
import re
import subprocess
import sys

what, data, *words = sys.argv[1:]
CLOCK = re.compile(r"\s*(-?\d+)/(-?\d+)\s+(\d+)\.(\d{9}):\s+(\d+)?\s*(\S.*)$")


def lines():
    fields = "pid,tid,time,event" + (",trace" if what == "traced" else ",period")
    kept = f"{data}.{fields}" # a test asks often
    if not os.path.exists(kept):
        command = ["perf", "script", "-i", data, "--show-switch-events", "--show-task-events", "--ns", "-F", fields]
        with open(kept, "w") as out:
            subprocess.run(command, check=True, stdout=out, stderr=subprocess.DEVNULL)
    out = open(kept).read()
    found = []
    for line in out.splitlines():
        match = CLOCK.match(line)
        if match:
            pid, tid, seconds, ns, period, text = match.groups()
            found.append((int(seconds) * 10**9 + int(ns), int(tid), int(period or 0), text))
    assert found, data
    return sorted(found, key=lambda line: line[0])


def first_sample():
    return min(time for time, _, _, text in rows if text.startswith(("cpu-clock", "context-switches")))


def waits():
    gone = {}
    for time, tid, _, text in rows:
        if what == "traced":
            match = re.search(r"prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> .*next_pid=(\d+)", text)
            if not match:
                continue
            prev, state, comes = int(match[1]), match[2], int(match[3])
            if comes in gone:
                yield comes, gone.pop(comes), time
            gone.pop(prev, None)
            if prev and state not in ("X", "Z"):
                gone[prev] = time
        elif text.startswith("PERF_RECORD_SWITCH") and tid > 0:
            if " OUT" in text:
                gone[tid] = time
            elif tid in gone:
                yield tid, gone.pop(tid), time


rows = lines()
if what in ("waits", "traced"):
    first = first_sample() if words else 0
    start, end = (first + round(float(word) * 1e9) for word in words) if words else (0, 1 << 63)
    number, sums = collections.Counter(), collections.Counter()
    for tid, since, until in waits():
        length = min(until, end) - max(since, start)
        if length > 0:
            number[tid] += 1
            sums[tid] += length
    for tid in sorted(sums):
        print(tid, number[tid], sums[tid])
    print("all", sum(number.values()), sum(sums.values()))
elif what == "latency":
    running, sums = 1, collections.Counter()
    for _, tid, period, text in rows:
        if text.startswith("PERF_RECORD_SWITCH"):
            running += -1 if " OUT" in text else 1
        elif text.startswith("PERF_RECORD_EXIT"):
            running -= 1
        elif text.startswith("cpu-clock"):
            sums[tid] += (period + max(running, 1) // 2) // max(running, 1)
    for tid in sorted(sums):
        print(tid, sums[tid])
else:
    spans = []
    for line in open(words[0]):
        begin, end, name = line.rstrip("\n").split(" ", 2)
        if name == words[1]:
            spans.append((int(begin), int(end)))
    spans.sort()
    of = int(re.search(r"-(\d+)\.txt$", words[0])[1])
    parts = [min(until, end) - max(since, begin) for tid, since, until in waits() if tid == of for begin, end in spans if since < end and until > begin]
    samples = [period for time, tid, period, text in rows if tid == of and text.startswith("cpu-clock") and any(begin <= time < end for begin, end in spans)]
    print(sum(parts), len(samples), sum(samples))
