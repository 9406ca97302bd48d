#!/usr/bin/env python3
"""known_methods.py DUMP REGEX: of a little-endian jitdump of a JVM, keep the interpreter, the stub that calls it, and the
interpreted functions whose names match.

A JVM has 8 000 methods before main begins.  A test of stacks needs those that stand in them.
"""
import re
import struct
import sys

CODE_LOAD, LOAD_NAME, CLOSE = 0, 56, 3
UNWINDING, UNLOAD, FRAME, FUNCTION, FUNCTION_NAME = 4, 0x504a0001, 0x504a0006, 0x504a0007, 48


def name_at(record, at):
    return bytes(record[at:]).split(b"\0", 1)[0].decode()


def main(path, pattern):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = struct.unpack_from("<I", data, 8)[0]
    kept, group = data[:at], bytearray()
    while at + 16 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        record = data[at:at + size]
        at += size
        if kind == UNWINDING:
            group += record
        elif kind == CODE_LOAD:
            if name_at(record, LOAD_NAME) in ("Interpreter", "call_stub"):
                code_size = struct.unpack_from("<Q", record, 40)[0]
                record[size - code_size:] = bytes(code_size)
                kept += group + record
            group = bytearray()
        elif kind in (FRAME, CLOSE) or (kind == FUNCTION and re.match(pattern, name_at(record, FUNCTION_NAME))):
            kept += record
    with open(path, "wb") as file:
        file.write(kept)


main(*sys.argv[1:])
