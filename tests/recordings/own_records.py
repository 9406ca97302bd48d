#!/usr/bin/env python3
"""own_records.py DATA: take out of a recording of the whole machine what processes outside of the recorder's pid namespace did.

The kernel says pid 0 for these.  Their samples, mappings, names and build-ids have no place in what is stored.
"""
import struct
import sys

MMAP, COMM, EXIT, FORK, SAMPLE, MMAP2, NAMESPACES = 1, 3, 4, 7, 9, 10, 16
HEADER_ATTR, HEADER_TRACING_DATA, HEADER_BUILD_ID, COMPRESSED = 64, 66, 67, 81
IDENTIFIER, IP = 1 << 16, 1
BUILD_ID_FEATURE = 2


def text(data, at, end):
    return data[at:end].split(b"\0", 1)[0]


class Records:
    def __init__(self, sample_type):
        self.sample_type = sample_type
        self.names = set()

    def is_own(self, record):
        kind, misc, _ = struct.unpack_from("<IHH", record)
        if kind == HEADER_ATTR:
            (self.sample_type,) = struct.unpack_from("<Q", record, 8 + 24)
        if kind == COMPRESSED:
            sys.exit("own_records.py: compressed records can't be told apart")
        if kind == HEADER_BUILD_ID:
            return self.is_own_name(text(record, 36, len(record)))
        at = 8
        if kind == SAMPLE:
            at += 8 * bool(self.sample_type & IDENTIFIER) + 8 * bool(self.sample_type & IP)
        elif kind not in (MMAP, COMM, EXIT, FORK, MMAP2, NAMESPACES):
            return True
        if struct.unpack_from("<I", record, at)[0] == 0:
            return False
        if kind in (MMAP, MMAP2):
            self.names.add(text(record, 40 if kind == MMAP else 72, len(record)))
        return True

    def is_own_name(self, name):
        return name.startswith(b"[") or name in self.names

    def kept(self, data, at, end):
        kept = []
        while at + 8 <= end:
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == HEADER_TRACING_DATA:
                size += (struct.unpack_from("<I", data, at + 8)[0] + 7) & ~7
                kept.append(data[at : at + size])
            elif self.is_own(data[at : at + size]):
                kept.append(data[at : at + size])
            at += size
        return b"".join(kept)


def own_build_ids(records, data):
    own, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<H", data, at + 6)
        if records.is_own_name(text(data, at + 36, at + size)):
            own.append(data[at : at + size])
        at += size
    return b"".join(own)


def own_file(data):
    _, attr_size, attrs, _, start, size = struct.unpack_from("<QQQQQQ", data, 8)
    features = struct.unpack_from("<Q", data, 72)[0]
    records = Records(struct.unpack_from("<Q", data, attrs + 24)[0])
    kept = records.kept(data, start, start + size)
    gone = size - len(kept)
    table, at, rest = [], start + size, bytearray(data[start + size :])
    for bit in range(64):
        if not features >> bit & 1:
            continue
        offset, length = struct.unpack_from("<QQ", data, at)
        if bit == BUILD_ID_FEATURE:
            own = own_build_ids(records, data[offset : offset + length])
            rest[offset - start - size : offset - start - size + length] = own + bytes(length - len(own))
            length = len(own)
        table.append(struct.pack("<QQ", offset - gone, length))
        at += 16
    rest[: 16 * len(table)] = b"".join(table)
    head = bytearray(data[:start])
    struct.pack_into("<Q", head, 48, len(kept))
    return bytes(head) + kept + bytes(rest)


def own_stream(data):
    return data[:16] + Records(None).kept(data, 16, len(data))


with open(sys.argv[1], "rb") as file:
    whole = file.read()
own = own_stream(whole) if struct.unpack_from("<Q", whole, 8)[0] == 16 else own_file(whole)
with open(sys.argv[1], "wb") as file:
    file.write(own)
