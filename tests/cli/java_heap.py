#!/usr/bin/env python3
"""java_heap.py OURS MAP: does the dump name all code that the JVM's perf map has?

OURS has lines "address size name", in decimal, of all code that the dump ever had; MAP is the perf map.  Left out are what is shorter
than the alignment of code, and the buffers in which HotSpot puts code together that runs elsewhere.
"""
import sys

ALIGNMENT = 32
WORKPLACES = ("C1 temporary CodeBuffer", "Compile::scratch_buffer", "adapters", "Signature Handler Temp Buffer")


def main(ours, perf_map):
    known = sorted((int(line.split()[0]), int(line.split()[0]) + int(line.split()[1])) for line in open(ours))
    count, without, stubs = 0, [], set()
    for line in open(perf_map):
        start, size, name = line.rstrip("\n").split(" ", 2)
        at, end = int(start, 16), int(start, 16) + int(size, 16)
        if name in WORKPLACES:
            continue
        count += 1
        stubs.add(name)
        for begin, behind in [(b, e) for b, e in known if b < end and e > at] + [(end, end)]:
            if begin - at >= ALIGNMENT:
                without.append(f"{at:x} {begin - at} of {name}")
            at = max(at, behind)
    print(f"{count} pieces of code, {len(without)} parts without a name")
    print("\n".join(without[:20]))
    return 1 if without or count < 300 or "native signature handlers" not in stubs else 0


sys.exit(main(*sys.argv[1:]))
