#!/usr/bin/env python3
"""java_reuse.py SCRIPT TRUTH: is each GuestNN of `perf script -F time,ip,sym` the class that ran then?

A line of TRUTH: from when, until when (CLOCK_MONOTONIC, in ns), and the number of the class.
"""
import bisect
import re
import sys


def main(script, truth):
    ran = [(int(first), int(last), number) for first, last, number in (line.split() for line in open(truth))]
    starts = [first for first, last, number in ran]
    right, wrong, numbers = 0, [], set()
    for block in open(script).read().split("\n\n"):
        time = re.search(r"(\d+)\.(\d{9}):", block)
        names = re.findall(r"Guest(\d\d)\.(?:first(\d\d)|run)\(", block)
        if not time or not names:
            continue
        at = int(time[1]) * 10**9 + int(time[2])
        i = bisect.bisect(starts, at) - 1
        if i < 0 or at > ran[i][1]:
            continue  # between two of them: a class is loaded, or collected
        seen = {number for pair in names for number in pair if number}
        if seen == {ran[i][2]}:
            right += 1
            numbers.add(ran[i][2])
        else:
            wrong.append(f"{at}: {ran[i][2]} ran\n{block}")
    print(f"{right} samples in {len(numbers)} classes are right, {len(wrong)} are wrong")
    print("\n\n".join(wrong[:2]))
    return 1 if wrong or right < 50 or len(numbers) < 20 else 0


sys.exit(main(*sys.argv[1:]))
