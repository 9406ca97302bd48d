#!/usr/bin/env python3
"""riscv64_rows.py ROWS SYMBOLS STOPS: whether the unwind tables of riscv64_frames say what was true.

ROWS is what `readelf --debug-dump=frames-interp` says of the ELF file, SYMBOLS `nm -S` of it, and STOPS what the program printed.  Prints
"STOPS stops at PLACES of INSTRUCTIONS instructions, VALUES values, FAULTS faults in FUNCTIONS functions"."""
import re
import sys

NAMES = {"ra": 1, "sp": 2, "gp": 3, "tp": 4, "t0": 5, "t1": 6, "t2": 7, "s0": 8, "fp": 8, "s1": 9}
NAMES.update({f"a{i}": 10 + i for i in range(8)})
NAMES.update({f"s{i}": 16 + i for i in range(2, 12)})
NAMES.update({f"t{i}": 25 + i for i in range(3, 7)})
NAMES.update({f"fs{i}": 40 + i for i in range(2)})
NAMES.update({f"fs{i}": 48 + i for i in range(2, 12)})
NAMES.update({f"ft{i}": 32 + i for i in range(8)})
NAMES.update({f"fa{i}": 42 + i for i in range(8)})
NAMES.update({f"ft{i}": 52 + i for i in range(8, 12)})


def number(name):
    return NAMES[name] if name in NAMES else int(re.fullmatch(r"[rfx](\d+)", name).group(1))


def read_rows(path):
    """[(pc, (register, offset), {register: rule})], ascending."""
    rows, columns = [], None
    for line in open(path):
        words = line.split()
        if words[:2] == ["LOC", "CFA"]:
            columns = words[2:]
        elif not words or " FDE " in line or " CIE " in line:
            ends = re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            columns = None
            if ends:
                rows.append((int(ends.group(1), 16), ("sp", 0), {}))
        elif columns is not None and re.match(r"[0-9a-f]{16} ", line):
            base = re.fullmatch(r"(\w+)([+-]\d+)", words[1])
            rules = {number(c): rule for c, rule in zip(columns, words[2:]) if rule != "u"}
            rows.append((int(words[0], 16), (base.group(1), int(base.group(2))), rules))
    # A FDE's first row says nothing until its own first row replaces it.
    return sorted(rows, key=lambda row: row[0])


def main():
    rows = read_rows(sys.argv[1])
    starts, instructions = {}, 0
    for line in open(sys.argv[2]):
        addr, size, _, name = line.split()
        starts[name] = int(addr, 16)
        instructions += int(size, 16) // 4
    stops, values, faults, places, functions = 0, 0, 0, set(), set()
    for line in open(sys.argv[3]):
        if not line.startswith("stop "):
            continue
        truth, now, stack = (dict(pair.split("=") for pair in part.split() if "=" in pair)
                             for part in line.split("|"))
        _, name, offset = line.split()[:3]
        pc = starts[name] + int(offset)
        row = [r for r in rows if r[0] <= pc][-1]
        places.add(pc)
        stops += 1
        base, by = row[1]
        cfa = int(now[f"r{number(base)}"]) + by
        wanted = {1: truth["ra"]}
        wanted.update({int(key[1:]): value for key, value in truth.items() if key[0] == "r" and key != "ra"})
        wrong = cfa != int(truth["cfa"])
        values += 1
        for reg, value in wanted.items():
            rule = row[2].get(reg)
            at = re.fullmatch(r"c([+-]\d+)", rule) if rule else None
            found = stack.get(str(cfa + int(at.group(1)))) if at else now[f"r{reg}"]
            values += 1
            wrong |= found != value
        if wrong:
            faults += 1
            functions.add(name)
    print(f"{stops} stops at {len(places)} of {instructions} instructions, {values} values, {faults} faults in {len(functions)} functions")


main()
