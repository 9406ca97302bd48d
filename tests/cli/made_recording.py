#!/usr/bin/env python3
"""made_recording.py OUT WORD...: a recording that nobody made, of one process, 4711, in the order of the WORDs.

    map=FILE[:INODE[:MAJOR:MINOR]]  the executable segments of FILE, at their own addresses, with the inode and the device that it
                        has, or with those
    map-id=FILE         the same with its build-id in place of the inode, as perf record --buildid-mmap has it
    below=DIR           from here on, files of map, map-id and at are those below DIR, which was the root of the process
    memory=FROM-TO[:NAME]   memory, //anon or of that NAME
    at=FILE:SYMBOL      a sample in SYMBOL of FILE, one byte behind its begin
    address=ADDRESS     a sample there
    id=FILE             perf record read the build-id that FILE has
    arch=NAME           the machine, instead of x86_64
    wall                the recording knows what time it was: the samples were taken when this runs
"""
import os
import re
import struct
import subprocess
import sys
import time

PID = 4711
MMAP2, COMM, SAMPLE = 10, 3, 9
IP, TID, TIME = 1, 2, 4
SAMPLE_ID_ALL, USE_CLOCKID = 1 << 18, 1 << 25
BUILD_ID, HOSTNAME, ARCH, CLOCK_DATA = 2, 3, 6, 29
USER, EXEC, MMAP_BUILD_ID = 2, 1 << 13, 1 << 14

now = 1000000000
root = ""


def padded(data):
    return data + b"\0" * (-len(data) % 8)


def text(value):
    data = padded(value.encode() + b"\0")
    return struct.pack("<I", len(data)) + data


def record(kind, misc, body):
    global now
    now += 1000
    if kind != SAMPLE:
        body = padded(body) + struct.pack("<IIQ", PID, PID, now)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(address):
    return record(SAMPLE, USER, struct.pack("<QIIQ", address, PID, PID, now + 1000))


def mapping(start, size, offset, name, major=0, minor=0, inode=0):
    head = struct.pack("<IIQQQIIQQII", PID, PID, start, size, offset, major, minor, inode, 0, 5, 2)
    return record(MMAP2, USER, head + name.encode() + b"\0")


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def here(path):
    return root + os.path.abspath(path)


def map_file(path, inode=0, major=None, minor=None):
    status = os.stat(here(path))
    for line in output_of("readelf", "-lW", here(path)).splitlines():
        fields = line.replace("R E", "RE").split()
        if fields[:1] != ["LOAD"] or "E" not in fields[6]:
            continue
        offset, start, size = (int(fields[i], 16) for i in (1, 2, 5))
        skip = start % 4096
        yield mapping(start - skip, (size + skip + 4095) & -4096, offset - skip, os.path.abspath(path),
                      os.major(status.st_dev) if major is None else major, os.minor(status.st_dev) if minor is None else minor,
                      inode or status.st_ino)


def with_build_id(record, path):
    found = id_of(here(path))
    return record[:4] + struct.pack("<H", USER | MMAP_BUILD_ID) + record[6:40] + bytes([len(found), 0, 0, 0]) + found.ljust(20, b"\0") + record[64:]


def address_of(path, symbol):
    for line in output_of("nm", here(path)).splitlines():
        if line.split()[-1] == symbol:
            return int(line.split()[0], 16) + 1
    sys.exit(f"{path}: no {symbol}")


def id_of(path):
    return bytes.fromhex(re.search("Build ID: ([0-9a-f]+)", output_of("readelf", "-nW", path)).group(1))


def build_id(path):
    found = id_of(path)
    name = padded(os.path.abspath(path).encode() + b"\0")
    return struct.pack("<IHHi", 0, USER | 1 << 15, 36 + len(name), -1) + found.ljust(20, b"\0") + bytes([len(found), 0, 0, 0]) + name


def main():
    global root
    features = {ARCH: text("x86_64"), HOSTNAME: text(os.uname().nodename)}
    ids = b""
    records = [record(COMM, EXEC, struct.pack("<II", PID, PID) + b"made\0")]
    for word in sys.argv[2:]:
        kind, _, value = word.partition("=")
        if kind == "map":
            path, *numbers = value.split(":")
            records += map_file(path, *map(int, numbers))
        elif kind == "map-id":
            records += [with_build_id(each, value) for each in map_file(value)]
        elif kind == "below":
            root = os.path.abspath(value)
        elif kind == "memory":
            place, _, name = value.partition(":")
            start, end = (int(each, 16) for each in place.split("-"))
            records.append(mapping(start, end - start, 0, name or "//anon"))
        elif kind == "at":
            records.append(sample(address_of(*value.split(":"))))
        elif kind == "address":
            records.append(sample(int(value, 16)))
        elif kind == "id":
            ids += build_id(value)
        elif kind == "arch":
            features[ARCH] = text(value)
        elif kind == "wall":
            features[CLOCK_DATA] = struct.pack("<IIQQ", 1, 1, time.time_ns(), now)
        else:
            sys.exit(__doc__)
    if ids:
        features[BUILD_ID] = ids
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 4000, IP | TID | TIME, 0, SAMPLE_ID_ALL | USE_CLOCKID)
    attr = attr.ljust(92, b"\0") + struct.pack("<i", 1)
    attr = attr.ljust(128, b"\0") + struct.pack("<QQ", 0, 0)
    data = b"".join(records)
    at = 104 + len(attr)
    bits = sum(1 << bit for bit in features)
    head = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), at, len(data), 0, 0)
    sections, where = b"", at + len(data) + 16 * len(features)
    for _, body in sorted(features.items()):
        sections += struct.pack("<QQ", where, len(body))
        where += len(body)
    with open(sys.argv[1], "wb") as out:
        out.write(head + bits.to_bytes(32, "little") + attr + data + sections + b"".join(body for _, body in sorted(features.items())))


main()
