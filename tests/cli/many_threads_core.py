#!/usr/bin/env python3
"""many_threads_core.py N: the core of a process with N threads, each with a stack of its own, on standard output."""
import struct
import sys

PID, CODE, STACKS, PAGE = 4711, 0x400000, 0x10000000, 4096
NT_PRSTATUS, NT_PRPSINFO, PT_LOAD, PT_NOTE = 1, 3, 1, 4
RIP, RSP, WORDS = 16, 19, 27


def note(kind, body):
    return struct.pack("<III8s", 5, len(body), kind, b"CORE") + body + b"\0" * (-len(body) % 4)


def status(thread):
    words = [0] * WORDS
    words[RIP], words[RSP] = CODE + 16, STACKS + 2 * PAGE * thread + 256
    return struct.pack("<12xH18xI76x27Q8x", 6, PID + thread, *words)


def main():
    count = int(sys.argv[1])
    notes = b"".join(note(NT_PRSTATUS, status(thread)) for thread in range(count))
    notes += note(NT_PRPSINFO, struct.pack("<24xI12x16s80x", PID, b"threads"))
    at = 64 + 56 * (count + 2)
    memory = at + len(notes) + -(at + len(notes)) % PAGE
    out = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, 62, 1, 0, 64, 0, 0, 64, 56, count + 2, 0, 0, 0)
    out += struct.pack("<IIQQQQQQ", PT_NOTE, 0, at, 0, 0, len(notes), 0, 4)
    out += struct.pack("<IIQQQQQQ", PT_LOAD, 5, memory, CODE, 0, PAGE, PAGE, PAGE)
    for thread in range(count):
        out += struct.pack("<IIQQQQQQ", PT_LOAD, 6, memory, STACKS + 2 * PAGE * thread, 0, PAGE, PAGE, PAGE)
    sys.stdout.buffer.write((out + notes).ljust(memory, b"\0") + b"\x90" * PAGE)


main()
