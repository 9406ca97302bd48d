"""lossy.py FORM INPUT OUTPUT: a recording that perf makes only of a busy machine, or in another version, from one of one event.

lost        perf lost records and samples
filtered    the user's own filter left samples out
deep        chains of 127 frames for every second sample, of 3 for the others, which end elsewhere
torn        chains of 3 frames, but every fifth sample says that it has a thousand
waited      a second event, offcpu-time of perf 6.16: one sample of 0.7 s, at the address in the file OUTPUT.at, which one of the
            samples has, and of that one's thread
long        attributes of 144 bytes, as of perf 7.2
longer      the same, and the last byte is not 0
timeless    nothing has a time (perf record --no-timestamp)
half-timed  every second sample has no time (perf record -e cpu-clock -e page-faults/time=0/)
no-ids      samples have times, and the other records have none (Linux before 2.6.38)
"""
import struct
import sys

form, source, target = sys.argv[1:4]
data = open(source, "rb").read()
SAMPLE, LOST, LOST_SAMPLES = 9, 2, 13
TIME, SAMPLE_ID_ALL = 4, 1 << 18
IDENTIFIER, CALLCHAIN, RAW = 1 << 16, 1 << 5, 1 << 10
entry, attrs_at = struct.unpack_from("<QQ", data, 16)
data_at, data_bytes = struct.unpack_from("<QQ", data, 40)
bits = list(struct.unpack_from("<4Q", data, 72))
attr = bytearray(data[attrs_at : attrs_at + entry - 16])
ids_at, ids_bytes = struct.unpack_from("<QQ", data, attrs_at + entry - 16)
ids = data[ids_at : ids_at + ids_bytes]
sample_type = struct.unpack_from("<Q", attr, 24)[0]
assert sample_type == 0x107, "IP, TID, TIME, PERIOD"

records, at = [], data_at
while at < data_at + data_bytes:
    size = struct.unpack_from("<H", data, at + 6)[0]
    records.append(data[at : at + size])
    at += size
features, n = {}, 0
for bit in range(256):
    if bits[bit // 64] >> bit % 64 & 1:
        offset, size = struct.unpack_from("<QQ", data, data_at + data_bytes + 16 * n)
        features[bit] = data[offset : offset + size]
        n += 1


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def kind_of(r):
    return struct.unpack_from("<I", r)[0]


samples = [i for i, r in enumerate(records) if kind_of(r) == SAMPLE]
events = [(attr, ids)]
first = records[samples[0]]
trailer = first[16:32]  # pid and tid, time
if form == "lost":
    records[samples[0] : samples[0]] = [
        record(LOST, 0, struct.pack("<QQ", 0, 5000) + trailer),
        record(LOST_SAMPLES, 0, struct.pack("<Q", 7000) + trailer),
    ]
elif form == "filtered":
    records.insert(samples[0], record(LOST_SAMPLES, 1 << 15, struct.pack("<Q", 7000) + trailer))
elif form == "deep":
    struct.pack_into("<Q", attr, 24, sample_type | CALLCHAIN)
    for k, i in enumerate(samples):
        ip = struct.unpack_from("<Q", records[i], 8)[0]
        chain = [ip] * 126 + [0x1000] if k % 2 else [ip, ip, 0x2000]
        body = struct.pack("<QQ", 1 + len(chain), 2**64 - 512) + struct.pack("<%dQ" % len(chain), *chain)
        records[i] = record(SAMPLE, 2, records[i][8:] + body)
elif form == "torn":
    struct.pack_into("<Q", attr, 24, sample_type | CALLCHAIN)
    for k, i in enumerate(samples):
        body = struct.pack("<4Q", 1000 if k % 5 == 0 else 3, 2**64 - 512, struct.unpack_from("<Q", records[i], 8)[0], 0x2000)
        records[i] = record(SAMPLE, 2, records[i][8:] + body)
elif form == "waited":
    waits = bytearray(attr)
    own = struct.unpack_from("<Q", ids)[0]
    struct.pack_into("<Q", attr, 24, sample_type | IDENTIFIER)
    struct.pack_into("<I", waits, 0, 1)
    struct.pack_into("<QQQ", waits, 8, 10, 1, sample_type | IDENTIFIER | CALLCHAIN | RAW)
    flags = struct.unpack_from("<Q", waits, 40)[0]
    struct.pack_into("<Q", waits, 40, flags & ~(1 << 10))
    ip = int(open(target + ".at").read(), 16)
    where = next(records[i] for i in samples if struct.unpack_from("<Q", records[i], 8)[0] == ip)
    for i, r in enumerate(records):
        if kind_of(r) == SAMPLE:
            records[i] = record(SAMPLE, struct.unpack_from("<H", r, 4)[0], struct.pack("<Q", own) + r[8:])
        elif kind_of(r) < 64:
            records[i] = record(kind_of(r), struct.unpack_from("<H", r, 4)[0], r[8:] + struct.pack("<Q", own))
    raw = where[16:24] + struct.pack("<QQQQQ", 700000000, 2, 2**64 - 512, ip, 0) + bytes(4)
    body = struct.pack("<QQII", 0x7777, 0xFFFFFFFF81000000, 0, 0) + where[24:32] + struct.pack("<Q", 1)
    body += struct.pack("<QQQ", 2, 2**64 - 128, 0xFFFFFFFF81000000) + struct.pack("<I", len(raw)) + raw
    records.insert(samples[-1] + 1, record(SAMPLE, 1, body))
    events.append((waits, struct.pack("<Q", 0x7777)))
    desc = struct.pack("<II", 2, len(attr))
    for name, (a, i) in zip((b"cpu-clock", b"offcpu-time"), events):
        name += bytes(8 - len(name) % 8)
        desc += bytes(a) + struct.pack("<II", len(i) // 8, len(name)) + name + i
    features[12] = desc
elif form in ("long", "longer"):
    attr += bytes(144 - len(attr))
    struct.pack_into("<I", attr, 4, 144)
    attr[143] = form == "longer"

elif form == "timeless":
    struct.pack_into("<Q", attr, 24, sample_type & ~TIME)
    for i, r in enumerate(records):
        if kind_of(r) == SAMPLE:
            records[i] = record(SAMPLE, struct.unpack_from("<H", r, 4)[0], r[8:24] + r[32:])
        elif kind_of(r) < 64:
            records[i] = record(kind_of(r), struct.unpack_from("<H", r, 4)[0], r[8:-8])
elif form == "no-ids":
    flags = struct.unpack_from("<Q", attr, 40)[0]
    struct.pack_into("<Q", attr, 40, flags & ~SAMPLE_ID_ALL)
    for i, r in enumerate(records):
        if kind_of(r) < 64 and kind_of(r) != SAMPLE:
            records[i] = record(kind_of(r), struct.unpack_from("<H", r, 4)[0], r[8:-16])
elif form == "half-timed":
    own = struct.unpack_from("<Q", ids)[0]
    untimed = bytearray(attr)
    struct.pack_into("<Q", attr, 24, sample_type | IDENTIFIER)
    struct.pack_into("<Q", untimed, 8, 1)  # task-clock
    struct.pack_into("<Q", untimed, 24, (sample_type | IDENTIFIER) & ~TIME)
    for i, r in enumerate(records):
        misc = struct.unpack_from("<H", r, 4)[0]
        if kind_of(r) == SAMPLE and samples.index(i) % 2:
            records[i] = record(SAMPLE, misc, struct.pack("<Q", 0x7777) + r[8:24] + r[32:])
        elif kind_of(r) == SAMPLE:
            records[i] = record(SAMPLE, misc, struct.pack("<Q", own) + r[8:])
        elif kind_of(r) < 64:
            records[i] = record(kind_of(r), misc, r[8:] + struct.pack("<Q", own))
    events.append((untimed, struct.pack("<Q", 0x7777)))
    del features[12]

out = bytearray(104)
places = []
for a, i in events:
    places.append((len(out), len(i)))
    out += i
attrs_at = len(out)
for (a, i), place in zip(events, places):
    out += bytes(a) + struct.pack("<QQ", *place)
data_at = len(out)
struct.pack_into("<8sQQQQQQ", out, 0, b"PERFILE2", 104, len(attr) + 16, attrs_at, data_at - attrs_at, data_at, sum(map(len, records)))
out += b"".join(records)
table = len(out)
out += bytes(16 * len(features))
bits = [0] * 4
for n, bit in enumerate(sorted(features)):
    bits[bit // 64] |= 1 << bit % 64
    struct.pack_into("<QQ", out, table + 16 * n, len(out), len(features[bit]))
    out += features[bit]
struct.pack_into("<4Q", out, 72, *bits)
open(target, "wb").write(out)
