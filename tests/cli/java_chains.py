#!/usr/bin/env python3
"""java_chains.py SCRIPT TRUTH [ELF MAPS]: do the chains of `perf script -F ip,sym` in SCRIPT equal those that the program logged?

A line of TRUTH is who called spin, as Thread.getStackTrace has it: "Class.method:line Class.method:line ...", down to main or
Thread.run.  Each stack with spin in it must be one of these, but for a tenth, of which the copy
may end early; with ELF, which perfjit inject wrote, in its lines too.  Without ELF the
methods count alone, compiled and inlined ones among them.  MAPS has perf's lines of ELF's mappings: perf 6.12 prints addresses in the
process, perf 6.1 those in the file.
"""
import re
import subprocess
import sys

METHOD = re.compile(r"(?:\S+ )?([\w.$<>]+\.[\w$<>]+)\(.*\) (?:\[(?:interpreted|tier\d)\]|\(inlined\))$")


MAP = re.compile(r"\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) ")


def in_file(address, maps):
    for start, size, offset in maps:
        if start <= address < start + size:
            return address - start + offset
    return address


def lines_of(elf, maps, addresses):
    """The line of each address; 0: none."""
    maps = [[int(number, 16) for number in MAP.search(line).groups()] for line in open(maps)]
    asked = "\n".join(f"{in_file(int(address, 16), maps):x}" for address in addresses)
    said = subprocess.run(["addr2line", "-e", elf], input=asked, capture_output=True, text=True, check=True).stdout
    return {address: int((re.search(r":(\d+)", line) or [0, 0])[1]) for address, line in zip(addresses, said.split("\n"))}


def main(script, truth, elf=None, maps=None):
    stacks = [[line.split(None, 1) for line in block.split("\n") if line.strip()] for block in open(script).read().split("\n\n")]
    line_at = lines_of(elf, maps, sorted({frame[0] for stack in stacks for frame in stack})) if elf else {}
    strip = (lambda text: text) if elf else (lambda text: re.sub(r":\d+", "", text))
    wanted = {strip(line.strip()) for line in open(truth)}
    good, cut, interpreted, wrong = 0, 0, 0, []
    for stack in stacks:
        first = next((i for i, frame in enumerate(stack) if "Chains.spin(" in frame[1]), None)
        if first is None:
            continue
        chain = []
        for address, name in stack[first + 1:]:
            method = METHOD.match(name)
            if not method:
                break
            chain.append(f"{method[1]}:{line_at[address]}" if elf else method[1])
        interpreted += any("[interpreted]" in frame[1] for frame in stack)
        text = " ".join(chain)
        if text in wanted:
            good += 1
        elif chain and any(line.startswith(text + " ") for line in wanted):
            cut += 1
        else:
            wrong.append("\n".join(" ".join(frame) for frame in stack))
    print(f"{good} chains are the program's, {cut} end early, {len(wrong)} are not; {interpreted} with interpreted methods")
    print("\n\n".join(wrong[:2]))
    return 1 if wrong or good < 20 or cut * 10 > good else 0


sys.exit(main(*sys.argv[1:]))
