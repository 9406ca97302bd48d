#!/usr/bin/env python3
"""many_stacks.py OUT STACKS THREADS SECONDS: a recording that nobody made, and OUT.map, the perf map of its process, 4711.

Each of STACKS stacks is another one, and they share little but their beginnings.  The functions are JavaScript's, in several tiers.
"""
import random
import struct
import sys

PID, FUNCTIONS, CODE, FIRST = 4711, 6000, 0x400000, 1000000000
COMM, MMAP2, SAMPLE, USER, EXEC = 3, 10, 9, 2, 1 << 13
IP, TID, TIME, CALLCHAIN, PERIOD = 1, 2, 4, 1 << 5, 1 << 8
CONTEXT_USER, CONTEXT_KERNEL, KERNEL = 2**64 - 512, 2**64 - 128, 0xFFFFFFFF81000000


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def of_thread(kind, misc, tid, body, text):
    text = text.encode() + b"\0"
    return record(kind, misc, body + text + b"\0" * (-len(text) % 8) + struct.pack("<IIQ", PID, PID + tid, FIRST))


def stack(chance):
    """Numbers of functions, the outermost first; callers have few callees."""
    found, at = [], 0
    for depth in range(8 + chance.randrange(16)):
        at = (at * 31 + chance.randrange(2 if depth < 8 else 3 if depth < 14 else 4) * 977 + depth) % 1000003
        found.append(at % FUNCTIONS)
    return tuple(found)


def main():
    out, stacks, threads, seconds = sys.argv[1], *map(int, sys.argv[2:])
    chance, seen, records = random.Random(7), set(), []
    with open(out + ".map", "w") as code:
        for i in range(FUNCTIONS):
            file = "" if i % 10 else " /app/" + ("node_modules/" if i % 3 else "") + f"file{i}.js:{i + 1}:1"
            code.write(f"{CODE + i * 256:x} 100 {'Builtin:' if i % 11 == 5 else 'JS:' + '*~^'[i % 3]}com.example.package{i % 40}.function{i}{file}\n")
    for tid in range(threads):
        records.append(of_thread(COMM, USER | (0 if tid else EXEC), tid, struct.pack("<II", PID, PID + tid), f"worker {tid}"))
    code = struct.pack("<IIQQQIIQQII", PID, PID, CODE, FUNCTIONS * 256, 0, 0, 0, 0, 0, 5, 2)
    records.append(of_thread(MMAP2, USER, 0, code, "//anon"))
    while len(seen) < stacks:
        one = stack(chance)
        seen.add(one)
        addresses = [CODE + number * 256 + 16 for number in reversed(one)]
        if chance.randrange(9) == 0:
            addresses = [CONTEXT_KERNEL, KERNEL + chance.randrange(99) * 4096, CONTEXT_USER] + addresses
        else:
            addresses = [CONTEXT_USER] + addresses
        time = FIRST + len(seen) * seconds * 10**9 // stacks
        tid = PID + chance.randrange(threads)
        ip = addresses[1]
        body = struct.pack("<QIIQQQ", ip, PID, tid, time, 1000000 + chance.randrange(1000), len(addresses)) + struct.pack(f"<{len(addresses)}Q", *addresses)
        records.append(record(SAMPLE, 1 if addresses[0] == CONTEXT_KERNEL else USER, body))
    # cpu-clock, whose periods are ns
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 4000, IP | TID | TIME | PERIOD | CALLCHAIN, 0, 1 << 18 | 1 << 25).ljust(92, b"\0") + struct.pack("<i", 1)
    attr = attr.ljust(128, b"\0") + struct.pack("<QQ", 0, 0)
    data = b"".join(records)
    with open(out, "wb") as file:
        file.write(struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), 104 + len(attr), len(data), 0, 0).ljust(104, b"\0") + attr + data)


main()
