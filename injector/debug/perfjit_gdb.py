"""What perfjit gdb adds to gdb: JIT code's ELF files, an unwinder for code without tables, and the
command perfjit-refresh.

The table (perfjit symbols --json) says which file is where, where functions begin, and where code
without tables may be.  gdb's own unwinders are asked everywhere else.
"""

import bisect
import json
import os
import subprocess
import zlib

import gdb
from gdb.unwinder import Unwinder

MOST_STAGE_BYTES = 4 << 20
PAGE_BYTES = 4096


class Table:
    """The last table that was loaded."""

    def __init__(self):
        self.images = {}  # by file and base: where its text begins
        self.starts, self.functions = [], []
        self.region_starts, self.regions = [], []
        self.dumps = {}  # by path: size and time when it was read
        self.live = False

    def take(self, text):
        read = json.loads(text, strict=False)
        self.functions = sorted(read["functions"])
        self.starts = [function[0] for function in self.functions]
        self.regions = sorted(read["regions"])
        self.region_starts = [region[0] for region in self.regions]
        self.live = read["live"]
        self.dumps = {path: stamp_of(path) for path in read["dumps"]}
        return read["images"]

    def function_at(self, pc):
        return found(self.starts, self.functions, pc)

    def begins_at(self, pc):
        function = self.function_at(pc)
        return function is not None and function[0] == pc

    def code_without_table(self, pc):
        """Where the code at pc begins and ends, if it has no table, and whether it is one function."""
        function = self.function_at(pc)
        if function:
            return None if function[2] else (function[0], function[1], True)
        region = found(self.region_starts, self.regions, pc)
        if not region:
            return None
        distance = region[2]
        function = self.function_at(pc - distance) if distance else None
        if function:
            return function[0] + distance, function[1] + distance, True
        return region[0], region[1], False


def found(starts, items, pc):
    at = bisect.bisect_right(starts, pc) - 1
    return items[at] if at >= 0 and pc < items[at][1] else None


def stamp_of(path):
    """What changes when the dump grows.  libjitdump's newest records are in a file of at most 1.25 MiB
    beside it (jitdump/dump/dump_place.h), which is written by memory: its size and time stay."""
    stamps = []
    stage = os.path.join(os.path.dirname(path), "stage", os.path.basename(path))
    for name in (path, stage):
        try:
            status = os.stat(name)
            stamps.append((status.st_size, status.st_mtime_ns))
            if name == stage and status.st_size <= MOST_STAGE_BYTES:
                with open(name, "rb") as file:
                    stamps.append(zlib.crc32(file.read()))
        except OSError:
            stamps.append(None)
    return stamps


table = Table()


# ---- Symbols ----


def places_of(image):
    """Where the file's functions are, as bases.  What is mapped from a file has that one's symbols
    there, and ours where the process has copied it."""
    if not image["mapped"]:
        return [image["base"]]
    return [
        image["base"] + distance
        for start, end, distance in table.regions
        if distance and start < image["end"] + distance and image["start"] + distance < end
    ]


def load(images):
    """Symbols of what is alive now; those of the rest are taken away."""
    wanted = {(image["file"], base): image for image in images for base in places_of(image)}
    for place in [place for place in table.images if place not in wanted]:
        start = table.images.pop(place)
        gdb.execute("remove-symbol-file -a 0x%x" % start, False, True)
    for (file, base), image in wanted.items():
        if (file, base) not in table.images:
            gdb.execute('add-symbol-file "%s" -o 0x%x' % (file, base), False, True)
            table.images[file, base] = image["start"] - image["base"] + base


class Refresh(gdb.Command):
    """Read what the process has compiled since, and what it has freed.
Runs by itself when the process stops and its dump has grown."""

    def __init__(self):
        super().__init__("perfjit-refresh", gdb.COMMAND_FILES)

    def invoke(self, argument, from_tty):
        del argument
        if not table.live:
            print("perfjit: a core does not change")
            return
        refresh(from_tty)


def refresh(tells):
    """Returns whether there is a newer table."""
    made = subprocess.run(REFRESH, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if made.returncode not in (0, 3):
        print("perfjit: %s" % made.stderr.decode(errors="replace").strip())
        return False
    load(table.take(made.stdout.decode(errors="surrogateescape")))
    gdb.invalidate_cached_frames()
    if tells:
        print("perfjit: %d functions" % len(table.functions))
    return True


def on_stop(event):
    del event
    if table.live and any(stamp_of(path) != stamp for path, stamp in table.dumps.items()):
        refresh(False)


# ---- Frames ----


class FrameId:
    """What makes a frame the same one from stop to stop: where it ends, and its function."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


def number(value):
    return int(value) & (2**64 - 1)


def word(addr):
    return int.from_bytes(bytes(gdb.selected_inferior().read_memory(addr, 8)), "little")


def memory(addr, count):
    return bytes(gdb.selected_inferior().read_memory(addr, count))


def memory_before(end, count):
    """What can be read of the bytes before end: the page before may not be there."""
    in_page = min(count, end % PAGE_BYTES)
    try:
        return memory(end - count, count) if end >= count else b""
    except gdb.MemoryError:
        return memory(end - in_page, in_page) if in_page else b""


def instruction_sizes(pc, count, most):
    """Of the next ones within count bytes, as gdb disassembles them."""
    architecture, end = gdb.selected_inferior().architecture(), pc + count
    while most > 0 and pc < end:
        try:
            instruction = architecture.disassemble(pc)[0]
        except gdb.MemoryError:
            return
        size = instruction["length"]
        if pc + size > end or "(bad)" in instruction["asm"]:
            return
        yield size
        pc, most = pc + size, most - 1


class X86:
    """Where in its function an instruction stands, as injector/unwind/code_shape.c finds out, and what
    that means for its frame."""

    PUSH, SETS, MOST_BETWEEN = 0x55, (b"\x48\x89\xe5", b"\x48\x8b\xec"), 64
    RETURNS, LEAVES = (0xC3, 0xC2), (0x5D, 0xC9)
    PREFIXES = b"\x66\x67\xf0\xf2\xf3\x2e\x36\x3e\x26\x64\x65"
    # Moves, arithmetic and accesses to memory, with ModRM; and what has none behind 0f.
    PLAIN = {op for op in range(0x40) if op % 8 < 4} | set(range(0x80, 0x86)) | {0x63, 0xC6, 0xC7}
    PLAIN |= set(range(0x88, 0x8E))
    WITHOUT_MODRM = set(range(0x05, 0x0D)) | {0x0E, 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA}
    WITHOUT_MODRM |= set(range(0x30, 0x38)) | set(range(0x80, 0x90)) | set(range(0xC8, 0xD0))
    LONGEST_CALL, MOST_LEAVING = 7, 8

    def prologue(self, code):
        """Where push rbp stands, and the end of mov rbp,rsp; or None."""
        at = 0
        while (at := code.find(b"\x48", at)) >= 0:
            if code[at : at + 3] in self.SETS:
                push = code.rfind(self.PUSH, max(0, at - self.MOST_BETWEEN), at)
                if push >= 0:
                    return push, at + 3
            at += 1
        return None

    def is_leaving(self, pc, code, offset):
        """At a return, or with nothing but moves in front of one: the frame has been taken down."""
        if offset > 0 and code[offset - 1] in self.LEAVES:
            return True
        for size in instruction_sizes(pc, len(code) - offset, self.MOST_LEAVING):
            rex, opcode = self.opcode(code[offset : offset + size])
            if opcode[:1] and opcode[0] in self.RETURNS:
                return True
            if not self.is_plain(rex, opcode):
                return False
            offset += size
        return False

    def opcode(self, instruction):
        """Its REX prefix, or 0, and what is behind its prefixes."""
        left = instruction.lstrip(self.PREFIXES)
        return (left[0], left[1:]) if left and left[0] & 0xF0 == 0x40 else (0, left)

    def is_plain(self, rex, opcode):
        """Whether it goes on behind it, with rsp and rbp as they were."""
        first, second = opcode[:1], opcode[1:2]
        if not second:
            return False
        first, second = first[0], second[0]
        if first in (0xC4, 0xC5, 0x62) or first == 0x8F and second & 0x1F >= 8:
            return True  # VEX, EVEX, XOP
        if first == 0x0F:
            return second not in self.WITHOUT_MODRM
        if 0xB8 <= first <= 0xBF:
            return first & 7 | (rex & 1) << 3 not in (4, 5)
        reg, rm = second >> 3 & 7 | (rex & 4) << 1, second & 7 | (rex & 1) << 3
        return first in self.PLAIN and reg not in (4, 5) and (second < 0xC0 or rm not in (4, 5))

    def is_call(self, code):
        """Whether code ends in a call."""
        if code[-5:-4] == b"\xe8":
            return True
        return any(self.indirect_bytes(code[-n:]) == n for n in range(2, len(code) + 1))

    @staticmethod
    def indirect_bytes(code):
        if code[0] != 0xFF or code[1] >> 3 & 7 != 2:
            return 0
        mode, base = code[1] >> 6, code[1] & 7
        if mode == 3:
            return 2
        if mode == 0 and base == 5:
            return 6
        if base == 4 and mode == 0 and len(code) > 2 and code[2] & 7 == 5:
            return 7
        return 2 + (base == 4) + (0, 1, 4)[mode]

    def returns_to(self, pc):
        try:
            return self.is_call(memory_before(pc, self.LONGEST_CALL))
        except gdb.MemoryError:
            return False

    def frame(self, pc, sp, fp, code, offset, innermost):
        """The frame's end, the caller's pc and its rbp."""
        prologue = self.prologue(code)
        if innermost and prologue and prologue[0] < offset < prologue[1]:
            return sp + 16, word(sp + 8), word(sp)
        top = innermost and (prologue is None or self.is_leaving(pc, code, offset))
        if top or (prologue and offset <= prologue[0]):
            if self.returns_to(word(sp)):
                return sp + 8, word(sp), fp
        if fp % 8 or fp < sp:
            return None
        if not (self.returns_to(word(fp + 8)) or table.begins_at(word(fp + 8))):
            return None
        return fp + 16, word(fp + 8), word(fp)


class Aarch64:
    """x29 points at the caller's x29 and x30."""

    def returns_to(self, pc):
        del pc
        return True

    def frame(self, pc, sp, fp, code, offset, innermost):
        del pc, code, offset, innermost
        if fp % 8 or fp < sp:
            return None
        return fp + 16, word(fp + 8), word(fp)


MACHINES = {"x86_64": X86, "aarch64": Aarch64}


class FramePointers(Unwinder):
    """Code without tables is walked by its frame pointer.  Registers are what gdb calls pc, sp and fp."""

    def __init__(self, machine, registers):
        super().__init__("perfjit")
        self.machine, self.registers = machine, registers

    def __call__(self, pending):
        machine, innermost = self.machine, pending.level() == 0
        pc, sp, fp = (number(pending.read_register(name)) for name in self.registers)
        # A call may be the last instruction of its function; V8's deoptimizer makes frames that go on
        # at the first one.
        exact = innermost or (table.begins_at(pc) and not machine.returns_to(pc))
        code = table.code_without_table(pc if exact else pc - 1)
        if code is None:
            return None
        try:
            body = memory(code[0], code[1] - code[0]) if code[2] else b""
            caller = machine.frame(pc, sp, fp, body, pc - code[0], innermost and code[2])
        except gdb.MemoryError:
            caller = None
        if caller is None or caller[0] <= sp:
            caller = sp, pc + exact, fp  # this frame again: that ends the stack, where gdb guesses
        info = pending.create_unwind_info(FrameId(gdb.Value(caller[0]), gdb.Value(code[0])))
        for name, value in zip(self.registers, (caller[1], caller[0], caller[2])):
            info.add_saved_register(name, gdb.Value(value))
        return info


def begin(path, machine, registers, command):
    global REFRESH
    REFRESH = command
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        images = table.take(file.read())
    if machine in MACHINES:
        gdb.unwinder.register_unwinder(None, FramePointers(MACHINES[machine](), registers))
    else:
        print("perfjit: code without tables is not known on machine %s: stacks end there" % machine)
    gdb.events.stop.connect(on_stop)
    # The table is older than gdb's attaching: the process has gone on meanwhile.
    if not table.live or not refresh(False):
        load(images)
    gdb.invalidate_cached_frames()


REFRESH = []
Refresh()
