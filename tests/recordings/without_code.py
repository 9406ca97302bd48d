#!/usr/bin/env python3
"""without_code.py DUMP REGEX: in a little-endian jitdump, set the code of functions to zero whose names match.

V8 logs 1.5 MB of its own built-in functions in each process.  A test of names needs where they are, not what is in them.
"""
import re
import struct
import sys

CODE_LOAD, LOAD_NAME = 0, 56  # record id, offset of the name


def main(path, pattern):
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        at = struct.unpack_from("<I", data, 8)[0]
        while at + 16 <= len(data):
            kind, size = struct.unpack_from("<II", data, at)
            if size < 16:
                break
            if kind == CODE_LOAD and at + size <= len(data):
                code_size = struct.unpack_from("<Q", data, at + 40)[0]
                name = bytes(data[at + LOAD_NAME:at + size]).split(b"\0", 1)[0]
                if code_size <= size and re.match(pattern.encode(), name):
                    data[at + size - code_size:at + size] = bytes(code_size)
            at += size
        file.seek(0)
        file.write(data)


main(*sys.argv[1:])
