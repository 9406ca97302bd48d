-- LuaJIT's traces in Linux perf: names, and stacks that go through them.  No change to LuaJIT; x86-64.
--
--     PERFJIT=dump perf record -k mono --call-graph dwarf luajit -l perfjit script.lua
--     perfjit inject && perf report -i perf.jit.data
--
-- jit.attach calls `log` for each trace that was compiled, and once when all are thrown away; both go to
-- libjitdump.  Without PERFJIT=dump nothing is attached.
-- (frames.lua: functions that have a frame of their own, interpreted or not.)
local ffi, bit = require("ffi"), require("bit")
local util = require("jit.util")

ffi.cdef [[
struct jitdump;
struct jitdump_cfi;
struct jitdump_unwind { const void *data; uint64_t unwinding_size, eh_frame_hdr_size, mapped_size; };
struct jitdump_code {
    size_t size;
    const char *name;
    uint64_t code_addr, code_size;
    const void *bytes;
    const void *lines;
    size_t line_count;
    const struct jitdump_unwind *unwind;
    const void *inlines;
    size_t inline_count;
    const uint32_t *line_inlines;
};
int jitdump_open(struct jitdump **dump, const void *options);
int jitdump_close(struct jitdump *dump);
const char *jitdump_error(const struct jitdump *dump);
int jitdump_add_code(struct jitdump *dump, const struct jitdump_code *code, uint64_t *index);
int jitdump_unload_code(struct jitdump *dump, uint64_t index, uint64_t addr, uint64_t size);
struct jitdump_cfi *jitdump_cfi_new(int arch);
void jitdump_cfi_reset(struct jitdump_cfi *cfi);
void jitdump_cfi_def_cfa_offset(struct jitdump_cfi *cfi, uint64_t at, int64_t offset);
void jitdump_cfi_offset(struct jitdump_cfi *cfi, uint64_t at, unsigned reg, int64_t offset);
int jitdump_cfi_finish(struct jitdump_cfi *cfi, uint64_t code_size, struct jitdump_unwind *unwind);
]]

local lib = ffi.load("jitdump")
local handle = ffi.new("struct jitdump *[1]")
local failed = lib.jitdump_open(handle, nil) ~= 0
local dump = handle[0]
if failed then
    io.stderr:write("perfjit.lua: ", ffi.string(lib.jitdump_error(dump)), "\n")
end
if failed or dump == nil then
    return {}
end

-- A trace runs in the frame of LuaJIT's interpreter: return address, four saved registers, 40 bytes, and
-- two registers that only traces save.  Registers have DWARF's numbers: rbp, rbx, r15, r14.
local FRAME_BYTES = 96
local SAVED = {[6] = -16, [3] = -24, [15] = -32, [14] = -40}
local X86_64 = 62

local cfi = lib.jitdump_cfi_new(X86_64)
local code, unwind = ffi.new("struct jitdump_code"), ffi.new("struct jitdump_unwind")
local index = ffi.new("uint64_t[1]")
local traces = {} -- by number

-- `add rsp, N` (48 83 c4 ib, 48 81 c4 id) at TEXT's offset AT, from 1: N, and the offset of the next instruction, from 0.
local function decode_add(text, at)
    if text:byte(at + 1) == 0x83 then
        return bit.arshift(bit.lshift(text:byte(at + 3), 24), 24), at + 3
    end
    local a, b, c, d = text:byte(at + 3, at + 6)
    return bit.bor(a, bit.lshift(b, 8), bit.lshift(c, 16), bit.lshift(d, 24)), at + 6
end

-- A trace makes room for what it spills with its first instructions, and gives it back right before its
-- last jump.
local function describe_frame(trace, text, parent_room)
    lib.jitdump_cfi_reset(cfi)
    lib.jitdump_cfi_def_cfa_offset(cfi, 0, FRAME_BYTES + parent_room)
    for register, offset in pairs(SAVED) do lib.jitdump_cfi_offset(cfi, 0, register, offset) end
    trace.room = parent_room
    local at = text:sub(1, 24):find("\72[\129\131]\196")
    if at then
        local added, next_offset = decode_add(text, at)
        trace.room = parent_room - added
        lib.jitdump_cfi_def_cfa_offset(cfi, next_offset, FRAME_BYTES + trace.room)
    end
    at = text:find("\72\131\196.\233....\144*$")
        or text:find("\72\129\196....\233....\144*$")
    if at and trace.room ~= 0 then
        local _, next_offset = decode_add(text, at)
        lib.jitdump_cfi_def_cfa_offset(cfi, next_offset, FRAME_BYTES)
    end
    return lib.jitdump_cfi_finish(cfi, #text, unwind) == 0 and unwind or nil
end

local function add_trace(number, func, pc, parent)
    local text, address = util.tracemc(number)
    if not text then return end
    if address < 0 then address = address + 2 ^ 32 end
    local trace = {address = address, size = #text}
    local place = util.funcinfo(func, pc)
    local name = ("TRACE %d %s"):format(number, place.loc or place.source or "?")
    code.size, code.name = ffi.sizeof(code), name
    code.code_addr, code.code_size, code.bytes = address, #text, text
    code.unwind = describe_frame(trace, text, traces[parent] and traces[parent].room or 0)
    lib.jitdump_add_code(dump, code, index)
    trace.index = index[0]
    traces[number] = trace
end

local function forget_all()
    for _, trace in pairs(traces) do
        lib.jitdump_unload_code(dump, trace.index, trace.address, trace.size)
    end
    traces = {}
end

local started = {} -- the arguments of the last "start"
local function log(what, number, func, pc, parent)
    if what == "start" then
        started = {func = func, pc = pc, parent = parent}
    elseif what == "stop" then
        add_trace(number, started.func, started.pc, started.parent or 0)
    elseif what == "flush" then
        forget_all()
    end
end

jit.attach(log, "trace")
return {lib = lib, dump = dump}
